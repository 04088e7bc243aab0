use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use hpl::machine::accelerators::Accelerators;
use objectives::progress::ProgressPoint;
use objectives::real::{Extent, GuardRecord, RealRuns};
use objectives::{Exit, Failure, Observation};

use super::broken_off::{ended_with_session, since_end, unless_passed};
use super::rival::{Pace, REDRAW, Rival};
use super::{TrialRunner, forget_what_was_left};
use crate::power::PowerReader;
use crate::record::arbitrary::{passed_run, row};
use crate::record::folder::RunFolder;
use crate::record::left::GainLeft;
use crate::record::session::Session;
use crate::record::store::Store;
use crate::record::{Identity, Objective, PlannedTrial};
use crate::report::summary::tests::session;
use crate::search::budget::Budget;
use crate::search::interrupt::Interrupt;
use crate::search::progress::Progress;
use crate::search::schedule::Due;
use crate::search::schedule::tests::predictor;

/// Outside of Slurm the end of a launcher that had got the signal, too, was recorded as a crash of its candidate.
#[test]
fn a_run_that_broke_off_as_the_session_was_asked_to_end_says_nothing_of_its_candidate() {
    let (asked, not_asked) = (Interrupt::already_asked(), Interrupt::default());
    let crash = Err(Failure::Crashed { exit: Exit::Code(1), telling_lines: Vec::new() });
    assert!(ended_with_session(&crash, Duration::ZERO, false, &asked));
    assert!(ended_with_session(&crash, Duration::ZERO, true, &asked));
    assert!(!ended_with_session(&crash, Duration::ZERO, false, &not_asked));
    for outcome in [Ok(Observation::Whole(passed_run(20.0))), Err(Failure::TimedOut { limit_s: 9.0 })] {
        assert!(!ended_with_session(&outcome, Duration::ZERO, true, &asked), "{outcome:?}");
    }
}

/// A run that had printed its result and could not end for a lost node was recorded as killed.
#[test]
fn the_result_of_a_run_counts_though_it_was_ended() {
    let why = Failure::Killed { by: "the loss of n2".to_owned() };
    let passed = Ok(Observation::Whole(passed_run(20.0)));
    assert_eq!(unless_passed(why.clone(), Some(passed.clone())), passed);
    let ended = Err(Failure::Killed { by: "its guard, which was asked to stop".to_owned() });
    assert_eq!(unless_passed(why.clone(), Some(ended)), Err(why.clone()));
    assert_eq!(unless_passed(why.clone(), None), Err(why));
}

/// The end of the job was waited for as often as there were runs that had failed at the same moment.
#[test]
fn runs_that_ended_together_wait_together_for_the_end_of_their_job() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
    assert_eq!(since_end(folder.path(), seen), Duration::ZERO);
    let record = File::create(GuardRecord::path(folder.path())).unwrap();
    record.set_modified(SystemTime::now() - Duration::from_secs(10)).unwrap();
    assert!(since_end(folder.path(), seen) >= Duration::from_secs(9));
    assert!(since_end(folder.path(), Instant::now()) < Duration::from_secs(9), "a clock of another host");
    record.set_modified(SystemTime::now() + Duration::from_secs(1000)).unwrap();
    assert_eq!(since_end(folder.path(), seen), Duration::ZERO, "a clock of another host");
}

/// In the place of the guard. That of trial 0 finds a full disk once the others run. Each of these ends when both were asked to, and notes
/// where that does not come within some seconds.
const GUARD: &str = r#"#!/bin/sh
home=$(dirname "$0")
number=${9##*/}
if [ "$number" = 0 ]; then
    until [ -e "$home/runs1" ] && [ -e "$home/runs2" ]; do sleep 0.01; done
    echo "cannot write guard.json: No space left on device (os error 28)" >&2
    exit 1
fi
end() {
    trap '' TERM
    : > "$home/asked$number"
    looks=0
    until [ -e "$home/asked1" ] && [ -e "$home/asked2" ]; do
        looks=$((looks + 1))
        if [ "$looks" -gt 300 ]; then : > "$home/alone"; exit 1; fi
        sleep 0.01
    done
    exit 1
}
trap end TERM
: > "$home/runs$number"
while :; do sleep 0.01; done
"#;

/// The others were ended one after the other, up to half a minute each, and `now.json` said that they run.
#[test]
fn where_a_trial_cannot_be_recorded_the_others_are_ended_at_the_same_time() {
    let home = tempfile::tempdir().unwrap();
    let [text, program] = ["text", "guard"].map(|name| home.path().join(name));
    fs::write(&text, GUARD).unwrap();
    // By another process: a file that a child of another test has open for writing cannot be executed.
    assert!(Command::new("install").args(["-m", "755"]).args([&text, &program]).status().unwrap().success());
    let runs = RealRuns::new(program);
    let (folder, _lock) = RunFolder::create(&home.path().join("run")).unwrap();
    session().save(&folder.session_toml()).unwrap();
    let (mut store, _) = Store::open(folder.clone(), session(), &runs).unwrap();
    let mut runner = TrialRunner {
        budget: &mut Budget::new(Instant::now(), 60.0, 0.0),
        runs: &runs,
        power: &PowerReader::nothing(),
        accelerators: &Accelerators::default(),
        agents: None,
        store: &mut store,
        progress: &mut Progress::new(60.0, true),
        interrupt: &Interrupt::default(),
        objective: Objective::Gflops,
        settings: None,
        lost: &Vec::<String>::new,
        verbose: false,
    };
    let due = ["n1", "n2", "n3"].map(|node| {
        let plan = PlannedTrial {
            trial: None,
            candidate: row(0).candidate(),
            extent: Extent::Whole,
            reference: None,
            strategy: Identity::REFERENCE.to_owned(),
            why: String::new(),
            repeat_of: None,
            paired_with: None,
            predicted: None,
            expected_s: 1.0,
            nodes: vec![node.to_owned()],
        };
        Due { plan, limit_s: 60.0 }
    });
    let error = runner.together(&due, None, &predictor()).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(home.path().join("asked2").exists() && !home.path().join("alone").exists());
    assert!(!folder.now().exists());
}

/// The report said of a search that had gone on in the next job what the one before had left.
#[test]
fn what_a_search_was_said_to_leave_is_forgotten_where_it_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let (folder, _lock) = RunFolder::create(&home.path().join("run")).unwrap();
    let left = Some(GainLeft { expected: 0.03, at_most: 0.06 });
    let session = Session { left, ..session() };
    session.save(&folder.session_toml()).unwrap();
    let (mut store, _) = Store::open(folder.clone(), session, &RealRuns::new("guard".into())).unwrap();
    forget_what_was_left(&mut store).unwrap();
    assert_eq!(Session::load(&folder.session_toml()).unwrap().left, None);
}

#[test]
fn a_run_is_judged_soon_and_then_once_a_second() {
    let mut judged = Pace::new();
    let begun = judged.last;
    let due: Vec<u32> = (1..=25).filter(|i| judged.is_due(begun + *i * REDRAW)).collect();
    assert_eq!(due, [1, 3, 7, 12, 17, 22], "of looks every 200 ms");
}

#[test]
fn a_run_that_falls_behind_is_ended_and_a_close_one_is_not() {
    let trace = |points: &[(f64, f64)]| -> Vec<ProgressPoint> {
        points.iter().map(|&(flops, rate_gflops)| ProgressPoint { flops, rate_gflops }).collect()
    };
    let rival = Rival { rate_gflops: 100.0, trace: trace(&[(0.02, 120.0), (0.5, 110.0), (1.0, 100.0)]) };
    assert_eq!(rival.beats(&trace(&[(0.05, 60.0)])), None, "too early to say");
    assert_eq!(rival.beats(&trace(&[(0.12, 100.0)])), None, "perhaps a bad moment");
    assert_eq!(rival.beats(&trace(&[(0.5, 106.0)])), None, "within the margin");
    assert_eq!(rival.beats(&trace(&[(0.9, 60.0)])), None, "nearly done");
    let Some(Failure::Beaten { done_percent, estimated_rate_gflops, .. }) = rival.beats(&trace(&[(0.5, 88.0)])) else {
        panic!("not ended");
    };
    assert_eq!((done_percent, estimated_rate_gflops), (50.0, 80.0));
}
