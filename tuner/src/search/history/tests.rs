use space::dims::Space;
use space::domain::{DomainSpec, HplDomain, default_candidate};

use super::*;
use crate::record::Row;
use crate::record::arbitrary::{row, row_of, windows};
use crate::search::schedule::tests;

#[test]
fn windows_are_brought_to_whole_runs() {
    // Whole runs reach 98 % of what their windows say.
    let pair = |nb: usize, rate: f64| {
        let whole = Row { nb, rate_gflops: Some(0.98 * rate), ..row(0) };
        [windows(1, nb, rate), whole]
    };
    let rows: Vec<Row> = [pair(64, 20.0), pair(96, 22.0), pair(128, 21.0)].concat();
    let refer = |rows: &[Row]| offset(&rows.iter().collect::<Vec<_>>());
    assert_eq!(refer(&[]), 0.0);
    assert_eq!(refer(&[windows(0, 64, 20.0)]), 0.0);
    let (one, three) = (refer(&rows[..2]), refer(&rows));
    assert!((one - 0.5 * 0.98_f64.ln()).abs() < 1e-9 && (three - 0.75 * 0.98_f64.ln()).abs() < 1e-9, "{one} {three}");
}

#[test]
fn what_was_ended_early_has_a_limit() {
    let quick = windows(0, 64, 20.0);
    let slow = Row { passed: false, outcome: record::Outcome::TimedOut, wall_s: 4.0 * quick.wall_s, ..quick.clone() };
    assert_eq!(limit(&slow, quickest_windows(&[&quick])), Some(5.0));
    assert_eq!(limit(&slow, None), None);
    let beaten = Row { passed: false, outcome: record::Outcome::Beaten, estimated_rate_gflops: Some(7.0), ..row(0) };
    assert_eq!(limit(&beaten, None), Some(7.0));
}

fn spec() -> DomainSpec {
    DomainSpec { n: 1000, ..tests::spec() }
}

#[test]
fn rows_of_the_domain_become_trials() {
    let spec = spec();
    let domain = HplDomain::new(&spec).unwrap();
    let candidate = default_candidate(&spec);
    let row = |trial: u64, outcome: record::Outcome, candidate: &space::Candidate| {
        let row = row_of(trial, candidate);
        let passed = outcome == record::Outcome::Passed;
        Row { outcome, passed, rate_gflops: row.rate_gflops.filter(|_| passed), ..row }
    };
    let elsewhere = domain.candidate(&domain.points()[0]);
    let rows = [
        row(0, record::Outcome::Passed, &candidate),
        row(1, record::Outcome::Passed, &candidate.at_n(999)),
        row(2, record::Outcome::Skipped, &candidate),
        row(3, record::Outcome::TimedOut, &elsewhere),
        row(4, record::Outcome::Crashed, &elsewhere),
    ];
    let history = History::from_rows(&rows, &domain, Objective::Gflops);
    assert_eq!(history.trials.iter().map(|trial| trial.number).collect::<Vec<_>>(), [0, 3, 4]);
    assert_eq!(domain.candidate(&history.trials[0].point), candidate);
    assert_eq!(history.trials[0].outcome, TrialResult::Rate(20.0));
    assert_eq!(history.trials[1].outcome, TrialResult::TimedOut { at_most_gflops: rate_gflops(1000, 0.5) });
    assert_eq!(history.trials[2].outcome, TrialResult::Failed);
}

#[test]
fn a_pair_says_the_rates_of_both_with_the_ratio_measured_in_turn() {
    let spec = spec();
    let domain = HplDomain::new(&spec).unwrap();
    let (usual, other) = (default_candidate(&spec), domain.candidate(&domain.points()[0]));
    let pair = |trial: u64| Row {
        rate_gflops: Some(22.0),
        reference_trial: Some(0),
        reference_rate_gflops: Some(20.0),
        log_ratio: Some(1.05_f64.ln()),
        ..row_of(trial, &other)
    };
    let failed = Row { passed: false, outcome: record::Outcome::TimedOut, log_ratio: None, ..pair(2) };
    let rows = [row_of(0, &usual), pair(1), failed];
    let history = History::from_rows(&rows, &domain, Objective::Gflops);
    let [alone, paired, failed] = &history.trials[..] else { panic!("{history:?}") };
    assert!(alone.pair.is_none() && failed.pair.is_none() && failed.outcome == TrialResult::Failed, "{failed:?}");
    let failed_references = HashMap::from([(2, alone.point.clone())]);
    assert_eq!(history.failed_references, failed_references);
    let reference = paired.pair.as_ref().unwrap();
    let TrialResult::Rate(rate) = paired.outcome else { panic!("{paired:?}") };
    assert_eq!((domain.candidate(&paired.point), domain.candidate(&reference.reference)), (other.clone(), usual));
    assert!((rate / reference.rate - 1.05).abs() < 1e-12 && (rate * reference.rate - 440.0).abs() < 1e-9, "{rate}");
}

/// The faster one takes more power than its speed is worth.
#[test]
fn by_gflops_per_watt_rates_are_those_of_equal_power() {
    let spec = spec();
    let domain = HplDomain::new(&spec).unwrap();
    let candidate = default_candidate(&spec);
    let run = |trial: u64, rate: f64, watts: Option<f64>| Row {
        rate_gflops: Some(rate),
        run_power_w: watts,
        ..row_of(trial, &candidate)
    };
    let rows = [run(0, 20.0, Some(100.0)), run(1, 22.0, Some(125.0)), run(2, 30.0, None), run(3, 19.0, Some(50.0))];
    let outcomes = |objective| {
        let trials = History::from_rows(&rows, &domain, objective).trials;
        trials.iter().map(|trial| trial.outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(Objective::Gflops), [20.0, 22.0, 30.0, 19.0].map(TrialResult::Rate));
    let [first, second, last] = [20.0, 22.0 * 0.8, 38.0].map(TrialResult::Rate);
    // Without a reading it was tried all the same.
    assert_eq!(outcomes(Objective::GflopsPerWatt), [first, second, TrialResult::Unread, last]);
    let within = outcomes(Objective::GflopsWithin { power_limit_w: 200 });
    assert_eq!(
        within,
        [TrialResult::Rate(20.0), TrialResult::Rate(22.0), TrialResult::Unread, TrialResult::Rate(19.0)]
    );
}

#[test]
fn a_point_is_above_the_power_limit_by_the_median_of_its_runs() {
    let of = |place: u16, powers: [f64; 3]| powers.map(|power| (Point(vec![place]), power));
    let powers = [of(0, [-0.1, 0.2, -0.1]), of(1, [0.1, -0.2, 0.1]), of(2, [-0.1, 0.0, 0.1])].concat();
    let history = History { powers, ..History::default() };
    assert_eq!(history.above_limit(), HashSet::from([&Point(vec![1])]));
}

/// A whole run takes 10 % less power than windows predict for its core phase: a candidate that has both has one value.
#[test]
fn by_gflops_per_watt_windows_and_whole_run_of_a_candidate_say_the_same() {
    let spec = spec();
    let domain = HplDomain::new(&spec).unwrap();
    let [first, leader] = [0, 1].map(|at| domain.candidate(&domain.points()[at]));
    let windows = |trial: u64, candidate: &space::Candidate, rate: f64, watts: f64| Row {
        extent: Extent::Windows,
        rate_gflops: None,
        estimated_rate_gflops: Some(rate),
        estimated_power_w: Some(watts),
        ..row_of(trial, candidate)
    };
    let whole = Row { rate_gflops: Some(22.0), run_power_w: Some(108.0), ..row_of(2, &leader) };
    let rows = [windows(0, &first, 20.0, 100.0), windows(1, &leader, 22.0, 120.0), whole];
    let history = History::from_rows(&rows, &domain, Objective::GflopsPerWatt);
    let rates: Vec<f64> = history
        .trials
        .iter()
        .map(|trial| if let TrialResult::Rate(rate) = trial.outcome { rate } else { panic!("{trial:?}") })
        .collect();
    assert!((rates[0] - 20.0).abs() < 1e-9 && (rates[1] - 22.0 / 1.2).abs() < 1e-9, "{rates:?}");
    assert!((rates[2] / rates[1] - 1.0).abs() < 1e-9, "{rates:?}");
}
