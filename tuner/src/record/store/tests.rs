use std::path::PathBuf;

use objectives::Exit;
use objectives::real::Extent;
use space::HplParams;

use super::*;
use crate::record::arbitrary::{passed_run, row};
use crate::record::folder::small_disk::SmallDisk;
use crate::record::{Outcome, Prediction};
use crate::report::summary::tests::session;

/// A new record, with who runs its trials.
fn store(parent: &Path) -> (Store, RealRuns) {
    let (folder, _lock) = RunFolder::create(&parent.join("run")).unwrap();
    let session = session();
    session.save(&folder.session_toml()).unwrap();
    let runs = RealRuns::new(PathBuf::from("hpl-tune"));
    (Store::open(folder, session, &runs).unwrap().0, runs)
}

fn planned(number: u64) -> PlannedTrial {
    PlannedTrial {
        trial: None,
        candidate: row(number).candidate(),
        extent: Extent::Whole,
        reference: None,
        strategy: "bayes".into(),
        why: "expected improvement".into(),
        repeat_of: None,
        paired_with: None,
        predicted: None,
        expected_s: 1.0,
        nodes: Vec::new(),
    }
}

/// The next trial, which ends as told.
fn ended(store: &mut Store, runs: &RealRuns, failure: Option<Failure>) -> Result<(), RecordError> {
    let trial = store.begin(&planned(store.next_trial()), runs)?;
    let measured = passed_run(20.0);
    let outcome = failure.map_or(Ok(Observation::Whole(measured)), Err);
    store.finish(trial, &outcome, Circumstances { wall_s: 0.5, left_s: 90.0, ..Circumstances::default() })
}

fn crash(line: &str) -> Option<Failure> {
    Some(Failure::Crashed { exit: Exit::Code(1), telling_lines: vec![line.to_owned()] })
}

#[test]
fn what_is_kept_in_memory_is_what_the_journal_has() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    for failure in [None, crash("the first"), crash("the second"), None] {
        ended(&mut store, &runs, failure).unwrap();
    }
    let rows = store.recorded().unwrap();
    let mut shortener = crate::record::Shortener::default();
    assert!(rows.iter().map(|row| shortener.short(row)).eq(store.rows().iter().cloned()));
    assert_eq!((store.last(), store.next_trial(), store.spent_s()), (rows.last(), 4, 30.0));
    assert!(store.last_failure().unwrap().contains("the second"));
    // A resume finds the same.
    let (again, _) = Store::open(store.folder().clone(), store.session().clone(), &runs).unwrap();
    assert_eq!((again.rows(), again.last(), again.next_trial()), (store.rows(), store.last(), 4));
    assert_eq!(again.last_failure(), store.last_failure());
}

/// They are rates at the power of the first run, and stood in report and table as rates.
#[test]
fn by_gflops_per_watt_no_predicted_rate_is_recorded() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    let prediction = Prediction { rate_gflops: 21.0, sd: 0.1 };
    for (objective, rate) in [(Objective::Gflops, Some(21.0)), (Objective::GflopsPerWatt, None)] {
        store.update_session(|session| session.objective = objective).unwrap();
        let plan = PlannedTrial { predicted: Some(prediction), ..planned(store.next_trial()) };
        let trial = store.begin(&plan, &runs).unwrap();
        let told = predicted(store.folder(), trial.identity().trial).map(|of| of.rate_gflops);
        store.finish(trial, &Ok(Observation::Whole(passed_run(20.0))), Circumstances::default()).unwrap();
        let recorded = store.last().and_then(|row| row.predicted_rate_gflops);
        assert_eq!((told, recorded), (rate, rate));
    }
}

#[test]
fn a_child_that_makes_no_table_stops_nothing_and_at_the_end_the_table_is_made_here() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    for program in ["/bin/false", "/nonexistent/hpl-tune"] {
        store.table = TableWriter::Child { program: PathBuf::from(program) };
        store.refresh_at = Instant::now();
        ended(&mut store, &runs, None).unwrap();
        assert!(!store.folder().trials().exists());
        assert!(store.refresh_at > Instant::now() + REFRESH / 2, "the next try is a minute later");
    }
    let error = store.table.write(store.folder()).unwrap_err().to_string();
    assert!(error.contains("trials.parquet"), "{error}");
    store.close(12.0).unwrap();
    let table: Vec<Row> = parquet::read(&store.folder().trials()).unwrap();
    assert!(table.len() == 2 && table == store.recorded().unwrap());
    assert_eq!(Session::load(&store.folder().session_toml()).unwrap().elapsed_s, 12.0);
}

/// What a guard leaves of a run that took 3 s and ended with this code.
fn guard_json(code: i32) -> String {
    let guard = serde_json::json!({
        "schema_version": 1, "command": ["x"], "started_utc": "2026-11-24T08:00:00Z", "wall_s": 3.0, "limit_s": 9.0,
        "ended_by": "itself", "exit": { "code": code }, "user_s": 0.0, "system_s": 0.0, "max_rss_bytes": 0, "oom_kills": 0,
        "stragglers": 0, "survivors": [], "output_error": null,
    });
    guard.to_string()
}

/// Its tuner was ended 3.2 s after the last row, and the run took 3 s of these.
#[test]
fn the_time_of_a_run_that_is_taken_in_counts_once() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    ended(&mut store, &runs, None).unwrap();
    let (used_s, number) = (store.spent_s(), store.next_trial());
    let begun = store.begin(&planned(number), &runs).unwrap();
    std::fs::write(begun.folder().join("guard.json"), guard_json(1)).unwrap();
    store.close(used_s + 3.2).unwrap();
    let (again, _) = Store::open(store.folder().clone(), store.session().clone(), &runs).unwrap();
    let left_s = again.rows().last().unwrap().budget_left_s();
    assert_eq!((again.rows().len(), left_s), (2, again.session().budget_s - used_s - 3.2));
}

/// The end of its Slurm job was taken in on resume as a failure of its candidate.
#[test]
fn a_run_that_ended_with_its_job_is_run_once_more() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    let begun = store.begin(&planned(0), &runs).unwrap();
    std::fs::write(begun.folder().join("guard.json"), guard_json(1)).unwrap();
    begun.forget_end();
    let (again, repairs) = Store::open(store.folder().clone(), store.session().clone(), &runs).unwrap();
    assert!(again.is_empty() && repairs.adopted.is_empty());
    assert_eq!(again.interrupted().iter().map(|plan| plan.trial).collect::<Vec<_>>(), [Some(0)]);
}

/// The clock of a session was not saved at its end, and its results found no room either, beside a ballast that was kept.
#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_a_session_is_saved_on_a_full_disk() {
    let disk = SmallDisk::mount();
    let (mut store, _runs) = store(disk.path());
    let ballast = store.folder().root().join("ballast");
    std::fs::write(&ballast, [7; 32 * 1024]).unwrap();
    let _filler = disk.fill();
    store.update_session(|session| session.elapsed_s = 12.0).unwrap();
    assert!(!ballast.exists());
    assert_eq!(Session::load(&store.folder().session_toml()).unwrap().elapsed_s, 12.0);
}

/// The run of hours found no room for its result at its end.
#[test]
fn a_trial_whose_result_will_find_no_room_is_not_begun() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    let mut plan = planned(0);
    // 400 PB, larger than any disk.
    plan.candidate.hpl = HplParams { nb: 1, ..HplParams::baseline(1_000_000_000, 1000, 1000) };
    let error = store.begin(&plan, &runs).unwrap_err();
    assert!(error.is_full() && error.to_string().contains(" MiB are free; free some space"), "{error}");
    assert!(!store.folder().trial(0).exists() && !store.folder().root().join("ballast").exists());
    ended(&mut store, &runs, None).unwrap();
}

/// Its result was larger than the room that was left: the run had passed, and was recorded as a crash of its candidate.
#[test]
fn a_run_whose_result_found_no_room_blames_no_candidate() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    let trial = store.begin(&planned(0), &runs).unwrap();
    let folder = trial.folder().to_path_buf();
    std::fs::write(folder.join("guard.json"), guard_json(5)).unwrap();
    std::fs::write(folder.join("stdout.txt"), "PASSED\n").unwrap();
    let said = "hpl-tune: cannot write result.json: Disk quota exceeded (os error 122); free some space\n";
    std::fs::write(folder.join("stderr.txt"), said).unwrap();
    let outcome = Err(Failure::Crashed { exit: Exit::Code(5), telling_lines: vec![said.to_owned()] });
    let error = store.finish(trial, &outcome, Circumstances::default()).unwrap_err();
    assert!(error.is_full() && error.to_string().ends_with("; a session goes on with --resume"), "{error}");
    assert!(store.rows().is_empty() && !store.folder().root().join("ballast").exists());
    assert!(folder.join("stdout.txt").exists(), "it may say that the run has passed");
    let (again, repairs) = Store::open(store.folder().clone(), store.session().clone(), &runs).unwrap();
    assert!(again.rows().is_empty() && repairs.adopted.is_empty());
    assert_eq!(again.interrupted().iter().map(|plan| plan.trial).collect::<Vec<_>>(), [Some(0)]);
}

/// The record as a resume opens it, and the trials that it then takes for failed.
fn reopened(store: Store, runs: &RealRuns) -> (Store, Vec<u64>) {
    let (folder, session) = (store.folder().clone(), store.session().clone());
    drop(store);
    let (again, repairs) = Store::open(folder, session, runs).unwrap();
    (again, repairs.killed)
}

/// It was proposed again at every resume, for ever.
#[test]
fn a_trial_that_was_killed_with_its_session_twice_has_failed() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    ended(&mut store, &runs, None).unwrap();
    // All that is left of it is that it has begun.
    store.begin(&planned(1), &runs).unwrap();
    let (mut store, killed) = reopened(store, &runs);
    let again = store.interrupted()[0].clone();
    assert_eq!((killed.len(), store.rows().len(), again.trial), (0, 1, Some(1)));
    store.begin(&again, &runs).unwrap();
    let (store, killed) = reopened(store, &runs);
    assert_eq!((killed, store.interrupted().len(), store.next_trial()), (vec![1], 0, 2));
    let last = store.last().unwrap();
    assert_eq!((last.trial, last.outcome, last.passed), (1, Outcome::Killed, false));
    assert_eq!(last.failure_detail.as_deref(), Some("killed: the end of the session, each time that it ran"));
    // Nothing has run since: it cannot be mended.
    let (mut store, killed) = reopened(store, &runs);
    assert_eq!((killed.len(), store.rows().len(), store.mendable()), (0, 2, 1));
    ended(&mut store, &runs, crash("another")).unwrap();
    assert_eq!((store.rows().len(), store.mendable()), (3, 3));
}

/// A signal, or the end of a job, says nothing of what ran.
#[test]
fn a_trial_that_was_stopped_with_its_session_is_run_again_however_often() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    store.begin(&planned(0), &runs).unwrap();
    for _ in 0..3 {
        store.note_stop();
        let (mut again, killed) = reopened(store, &runs);
        let plan = again.interrupted()[0].clone();
        assert_eq!((killed.len(), plan.trial), (0, Some(0)));
        again.begin(&plan, &runs).unwrap();
        store = again;
    }
    // This time it is killed.
    let (store, killed) = reopened(store, &runs);
    assert_eq!((killed.len(), store.interrupted().len()), (0, 1));
}

/// Its candidate has the N and the grid of the other machine.
#[test]
fn what_was_under_way_on_a_machine_that_the_session_has_left_is_not_run_again() {
    let parent = tempfile::tempdir().unwrap();
    let (mut store, runs) = store(parent.path());
    store.begin(&planned(0), &runs).unwrap();
    let (folder, session) = (store.folder().clone(), store.session().clone());
    drop(store);
    let moved = Session { host: "b".into(), moved_from: vec![session.host.clone()], ..session };
    let (again, repairs) = Store::open(folder, moved, &runs).unwrap();
    assert!(again.interrupted().is_empty() && repairs.killed.is_empty());
}
