//! Output of `xhpl` for other programs: JSON lines, phases as CSV, the timeline.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use space::dat::HplDat;
use space::{HplParams, RunResult};
use tempfile::TempDir;

/// A folder with an HPL.dat of these orders, NB 32 on 2×2.
fn folder(ns: &[usize]) -> TempDir {
    let params = HplParams { nb: 32, ..HplParams::baseline(0, 2, 2) };
    let dat = HplDat { ns: ns.to_vec(), ..HplDat::single(&params) };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("HPL.dat"), dat.write().unwrap()).unwrap();
    folder
}

fn xhpl(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xhpl"));
    command.current_dir(folder).args(["--threads", "2"]).args(args).stdin(Stdio::null()).output().unwrap()
}

fn succeeds(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refuses(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(output.stdout, b"");
    assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
}

#[test]
fn json_has_a_line_per_run() {
    let folder = folder(&[100, 130]);
    let out = succeeds(&xhpl(folder.path(), &["--json", "--progress"]));
    let results: Vec<RunResult> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.iter().map(|result| result.candidate.hpl.n).collect::<Vec<_>>(), [100, 130]);
    for result in &results {
        assert!(result.passed && result.time_s > 0.0 && result.schema_version == space::result::RESULT_SCHEMA);
        let steps = result.candidate.hpl.n.div_ceil(32) + 1;
        assert_eq!(result.phases.len(), 4 * steps, "each step and the substitution, on each rank");
    }
}

/// The numbers of the CSV are equal to those of the JSON of the same run.
#[test]
fn phases_agree_with_json() {
    let folder = folder(&[64, 100]);
    let out = succeeds(&xhpl(folder.path(), &["--json", "--phases", "p.csv"]));
    let csv = fs::read_to_string(folder.path().join("p.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("run,n,nb,p,q,step,rank,fact_s,lbcast_s,rs_s,update_s,trsv_s,end_s"));
    for (run, json) in out.lines().enumerate() {
        let result: RunResult = serde_json::from_str(json).unwrap();
        for phase in &result.phases {
            let row: Vec<f64> = lines.next().unwrap().split(',').map(|word| word.parse().unwrap()).collect();
            let n = result.candidate.hpl.n as f64;
            let expected = [(run + 1) as f64, n, 32.0, 2.0, 2.0, f64::from(phase.step), f64::from(phase.rank)];
            assert_eq!(row[..7], expected);
            assert_eq!(row[7..], [phase.fact_s, phase.lbcast_s, phase.rs_s, phase.update_s, phase.trsv_s, phase.end_s]);
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_timeline_is_of_the_last_run() {
    let folder = folder(&[64, 400]);
    let out = succeeds(&xhpl(folder.path(), &["--timeline", "t.svg", "--timeline-steps", "2..5"]));
    assert_eq!(out.matches("PASSED").count(), 2);
    let svg = fs::read_to_string(folder.path().join("t.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for text in ["N=400 NB=32 P×Q=2×2", "Steps 2 to 5 of 0 to 12", "rank 3", "thread 1", ">step 2<", ">FACT"] {
        assert!(svg.contains(text), "{text}");
    }
    // All elements are closed.
    let open = svg.matches('<').count();
    let closed = svg.matches("</").count() * 2 + svg.matches("/>").count();
    assert_eq!(open, closed);
}

#[test]
fn a_run_without_steps_has_an_empty_timeline() {
    let folder = folder(&[0]);
    succeeds(&xhpl(folder.path(), &["--timeline", "t.svg"]));
    assert!(fs::read_to_string(folder.path().join("t.svg")).unwrap().contains("nothing to draw"));
}

#[test]
fn wrong_files_and_steps_are_reported_before_the_first_run() {
    let folder = folder(&[100]);
    let refused = |args: &[&str], words: &[&str]| refuses(&xhpl(folder.path(), args), 2, words);
    refused(&["--timeline", "/nowhere/t.svg"], &["--timeline /nowhere/t.svg", "name another file"]);
    refused(&["--phases", "/nowhere/p.csv"], &["--phases /nowhere/p.csv"]);
    refused(&["--timeline", "t.svg", "--timeline-steps", "3..4"], &["step 4", "4 steps"]);
    refused(&["--timeline", "t.svg", "--timeline-steps", "4..3"], &["FIRST..LAST"]);
    refused(&["--timeline-steps", "0..1"], &["--timeline"]);
    assert_eq!(xhpl(folder.path(), &["--phases", "/dev/full"]).status.code(), Some(5));
}
