//! `hpl-tune weights`, `balance` and what they write.

use std::path::Path;

use space::weights_file::WeightsFile;

use crate::program::{err, hpl_dat, out, tune};

const FOUR: &str = r#"
[host]
name = "four"
origin = "the known example of four nodes"
[[node]]
name = "x4600m2"
count = 1
cores = 32
memory_bytes = 64_000_000_000
reserved_bytes = 2_000_000_000
peak_gflops = 172.8
link_gbytes_per_s = 1.0
[[node]]
name = "dell"
count = 1
cores = 24
memory_bytes = 128_000_000_000
reserved_bytes = 2_000_000_000
peak_gflops = 255.36
link_gbytes_per_s = 1.0
[[node]]
name = "dl585"
count = 1
cores = 8
memory_bytes = 16_000_000_000
reserved_bytes = 2_000_000_000
peak_gflops = 35.2
link_gbytes_per_s = 1.0
[[node]]
name = "dl580"
count = 1
cores = 16
memory_bytes = 24_000_000_000
reserved_bytes = 2_000_000_000
peak_gflops = 153.6
link_gbytes_per_s = 1.0
"#;

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn printed(args: &[&str]) -> String {
    let output = tune(args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

fn refused(args: &[&str], words: &[&str]) {
    let output = tune(args);
    let text = err(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(words.iter().all(|word| text.contains(word)) && !text.contains("panicked"), "{words:?}: {text}");
}

#[test]
fn the_known_example_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let machine = file(folder.path(), "four.toml", FOUR);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (weights, perf, hosts, svg) = (at("w.toml"), at("node-perf.dat"), at("hosts"), at("w.svg"));
    let text = printed(&[
        "weights",
        "--machine",
        &machine,
        "--n",
        "100000",
        "--method",
        "proportional",
        "--out",
        &weights,
        "--node-perf",
        &perf,
        "--ranks",
        "20",
        "--hostfile",
        &hosts,
        "--picture",
        &svg,
    ]);
    for word in
        ["0.2801", "0.4139", "0.0571", "0.2490", "a word counted 1 times", "predicted GFLOP/s", "not by the timeline"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let file = WeightsFile::parse(&std::fs::read_to_string(&weights).unwrap()).unwrap();
    assert_eq!((file.columns.len(), file.nodes.len(), file.nodes[0].name.as_str()), (4, 4, "dell"));
    let perf = std::fs::read_to_string(perf).unwrap();
    assert!(perf.contains("dell 1.0000") && perf.contains("dl585 0.1378"), "{perf}");
    assert_eq!(std::fs::read_to_string(hosts).unwrap().lines().count(), 4);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("equal weights") && svg.ends_with("</svg>\n"));
    assert!(text.lines().any(|line| line.starts_with("share of a node") && line.contains("equal")), "{text}");
    assert!(text.contains("equal: node dl585 holds 14.00 GB"), "{text}");
    // In the paper's way, with the part of all memory as a factor.
    let text = printed(&["weights", "--machine", &machine, "--memory", "paper"]);
    assert!(["0.2291", "0.6881", "0.0105", "0.0723"].iter().all(|word| text.contains(word)), "{text}");
    let json = printed(&["weights", "--machine", "isabella-hpc2", "--p", "4", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["p"].as_u64(), json["q"].as_u64()), (Some(4), Some(8)));
    assert_eq!(json["methods"].as_array().unwrap().len(), 4);
}

#[test]
fn impossible_weights_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let machine = file(folder.path(), "four.toml", FOUR);
    let weights = |more: &[&'static str], words: &[&str]| {
        let args: Vec<&str> = ["weights", "--machine", &machine].into_iter().chain(more.iter().copied()).collect();
        refused(&args, words);
    };
    weights(&["--speeds", "1,2"], &["--speeds", "2 speeds for 4 groups"]);
    weights(&["--speeds", "1,2,3,-4"], &["dl580", "at least 0", "-4"]);
    weights(&["--speeds", "1,2,3,NaN"], &["dl580", "NaN"]);
    weights(&["--speeds", "0,0,0,0"], &["all speeds are 0"]);
    weights(&["--p", "3"], &["P=3 Q=1", "4"]);
    weights(&["--n", "10000000"], &["lower N to 167332"]);
    weights(&["--ranks", "1000"], &["--ranks 1000", "80 cores"]);
    refused(&["weights", "--machine", "no-such"], &["no-such", "isabella-hpc1"]);
    let bare = file(folder.path(), "bare.toml", &FOUR.replace("peak_gflops = 35.2\n", ""));
    refused(&["weights", "--machine", &bare], &["bare.toml", "dl585", "hpl-tune survey"]);
    let cut = format!(
        "{FOUR}[[link]]\nnodes = [\"dell\", \"dl580\"]\ngbytes_per_s = 9.0\n[[link]]\nnodes = [\"dl580\", \"dell\"]\ngbytes_per_s = 1.0\n"
    );
    refused(&["weights", "--machine", &file(folder.path(), "cut.toml", &cut)], &["asymmetric", "9 GB/s", "1 GB/s"]);
}

#[test]
fn a_run_takes_a_weights_file() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 300, 16, 1, 2);
    let good = file(folder.path(), "good.toml", "columns = [0.99, 0.01]\n");
    let run = ["run", "--dat", dat.to_str().unwrap(), "--weights"];
    assert!(printed(&[run.as_slice(), &[&good]].concat()).contains("PASSED"));
    let three = file(folder.path(), "three.toml", "columns = [1.0, 1.0, 1.0]\n");
    refused(&[run.as_slice(), &[&three]].concat(), &["weights.columns must hold Q=2 speeds", "3"]);
    let negative = file(folder.path(), "negative.toml", "columns = [1.0, -1.0]\n");
    refused(&[run.as_slice(), &[&negative]].concat(), &["negative.toml", "-1"]);
}

#[test]
fn two_workers_share_a_product() {
    for format in ["dense", "csr"] {
        let text = printed(&["balance", "--rows", "400", "--cols", "300", "--format", format, "--repeats", "3"]);
        assert!(text.contains("measured, nobody waiting") && text.contains("of the sum at once"), "{text}");
    }
    let text = printed(&["balance", "--by", "six-states", "--peak-ratio", "28", "--simulate", "4.22,0.58"]);
    assert!(text.contains("simulated") && text.contains("ratio 5") && text.contains("1.308"), "{text}");
    refused(&["balance", "--peak-ratio", "0.5"], &["--peak-ratio 0.5", "at least 1"]);
    refused(&["balance", "--rows", "900000000", "--cols", "4000000000"], &["GiB", "lower"]);
    refused(&["balance", "--simulate", "4.22,-1"], &["--simulate"]);
}

/// Two ranks of which one is held to fewer instructions, in earnest: surveyed, weighed by measuring, run.
#[test]
fn unequal_ranks_are_surveyed_and_weighed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let engine = file(folder.path(), "e.toml", "rank_kernels = [\"builtin\", \"builtin-portable\"]\n");
    if hpl::host::facts().cores_allowed.len() >= 2 {
        let (machine, n) = (at("machine.toml"), ["--n", "200", "--repeats", "3"]);
        let survey = ["survey", "--ranks", "2", "--engine-params", &engine, "--out", &machine];
        let text = printed(&[survey.as_slice(), &n].concat());
        assert!(text.contains("rank  host") && text.contains("hpl-tune weights --machine"), "{text}");
        assert!(printed(&["weights", "--machine", &machine, "--n", "2000"]).contains("2 nodes in 2 groups"));
    } else {
        println!("skipped the survey: it needs two cores");
    }
    refused(&["survey", "--ranks", "4096"], &["--ranks 4096", "lower"]);

    let dat = hpl_dat(folder.path(), 400, 16, 1, 2);
    let (dat, weights) = (dat.to_str().unwrap(), at("w.toml"));
    let text = printed(&["weights", "--measure", dat, "--engine-params", &engine, "--out", &weights]);
    assert!(text.contains("kept") && text.contains("by the windows"), "{text}");
    let columns = WeightsFile::parse(&std::fs::read_to_string(&weights).unwrap()).unwrap().columns;
    assert!((columns.iter().map(|share| share.get()).sum::<f64>() - 1.0).abs() < 1e-9 && columns.len() == 2);
    let run = ["run", "--dat", dat, "--engine-params", &engine, "--weights", &weights];
    assert!(printed(&run).contains("PASSED"));
    let one = hpl_dat(folder.path(), 100, 16, 1, 1);
    refused(&["weights", "--measure", one.to_str().unwrap()], &["one rank", "raise P or Q"]);
    let three = file(folder.path(), "three.toml", "rank_kernels = [\"builtin\", \"builtin\", \"builtin\"]\n");
    let dat = hpl_dat(folder.path(), 100, 16, 1, 2);
    refused(&["run", "--dat", dat.to_str().unwrap(), "--engine-params", &three], &["rank_kernels", "P·Q=2", "found 3"]);
}
