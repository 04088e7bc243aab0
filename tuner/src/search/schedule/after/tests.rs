//! What follows the final run, on the made-up machine of the schedule's tests.

use std::sync::LazyLock;

use objectives::real::{Grids, PairRule};
use space::dims::Point;
use space::domain::{DomainSpec, HplDomain, default_candidate};
use space::{Candidates, HplParams};

use super::super::Setup;
use super::super::tests::{TOTAL_S, predictor, session_by, spec};
use super::*;
use crate::record::arbitrary::row_of;
use crate::record::lead::Lead;
use crate::record::{Objective, Row};
use crate::search::cost::model_s;
use crate::search::history::History;
use crate::search::strategy::Prior;
use crate::search::strategy::bayes::Bayes;

const N: usize = 3000;

/// The default, the expert's configuration and what a search might find, at [`N`].
fn three() -> [Candidate; 3] {
    let default = default_candidate(&DomainSpec { n: N, ..spec() });
    let with = |nb| Candidate { hpl: HplParams { nb, ..default.hpl }, ..default.clone() };
    let [expert, best] = [384, 192].map(with);
    [default, expert, best]
}

/// A baseline and the final run of `best`.
fn begun(best: &Candidate) -> Vec<Row> {
    let [default, ..] = three();
    let predictor = predictor();
    let of = |trial, candidate, strategy: &str| Row {
        strategy: strategy.into(),
        wall_s: model_s(&predictor, candidate, Extent::Whole),
        ..row_of(trial, candidate)
    };
    vec![of(0, &default, Identity::BASELINE), of(1, best, Identity::FINAL)]
}

/// Nothing that follows the final run asks it.
struct NoPrior;

impl Prior for NoPrior {
    fn log_rate(&self, _: &Point) -> f64 {
        0.0
    }

    fn cost_s(&self, _: &Point) -> f64 {
        1.0
    }
}

/// Asks `what` of the session with these rows and this much time.
fn ask<T>(rows: &[Row], extent: Extent, left_s: f64, what: impl FnOnce(&View<'_>) -> T) -> T {
    ask_where(false, rows, extent, left_s, what)
}

/// The same where two candidates can be measured in turn in one process, or not.
fn ask_where<T>(pairs: bool, rows: &[Row], extent: Extent, left_s: f64, what: impl FnOnce(&View<'_>) -> T) -> T {
    static DOMAIN: LazyLock<HplDomain> = LazyLock::new(|| HplDomain::new(&DomainSpec { n: N, ..spec() }).unwrap());
    let (predictor, [default, expert, _], domain) = (predictor(), three(), &*DOMAIN);
    what(&View {
        setup: Setup {
            objective: Objective::Gflops,
            pairs: if pairs { PairRule::InProcess(Grids::Covered) } else { PairRule::Never },
            domain,
            strategy: &Bayes,
            designed: false,
            baseline: &default,
            expert: Some(&expert),
            extent,
            seed: 1,
            until_gain: None,
            n_is_chosen: false,
            earlier_rows: 0,
        },
        prior: &NoPrior,
        rows,
        interrupted: &[],
        history: &History::from_rows(rows, domain, Objective::Gflops),
        cost: &CostEstimate::new(rows, &predictor),
        lead_of_search: None,
        left_s,
        total_s: TOTAL_S,
    })
}

/// Rows of what is run in `left_s` seconds after the final run of `best`, where a candidate reaches `rate`.
fn after(best: &Candidate, left_s: f64, rate: impl Fn(&Candidate) -> Option<f64>) -> Vec<Row> {
    after_where(false, best, left_s, rate)
}

fn after_where(pairs: bool, best: &Candidate, mut left_s: f64, rate: impl Fn(&Candidate) -> Option<f64>) -> Vec<Row> {
    let (predictor, mut rows) = (predictor(), begun(best));
    while let Some(plan) = ask_where(pairs, &rows, Extent::Whole, left_s, |view| view.after_final()) {
        let reference = plan.reference.as_ref();
        let other_s = reference.map_or(0.0, |other| model_s(&predictor, &other.candidate, plan.extent));
        let wall_s = model_s(&predictor, &plan.candidate, plan.extent) + other_s;
        left_s -= wall_s;
        assert!(left_s >= 0.0, "overrun by {plan:?}");
        let rate_gflops = rate(&plan.candidate);
        let row = Row { paired_with: plan.paired_with, wall_s, ..row_of(rows.len() as u64, &plan.candidate) };
        let of_reference = reference.and_then(|other| rate(&other.candidate));
        let log_ratio = rate_gflops.zip(of_reference).map(|(own, other)| (own / other).ln());
        let row = Row { reference_rate_gflops: of_reference, log_ratio, ..row };
        let row = Row { reference_trial: reference.map(|other| other.trial), ..row };
        rows.push(Row { strategy: plan.strategy, rate_gflops, passed: rate_gflops.is_some(), ..row });
    }
    rows.split_off(2)
}

fn steady(_: &Candidate) -> Option<f64> {
    Some(20.0)
}

/// Seconds of one run, more by what is kept for its spread.
fn run_s() -> f64 {
    ask(&begun(&three()[2]), Extent::Whole, 0.0, |view| view.cost.at_most(view.setup.baseline, Extent::Whole))
}

fn pairs(rows: &[Row], [a, b]: [&Candidate; 2]) -> usize {
    let all: Vec<Row> = begun(a).into_iter().chain(rows.iter().cloned()).collect();
    rounds::in_turn(&all, a, b, Objective::Gflops).len()
}

#[test]
fn rounds_are_default_expert_and_best_in_turn() {
    let [default, expert, best] = three();
    let rows = after(&best, 100.0, steady);
    assert!(rows.len() >= 20, "{}", rows.len());
    for round in rows.chunks_exact(3) {
        assert_eq!(
            round.iter().map(Row::candidate).collect::<Vec<_>>(),
            [default.clone(), expert.clone(), best.clone()]
        );
        let first = Some(round[0].trial);
        assert_eq!(round.iter().map(|row| row.paired_with).collect::<Vec<_>>(), [None, first, first]);
    }
    assert_eq!(pairs(&rows, [&best, &default]), pairs(&rows, [&best, &expert]));
    // What was verified may be the default, or the expert's.
    let rows = after(&default, 100.0, steady);
    assert!(pairs(&rows, [&default, &expert]) >= 6 && rows.iter().all(|row| row.candidate() != best));
    let rows = after(&expert, 100.0, steady);
    assert!(pairs(&rows, [&expert, &default]) >= 6 && rows.iter().all(|row| row.strategy != Identity::EXPERT));
}

/// Its rest, perhaps days later and at another speed of the machine, counted as run right after its first half.
#[test]
fn a_round_does_not_go_on_in_the_next_sitting() {
    let [default, expert, best] = three();
    let mut rows = begun(&best);
    let half = Row { strategy: Identity::CONFIRM.into(), wall_s: rows[0].wall_s, ..row_of(2, &default) };
    rows.push(half);
    let next = |earlier_rows: usize| {
        let look = |view: &View<'_>| View { setup: Setup { earlier_rows, ..view.setup }, ..*view }.after_final();
        let plan = ask(&rows, Extent::Whole, 100.0, look).unwrap();
        (plan.candidate, plan.paired_with)
    };
    assert_eq!(next(2), (expert, Some(2)));
    assert_eq!(next(3), (default, None));
}

#[test]
fn the_expert_takes_no_time_that_six_pairs_need() {
    let [default, expert, best] = three();
    let rows = after(&best, 14.0 * run_s(), steady);
    assert!(pairs(&rows, [&best, &default]) >= 6, "{rows:?}");
    assert!((1..6).contains(&pairs(&rows, [&best, &expert])), "{rows:?}");
    // Where there is no time for six pairs anyway, it takes part.
    let rows = after(&best, 7.0 * run_s(), steady);
    assert!((2..6).contains(&pairs(&rows, [&best, &default])) && pairs(&rows, [&best, &expert]) >= 1, "{rows:?}");
}

/// The expert's pair took the time of the sixth one with the default, and the ratio had no interval.
#[test]
fn the_expert_takes_no_time_that_six_pairs_in_one_process_need() {
    let [default, expert, best] = three();
    let mut rows = begun(&best);
    let both_s: f64 = rows.iter().map(|row| row.wall_s).sum();
    rows.push(Row {
        strategy: Identity::CONFIRM.into(),
        reference_trial: Some(0),
        reference_rate_gflops: Some(20.0),
        log_ratio: Some(0.05),
        wall_s: 2.0 * both_s,
        ..row_of(2, &best)
    });
    let pair_s = |other: &Candidate| {
        ask_where(true, &rows, Extent::Whole, 0.0, |view| {
            let alone_s = [other, &best].map(|one| view.cost.at_most(one, Extent::Whole));
            view.cost.of_pairs() * alone_s.iter().sum::<f64>()
        })
    };
    let next = |left_s: f64| {
        let plan = ask_where(true, &rows, Extent::Whole, left_s, |view| view.after_final()).unwrap();
        (plan.strategy, plan.candidate)
    };
    let five_s = 5.0 * pair_s(&default);
    assert_eq!(next(five_s + 0.9 * pair_s(&expert)), (Identity::CONFIRM.to_owned(), best.clone()));
    assert_eq!(next(five_s + 1.1 * pair_s(&expert)), (Identity::EXPERT.to_owned(), expert.clone()));
}

#[test]
fn rounds_go_on_without_an_expert_that_fails() {
    let [default, expert, best] = three();
    let rows = after(&best, 20.0 * run_s(), |candidate| (*candidate != expert).then_some(20.0));
    assert_eq!(rows.iter().filter(|row| row.candidate() == expert).count(), 1);
    assert!(pairs(&rows, [&best, &default]) >= 6, "{rows:?}");
}

#[test]
fn rounds_go_on_after_a_failure_and_end_with_the_third() {
    let [default, _, best] = three();
    // Every `nth` run of the default or the best fails.
    let failing = |nth: usize| {
        let runs = std::cell::Cell::new(0);
        after(&best, 100.0, |candidate| {
            runs.set(runs.get() + usize::from(*candidate == default || *candidate == best));
            (!runs.get().is_multiple_of(nth)).then_some(20.0)
        })
    };
    let rows = failing(5);
    assert_eq!(rows.iter().filter(|row| !row.passed).count(), 3, "{rows:?}");
    assert!(!rows.last().unwrap().passed);
    assert_eq!(pairs(&rows, [&best, &default]), 6, "{rows:?}");
    // Where each one fails, three are enough.
    assert_eq!(failing(1).len(), 3);
}

#[test]
fn rounds_that_take_the_choice_back_end_and_the_default_is_verified() {
    let [default, expert, best] = three();
    let worse = |candidate: &Candidate| Some(if *candidate == best { 19.0 } else { 20.0 });
    let rounds = after(&best, 100.0, worse);
    assert_eq!((rounds.len(), pairs(&rounds, [&best, &default])), (18, 6), "as many as an interval needs");
    let mut rows: Vec<Row> = begun(&best).into_iter().chain(rounds).collect();
    // One round is no interval: others come first, where they fit beside that run.
    let searched = Some(Lead { mean: 0.0, sd: 0.02, pair_sd: 0.01 });
    let early = |rows: &[Row], left_s: f64| {
        ask(rows, Extent::Windows, left_s, |view| View { lead_of_search: searched, ..*view }.final_plan())
    };
    // The rest of a round that has begun, too.
    for (known, rest) in [(5, vec![&default, &expert, &best]), (6, vec![&expert, &best]), (7, vec![&best])] {
        let fitting = ask(&rows[..known], Extent::Windows, 0.0, |view| {
            let at_most = |candidate, extent| view.cost.at_most(candidate, extent);
            rest.iter().map(|one| at_most(one, Extent::Windows)).sum::<f64>() + at_most(&default, Extent::Whole)
        });
        let [more, less] = [1.01, 0.99].map(|part| early(&rows[..known], part * fitting));
        assert!(more.is_none() && less.is_some(), "{known}: {more:?} {less:?}");
    }
    // Rounds that end for their failures leave the time to it.
    let mut failed = rows[..5].to_vec();
    failed.extend((5..8).map(|number| Row {
        strategy: Identity::CONFIRM.into(),
        passed: false,
        rate_gflops: None,
        ..row_of(number, &default)
    }));
    assert!(
        early(&failed, 1000.0).is_some() && ask(&failed, Extent::Windows, 1000.0, |view| view.after_final()).is_none()
    );
    // By whole runs it has passed at this N already.
    assert_eq!(ask(&rows, Extent::Whole, 100.0, |view| view.final_plan()), None);
    let plan = ask(&rows, Extent::Windows, 100.0, |view| view.final_plan()).unwrap();
    assert_eq!(
        (plan.candidate, plan.extent, plan.strategy.as_str()),
        (default.clone(), Extent::Whole, Identity::FINAL)
    );
    // Whatever its rate.
    let mut watts = rows.clone();
    watts.iter_mut().for_each(|row| row.run_power_w = Some(if row.nb == best.hpl.nb { 130.0 } else { 100.0 }));
    let objective = Objective::GflopsWithin { power_limit_w: 120 };
    let plan = ask(&watts, Extent::Windows, 100.0, |view| {
        View { setup: Setup { objective, ..view.setup }, ..*view }.final_plan()
    });
    assert!(plan.is_some_and(|plan| plan.why.contains("power limit")));
    let mut smaller = default;
    smaller.hpl.n = 2000;
    rows.push(Row { strategy: Identity::FINAL.into(), passed: false, ..row_of(20, &smaller) });
    assert_eq!(ask(&rows, Extent::Windows, 100.0, |view| view.final_plan()), None, "tried once");
}

/// Where that pays, a round is the verified one in turn with the default, and the expert's in turn with the verified one.
#[test]
fn rounds_are_pairs_in_one_process_where_these_say_more() {
    let [default, expert, best] = three();
    let rate = |candidate: &Candidate| Some(if *candidate == best { 21.0 } else { 20.0 });
    let rows = after_where(true, &best, 100.0, rate);
    assert!(rows.len() >= 20 && rows.iter().all(|row| row.reference_trial.is_some()), "{rows:?}");
    for round in rows.chunks_exact(2) {
        assert_eq!([round[0].candidate(), round[1].candidate()], [best.clone(), expert.clone()]);
        assert_eq!([round[0].reference_trial, round[1].reference_trial], [Some(0), Some(1)]);
        assert_eq!([round[0].paired_with, round[1].paired_with], [None, Some(round[0].trial)]);
    }
    assert!(pairs(&rows, [&best, &default]) >= 10 && pairs(&rows, [&best, &expert]) >= 10);
    // The default is the best.
    let rows = after_where(true, &default, 100.0, rate);
    assert!(rows.iter().all(|row| row.candidate() == expert && row.reference_trial.is_some()), "{rows:?}");
    assert!(pairs(&rows, [&default, &expert]) >= 6);
    // Worse: taken back, with the pairs that an interval needs.
    let worse = |candidate: &Candidate| rate(candidate).map(|rate| 400.0 / rate);
    let rows = after_where(true, &best, 100.0, worse);
    assert_eq!((rows.len(), pairs(&rows, [&best, &default])), (11, 6));
    // Six do not fit: runs one after the other.
    let rows = after_where(true, &best, 14.0 * run_s(), rate);
    assert!(pairs(&rows, [&best, &default]) >= 6 && rows.iter().all(|row| row.reference_trial.is_none()), "{rows:?}");
}

/// Where they do not fit, they are runs one after the other.
#[test]
fn what_is_known_of_a_round_is_that_of_a_pair_where_rounds_are_pairs() {
    let [.., best] = three();
    let sd = |pairs: bool, left_s: f64| {
        let lead = |view: &View<'_>| view.lead_of(&best).unwrap();
        ask_where(pairs, &begun(&best), Extent::Whole, left_s, lead).pair_sd
    };
    let [runs, paired, no_time] = [sd(false, 100.0), sd(true, 100.0), sd(true, 14.0 * run_s())];
    assert!(paired < 0.8 * runs && no_time == runs, "{runs} {paired} {no_time}");
}

#[test]
fn time_is_kept_for_six_rounds_where_they_take_a_small_share() {
    let [_, _, best] = three();
    let kept = |rows: &[Row], total_s: f64| {
        ask(rows, Extent::Whole, 50.0, |view| View { total_s, ..*view }.rounds_reserve_s()) / run_s()
    };
    let before = &begun(&best)[..1];
    // That has not run, so it may take a third more than the default.
    assert!((17.0..23.0).contains(&kept(before, 1000.0)), "with the expert: {}", kept(before, 1000.0));
    let pairs = kept(before, 13.0 * run_s() / ROUNDS_SHARE);
    assert!((11.5..13.0).contains(&pairs), "without: {pairs}");
    assert!((kept(before, 9.0 * run_s() / ROUNDS_SHARE) - 8.0).abs() < 1e-9, "as many pairs as fit");
    assert_eq!(kept(&begun(&best), 1000.0), 0.0, "the choice is made");
}

/// Runs that have become slower make the rounds take more time than was kept for them.
#[test]
fn the_final_run_is_made_though_no_time_is_left_for_the_rounds() {
    let [_, _, best] = three();
    let before = &begun(&best)[..1];
    let order = |left_s: f64| {
        ask(before, Extent::Whole, 0.0, |view| View { total_s: 1000.0, ..*view }.final_order(&best, N..=N, left_s))
    };
    assert_eq!(order(30.0 * run_s()), Some(N));
    assert_eq!(order(5.0 * run_s()), Some(N), "six rounds do not fit");
    assert_eq!(order(0.5 * run_s()), None);
    let smaller = ask(before, Extent::Whole, 0.0, |view| view.final_order(&best, 500..=N, 0.5 * run_s()));
    assert!(smaller.is_some_and(|n| (1000..N).contains(&n) && n % best.hpl.nb == 0), "{smaller:?}");
    let searched = ask(before, Extent::Whole, 0.0, |view| view.final_order(&best, 500..=N, 30.0 * run_s()));
    assert!(
        searched == Some(N) && !N.is_multiple_of(best.hpl.nb),
        "the order of the search, above the largest in whole blocks"
    );
}

/// The largest N is that of the usual grid at DEPTH 1: another candidate may need more.
#[test]
fn the_final_run_has_an_order_that_fits_the_memory_of_its_candidate() {
    let [.., mut best] = three();
    best.hpl.depth = 2;
    let chosen = |memory_bytes: u64| {
        let domain = HplDomain::new(&DomainSpec { n: N, memory_bytes, ..spec() }).unwrap();
        let order = ask(&begun(&best)[..1], Extent::Whole, 0.0, |view| {
            let setup = Setup { domain: &domain, ..view.setup };
            View { setup, ..*view }.final_order(&best, 500..=2 * N, 1e6)
        });
        let fits = |n: usize| domain.has_memory_for(&best.at_n(n));
        let order = order.unwrap();
        (order, fits(order), fits(order + best.hpl.nb))
    };
    assert_eq!(chosen(8 << 30), (31 * 192, true, true), "the largest in whole blocks");
    // The matrix alone would fit at 4257.
    assert_eq!(chosen(145_000_000), (17 * 192, true, false));
}

/// A session of cheap runs leaves the time of six pairs after its final run.
#[test]
fn a_session_leaves_time_for_six_pairs() {
    let done = session_by(Extent::Whole, N, |c| Some(if c.hpl.nb == 128 { 20.0 } else { 21.0 }));
    let left_s = TOTAL_S - done.iter().map(|(_, row)| row.wall_s).sum::<f64>();
    let (best, [default, ..]) = (done.last().unwrap().0.candidate.clone(), three());
    let rows = after(&best, left_s, steady);
    assert!(pairs(&rows, [&best, &default]) >= 6, "{left_s} s left, {} s a run", run_s());
}
