//! How likely a run is to succeed.

use space::dims::Point;

use super::Ctx;
use super::gp::data::Data;
use super::gp::fit::{Beliefs, LogNormal, fit};
use super::gp::kernel::Axes;
use super::gp::posterior::Posterior;
use crate::history::Outcome;

/// Distinct points that the hyperparameters are fitted to, at most.
const FIT_POINTS: usize = 80;
/// A run is never taken for hopeless: this much probability stays.
const LEAST: f64 = 0.01;

/// The same Gaussian process as for rates, on 1 for a run that worked and 0 for one that failed. Its fitted rates find
/// the dimensions that failures depend on.
pub(crate) struct Feasibility {
    /// `None` while nothing failed.
    posterior: Option<Posterior>,
}

impl Feasibility {
    pub(crate) fn new(ctx: &Ctx<'_>) -> Self {
        let failed = |outcome| u8::from(matches!(outcome, Outcome::Failed));
        if ctx.history.trials.iter().all(|trial| failed(trial.outcome) == 0) {
            return Self { posterior: None };
        }
        let beliefs = Beliefs {
            signal: LogNormal { median: 0.4, spread: 0.3 },
            noise: LogNormal { median: 0.1, spread: 0.3 },
            categorical: LogNormal { median: 2.0, spread: 1.5 },
            ordered: LogNormal { median: 1.0, spread: 1.0 },
            offset_sd: 0.1,
            slope_mean: 0.0,
            slope_sd: 0.0,
        };
        // Failures are measured from the belief that runs work.
        let labels = ctx.history.trials.iter().map(|trial| (&trial.point, -f64::from(failed(trial.outcome))));
        let data = Data::new(labels, |_| 0.0);
        let axes = Axes::new(ctx.space.dims());
        let hyper = fit(&axes, &beliefs, &data.thinned(FIT_POINTS));
        Self { posterior: Posterior::new(&axes, beliefs, hyper, data) }
    }

    /// Probability that a run at each of `points` works.
    pub(crate) fn probability(&self, points: &[&Point]) -> Vec<f64> {
        match &self.posterior {
            None => vec![1.0; points.len()],
            Some(posterior) => {
                let marginals = posterior.predict(points, &vec![0.0; points.len()]);
                marginals.into_iter().map(|at| (1.0 + at.mean).clamp(LEAST, 1.0)).collect()
            }
        }
    }
}
