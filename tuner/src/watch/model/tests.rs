//! Models of made-up records.

use objectives::progress::ProgressPoint;
use objectives::real::Extent;
use space::Share;

use super::*;
use crate::record::arbitrary::{row, windows};
use crate::record::left::GainLeft;
use crate::record::now::Now;
use crate::record::session::Session;
use crate::record::{Identity, Objective, Outcome, Prediction, Row};
use crate::report::Summary;
use crate::report::summary::tests::session;
use crate::search::rounds::tests::with_rounds;
use crate::watch::look::Tone;
use crate::watch::reading::Running;

/// A record of these rows.
pub(in crate::watch) fn record_of(session: Session, rows: Vec<Row>, work: Work) -> Record {
    Record {
        folder: "/runs/host-20261120-070000".into(),
        summary: Summary::new(&session, &rows),
        session,
        rows,
        on_some: 0,
        elsewhere: 0,
        running: None,
        calibrated: true,
        work,
        clock_age_s: 2.0,
        doubts: Vec::new(),
    }
}

fn run(trial: u64, strategy: &str, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
    Row { nb, rate_gflops: Some(rate), paired_with, strategy: strategy.into(), ..row(trial) }
}

/// A session that ended: default, search, a failure, the final run and eight pairs.
pub(in crate::watch) fn ended() -> Record {
    let mut rows = vec![run(0, Identity::BASELINE, 128, 20.0, None)];
    rows.extend((1..12).map(|trial| run(trial, "bayes", 200 + 8 * trial as usize, 18.0 + 0.4 * trial as f64, None)));
    let crash = Some("the run ended with exit code 139: segmentation fault in a library\nmore lines".to_owned());
    rows.push(Row {
        passed: false,
        outcome: Outcome::Crashed,
        failure_detail: crash,
        rate_gflops: None,
        ..run(12, "bayes", 512, 0.0, None)
    });
    rows.push(run(13, Identity::FINAL, 288, 22.5, None));
    for pair in 0..8 {
        let first = 14 + 2 * pair;
        rows.push(run(first, Identity::CONFIRM, 128, 20.0 + 0.01 * pair as f64, None));
        rows.push(run(first + 1, Identity::CONFIRM, 288, 22.0, Some(first)));
    }
    record_of(session(), rows, Work::Over)
}

/// A session at work by windows, on three nodes of which one is slow, with a trial under way.
pub(in crate::watch) fn at_work() -> Record {
    let unequal = space::Unequal {
        speeds: [1.0, 0.9, 1.0].map(|speed| Share::new(speed).unwrap()).to_vec(),
        node_cores: Some(4),
        ..space::Unequal::default()
    };
    let hosts = ["n1", "n2", "n3"].map(str::to_owned).to_vec();
    let session = Session { extent: Extent::Windows, hosts, unequal, elapsed_s: 60.0, ..session() };
    let rows = vec![
        Row { strategy: Identity::BASELINE.into(), ..windows(0, 128, 20.0) },
        windows(1, 64, 19.0),
        windows(2, 192, 21.0),
    ];
    let mut record = record_of(session, rows, Work::AtWork);
    record.running = Some(Running {
        now: now(3, "bayes"),
        since_s: 12.0,
        told_s: 12.0,
        predicted: Some(Prediction { rate_gflops: 21.5, sd: 0.05 }),
        progress: None,
    });
    record
}

/// What now.json says of a trial.
pub(in crate::watch) fn now(trial: u64, strategy: &str) -> Now {
    let text = serde_json::json!({
        "schema_version": 1, "trial": trial, "strategy": strategy, "why": "expected to be best", "extent": "windows",
        "candidate": row(trial).candidate(), "nodes": null, "command": "hpl-tune run",
        "started_utc": "2026-11-20T07:01:00Z", "expected_s": 20.0, "limit_s": 60.0, "left_s": 58.0,
    });
    serde_json::from_value(text).unwrap()
}

fn figure<'a>(model: &'a WatchModel, name: &str) -> &'a str {
    &model.figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("{name}")).value
}

#[test]
fn a_session_at_work_says_what_it_does_and_what_a_stop_leaves() {
    let model = WatchModel::new(&at_work());
    assert_eq!((model.state.stage, model.state.work.as_str()), ("searching", "at work"));
    // 120 s less 62 s at the start of the trial, and its 12 s.
    assert_eq!(model.clock.words, "46 s left of 2 min");
    assert_eq!(model.outcome.name, "If stopped");
    assert!(model.outcome.value.starts_with("no score, only an estimate: 21.00 GFLOP/s at N = 1000"), "{model:?}");
    assert_eq!(figure(&model, "Best"), "21.00 GFLOP/s at N = 1000, estimated (1 trial)");
    assert_eq!(figure(&model, "Default"), "20.00 GFLOP/s at N = 1000, estimated (1 trial)");
    assert_eq!(figure(&model, "Best/default"), "not measured: pairs of both follow the final run");
    let running = model.running.unwrap();
    assert_eq!(running.time, "trial 3, windows for 12 s of about 20 s, at most 1 min");
    assert_eq!(running.why, "predicted 21.50 ± 1.075 GFLOP/s; bayes: expected to be best");
    assert_eq!(running.done, 0.6);
    assert_eq!(model.nodes[1], NodeSpeed { host: "n2".to_owned(), speed: Some(0.9) });
    assert_eq!(
        model.machine.as_deref().map(|said| said.split(';').next().unwrap()),
        Some("trial 2: clock 2.00 GHz, 1.0 % taken by the hypervisor")
    );
}

#[test]
fn a_session_that_is_over_has_the_figures_of_the_report() {
    let record = ended();
    let model = WatchModel::new(&record);
    assert_eq!((model.state.stage, model.state.work.as_str()), ("ended", "with a verified run"));
    assert_eq!((model.outcome.name, model.outcome.tone), ("Result", Tone::Good));
    assert_eq!(model.outcome.value, "22.50 GFLOP/s at N = 1000, verified by the final run");
    assert_eq!(figure(&model, "Best/default"), record.summary.best_by_baseline.words());
    assert!(figure(&model, "Best/default").contains("8 pairs"), "{model:?}");
    assert_eq!(figure(&model, "Default"), "20.03 GFLOP/s at N = 1000 (20.00 … 20.07, 9 whole runs)");
    assert_eq!(model.running, None);
    assert_eq!(model.trials.words, "30, failed: 1 crashed");
    let failed = model.trials.lines.iter().find(|line| line.tone == Tone::Bad).unwrap();
    assert_eq!((failed.result.as_str(), failed.trial), ("crashed", 12));
    assert_eq!(failed.why, "the run ended with exit code 139: segmentation fault in a library", "one line of it");
}

#[test]
fn every_state_of_a_session_has_its_words() {
    let mut record = record_of(session(), Vec::new(), Work::AtWork);
    let said = |record: &Record| {
        let SessionState { stage, work, way_on, .. } = SessionState::new(record);
        (stage, work, way_on.is_some())
    };
    let at_work = || "at work".to_owned();
    record.calibrated = false;
    assert_eq!(said(&record), ("calibrating", at_work(), false));
    record.calibrated = true;
    assert_eq!(said(&record), ("preparing the search", at_work(), false));
    record.rows = vec![row(0)];
    assert_eq!(said(&record), ("searching", at_work(), false));
    for (strategy, stage) in
        [(Identity::PROMOTE, "whole runs of the leaders"), (Identity::FINAL, "final run"), ("bayes", "searching")]
    {
        record.running =
            Some(Running { now: now(1, strategy), since_s: 0.0, told_s: 0.0, predicted: None, progress: None });
        assert_eq!(said(&record).0, stage);
    }
    record.work = Work::Silent { since_s: 130.0 };
    assert_eq!(said(&record), ("searching", "no sign of life for 2 min 10 s".to_owned(), false));
    record.work = Work::Over;
    assert_eq!(said(&record), ("stopped", "without a verified run".to_owned(), true));
    assert!(WatchModel::new(&record).running.is_none(), "what a killed session left in now.json does not run");
    // No time for another run of half a second, which a resume would need.
    record.session.elapsed_s = record.session.budget_s - 0.4;
    assert_eq!(said(&record), ("ended", "without a verified run".to_owned(), false));
    record.rows = vec![run(0, Identity::FINAL, 128, 20.0, None)];
    record.work = Work::AtWork;
    record.running = None;
    assert_eq!(said(&record).0, "pairs of best and default");
}

#[test]
fn whole_runs_without_a_final_one_are_not_verified() {
    let rows = vec![run(0, Identity::BASELINE, 128, 20.0, None), run(1, "bayes", 64, 21.0, None)];
    let outcome = WatchModel::new(&record_of(session(), rows, Work::AtWork)).outcome;
    assert_eq!(outcome.value, "21.00 GFLOP/s at N = 1000, by 1 whole run; no final run yet");
    let none = WatchModel::new(&record_of(session(), Vec::new(), Work::AtWork)).outcome;
    assert_eq!(none.value, "no score: no trial has passed");
}

#[test]
fn a_final_run_of_another_candidate_or_one_that_failed_is_told() {
    let said = |rows: Vec<Row>| WatchModel::new(&record_of(session(), rows, Work::Over)).outcome.value;
    let back = said(with_rounds(&[(10.0, 8.0, 9.0); 7]));
    assert!(back.ends_with("; the final run was of the candidate chosen before"), "{back}");
    let detail = Some("exit code 139\nmore lines".to_owned());
    let last = Row { passed: false, failure_detail: detail, ..run(1, Identity::FINAL, 64, 0.0, None) };
    let last = Row { outcome: Outcome::Crashed, rate_gflops: None, ..last };
    let failed = said(vec![run(0, Identity::BASELINE, 128, 20.0, None), last]);
    assert_eq!(failed, "20.00 GFLOP/s at N = 1000, by 1 whole run; the final run failed: exit code 139");
}

#[test]
fn what_a_search_left_to_gain_is_told_of_its_choice_alone() {
    let named = |rows: Vec<Row>| {
        let left = Some(GainLeft { expected: 0.02, at_most: 0.05 });
        let model = WatchModel::new(&record_of(Session { left, ..session() }, rows, Work::Over));
        model.figures.iter().any(|figure| figure.name == "Left")
    };
    assert!(named(with_rounds(&[(10.0, 8.0, 12.0); 7])));
    assert!(!named(with_rounds(&[(10.0, 8.0, 9.0); 7])), "the choice was taken back");
}

#[test]
fn nothing_is_said_of_this_host_where_runs_are_simulated() {
    let simulated = Row { engine: Row::SIMULATED.into(), ..row(0) };
    let machine = |rows: Vec<Row>| WatchModel::new(&record_of(session(), rows, Work::AtWork)).machine;
    assert_eq!(machine(vec![simulated]), None);
    assert!(machine(vec![row(0)]).is_some_and(|said| said.contains("clock 2.00 GHz")));
}

#[test]
fn the_progress_of_an_engine_that_tells_it_comes_before_the_time() {
    let mut record = at_work();
    let running = record.running.as_mut().unwrap();
    running.progress = Some(ProgressPoint { flops: 0.25, rate_gflops: 30.0 });
    let running = WatchModel::new(&record).running.unwrap();
    assert_eq!(running.done, 0.25);
    assert!(running.time.ends_with("; 25 % of the flops done at 30.00 GFLOP/s"), "{running:?}");
}

#[test]
fn trials_side_by_side_are_told_with_their_nodes() {
    let mut record = at_work();
    let on = |trial: u64, nodes: &str| {
        let mut now = now(trial, "bayes");
        now.nodes = Some(nodes.to_owned());
        now
    };
    let time = |record: &Record| WatchModel::new(record).running.unwrap().time;
    let mut several = on(3, "n1");
    several.beside = vec![on(4, "n2"), on(5, "n3")];
    record.running.as_mut().unwrap().now = several;
    assert!(time(&record).ends_with(", at most 1 min; on n1, and 2 more on other nodes"), "{}", time(&record));
    record.running.as_mut().unwrap().now = on(3, "n1 n2 n3");
    assert!(time(&record).ends_with(", at most 1 min"), "all nodes: {}", time(&record));
}

#[test]
fn the_curve_has_each_trial_of_the_search_and_the_best_so_far() {
    let curve = WatchModel::new(&at_work()).curve.unwrap();
    assert_eq!(curve.points, [(0.0, 20.0), (1.0, 19.0), (2.0, 21.0)]);
    assert_eq!(curve.best, [(0.0, 20.0), (2.0, 20.0), (2.0, 21.0), (2.0, 21.0)]);
    assert_eq!((curve.raised, curve.default), (vec![0, 2], Some(20.0)));
    assert_eq!(curve.words, "from 20.00 to 21.00, raised last by trial 2");
    assert_eq!(curve.unit, "GFLOP/s by windows");
    assert!(WatchModel::new(&record_of(session(), Vec::new(), Work::AtWork)).curve.is_none());
}

/// By GFLOPS/W the best may be slower than the default, and the ratio of the two still above 1.
#[test]
fn another_objective_than_the_rate_is_named() {
    let of = |objective: Objective, row: Row| {
        WatchModel::new(&record_of(Session { objective, ..session() }, vec![row], Work::AtWork))
    };
    let whole = || run(0, Identity::BASELINE, 128, 20.0, None);
    let efficient = of(Objective::GflopsPerWatt, whole());
    assert!(figure(&efficient, "Objective").starts_with("GFLOPS/W by the mean power"), "{efficient:?}");
    assert_eq!(efficient.curve.unwrap().unit, "rate alone, GFLOP/s");
    let limited = of(Objective::GflopsWithin { power_limit_w: 400 }, windows(0, 128, 20.0));
    assert_eq!(figure(&limited, "Objective"), "GFLOP/s at no more than 400 W in the core phase", "no best yet");
    let by_rate = of(Objective::Gflops, whole());
    assert!(by_rate.figures.iter().all(|figure| figure.name != "Objective"), "{by_rate:?}");
}

#[test]
fn a_summary_that_is_behind_says_so() {
    let mut record = ended();
    record.rows.push(run(40, "bayes", 64, 20.0, None));
    let doubts = WatchModel::new(&record).doubts;
    assert_eq!(doubts, ["best, default and differences are those of the first 30 trials"]);
}
