//! Real runs with an engine that misbehaves in every way: each becomes its own kind of failure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::real::{EndedBy, GuardRecord, RealRuns, RunSpec, TRIAL_VARIABLE, lack_of_room};
use objectives::{Exit, Failure, Measurement, Observation};
use space::{Candidate, EngineParams, HplParams};
use tempfile::TempDir;

const FIXTURE: &str = env!("CARGO_BIN_EXE_guard-fixture");

/// A folder with an engine of the given behaviour, and a trial's folder that is not there yet.
fn engine(behaviour: &str) -> (TempDir, RealRuns, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join(behaviour);
    std::os::unix::fs::symlink(FIXTURE, &program).unwrap();
    let trial = home.path().join("trials/7");
    (home, RealRuns::new(program), trial)
}

fn candidate() -> Candidate {
    Candidate { hpl: HplParams::baseline(100, 1, 1), engine: EngineParams::default() }
}

fn verdict(behaviour: &str) -> Result<Measurement, Failure> {
    let (_home, runs, trial) = engine(behaviour);
    runs.run(&candidate(), &trial, 60.0)
}

/// Living processes of the trial in `folder`; a zombie has no environment and is none.
fn alive(folder: &Path) -> usize {
    let mark = format!("{TRIAL_VARIABLE}={}", folder.canonicalize().unwrap().display());
    let environments = std::fs::read_dir("/proc").unwrap().flatten().map(|e| std::fs::read(e.path().join("environ")));
    environments.flatten().filter(|e| e.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())).count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {what}");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_good_run_is_measured_and_can_be_repeated_from_its_record() {
    let (_home, runs, trial) = engine("good");
    let measured = runs.run(&candidate(), &trial, 60.0).unwrap();
    assert!(measured.passed && measured.residual == 0.01 && measured.rate_gflops > 0.0);
    assert!(measured.wall_s > measured.time_s && measured.wall_s < 30.0);
    assert_eq!(measured.result.unwrap().candidate, candidate());
    assert_eq!(measured.command, runs.command(&RunSpec::whole(&candidate()), &trial));

    let result = trial.join("result.json");
    std::fs::remove_file(&result).unwrap();
    assert!(Command::new("sh").arg("-c").arg(measured.command.join(" ")).status().unwrap().success());
    assert!(result.exists());
}

#[test]
fn only_a_residual_that_passed_is_a_measurement() {
    assert_eq!(verdict("wrong"), Err(Failure::Residual { value: Some(1e9), info: 0 }));
    assert_eq!(verdict("unchecked"), Err(Failure::Residual { value: None, info: 8 }));
}

#[test]
fn results_that_cannot_be_true_or_read_are_named() {
    let cases = [
        ("liar", "1000000 GFLOP/s, but its N and its time give"),
        ("torn", "EOF while parsing"),
        ("empty", "EOF while parsing"),
        ("newer", "schema version 999"),
        ("silent", "missing, although the program ended without an error"),
    ];
    for (behaviour, expected) in cases {
        let Err(Failure::Output { file, problem, .. }) = verdict(behaviour) else { panic!("{behaviour}") };
        assert!(file.ends_with("trials/7/result.json") && problem.contains(expected), "{file}: {problem}");
    }
}

#[test]
fn ends_without_a_result_have_their_kinds() {
    assert_eq!(verdict("refusing"), Err(Failure::Infeasible { why: "N=100 is too much today".into() }));
    let telling_lines = vec!["begin".into(), "[31mred".into()];
    assert_eq!(verdict("crashing"), Err(Failure::Crashed { exit: Exit::Signal(6), telling_lines }));
    let crashed_late = Failure::Crashed { exit: Exit::Signal(6), telling_lines: vec![] };
    assert_eq!(verdict("good, then crash"), Err(crashed_late));
}

#[test]
fn what_cannot_be_started_is_named() {
    let (home, runs, trial) = engine("good");
    let gone = RealRuns::new(home.path().join("gone"));
    let Err(Failure::Launch { what, .. }) = gone.run(&candidate(), &trial, 60.0) else { panic!() };
    assert!(what.ends_with("/gone"));
    std::fs::write(home.path().join("file"), "").unwrap();
    let Err(Failure::Launch { what, why }) = runs.run(&candidate(), &home.path().join("file/7"), 60.0) else {
        panic!()
    };
    assert!(what.ends_with("file/7") && why.contains("Not a directory"), "{what}: {why}");
    for limit_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let Err(Failure::Skipped { why }) = runs.run(&candidate(), &trial, limit_s) else { panic!("{limit_s}") };
        assert_eq!(why == "no time is left to run it", limit_s <= 0.0, "{limit_s}: {why}");
    }
}

#[test]
fn a_hang_is_a_timeout_and_leaves_nothing() {
    let (_home, runs, trial) = engine("hanging");
    assert_eq!(runs.run(&candidate(), &trial, 0.3), Err(Failure::TimedOut { limit_s: 0.3 }));
    assert_eq!(alive(&trial), 0);
}

#[test]
fn a_result_written_before_the_deadline_counts() {
    let (_home, runs, trial) = engine("good, then hang");
    assert!(runs.run(&candidate(), &trial, 3.0).is_ok());
    assert_eq!(GuardRecord::read(&trial).unwrap().ended_by, EndedBy::Deadline);
}

#[test]
fn a_run_can_be_watched_and_cancelled() {
    let (_home, runs, trial) = engine("hanging");
    let mut running = runs.start(&RunSpec::whole(&candidate()), &trial, 60.0).unwrap();
    wait_until("the daemon", || alive(&trial) == 3);
    assert!(
        running.finish_within(Duration::ZERO).is_none() && running.finish_within(Duration::from_millis(20)).is_none()
    );
    // As where many runs are looked at in turn: it kept a core busy.
    let begun = Instant::now();
    assert!((0..20).all(|_| running.finish_within(Duration::from_micros(300)).is_none()));
    assert!(begun.elapsed() >= Duration::from_millis(6), "{:?}", begun.elapsed());
    assert!(matches!(running.cancel(), Some(Err(Failure::Killed { .. }))));
    assert_eq!(alive(&trial), 0);
    assert_eq!(runs.adopt(&RunSpec::whole(&candidate()), &trial), None);

    let running = runs.start(&RunSpec::whole(&candidate()), &trial, 60.0).unwrap();
    wait_until("the daemon", || alive(&trial) == 3);
    drop(running);
    assert_eq!(alive(&trial), 0);
}

#[test]
fn a_run_that_ended_before_it_was_cancelled_has_its_outcome() {
    for behaviour in ["good", "crashing"] {
        let (_home, runs, trial) = engine(behaviour);
        let running = runs.start(&RunSpec::whole(&candidate()), &trial, 60.0).unwrap();
        wait_until("its end", || GuardRecord::path(&trial).exists());
        let outcome = running.cancel().unwrap();
        assert_eq!(outcome.is_ok(), behaviour == "good", "{outcome:?}");
        assert!(matches!(outcome, Ok(Observation::Whole(_)) | Err(Failure::Crashed { .. })), "{outcome:?}");
    }
}

#[test]
fn nothing_outlives_a_killed_guard() {
    let (_home, runs, trial) = engine("hanging");
    let mut running = runs.start(&RunSpec::whole(&candidate()), &trial, 60.0).unwrap();
    wait_until("the daemon", || alive(&trial) == 3);
    let guards = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("--deadline-s") && line.contains(trial.to_str().unwrap())
    });
    for guard in guards {
        kill(Pid::from_raw(guard.file_name().to_str().unwrap().parse().unwrap()), Signal::SIGKILL).unwrap();
    }
    let Some(Err(Failure::Killed { by })) = running.finish_within(Duration::from_secs(60)) else { panic!() };
    assert!(by.contains("SIGKILL"), "{by}");
    assert_eq!(alive(&trial), 0);
}

/// Starts a tuner in another process, kills it once `ready`, and adopts what it left.
fn adopted(behaviour: &str, ready: impl Fn(&Path) -> bool) -> Option<Result<Observation, Failure>> {
    let (home, runs, trial) = engine(behaviour);
    let program = home.path().join(behaviour);
    let mut tuner = Command::new(FIXTURE).arg("tuner").arg(program).arg(&trial).spawn().unwrap();
    wait_until("the run", || ready(&trial));
    tuner.kill().unwrap();
    tuner.wait().unwrap();
    let verdict = runs.adopt(&RunSpec::whole(&candidate()), &trial);
    assert_eq!(alive(&trial), 0);
    verdict
}

#[test]
fn a_run_whose_output_may_not_be_on_the_disk_is_not_adopted() {
    let (_home, runs, trial) = engine("good");
    runs.run(&candidate(), &trial, 60.0).unwrap();
    let run = RunSpec::whole(&candidate());
    assert!(runs.adopt(&run, &trial).is_some());
    let record =
        GuardRecord { output_error: Some("Input/output error".to_owned()), ..GuardRecord::read(&trial).unwrap() };
    std::fs::write(GuardRecord::path(&trial), serde_json::to_vec(&record).unwrap()).unwrap();
    assert_eq!(runs.adopt(&run, &trial), None);
}

/// A resume recorded it as a crash of its candidate.
#[test]
fn a_run_whose_result_found_no_room_is_not_adopted() {
    let (_home, runs, trial) = engine("full disk");
    let failure = runs.run(&candidate(), &trial, 60.0).unwrap_err();
    let lacked = lack_of_room(&trial, &failure).map(|error| error.kind());
    assert_eq!(lacked, Some(std::io::ErrorKind::StorageFull), "{failure}");
    assert_eq!(runs.adopt(&RunSpec::whole(&candidate()), &trial), None);
}

#[test]
fn what_a_killed_tuner_left_is_adopted_when_it_is_whole() {
    let finished = adopted("good, then hang", |trial| trial.join("result.json").exists());
    assert!(finished.unwrap().is_ok());
    assert_eq!(adopted("hanging", |trial| trial.exists() && alive(trial) == 3), None);
    let (_home, runs, _) = engine("good");
    assert_eq!(runs.adopt(&RunSpec::whole(&candidate()), Path::new("/not/here")), None);
}

#[test]
fn who_ignores_the_end_of_children_still_measures() {
    let (home, _, trial) = engine("good");
    let mut tuner = Command::new("env");
    tuner.args(["--ignore-signal=CHLD", FIXTURE, "tuner"]).arg(home.path().join("good")).arg(&trial);
    let said = String::from_utf8(tuner.output().unwrap().stdout).unwrap();
    assert!(said.starts_with("Ok("), "{said}");
    assert_eq!(GuardRecord::read(&trial).unwrap().ended_by, EndedBy::Itself);
}

#[test]
fn a_stale_result_is_not_taken_for_a_new_one() {
    let (home, runs, trial) = engine("good");
    runs.run(&candidate(), &trial, 60.0).unwrap();
    std::os::unix::fs::symlink(FIXTURE, home.path().join("silent")).unwrap();
    let silent = RealRuns::new(home.path().join("silent"));
    assert!(matches!(silent.run(&candidate(), &trial, 60.0), Err(Failure::Output { .. })));
}

#[test]
fn paths_are_bytes() {
    let home = tempfile::tempdir().unwrap();
    let odd = home.path().join(OsString::from_vec(b"a 'b\xff\n".to_vec()));
    std::fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(FIXTURE, odd.join("good")).unwrap();
    let measured = RealRuns::new(odd.join("good")).run(&candidate(), &odd.join("trial"), 60.0).unwrap();
    assert!(measured.command[0].starts_with("$'") && measured.command[0].contains(r"\xff\x0a"));
}
