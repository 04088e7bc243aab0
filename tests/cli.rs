//! Bad input is named, with the way out, and the exit code says whose fault it is.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::hostile::until;
use crate::program::{err, hpl_dat, hpl_tune, out, tune};

fn refused<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>, code: i32, words: &[&str]) {
    let output = tune(args);
    let text = err(&output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn help_names_the_verbs_and_hides_the_guard() {
    let output = tune(["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = out(&output);
    for verb in ["tune", "run", "calibrate", "report", "pack", "verify", "replay", "space", "--budget", "--resume"] {
        assert!(text.contains(verb), "{text}");
    }
    assert!(!text.contains("__guard"));
}

/// A hidden folder as large as the program stayed.
#[test]
fn mpi_setup_that_a_signal_ends_leaves_nothing() {
    // It compiles until the folder is gone that it was to write into.
    const MPICC: &str = r#"#!/bin/sh
n=0
while [ -d "${5%/*}" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
exit 1
"#;
    let root = tempfile::tempdir().unwrap();
    let (mpicc, above) = (root.path().join("mpicc"), root.path().join("programs"));
    std::fs::write(&mpicc, MPICC).unwrap();
    std::fs::set_permissions(&mpicc, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut setup = hpl_tune();
    setup.args(["mpi-setup", "--no-check", "--mpicc"]).arg(&mpicc).arg("--out").arg(above.join("mpi"));
    let mut child = setup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the compiler", || {
        std::fs::read_dir(&above).into_iter().flatten().flatten().any(|made| made.path().join("calls.c").exists())
    });
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(&above).unwrap().count(), 0);
}

#[test]
fn wrong_flags_are_usage_errors() {
    refused([""; 0], 2, &["--budget"]);
    refused(["--budget", "soon"], 2, &["soon", "2m"]);
    refused(["--budget", "2m", "--frobnicate"], 2, &["--frobnicate"]);
    refused(["--budget", "2m", "--n", "0"], 2, &["--n"]);
    refused(["--budget", "2m", "--blas", "/no/such/libblas.so"], 2, &["/no/such/libblas.so"]);
    refused(["--budget", "2m", "--resume", "x"], 2, &["--resume", "its budget", "--warm-start DIR"]);
    refused(["--budget", "2m", "--until-gain", "0"], 2, &["--until-gain", "'0' is not a gain", "0.5%"]);
    refused(["--until-gain", "1%", "--resume", "x"], 2, &["--until-gain", "--resume"]);
}

#[test]
fn a_budget_too_short_is_refused_with_the_smallest() {
    refused(["--budget", "29s"], 2, &["29", "30s"]);
}

#[test]
fn more_ranks_than_cores_are_refused() {
    refused(["--budget", "1m", "--ranks", "4096"], 2, &["4096", "lower"]);
}

#[test]
fn folders_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    refused(["--resume", path], 2, &[path, "session.toml"]);
    std::fs::write(folder.path().join("precious.txt"), "x").unwrap();
    refused(["--budget", "1m", "--out", path], 2, &[path, "--resume", "--out"]);
    refused(["report", path], 2, &[path, "session.toml"]);
    refused(["--budget", "1m", "--out", "/proc/nowhere"], 5, &["/proc/nowhere"]);
}

#[test]
fn malformed_inputs_of_a_run_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    refused(["run", "--dat", &at("missing.dat")], 2, &["missing.dat"]);
    std::fs::write(at("bad.dat"), "HPLinpack\nx\n").unwrap();
    refused(["run", "--dat", &at("bad.dat")], 2, &["bad.dat", "line 3"]);
    let dat = hpl_dat(folder.path(), 100, 16, 1, 1);
    std::fs::write(at("e.toml"), "threads = 1\nfrobs = 2\n").unwrap();
    refused(["run", "--dat", dat.to_str().unwrap(), "--engine-params", &at("e.toml")], 2, &["e.toml", "frobs"]);
    std::fs::write(at("m.toml"), "nothing = 1\n").unwrap();
    refused(["--budget", "1m", "--machine", &at("m.toml"), "--out", &at("new")], 2, &["m.toml"]);
}

#[test]
fn memory_too_small_is_refused_before_anything_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 4_000_000, 256, 1, 1);
    refused(["run", "--dat", dat.to_str().unwrap()], 2, &["4000000", "GiB", "--force"]);
}

#[test]
fn a_landscape_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/landscapes/");
    let landscape = format!("{root}xhpl-zen4-n2000.toml");
    refused(["replay", "/no/such/landscape.toml"], 2, &["/no/such/landscape.toml"]);
    refused(["replay", &format!("{root}dahu-geometry.toml")], 2, &["geometry.csv", "--table"]);
    refused(["replay", &landscape, "--prior", "model"], 2, &["xhpl-zen4-n2000.toml", "--model"]);
    refused(["replay", &landscape, "--strategy", "magic"], 2, &["magic", "bayes"]);
    refused(["replay", &landscape, "--crash", "2"], 2, &["--crash", "0.9"]);
    let traces = folder.path().join("traces.jsonl");
    std::fs::write(&traces, "{}\n").unwrap();
    let traces = traces.to_str().unwrap();
    refused(["replay", &landscape, "--seeds", "0", "--traces", traces], 2, &["traces.jsonl line 1", "tool"]);
}

#[test]
fn stored_searches_score_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces.jsonl");
    let traces = traces.to_str().unwrap();
    let landscape = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/landscapes/xhpl-zen4-n2000.toml");
    let common = ["replay", landscape, "--evals", "20", "--json", "--quiet"];
    let replay = |more: &[&str]| {
        let output = tune(common.iter().chain(more));
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let played = replay(&["--strategy", "random,local", "--seeds", "3", "--store", traces]);
    assert_eq!(replay(&["--seeds", "0", "--traces", traces]), played);
}

#[test]
fn the_space_says_why_and_which_limit_emptied_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("space.toml");
    let file = path.to_str().unwrap();
    std::fs::write(&path, "[nb]\nvalues = [100, 200]\n[depth]\nfixed = 1\n").unwrap();
    let output = tune(["space", "--n", "2000", "--space", file]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for words in ["nb (by --space): 100 200", "depth (by --space): 1\n", "source: [HPL] tuning page", "without --space"]
    {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    std::fs::write(&path, "[nb]\nmin = 600\n").unwrap();
    refused(["space", "--n", "2000", "--space", file], 2, &["[nb] leaves no value", "allow more values"]);
    std::fs::write(&path, "[blocks]\nmin = 600\n").unwrap();
    refused(["--budget", "1m", "--space", file], 2, &["space.toml", "[blocks]", "bcast"]);
    refused(["space", "--space", "/no/such.toml"], 2, &["/no/such.toml"]);
}

#[test]
fn the_space_of_another_engine_or_of_unequal_ranks_is_printed_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("space.toml");
    let file = path.to_str().unwrap();
    std::fs::write(&path, "[chunk_size_nbs]\nmin = 16\n[nb]\nfixed = 1024\n").unwrap();
    let output = tune(["space", "--engine", "nvidia", "--n", "20000", "--space", file]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for words in
        ["nb (by --space): 1024\n", "chunk_size_nbs (by --space): 16 32\n", "docs.nvidia.com", "without --space"]
    {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    std::fs::write(&path, "[bcast]\nfixed = 'long'\n").unwrap();
    refused(["space", "--engine", "nvidia", "--space", file], 2, &["space.toml", "[bcast]", "chunk_size_nbs"]);
    let weights = folder.path().join("weights.toml");
    std::fs::write(&weights, "columns = [1.0, 0.5]\n").unwrap();
    let output = tune(["space", "--n", "2000", "--weights", weights.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("\nweights: ") && text.contains("differ by more than 2 %"), "{text}");
}

#[test]
fn descriptions_of_machines_that_nobody_has_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    let file = path.to_str().unwrap();
    let node = |more: &str| {
        let node = format!("[[node]]\nname = 'a'\nmemory_bytes = 1_000_000_000\n{more}");
        std::fs::write(&path, format!("[host]\nname = 'x'\norigin = 'x'\n{node}")).unwrap();
    };
    let space = ["space", "--engine", "netlib", "--n", "1000", "--machine", file];
    node("count = 1\ncores = 0\n");
    refused(space, 2, &["machine.toml", "[[node]] 1: cores must be from 1"]);
    node("count = 1\ncores = 2\npeak_gflops = 1e30\n");
    refused(space, 2, &["peak_gflops must be a number from 0"]);
    // Each count is possible, their product is not, and nothing of that size is made.
    node("count = 100_000_000\ncores = 100_000_000\npeak_gflops = 1.0\nlink_gbytes_per_s = 1.0\n");
    refused(space, 2, &["10000000000000000 cores", "see count and cores of [[node]]"]);
    refused(["--budget", "1m", "--dry-run", "--engine", "netlib", "--machine", file], 2, &["see count and cores"]);
    refused(["weights", "--machine", file], 2, &["100000000 nodes are more than 1000000"]);
    refused(["predict", "--machine", file, "--n", "1000"], 2, &["more than 16777216 ranks", "[[node]]"]);
    node("count = 2\ncores = 2\npeak_gflops = 1.0\n");
    refused(["weights", "--machine", file], 2, &["the bandwidth of the link a – a is unknown", "link_gbytes_per_s"]);
    // Nodes that differ are taken as they are, with a word on what that costs.
    node("count = 2\ncores = 2\n[[node]]\nname = 'b'\ncount = 1\ncores = 2\nmemory_bytes = 600_000_000\n");
    let output = tune(space);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).contains("[[node]] b limit all"), "{}", err(&output));
    // The largest machine of accelerators that there is.
    node("count = 9408\ncores = 64\naccelerators = 8\n");
    let output = tune(["space", "--engine", "nvidia", "--machine", file]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("on 75264 accelerators"), "{}", out(&output));
}

#[test]
fn nodes_outside_of_a_job_need_a_launcher() {
    refused(["--budget", "30s", "--nodes", "2"], 2, &["--launcher", "--sbatch"]);
}

/// All but one were asked for, to be idle.
#[test]
fn a_script_asks_for_no_more_nodes_than_the_engine_can_use() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("job.sh");
    let asked = |nodes: &str| {
        let words = ["--budget", "1h", "--engine", "cuda", "--ranks", "4", "--nodes", nodes, "--sbatch"];
        words.map(OsString::from).into_iter().chain([script.clone().into_os_string()])
    };
    refused(asked("2"), 2, &["--nodes 2", "cuda runs on 1 node"]);
    assert!(!script.exists() && tune(asked("1")).status.success());
}

/// The host where a script is written may have few cores.
#[test]
fn a_script_for_a_larger_node_is_written_on_a_small_one() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("job.sh");
    let output = tune(["--budget", "1h", "--ranks", "64", "--threads", "16", "--sbatch", script.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = std::fs::read_to_string(script).unwrap();
    assert!(text.contains("--cpus-per-task=1024"), "{text}");
}

/// A line printed to a reader that has gone ended them with a panic.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = hpl_tune().args(["man", "--out"]).arg(folder.path()).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(folder.path().join("hpl-tune.1").exists());
}
