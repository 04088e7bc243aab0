//! A whole session, as a user starts it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use tuner::record::journal;

use crate::program::{err, out, tune};

struct Done {
    _root: tempfile::TempDir,
    folder: PathBuf,
    stdout: String,
    stderr: String,
    code: Option<i32>,
    budget_s: f64,
    wall_s: f64,
}

/// One session of 30 s, shared by the tests; longer where others use the machine so much that no run, or not the final one, ends
/// in time.
fn session() -> &'static Done {
    static DONE: OnceLock<Done> = OnceLock::new();
    DONE.get_or_init(|| {
        let ended = |done: &Done| done.code == Some(0) && done.stdout.contains("PASSED");
        let within = [30.0, 60.0].into_iter().map(of_budget).find(ended);
        within.unwrap_or_else(|| of_budget(120.0))
    })
}

fn of_budget(budget_s: f64) -> Done {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("my first run");
    let started = Instant::now();
    let output = tune(["--budget", &format!("{budget_s}s"), "--blas", "builtin", "--out", folder.to_str().unwrap()]);
    Done {
        budget_s,
        wall_s: started.elapsed().as_secs_f64(),
        stdout: out(&output),
        stderr: err(&output),
        code: output.status.code(),
        folder,
        _root: root,
    }
}

/// The run folder of that session.
pub(crate) fn folder() -> &'static Path {
    &session().folder
}

/// The record of a run folder.
pub(crate) fn rows(folder: &Path) -> Vec<tuner::record::Row> {
    journal::read(&folder.join("journal.jsonl")).unwrap().rows
}

#[test]
fn a_session_keeps_its_budget_and_ends_verified() {
    let done = session();
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert!(done.wall_s <= done.budget_s + 3.0, "{} s of {} s", done.wall_s, done.budget_s);
    let rows = rows(&done.folder);
    let last = rows.iter().rfind(|row| row.strategy == "final").expect(&done.stderr);
    assert!(last.passed && last.residual.unwrap() < 16.0);
    assert!(done.stdout.contains("PASSED"), "{}", done.stdout);
}

#[test]
fn the_run_folder_is_complete_and_agrees_with_itself() {
    let done = session();
    for name in [
        "journal.jsonl",
        "trials.parquet",
        "machine.toml",
        "space.toml",
        "session.toml",
        "HPL.dat",
        "engine-params.toml",
        "HPL.out",
        "run.sh",
        "report.html",
    ] {
        assert!(done.folder.join(name).is_file(), "{name} is missing");
    }
    let rows = rows(&done.folder);
    assert_eq!(tuner::record::parquet::read::<tuner::record::Row>(&done.folder.join("trials.parquet")).unwrap(), rows);
    let text = std::fs::read_to_string(done.folder.join("HPL.dat")).unwrap();
    let runs = space::dat::HplDat::parse(&text).unwrap().runs();
    // That is the final run, unless the pairs after it speak for the default.
    let session = tuner::record::session::Session::load(&done.folder.join("session.toml")).unwrap();
    let shown = tuner::report::Summary::new(&session, &rows).shown_trial().unwrap();
    assert_eq!(runs, [rows[shown as usize].candidate().hpl]);
    assert!(session.expert.is_some(), "the rule of thumb was asked");
    let [default, chosen] = ["baseline", "final"].map(|stage| {
        let row = rows.iter().find(|row| row.strategy == stage).unwrap();
        row.candidate().at_n(session.n.unwrap())
    });
    assert_eq!(session.lead_of_search.is_some(), default != chosen, "{session:?}");
    for name in ["Best/default", "Best/expert"] {
        assert!(done.stdout.contains(name), "{}", done.stdout);
    }
}

#[test]
fn no_candidate_is_run_twice_except_on_purpose() {
    let rows = rows(&session().folder);
    let mut seen = std::collections::HashSet::new();
    for row in rows.iter().filter(|row| row.repeat_of.is_none() && row.strategy != "final") {
        assert!(seen.insert(row.candidate()), "trial {} repeats a candidate", row.trial);
    }
    assert!(seen.len() >= 3, "only {} candidates", seen.len());
}

#[test]
fn any_trial_can_be_repeated_by_its_command() {
    let row = rows(&session().folder).into_iter().find(|row| row.score_gflops().is_some()).unwrap();
    let output = std::process::Command::new("bash").args(["-c", &row.command]).current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(space::out::parse(&out(&output))[0].params.n, row.n);
}

#[test]
fn a_finished_session_is_shown_again_by_report_and_by_resume() {
    let done = session();
    let folder = done.folder.to_str().unwrap();
    for args in [vec!["report", folder], vec!["--resume", folder]] {
        let output = tune(&args);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(out(&output).contains("PASSED"), "{}", out(&output));
    }
    let json = tune(["report", "--json", folder]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(value["schema_version"].is_u64(), "{value}");
    assert!(value["closing"][0].as_str().is_some_and(|won| won.starts_with("Won: ")), "{value}");
}

#[test]
fn a_session_starts_from_earlier_runs_and_keeps_them_out_of_its_record() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    std::fs::write(at("HPL.out"), "WR11C2R4 9000 192 1 2 3.50 9.7500e+01\n").unwrap();
    std::fs::write(at("bad.parquet"), "no table").unwrap();
    let earlier = folder();
    let before = rows(earlier).len();
    let mut command = crate::program::hpl_tune();
    command.args(["--budget", "30s", "--blas", "builtin", "--n", "1500", "--machine"]);
    command.arg(earlier.join("machine.toml")).arg("--out").arg(at("warm")).arg("--warm-start");
    command.arg(earlier).arg(at("HPL.out")).arg(at("bad.parquet"));
    let kept = crate::engine::run_until(&mut command, &at("warm"), 2);
    assert!(kept.iter().all(|row| row.n == 1500 && row.started_utc > rows(earlier)[before - 1].started_utc));
    let text = std::fs::read_to_string(at("warm").join("earlier.jsonl")).unwrap();
    assert!(text.lines().count() >= 3, "{text}");
    let typo = tune(["--budget", "30s", "--warm-start", at("typo").to_str().unwrap()]);
    assert_eq!(typo.status.code(), Some(2), "{}", err(&typo));
    assert!(err(&typo).contains("no such file"), "{}", err(&typo));
}
