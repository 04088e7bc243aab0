//! `xhpl --windows` from the command line.

use std::fs;
use std::process::{Command, Output, Stdio};

use space::dat::HplDat;
use space::windows::WINDOWS_SCHEMA;
use space::{HplParams, RunResult, WindowsResult};
use tempfile::TempDir;

/// A folder with an HPL.dat of these orders, NB 16 on P×Q.
fn folder(ns: &[usize], p: usize, q: usize, threshold: f64) -> TempDir {
    let params = HplParams { nb: 16, depth: 1, ..HplParams::baseline(0, p, q) };
    let dat = HplDat { ns: ns.to_vec(), threshold, ..HplDat::single(&params) };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("HPL.dat"), dat.write().unwrap()).unwrap();
    folder
}

fn xhpl(folder: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xhpl"));
    command.current_dir(folder.path()).args(["--threads", "2"]).args(args).stdin(Stdio::null()).output().unwrap()
}

fn succeeds(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refuses(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(output.stdout, b"");
    assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
}

#[test]
fn json_has_the_measured_and_the_predicted_times() {
    let folder = folder(&[300, 640], 2, 2, 16.0);
    // Overlapping windows are allowed.
    let out = succeeds(&xhpl(&folder, &["--json", "--windows", "3:2,4:5"]));
    assert_eq!(out.lines().count(), 2);
    for (line, n) in out.lines().zip([300, 640]) {
        let result: WindowsResult = serde_json::from_str(line).unwrap();
        assert_eq!((result.windows_schema_version, result.candidate.hpl.n), (WINDOWS_SCHEMA, n));
        let windows: Vec<_> = result.windows.iter().map(|window| (window.first, window.steps)).collect();
        assert_eq!(windows, [(3, 2), (4, 5)]);
        for window in &result.windows {
            assert!(window.step_s.len() == window.steps && window.step_s.iter().all(|&step_s| step_s > 0.0));
            assert!(window.residual.unwrap() < 16.0 && window.passed == Some(true));
        }
        let measured_s: f64 =
            result.windows.iter().map(|window| window.prologue_s + window.step_s.iter().sum::<f64>()).sum();
        assert!(result.passed && result.wall_s > measured_s + result.generate_s + result.check_s);
        assert!(result.predicted_time_s > 0.0 && result.predicted_spread_s >= 0.0);
        assert_eq!(result.predicted_rate_gflops, space::flops::rate_gflops(n, result.predicted_time_s));
        // Six steps, of which one was made twice, on four ranks.
        assert_eq!(result.phases.len(), 7 * 4);
        serde_json::from_str::<RunResult>(line).expect_err("the result of windows is no result of a run");
    }
}

#[test]
fn text_shows_no_score() {
    let folder = folder(&[400], 1, 2, 16.0);
    let out = succeeds(&xhpl(&folder, &["--windows", "2:3,9:4"]));
    assert!(out.matches("PASSED").count() == 2 && !out.contains("FAILED"), "{out}");
    assert!(out.contains("predicted, not measured, for the whole run: "), "{out}");
    assert_eq!(space::out::parse(&out), [], "{out}");
}

#[test]
fn a_check_can_fail_or_be_left_out() {
    let out = succeeds(&xhpl(&folder(&[300], 2, 1, 1e-300), &["--windows", "1:2"]));
    assert!(out.contains("FAILED") && !out.contains("PASSED"), "{out}");
    let out = succeeds(&xhpl(&folder(&[300], 2, 1, 0.0), &["--windows", "1:2"]));
    assert!(out.contains("not checked") && !out.contains("FAILED") && !out.contains("PASSED"), "{out}");
}

#[test]
fn any_size_has_windows() {
    let folder = folder(&[0, 1, 15, 16, 17, 100, 1500], 2, 3, 16.0);
    let out = succeeds(&xhpl(&folder, &["--json", "--windows", "auto"]));
    for line in out.lines() {
        let result: WindowsResult = serde_json::from_str(line).unwrap();
        assert!(result.passed && result.predicted_time_s >= 0.0, "{line}");
        let [all] = &result.windows[..] else { continue };
        // If one window covers the whole run, the prediction is the measured time.
        let measured_s = all.prologue_s + all.step_s.iter().sum::<f64>() + result.predicted_trsv_s;
        assert!((result.predicted_time_s / measured_s - 1.0).abs() < 1e-12, "{line}");
    }
    assert_eq!(out.lines().count(), 7);
}

#[test]
fn impossible_windows_are_refused() {
    let folder = folder(&[640, 300], 1, 1, 16.0);
    refuses(&xhpl(&folder, &["--windows", "18:2"]), &["--windows", "18:2", "19 steps", "N=300 NB=16"]);
    for wrong in ["", "3", "3:0", "3:2,", "auto,3:2"] {
        refuses(&xhpl(&folder, &["--windows", wrong]), &["is not a window", "--windows"]);
    }
    for other in ["--progress", "--phases=p.csv", "--timeline=t.svg"] {
        refuses(&xhpl(&folder, &["--windows", "auto", other]), &["cannot be used with"]);
    }
}
