//! How likely a run is to succeed.

use space::dims::Point;

use super::Ctx;
use super::gp::data::Data;
use super::gp::fit::{Beliefs, LogNormal};
use super::gp::kernel::KernelDims;
use super::gp::posterior::{Marginal, Posterior};
use super::surrogate::most_points;
use crate::search::history::TrialResult;

/// A run is never taken for impossible: this much probability stays.
const LEAST: f64 = 0.01;
/// Less likely than this, a run waits until nothing else is left to try.
const LIKELY: f64 = 0.5;
/// Failures that it takes before a point waits: one or two may have been chance.
const EVIDENCE: usize = 3;
/// What waiting costs, in units of log gain: more than any difference between gains.
const WAITING: f64 = 1e9;

/// The same Gaussian process as for rates, on 1 for a run that worked and 0 for one that failed. Its fitted rates find
/// the dimensions that failures depend on. Of very many points it is conditioned on a part, first of all on those that failed.
pub(crate) struct Feasibility {
    /// `None` while nothing failed.
    posterior: Option<Posterior>,
    failures: usize,
}

impl Feasibility {
    pub(crate) fn new(ctx: &Ctx<'_>) -> Self {
        let failed = |outcome| matches!(outcome, TrialResult::Failed);
        let failures = ctx.history.trials.iter().filter(|trial| failed(trial.outcome)).count();
        if failures == 0 {
            return Self { posterior: None, failures };
        }
        let signal = LogNormal { median: 0.4, spread: 0.3 };
        let noise = LogNormal { median: 0.1, spread: 0.3 };
        let beliefs = Beliefs {
            // What fails does so for two reasons together as often as for one.
            effects: vec![LogNormal::NONE; ctx.space.dims().len()],
            categorical: LogNormal { median: 2.0, spread: 1.5 },
            offset_sd: 0.1,
            ..Beliefs::of_rates(ctx.space, signal, noise)
        };
        // Failures are measured from the belief that runs work.
        let labels = ctx.history.trials.iter().map(|trial| (&trial.point, -f64::from(u8::from(failed(trial.outcome)))));
        let data = Data::new(labels, |_| 0.0).thinned_to_the_worst(most_points(ctx.history));
        let axes = KernelDims::new(ctx.space.dims());
        Self { posterior: Posterior::fitted(&axes, beliefs, data), failures }
    }

    /// What is added to the log gain of a run at each of `points`: the log of its probability to work. Late in a search
    /// gains differ by powers of ten, which no probability outweighs: what is known to fail then waits.
    pub(crate) fn log_weights(&self, points: &[&Point]) -> Vec<f64> {
        let weight = |probability: f64| {
            let waits = self.failures >= EVIDENCE && probability < LIKELY;
            probability.ln() - if waits { WAITING } else { 0.0 }
        };
        self.probabilities(points).into_iter().map(weight).collect()
    }

    /// Whether a run at each of `points` is likely to work.
    pub(crate) fn are_likely(&self, points: &[&Point]) -> Vec<bool> {
        self.probabilities(points).into_iter().map(|probability| probability >= LIKELY).collect()
    }

    fn probabilities(&self, points: &[&Point]) -> Vec<f64> {
        let Some(posterior) = &self.posterior else {
            return vec![1.0; points.len()];
        };
        let probability = |at: Marginal| (1.0 + at.mean).clamp(LEAST, 1.0);
        posterior.predict(points, &vec![0.0; points.len()]).into_iter().map(probability).collect()
    }
}
