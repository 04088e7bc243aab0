//! Bayesian optimisation: the next run is the one that is expected to raise the best known rate most.
//!
//! The gain of a run at x is E[max(0, m' − m)], where m is the best posterior mean among the other tried points and m'
//! the posterior mean of x after the run: normal about the present mean with standard deviation s²/√(s² + noise²).
//! This is expected improvement where x was never tried, discounted for noise, and it also values a repeat of a tried
//! point, so the same rule decides when it is worth more to know who leads than to look at something new.
//! The incumbent is the best posterior mean, never the luckiest run.

use std::collections::HashSet;

use rand::RngExt;
use space::dims::Point;

use super::acquisition::log_improvement;
use super::feasible::Feasibility;
use super::surrogate::{Surrogate, rated};
use super::{Ctx, Prediction, Proposal, Strategy, rng};

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
        let fresh = shortlist(ctx, &surrogate);
        if fresh.is_empty() {
            return None;
        }
        let known = first_trials(ctx);
        let tried: Vec<&Point> = known.iter().map(|(point, _)| *point).collect();
        let points: Vec<&Point> = tried.iter().copied().chain(fresh).collect();
        let marginals = surrogate.predict(&points);
        let feasible = Feasibility::new(ctx).probability(&points);
        let thrift = thrift(ctx);
        let mut means: Vec<f64> = marginals[..tried.len()].iter().map(|at| at.mean).collect();
        means.sort_by(|a, b| b.total_cmp(a));
        let noise = surrogate.noise_sd();
        let value = |i: usize| {
            let at = marginals[i];
            let is_leader = i < tried.len() && at.mean >= means[0];
            let gain = match means.get(usize::from(is_leader)) {
                Some(best) => {
                    let sd = (at.sd * at.sd / at.sd.hypot(noise)).max(1e-12);
                    // A repeat of the leader can only gain by showing that another leads.
                    let lead = if is_leader { best - at.mean } else { at.mean - best };
                    sd.ln() + log_improvement(lead / sd)
                }
                None if i < tried.len() => f64::NEG_INFINITY,
                None => at.mean,
            };
            if i < tried.len() && gain < WORTH_A_REPEAT.ln() {
                return f64::NEG_INFINITY;
            }
            gain + feasible[i].ln() - thrift * ctx.prior.cost_s(points[i]).max(1e-9).ln()
        };
        let best = (0..points.len()).map(|i| (i, value(i))).max_by(|a, b| a.1.total_cmp(&b.1))?.0;
        Some(Proposal {
            point: points[best].clone(),
            repeat_of: known.get(best).map(|known| known.1),
            why: why(best, &known, means.is_empty()),
            predicted: Some(Prediction { rate_gflops: marginals[best].mean.exp(), sd: marginals[best].sd }),
        })
    }
}

fn why(chosen: usize, known: &[(&Point, u64)], first: bool) -> String {
    match known.get(chosen) {
        Some(_) => "repeat: who leads is uncertain".to_owned(),
        None if first => "best expected by the model".to_owned(),
        None => "largest expected improvement".to_owned(),
    }
}

/// Weight of ln cost against ln gain: 1 with the whole budget left, 0 at its end, when nothing is saved for later.
fn thrift(ctx: &Ctx<'_>) -> f64 {
    let left = ctx.budget_left_s / ctx.budget_total_s;
    if left.is_finite() { left.clamp(0.0, 1.0) } else { 0.0 }
}

/// The passed points with the number of the first trial of each.
fn first_trials<'a>(ctx: &Ctx<'a>) -> Vec<(&'a Point, u64)> {
    let rated: HashSet<&Point> = rated(ctx.history).map(|(point, _)| point).collect();
    let mut seen = HashSet::new();
    let trials = ctx.history.trials.iter().filter(|trial| rated.contains(&trial.point));
    trials.filter(|trial| seen.insert(&trial.point)).map(|trial| (&trial.point, trial.number)).collect()
}

/// The untried points that look best.
fn shortlist<'a>(ctx: &Ctx<'a>, surrogate: &Surrogate<'_>) -> Vec<&'a Point> {
    let points = ctx.space.points();
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let mut rng = rng(ctx);
    // Equal points are in random order, so that the shortlist does not follow the order of the space.
    let scores = surrogate.optimistic(OPTIMISM).into_iter().map(|score| score + 1e-9 * rng.random::<f64>());
    let mut order: Vec<(f64, usize)> = scores.enumerate().map(|(i, score)| (score, i)).collect();
    let wanted = SHORTLIST + tried.len();
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
    let surrogate = Surrogate::new(ctx);
    let tried: Vec<&Point> = first_trials(ctx).into_iter().map(|(point, _)| point).collect();
    let predictions = surrogate.predict(&tried).into_iter();
    let mut leaders: Vec<(Point, Prediction)> = tried
        .into_iter()
        .zip(predictions)
        .map(|(point, at)| (point.clone(), Prediction { rate_gflops: at.mean.exp(), sd: at.sd }))
        .collect();
    leaders.sort_by(|a, b| b.1.rate_gflops.total_cmp(&a.1.rate_gflops));
    leaders.truncate(count);
    leaders
}
