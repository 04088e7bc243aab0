//! `hpl-tune run`.

use space::HplParams;
use space::dat::HplDat;

use crate::program::{err, hpl_dat, out, tune};

#[test]
fn a_run_prints_as_hpl_does_and_leaves_its_result() {
    // A path with a space, as users have them.
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("my runs");
    std::fs::create_dir(&folder).unwrap();
    let dat = hpl_dat(&folder, 500, 32, 1, 2);
    let json = folder.join("result.json");
    let output = tune(["run", "--dat", dat.to_str().unwrap(), "--result", json.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let records = space::out::parse(&out(&output));
    let result: space::RunResult = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(result.passed && result.residual.unwrap() < 16.0);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].passed, Some(true));
    assert!(!result.phases.is_empty());
}

#[test]
fn a_result_that_cannot_be_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (dat, json) = (hpl_dat(folder.path(), 100, 16, 1, 1), folder.path().join("none/result.json"));
    let output = tune(["run", "--dat", dat.to_str().unwrap(), "--result", json.to_str().unwrap()]);
    assert_eq!((output.status.code(), out(&output)), (Some(5), String::new()), "{}", err(&output));
    assert!(err(&output).contains("none/result.json: No such file"), "{}", err(&output));
}

#[test]
fn a_run_on_the_reference_device_passes() {
    let folder = tempfile::tempdir().unwrap();
    let (dat, json) = (hpl_dat(folder.path(), 200, 16, 2, 1), folder.path().join("result.json"));
    let flags = ["run", "--device", "reference", "--dat", dat.to_str().unwrap(), "--result", json.to_str().unwrap()];
    let output = tune(flags);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let result: space::RunResult = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(result.passed && result.candidate.engine.device == space::DeviceChoice::Reference);
}

/// As in xhpl: with a file that says nothing of threads, or without one.
#[test]
fn cores_are_spread_over_the_ranks_unless_threads_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 100, 16, 1, 1);
    let (params, json) = (folder.path().join("params.toml"), folder.path().join("result.json"));
    let threads = |more: &[&str]| {
        let run = ["run", "--dat", dat.to_str().unwrap(), "--result", json.to_str().unwrap()];
        let output = tune([&run[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let result: space::RunResult = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        result.candidate.engine.threads
    };
    let cores = hpl::machine::host::facts().cores_allowed.len();
    assert_eq!(threads(&[]), cores);
    for (text, expected) in [("huge_pages = false\n", cores), ("threads = 1\n", 1)] {
        std::fs::write(&params, text).unwrap();
        assert_eq!(threads(&["--engine-params", params.to_str().unwrap()]), expected, "{text}");
    }
}

#[test]
fn the_first_check_that_fails_says_so_by_exit_code_3() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 100, 16, 1, 1);
    let text = std::fs::read_to_string(&dat).unwrap();
    // No residual is below this threshold.
    let strict = HplDat { threshold: 1e-300, ..HplDat::parse(&text).unwrap() };
    std::fs::write(&dat, strict.write().unwrap()).unwrap();
    let output = tune(["run", "--dat", dat.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(out(&output).contains("FAILED"));
}

#[test]
fn a_run_under_mpirun_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 100, 16, 1, 1);
    let mut command = crate::program::hpl_tune();
    let output = command.args(["run", "--dat"]).arg(&dat).env("OMPI_COMM_WORLD_SIZE", "4").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("MPI"), "{}", err(&output));
}

#[test]
fn windows_leave_a_result_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 500, 16, 1, 2);
    let json = folder.path().join("windows.json");
    let (dat, json) = (dat.to_str().unwrap(), json.to_str().unwrap());
    let output = tune(["run", "--dat", dat, "--windows", "2:3,10:2", "--result", json]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("predicted, not measured"));
    assert_eq!(space::out::parse(&out(&output)), []);
    let text = std::fs::read(json).unwrap();
    let result: space::WindowsResult = serde_json::from_slice(&text).unwrap();
    assert!(result.passed && result.windows.len() == 2 && result.predicted_time_s > 0.0);
    serde_json::from_slice::<space::RunResult>(&text).expect_err("nobody has run the whole");
    let output = tune(["run", "--dat", dat, "--windows", "31:2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("beyond the last of 32 steps"), "{}", err(&output));
}

#[test]
fn two_runs_are_compared_by_windows_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, what: &str| std::fs::write(folder.path().join(name), what).unwrap();
    let params = HplParams { nb: 32, ..HplParams::baseline(1000, 1, 1) };
    write("a.dat", &HplDat::single(&params).write().unwrap());
    write("b.dat", &HplDat::single(&HplParams { nb: 48, q: 2, ..params }).write().unwrap());
    write("c.dat", &HplDat::single(&HplParams { n: 900, ..params }).write().unwrap());
    write("two.toml", "threads = 2\n");
    write("other.toml", "kernels = \"/lib/libother.so\"\n");
    let [a, b, c, two, other, json] = ["a.dat", "b.dat", "c.dat", "two.toml", "other.toml", "pair.json"].map(text);
    let pair = |reference: &str, params: &str| {
        let reference = ["--reference", reference, "--reference-params", params];
        let rest = ["--dat", &a, "--engine-params", &two, "--result", &json];
        tune(["run"].into_iter().chain(reference).chain(rest))
    };
    let output = pair(&b, &two);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("of that of the second, one standard error"), "{}", out(&output));
    assert_eq!(space::out::parse(&out(&output)), []);
    let result: space::windows::PairResult = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(result.passed() && result.predicted_log_ratio_sd > 0.0);
    assert_eq!((result.candidate.candidate.hpl.nb, result.reference.candidate.hpl.nb), (32, 48));
    for (reference, params, word) in [(&c, &two, "N=1000 and of a reference of N=900"), (&b, &other, "kernels differ")]
    {
        let output = pair(reference, params);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(err(&output).contains(word), "{}", err(&output));
    }
}

#[test]
fn a_window_whose_check_fails_says_so_by_exit_code_3() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 200, 16, 1, 1);
    let text = std::fs::read_to_string(&dat).unwrap();
    let strict = HplDat { threshold: 1e-300, ..HplDat::parse(&text).unwrap() };
    std::fs::write(&dat, strict.write().unwrap()).unwrap();
    let output = tune(["run", "--dat", dat.to_str().unwrap(), "--windows", "1:2"]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(out(&output).contains("FAILED"));
}
