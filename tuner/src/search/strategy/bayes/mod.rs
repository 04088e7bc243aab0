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
use std::thread;

use rand::RngExt;
use space::dims::Point;

use super::acquisition::log_improvement;
use super::context::{fits, rng};
use super::feasible::Feasibility;
use super::surrogate::{Contrast, Surrogate, first_runs, log_rate};
use super::{Ctx, Proposal, Strategy};
use crate::record::Prediction;
use crate::record::left::LEVEL;
use crate::search::history::{HARDLY_SD, TrialResult};

/// Untried points that get the exact acquisition: those that look best by [`HARDLY_SD`] standard deviations above the mean.
const SHORTLIST: usize = 2048;

/// Relative gain below which nothing is run again once the noise was seen: where no gain is left, a new point may still surprise.
const WORTH_A_REPEAT: f64 = 3e-4;

/// Gaussian process, expected improvement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bayes;

impl Strategy for Bayes {
    fn name(&self) -> &'static str {
        "bayes"
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        let (surrogate, feasible) = thread::scope(|scope| {
            let feasible = scope.spawn(|| Feasibility::new(ctx));
            (Surrogate::new(ctx), feasible.join().expect("a fit does not panic"))
        });
        let fresh = shortlist(ctx, &surrogate, &feasible);
        let known = surrogate.contenders(first_passes(ctx));
        let tried: Vec<&Point> = known.iter().map(|(point, _)| *point).collect();
        let unsteady = unsteady(ctx);
        if let Some(at) = surrogate.suspect().and_then(|since| anchor(ctx, &surrogate, since, &tried, &unsteady)) {
            return Some(Proposal {
                point: tried[at].clone(),
                repeat_of: Some(known[at].1),
                reference: None,
                why: "repeat: has the machine changed?".to_owned(),
                predicted: Some(surrogate.prediction(tried[at])),
            });
        }
        let points: Vec<&Point> = tried.iter().copied().chain(fresh).collect();
        let by = surrogate.contrasts(&points, tried.len());
        let feasible = feasible.log_weights(&points);
        let thrift = thrift(ctx);
        let noise_was_seen = was_repeated(ctx);
        let pair_cost = surrogate.paying_pairs();
        // A point that was run is compared with its rival by a pair, where that pays and the two can be measured in turn.
        let is_pair = |i: usize, rival: usize| {
            let pays = i < tried.len() && pair_cost.is_some() && !unsteady.contains(points[rival]);
            pays && ctx.can_pair([points[i], points[rival]])
        };
        let rival = |i: usize| by.first()?.1[i].rival.filter(|&rival| is_pair(i, rival));
        let log_cost = |i: usize| match (rival(i), pair_cost) {
            (Some(rival), Some(cost)) => log_sum([i, rival].into_iter().map(|i| log_cost(ctx, points[i]))) + cost.ln(),
            _ => log_cost(ctx, points[i]),
        };
        let gains: Vec<(f64, Vec<f64>)> = by.iter().map(|(weight, of)| (*weight, log_gains(of))).collect();
        let value = |i: usize| {
            let is_repeat = i < tried.len();
            let terms = gains.iter().map(|(weight, gains)| weight.ln() + gains[i]);
            let log_gain = log_sum(terms);
            let pointless = tried.len() == 1 && is_repeat || noise_was_seen && log_gain < WORTH_A_REPEAT.ln();
            if is_repeat && (pointless || unsteady.contains(points[i])) {
                return f64::NEG_INFINITY;
            }
            log_gain + feasible[i].1 - thrift * log_cost(i)
        };
        // What takes longer than the time left waits as long as something else does not.
        let values = (0..points.len()).map(|i| (i, (fits(ctx, points[i]), !feasible[i].0), value(i)));
        // Where all points were run, no run may be worth its time.
        let worth = values.filter(|(.., value)| *value > f64::NEG_INFINITY);
        let (best, ..) = worth.max_by(|a, b| a.1.cmp(&b.1).then(a.2.total_cmp(&b.2)))?;
        Some(Proposal {
            point: points[best].clone(),
            repeat_of: known.get(best).map(|known| known.1),
            reference: rival(best).map(|rival| points[rival].clone()),
            why: why(best, &known, tried.is_empty()),
            predicted: Some(surrogate.prediction(points[best])),
        })
    }
}

/// What to run again where the machine's speed seems to have changed, `since` that trial: the best of the points that were run before the change
/// and fit the time left, unless one that was run before it was run since.
fn anchor(
    ctx: &Ctx<'_>,
    surrogate: &Surrogate<'_>,
    since: usize,
    tried: &[&Point],
    unsteady: &HashSet<&Point>,
) -> Option<usize> {
    let (before, after) = ctx.history.trials.split_at(since);
    let before: HashSet<&Point> = before.iter().map(|trial| &trial.point).collect();
    if after.iter().any(|trial| before.contains(&trial.point)) {
        return None;
    }
    let means = surrogate.predict(tried);
    let is_old = |point: &Point| before.contains(point) && !unsteady.contains(point);
    let old = (0..tried.len()).filter(|&i| is_old(tried[i]) && fits(ctx, tried[i]));
    old.max_by(|&a, &b| means[a].mean.total_cmp(&means[b].mean))
}

/// Log gain of a run at each point under one hypothesis, see [`super::acquisition`].
fn log_gains(contrasts: &[Contrast]) -> Vec<f64> {
    let one = |&Contrast { lead, sd, .. }: &Contrast| {
        let sd = sd.max(f64::EPSILON);
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

/// A model may answer NaN, infinity or nothing: such a run is taken for the most costly.
fn log_cost(ctx: &Ctx<'_>, point: &Point) -> f64 {
    let log = ctx.prior.cost_s(point).ln();
    if log.is_finite() { log } else { f64::MAX.ln() }
}

/// Whether a point was run twice: before that, how much runs scatter is a guess.
fn was_repeated(ctx: &Ctx<'_>) -> bool {
    let mut seen = HashSet::new();
    let passed = ctx.history.trials.iter().filter(|trial| log_rate(trial).is_some());
    let mut points = passed.flat_map(|trial| [Some(&trial.point), trial.pair.as_ref().map(|pair| &pair.reference)]);
    points.any(|point| point.is_some_and(|point| !seen.insert(point)))
}

/// The passed points that keep the power limit, where there is one, with the number of the first passed trial of each.
fn first_passes<'a>(ctx: &Ctx<'a>) -> Vec<(&'a Point, u64)> {
    let mut seen = HashSet::new();
    let passes = ctx.history.trials.iter().filter(|trial| log_rate(trial).is_some());
    let first = passes.filter(|trial| seen.insert(&trial.point));
    let above = ctx.history.above_limit();
    first.filter(|trial| !above.contains(&trial.point)).map(|trial| (&trial.point, trial.number)).collect()
}

/// The points that failed or timed out as often as they passed, alone or in turn with another: they are not run again, and chosen last. On a
/// machine whose runs hang or break off now and then, what was run often has failed once, too. A pair that failed is half a failure of either,
/// and a run whose power was not read is neither.
pub(super) fn unsteady<'a>(ctx: &Ctx<'a>) -> HashSet<&'a Point> {
    let mut lead: HashMap<&Point, i64> = HashMap::new();
    for trial in ctx.history.trials.iter().filter(|trial| trial.outcome != TrialResult::Unread) {
        let failed_reference = ctx.history.failed_references.get(&trial.number);
        *lead.entry(&trial.point).or_default() += match (log_rate(trial), failed_reference) {
            (Some(_), _) => 2,
            (None, Some(_)) => -1,
            (None, None) => -2,
        };
        if let Some(pair) = &trial.pair {
            *lead.entry(&pair.reference).or_default() += 2;
        }
        if let Some(reference) = failed_reference {
            *lead.entry(reference).or_default() -= 1;
        }
    }
    lead.into_iter().filter(|(_, lead)| *lead <= 0).map(|(point, _)| point).collect()
}

/// The untried points that look best.
fn shortlist<'a>(ctx: &Ctx<'a>, surrogate: &Surrogate<'_>, feasible: &Feasibility) -> Vec<&'a Point> {
    let points = ctx.space.points();
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let mut rng = rng(ctx);
    // Equal points are in random order, so that the shortlist does not follow the order of the space.
    let scores = surrogate.optimistic(HARDLY_SD).into_iter();
    let mut order: Vec<(f64, u64, usize)> = scores.enumerate().map(|(i, score)| (score, rng.random(), i)).collect();
    let wanted = SHORTLIST + tried.len();
    // The fastest may all be above the power limit: what hardly keeps it is considered only where there is no other, and then by that alone.
    if let Some(within) = feasible.rough_log_within_limit(points) {
        let may_keep = |i: usize| within[i] >= (1.0 - LEVEL).ln();
        if (0..points.len()).any(may_keep) {
            order.retain(|(.., i)| may_keep(*i));
        } else {
            order.iter_mut().for_each(|(score, _, i)| *score = within[*i]);
        }
    }
    let falling = |a: &(f64, u64, usize), b: &(f64, u64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if order.len() > wanted {
        order.select_nth_unstable_by(wanted, falling);
        order.truncate(wanted);
    }
    order.sort_unstable_by(falling);
    let fresh = order.into_iter().map(|(.., i)| &points[i]).filter(|point| !tried.contains(point));
    fresh.take(SHORTLIST).collect()
}

/// The posterior of the rate over the space of `ctx`.
pub fn posterior<'a>(ctx: &'a Ctx<'a>) -> Surrogate<'a> {
    Surrogate::new(ctx)
}

/// Standard deviation of the log ratio of a pair in one process, where it says more than runs of both one after the other in the same time; of a
/// long record by its first runs.
pub(crate) fn sd_of_paying_pair(ctx: &Ctx<'_>) -> Option<f64> {
    let history = first_runs(ctx.history);
    Surrogate::new(&Ctx { history: &history, ..*ctx }).sd_of_paying_pair()
}

/// The `count` tried points with the best posterior means, best first; those that failed as often as they passed come last.
pub fn leaders(ctx: &Ctx<'_>, count: usize) -> Vec<(Point, Prediction)> {
    leaders_by(&posterior(ctx), ctx, count)
}

pub(crate) fn leaders_by(surrogate: &Surrogate<'_>, ctx: &Ctx<'_>, count: usize) -> Vec<(Point, Prediction)> {
    let tried = surrogate.contenders(first_passes(ctx));
    let tried: Vec<&Point> = tried.into_iter().map(|(point, _)| point).collect();
    let predictions = surrogate.predict(&tried).into_iter().map(|at| surrogate.as_rate(at));
    let unsteady = unsteady(ctx);
    let mut leaders: Vec<(&Point, Prediction)> = tried.into_iter().zip(predictions).collect();
    leaders.sort_by(|a, b| {
        let steady = unsteady.contains(a.0).cmp(&unsteady.contains(b.0));
        steady.then(b.1.rate_gflops.total_cmp(&a.1.rate_gflops))
    });
    leaders.truncate(count);
    leaders.into_iter().map(|(point, predicted)| (point.clone(), predicted)).collect()
}

#[cfg(test)]
mod tests;
