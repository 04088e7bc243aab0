//! `hpl-tune weights`, `balance` and what they write.

use std::path::Path;

use space::machine::{EnginePhase, PhaseRate};
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

/// The fastest of them had the first place, and rank 0 got its share.
#[test]
fn ranks_of_a_survey_have_the_weights_of_their_own_speeds() {
    let folder = tempfile::tempdir().unwrap();
    let survey = FOUR.replace("the known example of four nodes", "hpl-tune survey, 2026-11-30: on all ranks at once");
    let machine = file(folder.path(), "survey.toml", &survey);
    let weights = folder.path().join("w.toml");
    let to = weights.to_str().unwrap();
    printed(&["weights", "--machine", &machine, "--n", "100000", "--method", "proportional", "--out", to]);
    let found = WeightsFile::parse(&std::fs::read_to_string(&weights).unwrap()).unwrap();
    let names: Vec<&str> = found.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["x4600m2", "dell", "dl585", "dl580"]);
    let mut shares = found.columns.iter().zip([0.2801, 0.4139, 0.0571, 0.2490]);
    assert!(shares.all(|(share, expected)| (share.get() - expected).abs() < 1e-4), "{:?}", found.columns);
}

/// A description may be of somebody else.
#[test]
fn the_names_of_a_description_do_not_control_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let machine = file(folder.path(), "four.toml", &FOUR.replace("\"dell\"", "\"\\u001b[2Jdell\""));
    let text = printed(&["weights", "--machine", &machine, "--ranks", "8"]);
    assert!(text.contains("\u{fffd}[2Jdell") && !text.contains('\u{1b}'), "{text:?}");
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
    weights(&["--n", "192"], &["--n 192", "NB = 192", "lower --nb"]);
    weights(&["--nb", "1000000"], &["--nb 1000000", "lack memory"]);
    weights(&["--ranks", "1000"], &["--ranks 1000", "80 cores"]);
    refused(&["weights", "--machine", "no-such"], &["no-such", "isabella-hpc1"]);
    let bare = file(folder.path(), "bare.toml", &FOUR.replace("peak_gflops = 35.2\n", ""));
    refused(&["weights", "--machine", &bare], &["bare.toml", "dl585", "hpl-tune survey"]);
    let cut = format!(
        "{FOUR}[[link]]\nnodes = [\"dell\", \"dl580\"]\ngbytes_per_s = 9.0\n[[link]]\nnodes = [\"dl580\", \"dell\"]\ngbytes_per_s = 1.0\n"
    );
    refused(&["weights", "--machine", &file(folder.path(), "cut.toml", &cut)], &["asymmetric", "9 GB/s", "1 GB/s"]);
    let names = ["x4600m2", "dell", "dl585"];
    let none = names.map(|other| format!("[[link]]\nnodes = [\"dl580\", \"{other}\"]\ngbytes_per_s = 0.0\n")).concat();
    let alone = file(folder.path(), "alone.toml", &format!("{FOUR}{none}"));
    refused(&["weights", "--machine", &alone], &["no chain of links joins", "dl580", "add a [[link]]"]);
    let empty = file(folder.path(), "empty.toml", &FOUR.replace("memory_bytes = 16_000_000_000\n", ""));
    refused(&["weights", "--machine", &empty], &["dl585", "memory_bytes"]);
    let full = ["--n", "100000", "--method", "equal"];
    weights(&full, &["dl585 holds 14.00 GB, its share at N=100000 needs 20.00 GB; lower N to 83666"]);
}

/// With the phases of a node the timeline predicts, too: equal weights lose against those of a node of half the speed.
#[test]
fn phases_of_a_node_predict_by_the_timeline() {
    let folder = tempfile::tempdir().unwrap();
    // A nanosecond for ten of whatever a phase counts, on one thread.
    let phase = |phase: EnginePhase| PhaseRate {
        phase,
        threads: 1,
        coefficients: vec![1e-10; phase.coefficient_count()],
        n: [100, 10_000],
        nb: [16, 512],
        runs: 9,
        spread: 0.0,
        fit_error: 0.0,
        date: "2026-11-20".into(),
        origin: "made up".into(),
    };
    let node = |name: &str, rate_gflops| space::machine::Node {
        name: name.to_owned(),
        count: 1,
        cores: 1,
        memory_bytes: 4 << 30,
        rate_gflops,
        link_gbytes_per_s: 1.0,
        ..space::machine::Node::default()
    };
    let machine = space::machine::Machine {
        nodes: vec![node("fast", 40.0), node("slow", 20.0)],
        phases: EnginePhase::ALL.map(phase).to_vec(),
        ..space::machine::Machine::default()
    };
    let file = file(folder.path(), "two.toml", &machine.to_toml().unwrap());
    let json = printed(&["weights", "--machine", &file, "--n", "8000", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rate = |name: &str| {
        let methods = json["methods"].as_array().unwrap();
        methods.iter().find(|of| of["method"] == name).unwrap()["timeline_rate_gflops"].as_f64().unwrap()
    };
    for method in ["proportional", "slem", "model"] {
        assert!(rate(method) > 1.2 * rate("equal"), "{method}: {json}");
    }
    let text = printed(&["weights", "--machine", &file, "--n", "8000"]);
    assert!(text.contains("by the timeline: panels, messages and look-ahead too"), "{text}");
}

/// Programs that answer like a job with a dead node, or not at all.
#[test]
fn a_node_that_answers_no_benchmark_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let survey = |says: &str, words: &[&str]| {
        let program = file(folder.path(), "xhpl", &format!("#!/bin/sh\n{says}\n"));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let of = ["survey", "--ranks", "2", "--limit", "1s", "--launcher", "none", "--program", &program];
        let output = crate::program::hpl_tune().args(of).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(words.iter().all(|word| err(&output).contains(word)), "{words:?}: {}", err(&output));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "only the program is left");
    };
    let link = |other: usize, rate: f64| {
        format!("{{\"other\":{other},\"latency_s\":1e-6,\"gbytes_per_s\":{rate},\"alone_gbytes_per_s\":null}}")
    };
    let rank = |rank: usize, rates: &str, links: &str| {
        format!(
            "{{\"rank\":{rank},\"host\":\"node{rank}\",\"cpu\":\"CPU\",\"cores\":1,\"kernels\":\"builtin\",\"memory_bytes\":1000,\
             \"dgemm_gflops\":[{rates}],\"hpl_gflops\":[{rates}],\"socket\":null,\"links\":[{links}]}}"
        )
    };
    let says = |ranks: &[String]| format!("echo '{{\"kernels\":\"builtin\",\"ranks\":[{}]}}'", ranks.join(","));
    let way_out = "leave its node out";
    let [to_0, to_1] = [0, 1].map(|other| link(other, 1.0));
    let silent = says(&[rank(0, "9.0", &to_1), rank(1, "", &to_0)]);
    survey(&silent, &["rank 1 on node1 did not answer the benchmark", way_out]);
    let unlinked = says(&[rank(0, "9.0", &link(1, 0.0)), rank(1, "9.0", &to_0)]);
    survey(&unlinked, &["rank 0 on node0 did not answer the benchmark", way_out]);
    survey(
        &says(&[rank(0, "9.0", ""), rank(1, "9.0", &to_0)]),
        &["rank 0 on node0 did not answer the benchmark", way_out],
    );
    survey(&says(&[rank(0, "9.0", &to_1)]), &["1 of 2 ranks answered", "--ranks"]);
    survey("echo hello", &["no survey in its output"]);
    survey("exit 3", &["exit status: 3"]);
    survey("exec sleep 60", &["no answer within 1 s", "survey fewer nodes", "--limit"]);
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
    let nan = file(folder.path(), "nan.toml", "columns = [1.0, nan]\n");
    refused(&[run.as_slice(), &[&nan]].concat(), &["nan.toml", "NaN", "finite"]);
    let zero = file(folder.path(), "zero.toml", "columns = [0.0, 0.0]\n");
    refused(&[run.as_slice(), &[&zero]].concat(), &["zero.toml", "all columns are 0", "make one of them positive"]);
    let none = file(folder.path(), "none.toml", "origin = \"nowhere\"\n");
    refused(&[run.as_slice(), &[&none]].concat(), &["none.toml", "neither rows nor columns"]);
}

#[test]
fn two_workers_share_a_product() {
    for format in ["dense", "csr"] {
        let text = printed(&["balance", "--rows", "400", "--cols", "300", "--format", format, "--repeats", "3"]);
        assert!(text.contains("measured, without waiting") && text.contains("of the sum at once"), "{text}");
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
    if hpl::machine::host::facts().cores_allowed.len() >= 2 {
        let (machine, n) = (at("machine.toml"), ["--n", "200", "--repeats", "3"]);
        let survey = ["survey", "--ranks", "2", "--engine-params", &engine, "--out", &machine];
        let text = printed(&[survey.as_slice(), &n].concat());
        assert!(text.contains("rank  host") && text.contains("hpl-tune weights --machine"), "{text}");
        assert!(printed(&["weights", "--machine", &machine, "--n", "2000"]).contains("2 nodes in 2 groups"));
        let surveyed = space::machine::Machine::parse(&std::fs::read_to_string(&machine).unwrap()).unwrap();
        assert_eq!(surveyed.host.kernels, "builtin", "as a session reads it");
        assert_eq!((surveyed.layers.len(), surveyed.layers[0].ranks, surveyed.links.len()), (1, 2, 0));
        assert!(surveyed.layers[0].alpha_s.is_some_and(|alpha_s| alpha_s > 0.0), "{:?}", surveyed.layers);
    } else {
        refused(&["survey", "--ranks", "2", "--engine-params", &engine], &["--ranks 2", "lower"]);
    }
    refused(&["survey", "--ranks", "4096"], &["--ranks 4096", "lower"]);

    let dat = hpl_dat(folder.path(), 400, 16, 1, 2);
    let (dat, weights, svg) = (dat.to_str().unwrap(), at("w.toml"), at("w.svg"));
    let measure = ["weights", "--measure", dat, "--engine-params", &engine, "--out", &weights, "--picture", &svg];
    let text = printed(&measure);
    assert!(text.contains("by the windows") && text.contains("kept/equal") && text.contains("6 pairs"), "{text}");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("measured weights") && svg.contains("rank 1") && svg.ends_with("</svg>\n"), "{svg}");
    let columns = WeightsFile::parse(&std::fs::read_to_string(&weights).unwrap()).unwrap().columns;
    assert!((columns.iter().map(|share| share.get()).sum::<f64>() - 1.0).abs() < 1e-9 && columns.len() == 2);
    let run = ["run", "--dat", dat, "--engine-params", &engine, "--weights", &weights];
    assert!(printed(&run).contains("PASSED"));
    let one = hpl_dat(folder.path(), 100, 16, 1, 1);
    for flag in [["--nb", "64"], ["--memory", "paper"], ["--combine", "min"], ["--message-unit", "2"]] {
        refused(&[&["weights", "--measure", dat][..], &flag].concat(), &[flag[0], "--measure"]);
    }
    refused(&["weights", "--measure", one.to_str().unwrap()], &["one rank", "raise P or Q"]);
    for n in [0, 16] {
        let block = hpl_dat(folder.path(), n, 16, 1, 2);
        refused(&["weights", "--measure", block.to_str().unwrap()], &["single block", "lower NB"]);
    }
    let three = file(folder.path(), "three.toml", "rank_kernels = [\"builtin\", \"builtin\", \"builtin\"]\n");
    let dat = hpl_dat(folder.path(), 100, 16, 1, 2);
    refused(&["run", "--dat", dat.to_str().unwrap(), "--engine-params", &three], &["rank_kernels", "P·Q=2", "found 3"]);
}

/// A search on two such ranks: weights are searched around those of the file, equal ones are tried, too, and the best has
/// a file of engine parameters that makes the same run.
#[test]
fn a_search_looks_around_the_measured_weights() {
    let cores = hpl::machine::host::facts().cores_allowed.len();
    let root = tempfile::tempdir().unwrap();
    let engine = file(root.path(), "e.toml", "rank_kernels = [\"builtin\", \"builtin-portable\"]\n");
    let weights = file(root.path(), "w.toml", "columns = [0.75, 0.25]\n");
    let folder = root.path().join("run");
    let machine = crate::program::machine_toml().to_str().unwrap();
    let given = ["--blas", "builtin", "--n", "1500", "--threads", "1", "--machine", machine];
    let unequal = ["--engine-params", &engine, "--weights", &weights];
    let start = ["--budget", "30s", "--out", folder.to_str().unwrap()];
    let output = tune([start.as_slice(), &given, &unequal].concat());
    if cores < 2 {
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        return assert!(err(&output).contains("lower"), "{}", err(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).contains("speeds of the ranks 1.000 : 0.333"), "{}", err(&output));
    assert!(std::fs::read_to_string(folder.join("space.toml")).unwrap().contains("\"weights\""));

    let rows = crate::tune::rows(&folder);
    let kernels = &rows[0].rank_kernels;
    assert!(rows[0].weights.is_empty() && kernels.len() == 2 && rows.iter().all(|row| row.rank_kernels == *kernels));
    let near = |share: f64| (0.333 * 0.85..1.0).contains(&share);
    let of = |row: &tuner::record::Row| [&row.weights.rows, &row.weights.columns].map(|of| of.get(1).map(|s| s.get()));
    let weighted: Vec<f64> = rows.iter().flat_map(of).flatten().collect();
    assert!(!weighted.is_empty() && weighted.iter().all(|share| near(*share)), "{weighted:?}");
    let mut seen = std::collections::HashSet::new();
    for row in rows.iter().filter(|row| row.repeat_of.is_none() && row.strategy != "final") {
        assert!(seen.insert(row.candidate()), "trial {} repeats a candidate", row.trial);
    }

    let params = std::fs::read_to_string(folder.join("engine-params.toml")).unwrap();
    let params: space::EngineParams = toml::from_str(&params).unwrap();
    assert!(rows.iter().any(|row| row.passed && row.candidate().engine == params), "{params:?}");
    let dat = folder.join("HPL.dat");
    let params = folder.join("engine-params.toml");
    let again = ["run", "--dat", dat.to_str().unwrap(), "--engine-params", params.to_str().unwrap()];
    assert!(printed(&again).contains("PASSED"));

    let not = |more: &[&str], words: &[&str]| {
        refused(&[&["--budget", "30s", "--weights", &weights][..], more].concat(), words);
    };
    not(&["--ranks", "3"], &["--ranks 3", "those of 2 ranks"]);
    let three = file(root.path(), "three.toml", "rank_kernels = [\"builtin\", \"builtin\", \"builtin\"]\n");
    not(&["--engine-params", &three], &["weights of 2 ranks, rank_kernels of 3"]);
    let depth = file(root.path(), "split.toml", "split = 0.5\n");
    not(&["--engine-params", &depth], &["takes rank_kernels and [weights] only"]);
    let idle = file(root.path(), "idle.toml", "columns = [1.0, 0.0]\n");
    refused(&["--budget", "30s", "--weights", &idle], &["leave rank 1 without work"]);
}
