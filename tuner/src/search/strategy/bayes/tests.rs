use space::dims::{Dim, Space};
use space::listed::Listed;

use super::super::prior::Flat;
use super::super::testing::{Dear, TablePrior, categorical, noise, ordered, session};
use super::super::{PairTrials, PointPairs, Prior, Proposal};
use super::*;
use crate::search::history::{History, PairedRun, Trial, TrialResult};

fn hpl_like() -> Listed {
    let dims: Vec<Dim> = vec![
        ordered("nb", &[5.0, 5.6, 6.0, 6.6, 7.0, 7.3, 7.6, 8.0]),
        ordered("grid", &[-2.0, 0.0, 2.0]),
        categorical("pfact", &["left", "crout", "right"]),
        categorical("bcast", &["a", "b", "c", "d"]),
        ordered("depth", &[0.0, 1.0]),
        categorical("swap", &["mix", "long", "bin"]),
    ];
    Listed::product(dims, |_| true)
}

fn truth(point: &Point) -> f64 {
    let at = |dim: usize| f64::from(point.0[dim]);
    let interaction = if point.0[3].is_multiple_of(2) { 0.02 * at(4) } else { -0.02 * at(4) };
    4.0 - 0.01 * (at(0) - 4.6).powi(2) - 0.04 * (at(1) - 0.8).abs() - 0.003 * at(2) - 0.02 * at(3) + interaction
        - 0.01 * at(5)
}

fn best(space: &Listed) -> f64 {
    space.points().iter().map(truth).fold(f64::NEG_INFINITY, f64::max)
}

const FLAT: Flat = Flat { cost_s: 1.0 };

/// A trial alone, of a second.
fn trial(number: usize, point: &Point, outcome: TrialResult) -> Trial {
    Trial { number: number as u64, point: point.clone(), outcome, wall_s: 1.0, pair: None }
}

/// What a strategy looks at after these trials, with two thirds of its time left.
fn ctx<'a>(space: &'a Listed, history: &'a History) -> Ctx<'a> {
    Ctx {
        space,
        history,
        prior: &FLAT,
        budget_left_s: 40.0,
        budget_total_s: 60.0,
        pairs: None,
        trial: history.trials.len() as u64,
        seed: 1,
    }
}

#[test]
fn failures_are_learned() {
    let space = hpl_like();
    // One NB in eight dies, the best one; depth 1 dies with the best of the broadcasts.
    let block = |point: &Point| point.0[0] == 5;
    let pair = |point: &Point| point.0[4] == 1 && point.0[3] == 0;
    let causes: [&dyn Fn(&Point) -> bool; 2] = [&block, &pair];
    for (seed, dies) in (0..3).flat_map(|seed| causes.map(|dies| (seed, dies))) {
        let run = |point: &Point, repeat| match dies(point) {
            true => TrialResult::Failed,
            false => TrialResult::Rate((truth(point) + 0.003 * noise(seed, point, repeat)).exp()),
        };
        let history = session(&Bayes, &space, &FLAT, seed, &run, |_, _| false, 100);
        let failed = history.trials.iter().filter(|trial| trial.outcome == TrialResult::Failed).count();
        assert!(failed <= 12, "{failed} of 100 runs failed");
    }
}

#[test]
fn the_declared_best_is_no_lucky_run() {
    let space = hpl_like();
    let top = best(&space);
    let mut regrets: Vec<f64> = (0..40)
        .map(|seed| {
            let run =
                |point: &Point, repeat| TrialResult::Rate((truth(point) + 0.01 * noise(seed, point, repeat)).exp());
            let history = session(&Bayes, &space, &FLAT, seed, &run, |_, _| false, 60);
            let ctx = Ctx { budget_left_s: 0.0, trial: 60, seed, ..ctx(&space, &history) };
            top - truth(&leaders(&ctx, 1)[0].0)
        })
        .collect();
    regrets.sort_by(f64::total_cmp);
    assert!(regrets[36] < 0.01, "{regrets:?}");
}

#[test]
fn what_failed_as_often_as_it_passed_is_chosen_only_where_all_did() {
    let space = hpl_like();
    let [steady, fast] = [0, 1].map(|i| &space.points()[i]);
    let run =
        |number, point, rate: Option<f64>| trial(number, point, rate.map_or(TrialResult::Failed, TrialResult::Rate));
    let chosen = |trials: Vec<Trial>| {
        let history = History { trials, ..History::default() };
        leaders(&ctx(&space, &history), 2).into_iter().map(|(point, _)| point).collect::<Vec<_>>()
    };
    let mut trials = vec![run(0, steady, Some(50.0)), run(1, fast, Some(60.0)), run(2, fast, None)];
    assert_eq!(chosen(trials.clone()), [steady.clone(), fast.clone()]);
    trials.push(run(3, steady, None));
    assert_eq!(chosen(trials.clone()), [fast.clone(), steady.clone()]);
    trials.push(run(4, fast, Some(61.0)));
    assert_eq!(chosen(trials), [fast.clone(), steady.clone()]);
}

/// Of more runs than the process is conditioned on, the fastest are all above the power limit.
#[test]
fn the_best_that_keeps_the_power_limit_leads_in_a_long_record() {
    let space = hpl_like();
    let rates = |at: usize| if at < 151 { 90.0 } else { 50.0 + if at == 151 { 20.0 } else { 0.0 } };
    let points = || space.points().iter().step_by(5).take(301).enumerate();
    let run = |(at, point)| Trial { wall_s: 0.1, ..trial(at, point, TrialResult::Rate(rates(at))) };
    let powers = points().map(|(at, point)| (point.clone(), if at < 151 { 0.1 } else { -0.1 })).collect();
    let history = History { trials: points().map(run).collect(), powers, ..History::default() };
    let best = leaders(&ctx(&space, &history), 1).remove(0).0;
    assert_eq!(best, space.points()[5 * 151]);
}

/// All were as unlikely, and the fastest were run, which take most.
#[test]
fn where_no_run_keeps_the_power_limit_one_that_takes_less_is_next() {
    let space = hpl_like();
    let runs = || space.points().iter().filter(|point| point.0[0] >= 3).step_by(37).take(12).enumerate();
    let nb = |point: &Point| f64::from(point.0[0]);
    let run = |(at, point): (usize, &Point)| trial(at, point, TrialResult::Rate(50.0 + 5.0 * nb(point)));
    let powers = runs().map(|(_, point)| (point.clone(), 0.3 + 0.05 * nb(point))).collect();
    let history = History { trials: runs().map(run).collect(), powers, ..History::default() };
    let next = Bayes.ask(&ctx(&space, &history)).unwrap().point;
    assert!(next.0[0] < 3, "{next:?}");
}

#[test]
fn a_change_of_speed_in_mid_session_misleads_nobody() {
    let space = hpl_like();
    let top = best(&space);
    for seed in 0..6 {
        let count = std::cell::Cell::new(0);
        let run = |point: &Point, repeat| {
            count.set(count.get() + 1);
            let slower = if count.get() > 30 { 0.9_f64.ln() } else { 0.0 };
            TrialResult::Rate((truth(point) + slower + 0.003 * noise(seed, point, repeat)).exp())
        };
        let history = session(&Bayes, &space, &FLAT, seed, &run, |_, _| false, 60);
        let ctx = Ctx { budget_left_s: 0.0, trial: 60, seed, ..ctx(&space, &history) };
        let (point, predicted) = leaders(&ctx, 1).remove(0);
        assert!(top - truth(&point) < 0.01, "seed {seed}: {}", top - truth(&point));
        // Rates are those of the machine as it is now.
        assert!((predicted.rate_gflops.ln() - truth(&point) - 0.9_f64.ln()).abs() < 0.02, "seed {seed}: {predicted:?}");
    }
}

#[test]
fn a_wrong_prior_is_found_out() {
    let space = hpl_like();
    let top = best(&space);
    let needed = |prior: &dyn Prior, seed| {
        let run = |point: &Point, repeat| TrialResult::Rate((truth(point) + 0.003 * noise(seed, point, repeat)).exp());
        let near = |history: &History, _: &Proposal| {
            history.trials.last().is_some_and(|trial| truth(&trial.point) > top - 0.01)
        };
        session(&Bayes, &space, prior, seed, &run, near, 100).trials.len()
    };
    let table = |logs: &dyn Fn(&Point) -> f64| {
        TablePrior(space.points().iter().map(|point| (point.clone(), logs(point))).collect())
    };
    let (right, wrong) = (table(&|point| truth(point) - 0.5), table(&|point| -truth(point)));
    let mean = |prior: &dyn Prior| (0..5).map(|seed| needed(prior, seed)).sum::<usize>() as f64 / 5.0;
    let (none, right, wrong) = (mean(&FLAT), mean(&right), mean(&wrong));
    assert!(right <= 1.0 && wrong <= none + 2.0, "none {none} right {right} wrong {wrong}");
}

/// What the posterior says of `of` after `trials`, given as points with their outcomes.
fn expected_after(trials: &[(&Point, TrialResult)], of: &Point) -> Prediction {
    let trial = |(i, &(point, outcome)): (usize, &(&Point, TrialResult))| trial(i, point, outcome);
    let history = History { trials: trials.iter().enumerate().map(trial).collect(), ..History::default() };
    let space = hpl_like();
    let ctx = ctx(&space, &history);
    posterior(&ctx).prediction(of)
}

#[test]
fn a_run_that_hung_says_nothing_of_a_point_that_passed_and_little_of_the_like_of_many_that_did() {
    let points: Vec<Point> = (0..4).map(|pfact| Point(vec![3, 1, pfact % 3, 0, 0, pfact / 3])).collect();
    let mut trials: Vec<(&Point, TrialResult)> = points[..3]
        .iter()
        .flat_map(|point| [(point, TrialResult::Rate(50.0)), (point, TrialResult::Rate(50.3))])
        .collect();
    let hung = TrialResult::TimedOut { at_most_gflops: 20.0 };
    let before = [&points[0], &points[3]].map(|point| expected_after(&trials, point));
    trials.push((&points[0], hung));
    assert_eq!(expected_after(&trials, &points[0]), before[0]);
    trials.push((&points[3], hung));
    let after = [&points[0], &points[3]].map(|point| expected_after(&trials, point));
    assert!(after[0].rate_gflops > 0.99 * before[0].rate_gflops, "{after:?} {before:?}");
    assert!(after[1].rate_gflops < before[1].rate_gflops, "{after:?} {before:?}");
}

#[test]
fn a_point_that_failed_more_seldom_than_it_passed_may_be_run_again() {
    let (steady, shaky, once) = (Point(vec![0; 6]), Point(vec![1; 6]), Point(vec![2; 6]));
    let (passed, failed) = (TrialResult::Rate(50.0), TrialResult::Failed);
    let runs = [(&steady, passed), (&steady, passed), (&steady, failed), (&shaky, passed), (&shaky, failed)];
    let trial = |&(point, outcome): &(&Point, TrialResult)| trial(0, point, outcome);
    let history = History { trials: runs.iter().chain([&(&once, failed)]).map(trial).collect(), ..History::default() };
    let space = hpl_like();
    let ctx = ctx(&space, &history);
    assert_eq!(unsteady(&ctx), HashSet::from([&shaky, &once]));
}

/// The candidate alone was blamed: a reference that fails made one candidate after the other the last to be chosen.
#[test]
fn a_pair_that_failed_is_half_a_failure_of_either() {
    let (space, [a, b]) = (hpl_like(), [0, 1].map(|level| Point(vec![level; 6])));
    let passed = |number, point| trial(number, point, TrialResult::Rate(50.0));
    let after = |failures: usize| {
        let failed = (2..2 + failures).map(|number| trial(number, &a, TrialResult::Failed));
        let failed_references = (2..2 + failures as u64).map(|number| (number, b.clone())).collect();
        let trials = [passed(0, &a), passed(1, &b)].into_iter().chain(failed).collect();
        let history = History { trials, failed_references, ..History::default() };
        let ctx = ctx(&space, &history);
        let weights = Feasibility::new(&ctx).log_weights(&[&a, &b]);
        assert!(failures == 0 || weights.iter().all(|(_, weight)| *weight < 0.0), "{weights:?}");
        unsteady(&ctx).len()
    };
    assert_eq!([0, 1, 2].map(after), [0, 0, 2]);
}

#[test]
fn a_run_whose_power_was_not_read_is_no_failure() {
    let (space, point) = (hpl_like(), Point(vec![0; 6]));
    let outcomes = [TrialResult::Rate(50.0), TrialResult::Unread, TrialResult::Unread];
    let trials = outcomes.into_iter().enumerate().map(|(number, outcome)| trial(number, &point, outcome)).collect();
    let history = History { trials, ..History::default() };
    let ctx = ctx(&space, &history);
    assert_eq!(unsteady(&ctx), HashSet::new());
    assert_eq!(leaders(&ctx, 2).len(), 1);
    assert_eq!(Feasibility::new(&ctx).log_weights(&[&point]), [(false, 0.0)]);
}

#[test]
fn a_timeout_lowers_what_is_expected_and_one_that_says_nothing_does_not() {
    let (seen, slow) = (Point(vec![3, 1, 0, 0, 0, 0]), Point(vec![3, 1, 1, 0, 0, 0]));
    let expected = |at_most_gflops: Option<f64>| {
        let passed = (&seen, TrialResult::Rate(50.0));
        let ended = at_most_gflops.map(|at_most_gflops| (&slow, TrialResult::TimedOut { at_most_gflops }));
        let trials: Vec<_> = [passed].into_iter().chain(ended).collect();
        expected_after(&trials, &slow).rate_gflops
    };
    assert!(expected(Some(20.0)) < 0.6 * expected(None));
    assert_eq!(expected(Some(80.0)), expected(None));
}

/// The search would end with a proposal that does not fit, however much time others have.
#[test]
fn what_takes_longer_than_the_time_left_waits() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 6.0, 7.0])], |_| true);
    let history = History::default();
    let asked = |budget_left_s| {
        let ctx = Ctx { prior: &Dear, budget_left_s, budget_total_s: 1e6, ..ctx(&space, &history) };
        Bayes.ask(&ctx).unwrap().point.0[0]
    };
    assert_eq!([1e4, 40.0, 0.5].map(asked), [2, 1, 2]);
}

#[test]
fn what_is_run_again_for_a_change_of_speed_fits_the_time_left() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 6.0, 7.0])], |_| true);
    let runs = [50.0, 60.0, 70.0].map(TrialResult::Rate).into_iter().enumerate();
    let trials = runs.map(|(number, rate)| trial(number, &space.points()[number], rate)).collect();
    let history = History { trials, ..History::default() };
    let again = |budget_left_s| {
        let ctx = Ctx { prior: &Dear, budget_left_s, budget_total_s: 1e6, ..ctx(&space, &history) };
        let tried: Vec<&Point> = space.points().iter().collect();
        anchor(&ctx, &posterior(&ctx), 2, &tried, &HashSet::new())
    };
    assert_eq!([1e4, 5.0, 0.5].map(again), [Some(1), Some(0), None]);
}

/// Any two points can be measured in turn, or no two.
struct AnyTwo(bool);

impl PointPairs for AnyTwo {
    fn allows(&self, _: [&Point; 2]) -> bool {
        self.0
    }
}

fn pairs_of(cost: f64) -> PairTrials<'static> {
    PairTrials { cost, rule: &AnyTwo(true) }
}

/// Two points lead by little in a small space where all were run: one of them is run again.
#[test]
fn repeats_are_pairs_where_two_can_be_measured_in_turn_and_that_pays() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 5.6, 6.0, 6.6])], |_| true);
    let rate = |level: u16| 100.0 - 3.0 * (f64::from(level) - 1.4).powi(2);
    let trial = |(number, level): (usize, u16), pair: Option<(u16, f64)>| {
        let point = Point(vec![level]);
        let seen = rate(level) * (1.0 + 0.02 * noise(1, &point, number));
        let pair = pair.map(|(reference, rate)| PairedRun { reference: Point(vec![reference]), rate });
        Trial { pair, ..trial(number, &point, TrialResult::Rate(seen)) }
    };
    let ask = |trials: Vec<Trial>, pairs: Option<PairTrials<'static>>| {
        let history = History { trials, ..History::default() };
        let ctx = Ctx { pairs, trial: 60, ..ctx(&space, &history) };
        Bayes.ask(&ctx)
    };
    let alone: Vec<Trial> = [0, 1, 2, 3, 1, 2].into_iter().enumerate().map(|run| trial(run, None)).collect();
    let proposed = ask(alone.clone(), Some(pairs_of(1.8))).expect("which one leads is uncertain");
    let reference = proposed.reference.expect("a pair");
    assert!(proposed.repeat_of.is_some() && reference != proposed.point, "{reference:?} {:?}", proposed.point);
    let refused = PairTrials { cost: 1.8, rule: &AnyTwo(false) };
    assert_eq!(ask(alone.clone(), Some(refused)), ask(alone.clone(), None), "these two cannot be measured in turn");
    let reference = |trials: &[Trial], cost: Option<f64>| {
        ask(trials.to_vec(), cost.map(pairs_of)).and_then(|proposed| proposed.reference)
    };
    assert_eq!(reference(&alone, None), None);
    assert_eq!(reference(&alone, Some(50.0)), None, "it takes too long");
    // Pairs whose ratio scatters as much as that of runs one after the other.
    let mut scattered = alone;
    for number in 6..26 {
        let luck = 1.0 + 0.03 * noise(2, &Point(vec![9]), number);
        scattered.push(trial((number, 1), Some((2, rate(2) * luck))));
    }
    assert_eq!(reference(&scattered, Some(1.8)), None, "it says no more than two runs");
}

/// Trials of a record of 300 whose first ones are pairs with a ratio that scatters by so much.
fn long_record(pair_sd: f64) -> Vec<Trial> {
    let rate = |level: u16| 100.0 - 3.0 * (f64::from(level) - 1.4).powi(2);
    let run = |number: usize| {
        let point = Point(vec![(number % 4) as u16]);
        let luck = (0.02 * noise(1, &point, number)).exp();
        let reference = Point(vec![((number % 4) ^ 1) as u16]);
        let of_reference = rate(reference.0[0]) * luck * (pair_sd * noise(2, &point, number)).exp();
        let pair = (number < 80).then_some(PairedRun { reference, rate: of_reference });
        Trial { pair, ..trial(number, &point, TrialResult::Rate(rate(point.0[0]) * luck)) }
    };
    (0..300).map(run).collect()
}

/// The search has no pairs any more then, but the rounds after it may.
#[test]
fn the_first_runs_of_a_long_record_say_whether_pairs_pay() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 5.6, 6.0, 6.6])], |_| true);
    let sd = |pair_sd: f64| {
        let history = History { trials: long_record(pair_sd), ..History::default() };
        let ctx = Ctx { pairs: Some(pairs_of(1.8)), ..ctx(&space, &history) };
        assert_eq!(posterior(&ctx).paying_pairs(), None, "it is long");
        sd_of_paying_pair(&ctx)
    };
    assert!(sd(0.002).is_some_and(|sd| sd < 0.01), "{:?}", sd(0.002));
    assert_eq!(sd(0.04), None);
}

/// The leads are large for noise of 1 %, which is a guess as long as nothing was run twice.
#[test]
fn no_search_ends_before_a_point_was_run_again() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 5.6, 6.0])], |_| true);
    let rates = [100.0, 90.0, 80.0];
    let ask = |runs: &[usize]| {
        let trial = |(number, &level): (usize, &usize)| {
            trial(number, &Point(vec![level as u16]), TrialResult::Rate(rates[level]))
        };
        let history = History { trials: runs.iter().enumerate().map(trial).collect(), ..History::default() };
        let ctx = ctx(&space, &history);
        Bayes.ask(&ctx)
    };
    assert!(ask(&[0, 1, 2]).is_some_and(|proposed| proposed.repeat_of.is_some()));
    assert_eq!(ask(&[0, 1, 2, 0, 1, 0]), None);
}
