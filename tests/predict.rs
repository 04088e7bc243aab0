//! `hpl-tune machines` and `hpl-tune predict`: published descriptions, predictions, pictures, and what is refused.

use std::path::{Path, PathBuf};

use serde_json::Value;
use space::machine::{Machine, published};

use crate::program::{err, hpl_dat, out, tune};

/// Standard output of a command that succeeds.
fn told(args: &[&str]) -> String {
    let output = tune(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
    out(&output)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&told(args)).unwrap()
}

fn refused(args: &[&str], words: &[&str]) {
    let output = tune(args);
    let text = err(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?}: '{word}' is not in: {text}");
    }
}

#[test]
fn every_published_machine_is_listed_and_printed() {
    let list = told(&["machines"]);
    let machines = json(&["machines", "--json"]);
    assert_eq!(machines["machines"].as_array().unwrap().len(), published::ALL.len());
    for published in published::ALL {
        assert!(list.contains(published.name), "{list}");
        let text = told(&["machines", published.name]);
        assert_eq!(Machine::parse(&text).unwrap(), published.machine().unwrap());
    }
    refused(&["machines", "no-such"], &["no-such", "hpl-tune machines"]);
}

#[test]
fn the_paper_s_p100_is_reproduced() {
    let one =
        ["predict", "--machine", "p100-cluster", "--nodes", "1", "--p", "1", "--q", "1", "--nb", "1024", "--json"];
    for (memory, paper) in [("equivalent", 3840.0), ("simple-sum", 4347.0)] {
        let answer = json(&[&one[..], &["--memory", memory]].concat());
        assert_eq!((answer["n"].as_u64(), answer["model"].as_str()), (Some(44_000), Some("mcl")));
        let rate = answer["predicted_rate_gflops"].as_f64().unwrap();
        assert!((rate / paper - 1.0).abs() < 0.005, "{rate}");
        assert_eq!(answer["measured_rate_gflops"][0].as_f64(), Some(3882.0));
        let terms = answer["terms"].as_array().unwrap();
        let sum: f64 = terms.iter().map(|term| term["time_s"].as_f64().unwrap()).sum();
        assert!((sum / answer["predicted_time_s"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    }
    let table = |layers| {
        json(&["predict", "--machine", "p100-cluster", "--measured", "--nb", "1024", "--layers", layers, "--json"])
    };
    let difference = |layers| table(layers)["mean_difference_percent"].as_f64().unwrap();
    assert!(difference("ends") <= 5.2 && difference("all") <= 6.7);
    // The description holds the choices.
    let plain = json(&["predict", "--machine", "p100-cluster", "--measured", "--json"]);
    assert_eq!(plain["mean_error_percent"], table("ends")["mean_error_percent"]);
    let left_out = json(&["predict", "--machine", "p100-cluster", "--leave-one-out", "--nb", "1024", "--json"]);
    assert!(left_out["mean_error_percent"].as_f64().unwrap() < 5.4, "{left_out}");
}

#[test]
fn the_readings_differ_with_several_layers_only() {
    let rate = |reading, grid: [&str; 3]| {
        let [nodes, p, q] = grid;
        let args =
            ["predict", "--machine", "p100-cluster", "--json", "--n", "90000", "--nodes", nodes, "--p", p, "--q", q];
        json(&[&args[..], &["--reading", reading]].concat())["predicted_rate_gflops"].as_f64().unwrap()
    };
    assert_eq!(rate("printed", ["1", "1", "1"]), rate("cumulative", ["1", "1", "1"]));
    assert!(rate("printed", ["4", "4", "4"]) > rate("cumulative", ["4", "4", "4"]));
}

#[test]
fn one_crusher_node_is_fitted_and_128_are_predicted() {
    let table = json(&["predict", "--machine", "crusher", "--measured", "--json"]);
    let rows = table["rows"].as_array().unwrap();
    let error =
        |row: &Value| row["predicted_gflops"].as_f64().unwrap() / row["measured_gflops"].as_f64().unwrap() - 1.0;
    assert!(error(&rows[0]).abs() < 1e-3 && error(&rows[1]).abs() < 0.05, "{table}");
    assert_eq!((rows[0]["n_assumed"].as_bool(), rows[1]["n_assumed"].as_bool()), (Some(false), Some(true)));
}

#[test]
fn runs_on_devices_are_predicted_from_stated_rates() {
    let of = |machine: &str, more: &[&str]| json(&[&["predict", "--machine", machine, "--json"], more].concat());
    let rate = |answer: &Value| answer["predicted_rate_gflops"].as_f64().unwrap();
    for machine in ["h100", "h200", "mi250x-gcd"] {
        let answer = of(machine, &[]);
        assert_eq!(answer["model"].as_str(), Some("device"), "{answer}");
        let terms = answer["terms"].as_array().unwrap().iter().map(|term| term["time_s"].as_f64().unwrap());
        let time_s = answer["predicted_time_s"].as_f64().unwrap();
        assert!((terms.sum::<f64>() / time_s - 1.0).abs() < 1e-9, "{answer}");
    }
    let h200 = |more: &[&str]| rate(&of("h200", &[&["--n", "129024", "--nb", "512"], more].concat()));
    assert!(h200(&["--host-panel-gflops", "300"]) > 1.05 * h200(&["--fact", "host"]));
    assert!(h200(&["--fact", "device"]) > 1.05 * h200(&["--fact", "host"]));
    assert_eq!(h200(&["--fact", "device"]), h200(&[]));
    assert!(told(&["predict", "--machine", "h200"]).contains("NB 1024"));
    assert!(told(&["predict", "--machine", "h200", "--nb", "128"]).contains("is a guess"));
    assert_eq!(h200(&["--split", "0.5"]), h200(&[]));
    let node = ["--model", "device", "--n", "256000", "--p", "4", "--q", "2"];
    let crusher = |more: &[&str]| rate(&of("crusher", &[&node[..], more].concat()));
    assert!(crusher(&["--split", "0.5"]) > 1.02 * crusher(&["--split", "0"]));
    let text = told(&["predict", "--machine", "h100", "--fact", "device"]);
    for words in ["NVIDIA's HPL", "FACT            on the device", "FACT hidden", "sustained", "nothing fitted"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let output = tune(["predict", "--machine", "crusher", "--split", "0.5", "--fact", "host"]);
    assert!(err(&output).contains("without --split, --fact this prediction is the same"), "{}", err(&output));
    let output = tune(["predict", "--machine", "dahu", "--n", "20000", "--rank-gflops", "20", "--alpha", "1e-6"]);
    assert!(err(&output).contains("without --rank-gflops, --alpha this prediction is the same"), "{}", err(&output));
    let device =
        |more: &[&str], words: &[&str]| refused(&[&["predict", "--n", "20000", "--machine"], more].concat(), words);
    device(&["crusher", "--model", "device", "--fact", "device"], &["panel_s of [device]", "--fact host"]);
    device(&["dahu", "--model", "device"], &["[device]"]);
    device(&["h100", "--split", "1"], &["'1' is not a number of at least 0 and below 1"]);
    device(&["h100", "--fact", "gpu"], &["possible values: host, device"]);
    device(&["h100", "--p", "2", "--q", "1"], &["need 2 nodes, there are 1"]);
}

#[test]
fn what_a_model_does_not_see_is_said() {
    let output = tune(["predict", "--machine", "crusher", "--bcast", "long", "--depth", "0"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(err(&output).contains("does not depend on DEPTH, BCAST"), "{}", err(&output));
    assert!(out(&output).contains("note: "), "{}", out(&output));
}

/// The flags of a run that a measured one does not state are obeyed or refused.
#[test]
fn measured_runs_take_the_flags_that_they_leave_open() {
    let crusher = |more: &[&str]| {
        let args = ["predict", "--machine", "crusher", "--model", "device", "--measured", "--json"];
        let table = json(&[&args[..], more].concat());
        table["rows"][0]["predicted_gflops"].as_f64().unwrap()
    };
    assert!(crusher(&["--depth", "0"]) < crusher(&["--depth", "1"]));
    let output = tune(["predict", "--machine", "crusher", "--measured", "--bcast", "long"]);
    assert!(err(&output).contains("does not depend on BCAST"), "{}", err(&output));
    let output = tune(["predict", "--machine", "crusher", "--measured", "--split", "0.5", "--nb", "256"]);
    let idle = ["without --split these predictions are the same", "without --nb these predictions are the same"];
    assert!(idle.iter().all(|words| err(&output).contains(words)), "{}", err(&output));
    let leave_one_out = ["predict", "--machine", "p100-cluster", "--leave-one-out"];
    let flags: [&[&str]; 4] = [&["--depth", "0"], &["--layers", "ends"], &["--rank-gflops", "100"], &["--round-n"]];
    for flag in flags {
        refused(&[&leave_one_out[..], flag].concat(), &[flag[0]]);
    }
}

const DAHU: [&str; 4] = ["predict", "--machine", "dahu", "--json"];

#[test]
fn a_rate_of_one_kernel_alone_is_no_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    let text = published::find("dahu").unwrap().text;
    std::fs::write(&path, &text[..text.find("[timeline]").unwrap()]).unwrap();
    let path = path.to_str().unwrap();
    let answer = json(&["predict", "--machine", path, "--n", "500000", "--json"]);
    assert_eq!(answer["model"].as_str(), Some("mcl"), "{answer}");
    refused(&["predict", "--machine", path, "--n", "500000", "--model", "timeline"], &["[[phase]]", "[timeline]"]);
}

/// Messages beyond the layers cost what those within them do.
#[test]
fn ranks_that_the_layers_of_a_described_cluster_do_not_join_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    let text = published::find("dahu").unwrap().text;
    std::fs::write(&path, text.replace("ranks = 1024", "ranks = 512")).unwrap();
    let run = ["predict", "--machine", path.to_str().unwrap(), "--n", "100000", "--p", "32", "--q", "32"];
    refused(&run, &["multiply to 512 ranks, P×Q = 1024"]);
}

#[test]
fn a_described_cluster_is_walked_step_by_step() {
    let of = |more: &[&str]| json(&[&DAHU[..], &["--n", "250000"], more].concat());
    let plain = of(&[]);
    assert_eq!(plain["model"].as_str(), Some("timeline"), "{plain}");
    let sum =
        |key: &str| plain["parts"].as_array().unwrap().iter().map(|part| part[key].as_f64().unwrap()).sum::<f64>();
    let (steps, time_s) = (sum("steps"), plain["predicted_time_s"].as_f64().unwrap());
    assert_eq!(steps, f64::from(250_000_u32.div_ceil(128)));
    // What is left is the back substitution.
    assert!(sum("time_s") > 0.95 * time_s && sum("time_s") < time_s, "{plain}");
    assert!(["fact_s", "lbcast_s", "rs_s", "update_s"].iter().all(|phase| sum(phase) > 0.0), "{plain}");
    // All that it says to see, it sees.
    let changes = [
        ["--depth", "0"],
        ["--bcast", "long"],
        ["--swap", "bin-exch"],
        ["--pmap", "column"],
        ["--nb", "192"],
        ["--p", "16"],
    ];
    for change in changes {
        let changed = of(&change)["predicted_time_s"].as_f64().unwrap();
        assert!((changed / time_s - 1.0).abs() > 1e-4, "{change:?}: {changed} s, {time_s} s");
    }
    let output = tune([&DAHU[..], &["--n", "9000", "--depth", "2", "--pmap", "column"]].concat());
    assert!(!err(&output).contains("does not depend on"), "{}", err(&output));
    assert!(out(&output).contains("DEPTH 2 is taken as 1"), "{}", out(&output));
    let text = told(&["predict", "--machine", "dahu", "--n", "250000"]);
    assert!(text.contains("ms a step") && text.lines().any(|line| line.contains("0-195")), "{text}");
}

#[test]
fn extreme_runs_on_a_described_cluster_end_well() {
    for extreme in [
        &["--n", "1024", "--p", "32", "--q", "32"][..],
        &["--n", "1"],
        &["--n", "127", "--p", "1", "--q", "1"],
        &["--n", "129", "--nb", "4096"],
        &["--n", "5000", "--p", "1", "--q", "1024"],
        &["--n", "5000", "--p", "1024", "--q", "1", "--depth", "3"],
        &["--n", "5000", "--p", "7", "--q", "11", "--depth", "1", "--swap", "0", "--bcast", "longM"],
        &["--n", "1000000000", "--nb", "512"],
    ] {
        let answer = json(&[&DAHU[..], extreme].concat());
        assert_eq!(answer["model"].as_str(), Some("timeline"));
        assert!(answer["predicted_time_s"].as_f64().unwrap() > 0.0, "{extreme:?}: {answer}");
    }
    for (extreme, words) in [
        (&["--n", "1000", "--threads", "2"][..], &["ranks of one thread", "--threads 2", "--model mcl"][..]),
        (&["--n", "1000", "--nb", "4"], &["NB = 4", "raise NB to at least 12"]),
        (&["--n", "1000000000", "--nb", "16"], &["62500000 steps", "Q = 32", "raise NB"]),
        (&["--n", "1000", "--p", "64", "--q", "32"], &["need 64 nodes, there are 32"]),
        (&[], &["no N"]),
    ] {
        refused(&[&DAHU[..], extreme].concat(), words);
    }
}

/// Lists of as many steps would take gigabytes.
#[test]
fn runs_of_too_many_steps_have_a_closed_form_alone() {
    let theta = ["predict", "--machine", "theta", "--rank-gflops", "2000", "--alpha", "1e-6", "--link", "10"];
    let of = |more: &[&'static str]| [&theta[..], &["--n", "1000000000", "--nb", "16"], more].concat();
    let answer = json(&of(&["--json"]));
    assert!(answer["predicted_time_s"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["parts"].as_array().unwrap().is_empty(), "{answer}");
    refused(&of(&["--model", "netlib"]), &["62500000 steps", "raise NB"]);
}

#[test]
fn flags_stand_over_hpl_dat() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 5000, 96, 2, 2);
    let dat = dat.to_str().unwrap();
    let of = |more: &[&str]| json(&[&["predict", "--machine", "p100-cluster", "--json", "--dat", dat], more].concat());
    let plain = of(&[]);
    let sizes = |answer: &Value| ["n", "nb", "p", "q"].map(|name| answer[name].as_u64().unwrap());
    assert_eq!(sizes(&plain), [5000, 96, 2, 2]);
    assert_eq!(sizes(&of(&["--n", "6000", "--p", "1"])), [6000, 96, 1, 2]);
}

#[test]
fn pictures_are_whole_documents() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("out.svg");
    let pairs = [
        ("p100-cluster", "mcl"),
        ("crusher", "overlap"),
        ("crusher", "device"),
        ("h100", "device"),
        ("ibm-x440", "mcl"),
        ("theta", "netlib"),
        ("dahu", "timeline"),
    ];
    for (machine, model) in pairs {
        let n: &[&str] = if machine == "dahu" { &["--n", "100000"] } else { &[] };
        let what_if = ["--alpha", "1e-6", "--link", "1", "--rank-gflops", "2"];
        let args = ["predict", "--machine", machine, "--model", model, "--plot", svg.to_str().unwrap()];
        told(&[&args[..], &what_if, n].concat());
        let text = std::fs::read_to_string(&svg).unwrap();
        assert!(
            text.starts_with("<svg") && text.ends_with("</svg>\n") && !text.contains("NaN") && !text.contains("inf"),
            "{text}"
        );
        assert!(["Rate over N", "Phases over the run", "Weak scaling"].iter().all(|title| text.contains(title)));
    }
    let output = tune(["predict", "--machine", "crusher", "--plot", "/proc/nowhere.svg"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(err(&output).contains("/proc/nowhere.svg"), "{}", err(&output));
}

/// A copy of a published description with a change, as a file.
fn changed(folder: &Path, old: &str, new: &str) -> PathBuf {
    let text = published::find("p100-cluster").unwrap().text;
    assert!(text.contains(old), "{old}");
    let path = folder.join("machine.toml");
    std::fs::write(&path, text.replacen(old, new, 1)).unwrap();
    path
}

#[test]
fn hostile_machine_files_are_named_with_key_and_way_out() {
    let folder = tempfile::tempdir().unwrap();
    for (old, new, words) in [
        ("beta_s_per_word = 1e-9", "beta_s_per_word = -1e-9", &["[[layer]] 2", "beta_s_per_word", "-0.000000001"][..]),
        ("beta_s_per_word = 1e-9", "", &["beta_s_per_word", "missing"]),
        ("beta_s_per_word = 1e-9", "beta_gb_s = 8", &["beta_gb_s", "units are part of the key: write beta_s_per_word"]),
        ("clock_hz = 1.303e9", "clock_hz = 1.303e30", &["[accelerator]", "clock_hz"]),
        ("clock_hz = 1.303e9", "clock_hz = nan", &["[accelerator]", "clock_hz", "NaN"]),
        ("ranks = 16", "ranks = 18", &["[[layer]] 2 (InfiniBand)", "multiple of the 4"]),
        ("[[layer]]", "[[leyer]]", &["leyer"]),
        ("cores = 4 ", "cores = \"four\" ", &["cores", "line "]),
        ("[host]", "[host", &["line "]),
    ] {
        let path = changed(folder.path(), old, new);
        let path = path.to_str().unwrap();
        refused(&["predict", "--machine", path, "--n", "1000"], &[&[path], words].concat());
    }
    let path = changed(folder.path(), "ranks = 16", "ranks = 8");
    refused(&["predict", "--machine", path.to_str().unwrap(), "--n", "1000"], &["multiply to 8 ranks, P×Q = 16"]);
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let p100 =
        |more: &[&str], words: &[&str]| refused(&[&["predict", "--machine", "p100-cluster"], more].concat(), words);
    p100(&["--n", "0"], &["--n"]);
    p100(&["--n", "1000", "--p", "3"], &["16 ranks cannot form a grid with a side of 3"]);
    p100(&["--n", "1000", "--p", "5", "--q", "5"], &["need 7 nodes, there are 4"]);
    p100(&["--n", "1000", "--p", "1", "--q", "3", "--nodes", "2"], &["do not spread evenly"]);
    p100(&["--n", "1000", "--reading", "both"], &["possible values: cumulative, printed"]);
    p100(
        &["--n", "1000", "--nb", "4000", "--nodes", "1", "--p", "1", "--q", "4"],
        &["gives no time for N = 1000, NB = 4000", "lower NB"],
    );
    p100(&["--n", "1000", "--model", "overlap"], &["[offload]"]);
    p100(&["--n", "1000", "--model", "calibrated"], &["[[rate]]"]);
    refused(&["predict", "--machine", "crusher", "--n", "4000000"], &["N = 4000000", "lower N to at most 2965"]);
    refused(&["predict", "--machine", "stampede"], &["--rank-gflops"]);
    refused(
        &["predict", "--machine", "theta", "--rank-gflops", "2000"],
        &["a [[layer]] that joins 3232 ranks", "--link"],
    );
    refused(&["predict", "--machine", "isabella-hpc2", "--n", "1000"], &["alpha_s of [[layer]] 1", "--alpha"]);
    refused(&["predict", "--machine", "roadrunner"], &["[[layer]]"]);
    refused(&["predict", "--machine", "/no/such"], &["/no/such", "crusher"]);
}

#[test]
fn the_calibrated_model_predicts_this_machine() {
    let path = crate::program::machine_toml().to_str().unwrap();
    let answer = json(&["predict", "--machine", path, "--n", "1000", "--p", "1", "--q", "1", "--json"]);
    assert!(["calibrated", "timeline"].contains(&answer["model"].as_str().unwrap()), "{answer}");
    assert!(answer["predicted_rate_gflops"].as_f64().unwrap() > 0.01, "{answer}");
    let mcl = json(&["predict", "--machine", path, "--n", "1000", "--p", "1", "--q", "1", "--json", "--model", "mcl"]);
    assert_eq!(mcl["model"].as_str(), Some("mcl"));
}
