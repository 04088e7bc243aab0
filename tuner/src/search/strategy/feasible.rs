//! How likely a run is to succeed.

use space::dims::Point;

use super::Ctx;
use super::acquisition::log_normal_cdf;
use super::gp::data::Data;
use super::gp::hyper::{Beliefs, LogNormal};
use super::gp::kernel::KernelDims;
use super::gp::posterior::{Marginal, Posterior};
use super::gp::screen::{Groups, Screened, screen};
use super::surrogate::{NOISE, TOGETHER, most_runs};
use super::warp::USUAL_LOSS;
use crate::search::history::{NO_CHANCE, TrialResult};

/// Less likely than this, a run waits until nothing else is left to try.
const LIKELY: f64 = 0.5;

/// The same Gaussian process as for rates, on 1 for a run that worked and 0 for one that failed. Its fitted rates find
/// the dimensions that failures depend on. Of very many points it is conditioned on a part, first of all on those that failed.
pub(crate) struct Feasibility {
    /// `None` while nothing failed.
    posterior: Option<Posterior>,
    failures: usize,
    /// That of the power over its limit, as logarithm, with its mean; `None` where there is no limit.
    power: Option<(Posterior, f64)>,
}

impl Feasibility {
    pub(crate) fn new(ctx: &Ctx<'_>) -> Self {
        let failed = |outcome| matches!(outcome, TrialResult::Failed);
        let power = power(ctx);
        let failures = ctx.history.trials.iter().filter(|trial| failed(trial.outcome)).count();
        if failures == 0 {
            return Self { posterior: None, failures, power };
        }
        let (signal, noise) = (LogNormal::about(0.5), LogNormal::about(0.1));
        let beliefs = Beliefs {
            // What fails does so for two reasons together as often as for one.
            effects: vec![LogNormal::NONE; ctx.space.dims().len()],
            // Which dimensions they are is known less.
            categorical: LogNormal { median: 2.0, spread: 2.0 },
            offset_sd: noise.median,
            ..Beliefs::of_rates(ctx.space, signal, noise)
        };
        // Failures are measured from the belief that runs work.
        let labels = ctx.history.trials.iter().flat_map(|trial| {
            let reference = ctx.history.failed_references.get(&trial.number).filter(|_| failed(trial.outcome));
            // One of the two has failed.
            let share = if reference.is_some() { 0.5 } else { f64::from(u8::from(failed(trial.outcome))) };
            std::iter::once((&trial.point, -share)).chain(reference.map(|point| (point, -share)))
        });
        let data = Data::new(labels, |_| 0.0).thinned_to_the_worst(most_runs(ctx.history));
        let axes = KernelDims::new(ctx.space.dims());
        Self { posterior: Posterior::fitted(&axes, beliefs, data), failures, power }
    }

    /// Whether each of `points` waits until no other is left to try, and what is added to the log gain of a run there: the log of its
    /// probability to work. Late in a search gains differ by powers of ten, which no probability outweighs: what is known to fail waits.
    pub(crate) fn log_weights(&self, points: &[&Point]) -> Vec<(bool, f64)> {
        let waits = |works: f64| self.failures >= NO_CHANCE && works < LIKELY;
        let both = self.probabilities(points).into_iter().zip(self.log_within_limit(points));
        both.map(|(works, within)| (waits(works), works.ln() + within)).collect()
    }

    /// Whether a run at each of `points` is likely to work.
    pub(crate) fn are_likely(&self, points: &[&Point]) -> Vec<bool> {
        let both = self.probabilities(points).into_iter().zip(self.log_within_limit(points));
        both.map(|(works, within)| works.ln() + within >= LIKELY.ln()).collect()
    }

    /// The log of the probability that each of `points` keeps the power limit, at a rough look; `None` where there is no limit.
    pub(crate) fn rough_log_within_limit(&self, points: &[Point]) -> Option<Vec<f64>> {
        let (posterior, mean) = self.power.as_ref()?;
        let looks = screen(posterior, &Groups::new(points), &vec![0.0; points.len()]);
        Some(looks.into_iter().map(|at: Screened| log_keeps(mean + at.mean, at.sd)).collect())
    }

    /// The log of the probability that each of `points` keeps the power limit.
    fn log_within_limit(&self, points: &[&Point]) -> Vec<f64> {
        let Some((posterior, mean)) = &self.power else { return vec![0.0; points.len()] };
        let looks = posterior.predict(points, &vec![0.0; points.len()]);
        looks.into_iter().map(|at: Marginal| log_keeps(mean + at.mean, at.sd)).collect()
    }

    fn probabilities(&self, points: &[&Point]) -> Vec<f64> {
        let Some(posterior) = &self.posterior else {
            return vec![1.0; points.len()];
        };
        let probability = |at: Marginal| (1.0 + at.mean).clamp(f64::EPSILON, 1.0);
        posterior.predict(points, &vec![0.0; points.len()]).into_iter().map(probability).collect()
    }
}

/// The log of the probability that the logarithm of a power over the limit, about `mean`, is at most 0. Far above the limit candidates still
/// differ.
fn log_keeps(mean: f64, sd: f64) -> f64 {
    log_normal_cdf(-mean / sd.max(f64::EPSILON))
}

/// The process of the powers of the runs over the limit.
fn power(ctx: &Ctx<'_>) -> Option<(Posterior, f64)> {
    let powers = &ctx.history.powers;
    let mean =
        (!powers.is_empty()).then(|| powers.iter().map(|(_, power)| power).sum::<f64>() / powers.len() as f64)?;
    let beliefs = Beliefs { offset_sd: USUAL_LOSS, ..Beliefs::of_rates(ctx.space, TOGETHER, NOISE) };
    let data =
        Data::new(powers.iter().map(|(point, power)| (point, power - mean)), |_| 0.0).thinned(most_runs(ctx.history));
    Some((Posterior::fitted(&KernelDims::new(ctx.space.dims()), beliefs, data)?, mean))
}
