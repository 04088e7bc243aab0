//! Bayesian optimisation: the next run is the one that is expected to raise the best known rate most.
//!
//! The gain of a run at x is E[max(0, d)], where d is the posterior mean of x less that of its rival, the best of the other
//! tried points, both after the run; at the best point itself what the second is ahead by then. It is normal about the
//! present difference with standard deviation (s² − c)/√(s² + noise²), where s² is the variance of x and c its covariance
//! with the machine's speed: what a run says of that, it says of all points, and decides nothing.
//! This is expected improvement where x was never tried, discounted for noise, and it also values a repeat of a tried
//! point, so the same rule decides when it is worth more to know who leads than to look at something new.
//! The incumbent is the best posterior mean, never the luckiest run.

use std::collections::{HashMap, HashSet};

use rand::RngExt;
use space::dims::Point;

use super::acquisition::log_improvement;
use super::context::rng;
use super::feasible::Feasibility;
use super::surrogate::{Contrast, Surrogate, log_rate};
use super::{Ctx, Proposal, Strategy};
use crate::record::Prediction;

/// Untried points that get the exact acquisition.
const SHORTLIST: usize = 2048;
/// Standard deviations above the mean by which the shortlist is chosen.
const OPTIMISM: f64 = 2.0;

/// Relative gain below which nothing is run again: where no gain is left, a new point may still surprise.
const WORTH_A_REPEAT: f64 = 3e-4;

/// Gaussian process, expected improvement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bayes;

impl Strategy for Bayes {
    fn name(&self) -> &'static str {
        "bayes"
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        let surrogate = Surrogate::new(ctx);
        let feasible = Feasibility::new(ctx);
        let fresh = shortlist(ctx, &surrogate, &feasible);
        let known = surrogate.contenders(first_passes(ctx));
        let tried: Vec<&Point> = known.iter().map(|(point, _)| *point).collect();
        let unsteady = unsteady(ctx);
        if let Some(at) = anchor(ctx, &surrogate, &tried, &unsteady) {
            return Some(Proposal {
                point: tried[at].clone(),
                repeat_of: Some(known[at].1),
                why: "repeat: has the machine changed?".to_owned(),
                predicted: Some(surrogate.prediction(tried[at])),
            });
        }
        let points: Vec<&Point> = tried.iter().copied().chain(fresh).collect();
        let by = surrogate.contrasts(&points, tried.len());
        let feasible = feasible.log_weights(&points);
        let thrift = thrift(ctx);
        let gains: Vec<(f64, Vec<f64>)> = by.iter().map(|(weight, of)| (*weight, log_gains(of))).collect();
        let value = |i: usize| {
            let is_repeat = i < tried.len();
            let terms = gains.iter().map(|(weight, gains)| weight.ln() + gains[i]);
            let log_gain = log_sum(terms);
            let pointless = tried.len() == 1 && is_repeat || log_gain < WORTH_A_REPEAT.ln();
            if is_repeat && (pointless || unsteady.contains(points[i])) {
                return f64::NEG_INFINITY;
            }
            log_gain + feasible[i] - thrift * log_cost(ctx, points[i])
        };
        let values = (0..points.len()).map(|i| (i, value(i)));
        // Where all points were run, no run may be worth its time.
        let (best, _) = values.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, value)| *value > f64::NEG_INFINITY)?;
        Some(Proposal {
            point: points[best].clone(),
            repeat_of: known.get(best).map(|known| known.1),
            why: why(best, &known, tried.is_empty()),
            predicted: Some(surrogate.prediction(points[best])),
        })
    }
}

/// What to run again where the machine's speed seems to have changed: the best of the points that were run before the change,
/// unless one of them was run since.
fn anchor(ctx: &Ctx<'_>, surrogate: &Surrogate<'_>, tried: &[&Point], unsteady: &HashSet<&Point>) -> Option<usize> {
    let (before, after) = ctx.history.trials.split_at(surrogate.suspect()?);
    let before: HashSet<&Point> = before.iter().map(|trial| &trial.point).collect();
    if after.iter().any(|trial| before.contains(&trial.point)) {
        return None;
    }
    let means = surrogate.predict(tried);
    let old = (0..tried.len()).filter(|&i| before.contains(tried[i]) && !unsteady.contains(tried[i]));
    old.max_by(|&a, &b| means[a].mean.total_cmp(&means[b].mean))
}

/// Log gain of a run at each point under one hypothesis, see [`super::acquisition`].
fn log_gains(contrasts: &[Contrast]) -> Vec<f64> {
    let one = |&Contrast { lead, sd }: &Contrast| {
        let sd = sd.max(1e-12);
        sd.ln() + log_improvement(lead / sd)
    };
    contrasts.iter().map(one).collect()
}

/// ln Σ exp, stable.
fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() { top + logs.map(|log| (log - top).exp()).sum::<f64>().ln() } else { top }
}

fn why(chosen: usize, known: &[(&Point, u64)], first: bool) -> String {
    match known.get(chosen) {
        Some(_) => "repeat: which candidate is best is uncertain".to_owned(),
        None if first => "best expected by the model".to_owned(),
        None => "largest expected improvement".to_owned(),
    }
}

/// Weight of ln cost against ln gain: 1 with the whole budget left, 0 at its end, when nothing is saved for later.
fn thrift(ctx: &Ctx<'_>) -> f64 {
    let left = ctx.budget_left_s / ctx.budget_total_s;
    if left.is_finite() { left.clamp(0.0, 1.0) } else { 0.0 }
}

/// A model may answer NaN or infinity: such a run is taken for the most costly.
fn log_cost(ctx: &Ctx<'_>, point: &Point) -> f64 {
    let cost_s = ctx.prior.cost_s(point);
    if cost_s.is_finite() { cost_s.max(1e-9).ln() } else { 1e9_f64.ln() }
}

/// The passed points that keep the power limit, where there is one, with the number of the first passed trial of each.
fn first_passes<'a>(ctx: &Ctx<'a>) -> Vec<(&'a Point, u64)> {
    let mut seen = HashSet::new();
    let passes = ctx.history.trials.iter().filter(|trial| log_rate(trial).is_some());
    let first = passes.filter(|trial| seen.insert(&trial.point));
    first.filter(|trial| ctx.history.keeps_limit(&trial.point)).map(|trial| (&trial.point, trial.number)).collect()
}

/// The points that failed or timed out as often as they passed: they are not run again. On a machine whose runs hang or break off
/// now and then, what was run often has failed once, too.
fn unsteady<'a>(ctx: &Ctx<'a>) -> HashSet<&'a Point> {
    let mut lead: HashMap<&Point, i64> = HashMap::new();
    for trial in &ctx.history.trials {
        *lead.entry(&trial.point).or_default() += if log_rate(trial).is_some() { 1 } else { -1 };
    }
    lead.into_iter().filter(|(_, lead)| *lead <= 0).map(|(point, _)| point).collect()
}

/// The untried points that look best.
fn shortlist<'a>(ctx: &Ctx<'a>, surrogate: &Surrogate<'_>, feasible: &Feasibility) -> Vec<&'a Point> {
    let points = ctx.space.points();
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let mut rng = rng(ctx);
    // Equal points are in random order, so that the shortlist does not follow the order of the space.
    let scores = surrogate.optimistic(OPTIMISM).into_iter().map(|score| score + 1e-9 * rng.random::<f64>());
    let mut order: Vec<(f64, usize)> = scores.enumerate().map(|(i, score)| (score, i)).collect();
    let wanted = SHORTLIST + tried.len();
    if !ctx.history.powers.is_empty() {
        // The fastest may all be above the power limit.
        let looked_at: Vec<&Point> = order.iter().map(|(_, i)| &points[*i]).collect();
        let possible = feasible.may_keep_limit(&looked_at);
        if possible.contains(&true) {
            let mut possible = possible.into_iter();
            order.retain(|_| possible.next().unwrap_or(true));
        }
    }
    let falling = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if order.len() > wanted {
        order.select_nth_unstable_by(wanted, falling);
        order.truncate(wanted);
    }
    order.sort_unstable_by(falling);
    let fresh = order.into_iter().map(|(_, i)| &points[i]).filter(|point| !tried.contains(point));
    fresh.take(SHORTLIST).collect()
}

/// The posterior of the rate over the space of `ctx`.
pub fn posterior<'a>(ctx: &'a Ctx<'a>) -> Surrogate<'a> {
    Surrogate::new(ctx)
}

/// The `count` tried points with the best posterior means, best first.
pub fn leaders(ctx: &Ctx<'_>, count: usize) -> Vec<(Point, Prediction)> {
    leaders_by(&posterior(ctx), ctx, count)
}

pub(crate) fn leaders_by(surrogate: &Surrogate<'_>, ctx: &Ctx<'_>, count: usize) -> Vec<(Point, Prediction)> {
    let tried = surrogate.contenders(first_passes(ctx));
    let tried: Vec<&Point> = tried.into_iter().map(|(point, _)| point).collect();
    let predictions = surrogate.predict(&tried).into_iter().map(|at| surrogate.as_rate(at));
    let mut leaders: Vec<(Point, Prediction)> = tried.into_iter().cloned().zip(predictions).collect();
    leaders.sort_by(|a, b| b.1.rate_gflops.total_cmp(&a.1.rate_gflops));
    leaders.truncate(count);
    leaders
}

#[cfg(test)]
mod tests {
    use space::dims::{Dim, Space};
    use space::listed::Listed;

    use super::super::prior::Flat;
    use super::super::testing::{TablePrior, categorical, noise, ordered, session};
    use super::super::{Prior, Proposal};
    use super::*;
    use crate::search::history::{History, Trial, TrialResult};

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
                let ctx = Ctx {
                    space: &space,
                    history: &history,
                    prior: &FLAT,
                    budget_left_s: 0.0,
                    budget_total_s: 60.0,
                    trial: 60,
                    seed,
                };
                top - truth(&leaders(&ctx, 1)[0].0)
            })
            .collect();
        regrets.sort_by(f64::total_cmp);
        assert!(regrets[36] < 0.01, "{regrets:?}");
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
            let (budget_left_s, budget_total_s) = (0.0, 60.0);
            let ctx =
                Ctx { space: &space, history: &history, prior: &FLAT, budget_left_s, budget_total_s, trial: 60, seed };
            let (point, predicted) = leaders(&ctx, 1).remove(0);
            assert!(top - truth(&point) < 0.01, "seed {seed}: {}", top - truth(&point));
            // Rates are those of the machine as it is now.
            assert!(
                (predicted.rate_gflops.ln() - truth(&point) - 0.9_f64.ln()).abs() < 0.02,
                "seed {seed}: {predicted:?}"
            );
        }
    }

    #[test]
    fn a_wrong_prior_is_found_out() {
        let space = hpl_like();
        let top = best(&space);
        let needed = |prior: &dyn Prior, seed| {
            let run =
                |point: &Point, repeat| TrialResult::Rate((truth(point) + 0.003 * noise(seed, point, repeat)).exp());
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
        let trial = |(i, &(point, outcome)): (usize, &(&Point, TrialResult))| Trial {
            number: i as u64,
            point: point.clone(),
            outcome,
            wall_s: 1.0,
        };
        let history = History { trials: trials.iter().enumerate().map(trial).collect(), ..History::default() };
        let (space, budget_s, trial) = (hpl_like(), 1.0, history.trials.len() as u64);
        let ctx = Ctx {
            space: &space,
            history: &history,
            prior: &FLAT,
            budget_left_s: budget_s,
            budget_total_s: budget_s,
            trial,
            seed: 1,
        };
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
        let trial =
            |&(point, outcome): &(&Point, TrialResult)| Trial { number: 0, point: point.clone(), outcome, wall_s: 1.0 };
        let history =
            History { trials: runs.iter().chain([&(&once, failed)]).map(trial).collect(), ..History::default() };
        let space = hpl_like();
        let (budget_left_s, budget_total_s) = (1.0, 1.0);
        let ctx =
            Ctx { space: &space, history: &history, prior: &FLAT, budget_left_s, budget_total_s, trial: 6, seed: 1 };
        assert_eq!(unsteady(&ctx), HashSet::from([&shaky, &once]));
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
}
