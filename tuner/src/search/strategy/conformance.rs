//! What every strategy owes the driver, checked on each of them.

use std::collections::HashSet;

use space::dims::{Point, Space};
use space::domain::{DomainSpec, HplDomain, Limits, WeightedDomain};
use space::listed::Listed;
use space::{KernelChoice, Share, Unequal};

use super::prior::{Flat, PriorTable};
use super::testing::{Dear, categorical, noise, ordered, session};
use super::{Ctx, NAMES, Prior, Strategy, by_name};
use crate::search::history::{History, Trial, TrialResult};

fn strategies() -> impl Iterator<Item = Box<dyn Strategy>> {
    NAMES.iter().map(|name| by_name(name).unwrap())
}

/// Three dimensions with a hard rule: 30 of 36 points exist.
fn small() -> Listed {
    let dims = vec![
        ordered("nb", &[5.0, 6.0, 7.0, 8.0]),
        categorical("bcast", &["a", "b", "c"]),
        ordered("depth", &[0.0, 1.0, 2.0]),
    ];
    Listed::product(dims, |levels| levels[0] < 2 || levels[2] < 2)
}

fn rate(point: &Point, repeat: usize) -> TrialResult {
    let smooth =
        -0.1 * (f64::from(point.0[0]) - 2.0).powi(2) - 0.05 * f64::from(point.0[1]) + 0.02 * f64::from(point.0[2]);
    TrialResult::Rate((3.0 + smooth + 0.005 * noise(1, point, repeat)).exp())
}

const PRIOR: Flat = Flat { cost_s: 2.0 };

fn ctx<'a>(space: &'a dyn Space, history: &'a History, seed: u64) -> Ctx<'a> {
    let trial = history.trials.len() as u64;
    Ctx { space, history, prior: &PRIOR, budget_left_s: 50.0, budget_total_s: 100.0, pairs: None, trial, seed }
}

/// Every proposal is a point of the space; one that was tried is declared as a repeat of a trial at that point.
fn check(space: &dyn Space, history: &History) {
    let mut seen: HashSet<&Point> = HashSet::new();
    for trial in &history.trials {
        assert_eq!(space.canonical(&trial.point).as_ref(), Some(&trial.point));
        seen.insert(&trial.point);
    }
}

#[test]
fn proposals_exist_and_repeat_only_when_they_say_so() {
    let space = small();
    for strategy in strategies() {
        let history = session(
            strategy.as_ref(),
            &space,
            &PRIOR,
            3,
            &rate,
            |history, proposal| {
                let (last, before) = history.trials.split_last().unwrap();
                let tried = before.iter().find(|trial| trial.point == last.point);
                assert_eq!(tried.is_some(), proposal.repeat_of.is_some(), "{}", strategy.name());
                if let Some(number) = proposal.repeat_of {
                    assert_eq!(before[number as usize].point, last.point, "{}", strategy.name());
                }
                assert!(!proposal.why.is_empty());
                false
            },
            200,
        );
        check(&space, &history);
        let distinct: HashSet<&Point> = history.trials.iter().map(|trial| &trial.point).collect();
        assert_eq!(distinct.len(), space.points().len(), "{} exhausts the space, then ends", strategy.name());
        assert!(history.trials.len() < 200, "{} does not repeat for ever", strategy.name());
    }
}

#[test]
fn the_record_and_the_seed_decide() {
    let space = small();
    for strategy in strategies() {
        let whole = session(strategy.as_ref(), &space, &PRIOR, 11, &rate, |_, _| false, 15);
        for length in 0..whole.trials.len() {
            let record = History { trials: whole.trials[..length].to_vec(), ..History::default() };
            let mut again = ctx(&space, &record, 11);
            (again.budget_left_s, again.budget_total_s) = (15.0 - length as f64, 15.0);
            let proposal = strategy.ask(&again).unwrap();
            assert_eq!(proposal.point, whole.trials[length].point, "{} at {length}", strategy.name());
        }
    }
}

#[test]
fn a_table_of_the_prior_changes_nothing() {
    let space = small();
    let table = PriorTable::new(&space, &PRIOR);
    for strategy in strategies() {
        let run = |prior: &dyn Prior| session(strategy.as_ref(), &space, prior, 5, &rate, |_, _| false, 12);
        assert_eq!(run(&PRIOR), run(&table), "{}", strategy.name());
    }
}

#[test]
fn failures_and_timeouts_are_never_tried_again() {
    let space = small();
    let outcomes = [TrialResult::Failed, TrialResult::TimedOut { at_most_gflops: 5.0 }];
    for strategy in strategies() {
        for outcome in outcomes {
            let history = session(strategy.as_ref(), &space, &PRIOR, 7, &|_, _| outcome, |_, _| false, 200);
            assert_eq!(history.trials.len(), space.points().len(), "{} {outcome:?}", strategy.name());
        }
        let mixed = |point: &Point, repeat| if point.0[1] == 1 { TrialResult::Failed } else { rate(point, repeat) };
        let history = session(strategy.as_ref(), &space, &PRIOR, 7, &mixed, |_, _| false, 200);
        let failed = history.trials.iter().filter(|trial| trial.outcome == TrialResult::Failed).count();
        assert_eq!(failed, 10, "{}", strategy.name());
    }
}

/// Each is tried once: what was proposed once more would be so for ever.
#[test]
fn runs_whose_power_was_not_read_are_not_proposed_again() {
    let space = small();
    for strategy in strategies() {
        let unread = |_: &Point, _| TrialResult::Unread;
        let history = session(strategy.as_ref(), &space, &PRIOR, 7, &unread, |_, _| false, 200);
        assert_eq!(history.trials.len(), space.points().len(), "{}", strategy.name());
        let mixed = |point: &Point, repeat| if point.0[1] == 1 { TrialResult::Unread } else { rate(point, repeat) };
        let history = session(strategy.as_ref(), &space, &PRIOR, 7, &mixed, |_, _| false, 200);
        let unread = history.trials.iter().filter(|trial| trial.outcome == TrialResult::Unread).count();
        assert_eq!(unread, 10, "{}", strategy.name());
    }
}

#[test]
fn a_repeat_that_fails_is_the_last() {
    let space = small();
    for strategy in strategies() {
        let run = |point: &Point, repeat| if repeat > 0 { TrialResult::Failed } else { rate(point, repeat) };
        let history = session(strategy.as_ref(), &space, &PRIOR, 9, &run, |_, _| false, 200);
        let times = |point: &Point| history.trials.iter().filter(|trial| trial.point == *point).count();
        assert!(space.points().iter().all(|point| times(point) <= 2), "{}", strategy.name());
    }
}

/// A neighbour that took longer than the time left was proposed, and ended the search.
#[test]
fn neighbours_that_do_not_fit_the_time_left_are_left_out() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 6.0, 7.0]), categorical("bcast", &["a", "b"])], |_| true);
    let trial = |number: u64, point: Point| {
        let outcome = TrialResult::Rate(20.0 + f64::from(point.0[0]));
        Trial { number, point, outcome, wall_s: 1.0, pair: None }
    };
    for name in ["local", "nelder-mead"] {
        let strategy = by_name(name).unwrap();
        let mut history = History { trials: vec![trial(0, Point(vec![1, 0]))], ..History::default() };
        for number in 1..4 {
            let ctx = Ctx { prior: &Dear, budget_left_s: 50.0, ..ctx(&space, &history, 3) };
            let proposal = strategy.ask(&ctx).unwrap();
            assert!(Dear.cost_s(&proposal.point) <= 50.0, "{name}: {proposal:?}");
            history.trials.push(trial(number, proposal.point));
        }
    }
}

#[test]
fn a_space_of_one_point() {
    let space = Listed::product(vec![ordered("nb", &[7.0]), categorical("bcast", &["a"])], |_| true);
    for strategy in strategies() {
        let run = |_: &Point, _| TrialResult::Rate(20.0);
        let history = session(strategy.as_ref(), &space, &PRIOR, 1, &run, |_, _| false, 10);
        assert_eq!(history.trials.len(), 1, "{}", strategy.name());
    }
}

#[test]
fn an_empty_space_has_nothing_to_propose() {
    let space = Listed::product(vec![ordered("nb", &[7.0])], |_| false);
    for strategy in strategies() {
        assert_eq!(strategy.ask(&ctx(&space, &History::default(), 1)), None, "{}", strategy.name());
    }
}

/// Rates and predictions that no run should have, and a point that the space does not hold any more.
#[test]
fn odd_records_do_no_harm() {
    struct Odd;
    impl Prior for Odd {
        fn log_rate(&self, point: &Point) -> f64 {
            [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 2.0][usize::from(point.0[0])]
        }
        fn cost_s(&self, point: &Point) -> f64 {
            [f64::NAN, f64::INFINITY, 0.0][usize::from(point.0[1])]
        }
    }
    let space = small();
    let rates = [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300, 1e-300, 20.0, 20.0];
    let trial = |(i, &rate): (usize, &f64)| {
        let point = space.points()[i % 7].clone();
        Trial { number: i as u64, point, outcome: TrialResult::Rate(rate), wall_s: 0.0, pair: None }
    };
    let mut history = History { trials: rates.iter().enumerate().map(trial).collect(), ..History::default() };
    let limit = TrialResult::TimedOut { at_most_gflops: f64::NAN };
    history.trials.push(Trial { number: 8, point: Point(vec![3, 0, 2]), outcome: limit, wall_s: 1.0, pair: None });
    for strategy in strategies() {
        for (budget_left_s, budget_total_s) in [(0.0, 0.0), (f64::NAN, 1.0), (-5.0, 10.0)] {
            let ctx = Ctx { prior: &Odd, budget_left_s, budget_total_s, ..ctx(&space, &history, 2) };
            let proposal = strategy.ask(&ctx).unwrap();
            assert!(space.points().contains(&proposal.point), "{}", strategy.name());
            if let Some(predicted) = proposal.predicted {
                assert!(!predicted.sd.is_nan() && !predicted.rate_gflops.is_nan(), "{}", strategy.name());
            }
        }
    }
}

#[test]
fn the_real_domain_is_explored() {
    let memory_bytes = 1 << 33;
    let spec = DomainSpec {
        n: 3000,
        cores: 2,
        memory_bytes,
        kernels: KernelChoice::Builtin,
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal::default(),
    };
    let domain = HplDomain::new(&spec).unwrap();
    let nb = domain.dims().iter().position(|dim| dim.name == "nb").unwrap();
    let run = |point: &Point, repeat| {
        let away = domain.dims()[nb].levels[usize::from(point.0[nb])].feature - 7.0;
        TrialResult::Rate((3.0 - 0.05 * away * away + 0.005 * noise(1, point, repeat)).exp())
    };
    let best = |history: &History| {
        let rates = history.trials.iter().filter_map(|trial| match trial.outcome {
            TrialResult::Rate(rate) => Some(rate.ln()),
            _ => None,
        });
        rates.fold(f64::NEG_INFINITY, f64::max)
    };
    for strategy in strategies() {
        let history = session(strategy.as_ref(), &domain, &PRIOR, 4, &run, |_, _| false, 12);
        assert_eq!(history.trials.len(), 12, "{}", strategy.name());
        check(&domain, &history);
        if strategy.name() == "bayes" {
            assert!(best(&history) > 2.97, "{}", best(&history));
        }
    }
}

/// A rank of 0.4 of the other's speed by a survey, whose best weight is 0.43: all strategies keep to the domain, and the
/// default one ends within a tenth of it, far from equal weights.
#[test]
fn weights_are_searched_around_the_measured_ones() {
    let speeds = [1.0, 0.4].map(|speed| Share::new(speed).unwrap()).to_vec();
    let spec = DomainSpec {
        n: 3000,
        cores: 2,
        memory_bytes: 1 << 33,
        kernels: KernelChoice::Builtin,
        ranks: Some(2),
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal { speeds, ..Unequal::default() },
    };
    let domain = WeightedDomain::within(&spec, &Limits::default()).unwrap();
    let [nb, weights] = ["nb", "weights"].map(|name| domain.dims().iter().position(|dim| dim.name == name).unwrap());
    let off =
        |point: &Point| (domain.dims()[weights].levels[usize::from(point.0[weights])].feature - 0.43f64.ln()).abs();
    let run = |point: &Point, repeat| {
        let away = domain.dims()[nb].levels[usize::from(point.0[nb])].feature - 7.0;
        TrialResult::Rate((3.0 - 0.05 * away * away - 0.5 * off(point) + 0.002 * noise(1, point, repeat)).exp())
    };
    for strategy in strategies() {
        let history = session(strategy.as_ref(), &domain, &PRIOR, 4, &run, |_, _| false, 40);
        check(&domain, &history);
        let rate = |trial: &&Trial| if let TrialResult::Rate(rate) = trial.outcome { rate } else { 0.0 };
        let best = history.trials.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap();
        if strategy.name() == "bayes" {
            assert!(off(&best.point) < 0.1, "{}: {:?}", strategy.name(), best.point);
        }
    }
}

#[test]
fn names_are_those_of_the_strategies() {
    for name in NAMES {
        assert_eq!(by_name(name).unwrap().name(), *name);
    }
    assert!(by_name("simulated-annealing").is_none());
}
