//! What model and runs together say about the rate of any point.
//!
//! level(log rate) = offset + slope · (level(log expected) − its mean) + g + noise, see [`super::gp`] and [`super::warp`].
//! The scale of what is expected is uncertain, which the offset takes up, and so is its worth, which the slope does. A
//! second hypothesis holds the slope at 0: it wins when it predicts the runs better, each from all the others, than the
//! one that trusts what is expected. Runs of earlier sessions are part of what is expected as long as the runs of this one are
//! not predicted better without them.

use std::collections::HashSet;

use space::dims::Point;

use super::expected::Expected;
use super::gp::data::Data;
use super::gp::fit::{Beliefs, LogNormal};
use super::gp::kernel::Axes;
use super::gp::posterior::{Marginal, Posterior};
use super::gp::screen::{Glance, glance};
use super::warp::Warp;
use super::{Ctx, Prediction, Prior};
use crate::history::{History, Outcome, Trial};

/// Standard deviation of the offset: model and runs may differ by such a factor everywhere.
const OFFSET_SD: f64 = 0.5;
/// How far the slope's uncertainty may move points that the prior sets apart by one standard deviation of its own. A prior
/// that tells points apart by less may even be upside down; one that says "ten times slower" is not doubted that much.
const DOUBT: f64 = 0.2;
/// Log odds for the prior before it is judged; a guess has none.
const TRUST: f64 = 1.0;
/// Standard deviation of the slope of a guess, about 1.
const DOUBT_OF_A_GUESS: f64 = 0.5;

/// What is believed about levels before any run: differences of 20 %, noise of 0.5 %.
fn beliefs(slope_mean: f64, slope_sd: f64) -> Beliefs {
    Beliefs {
        signal: LogNormal { median: 0.2, spread: 0.4 },
        noise: LogNormal { median: 0.005, spread: 0.7 },
        categorical: LogNormal { median: 2.0, spread: 0.7 },
        ordered: LogNormal { median: 1.0, spread: 1.0 },
        offset_sd: OFFSET_SD,
        slope_mean,
        slope_sd,
    }
}

/// The posterior of log rate over a space.
pub struct Surrogate<'a> {
    ctx: &'a Ctx<'a>,
    expected: Expected<'a>,
    /// The scale of what is expected.
    told: Warp,
    /// The scale of what is measured.
    seen: Warp,
    /// `None` before the first observation.
    fitted: Option<Fitted>,
}

struct Fitted {
    /// How well each run is predicted from all the others, with the odds for the hypothesis.
    score: f64,
    /// Mean of what was expected of the tried points.
    centre: f64,
    /// Mean of what that leaves unexplained.
    level: f64,
    posterior: Posterior,
}

impl<'a> Surrogate<'a> {
    /// Fits the surrogate to the record. Evaluates the prior at every point of the space: see
    /// [`PriorTable`](super::prior::PriorTable).
    pub fn new(ctx: &'a Ctx<'a>) -> Self {
        let with = Self::expecting(ctx, ctx.prior);
        let without = ctx.prior.without_earlier_runs().map(|prior| Self::expecting(ctx, prior));
        let score = |surrogate: &Self| surrogate.fitted.as_ref().map_or(0.0, |fitted| fitted.score);
        without.filter(|without| score(without) > score(&with) + TRUST).unwrap_or(with)
    }

    fn expecting(ctx: &'a Ctx<'a>, prior: &'a dyn Prior) -> Self {
        let expected = Expected::new(ctx, prior);
        let told = Warp { best: expected.top };
        let best = ctx.history.trials.iter().filter_map(log_rate).reduce(f64::max);
        let seen = Warp { best: best.unwrap_or(expected.top) };
        let mut surrogate = Self { ctx, expected, told, seen, fitted: None };
        let trials = ctx.history.trials.iter();
        let rated = trials.filter_map(|trial| log_rate(trial).map(|log| (&trial.point, seen.level(log))));
        let mut observations: Vec<(&Point, f64)> = rated.collect();
        surrogate.fitted = surrogate.condition(&observations);
        let limits = surrogate.binding_limits();
        if !limits.is_empty() {
            observations.extend(limits);
            surrogate.fitted = surrogate.condition(&observations);
        }
        surrogate
    }

    /// What is expected of a point, on the levelled scale.
    fn expected(&self, point: &Point) -> f64 {
        self.told.level(self.expected.log_rate(point))
    }

    fn condition(&self, observations: &[(&Point, f64)]) -> Option<Fitted> {
        let tried: HashSet<&Point> = observations.iter().map(|(point, _)| *point).collect();
        let mut levels: Vec<f64> = tried.into_iter().map(|point| self.expected(point)).collect();
        // The order of a hash set is not the same twice, and sums depend on it.
        levels.sort_by(f64::total_cmp);
        let centre = moments(&levels)?.0;
        let data = Data::new(observations.iter().copied(), |point| self.expected(point) - centre);
        let fits = self.hypotheses().into_iter().filter_map(|(slope_mean, slope_sd, odds)| {
            let mut data = data.clone();
            let unexplained: Vec<f64> = data.y.iter().zip(&data.basis).map(|(y, b)| y - slope_mean * b).collect();
            let level = moments(&unexplained)?.0;
            data.y.iter_mut().for_each(|y| *y -= level);
            let axes = Axes::new(self.ctx.space.dims());
            let beliefs = beliefs(slope_mean, slope_sd);
            let posterior = Posterior::fitted(&axes, beliefs, data)?;
            Some(Fitted { score: posterior.leave_one_out() + odds, centre, level, posterior })
        });
        fits.max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// Mean and standard deviation of the slope with the log odds: what is expected holds, or it says nothing.
    fn hypotheses(&self) -> Vec<(f64, f64, f64)> {
        let levels: Vec<f64> = self.expected.all.iter().map(|&log| self.told.level(log)).collect();
        let spread = moments(&levels).map_or(0.0, |moments| moments.1);
        let mut hypotheses = vec![(0.0, 0.0, 0.0)];
        if spread > 0.0 {
            hypotheses.push(match self.expected.is_guess() {
                true => (1.0, DOUBT_OF_A_GUESS, 0.0),
                false => (1.0, (DOUBT / spread).min(1.0), TRUST),
            });
        }
        hypotheses
    }

    /// The timeouts whose limit is below what the surrogate expects: only they say something new, and are taken as
    /// if they had just reached it. That is the highest rate they can have had.
    fn binding_limits(&self) -> Vec<(&'a Point, f64)> {
        let limits = limits(self.ctx.history).map(|(point, log)| (point, self.seen.level(log)));
        let limits: Vec<(&Point, f64)> = limits.collect();
        let points: Vec<&Point> = limits.iter().map(|(point, _)| *point).collect();
        let expected = self.predict(&points);
        limits.into_iter().zip(expected).filter(|((_, limit), at)| *limit < at.mean).map(|(limit, _)| limit).collect()
    }

    /// Standard deviation of the log rate of one run, near the best.
    pub fn noise_sd(&self) -> f64 {
        self.fitted.as_ref().map_or_else(|| beliefs(1.0, 0.0).noise.median, |fitted| fitted.posterior.hyper.noise)
    }

    /// Mean and standard deviation on the levelled scale, without the noise of a run.
    pub(crate) fn predict(&self, points: &[&Point]) -> Vec<Marginal> {
        let expected = points.iter().map(|point| self.expected(point));
        let Some(Fitted { centre, level, posterior, .. }) = &self.fitted else {
            let sd = beliefs(1.0, 0.0).signal.median.hypot(OFFSET_SD);
            return expected.map(|mean| Marginal { mean, sd }).collect();
        };
        let basis: Vec<f64> = expected.map(|level| level - centre).collect();
        let marginals = posterior.predict(points, &basis).into_iter();
        marginals.map(|at| Marginal { mean: at.mean + level, ..at }).collect()
    }

    /// A rough optimistic level of every point of the space: the mean plus `spread` standard deviations, where the
    /// latter follows from the nearest tried point alone.
    pub(crate) fn optimistic(&self, spread: f64) -> Vec<f64> {
        let expected = self.expected.all.iter().map(|&log| self.told.level(log));
        let Some(Fitted { centre, level, posterior, .. }) = &self.fitted else {
            return expected.collect();
        };
        let basis: Vec<f64> = expected.map(|level| level - centre).collect();
        let reach = spread * posterior.hyper.signal;
        let value = |at: Glance| level + at.mean + reach * (1.0 - at.nearest * at.nearest).max(0.0).sqrt();
        glance(posterior, self.ctx.space.points(), &basis).into_iter().map(value).collect()
    }

    /// Posterior of the rate at one point.
    pub fn prediction(&self, point: &Point) -> Prediction {
        self.as_rate(self.predict(&[point])[0])
    }

    /// What a level means as a rate.
    pub(crate) fn as_rate(&self, at: Marginal) -> Prediction {
        let at = self.seen.log_rate(at);
        Prediction { rate_gflops: at.mean.exp(), sd: at.sd }
    }
}

/// Log rate of a passed run.
pub(crate) fn log_rate(trial: &Trial) -> Option<f64> {
    match trial.outcome {
        Outcome::Rate(rate) => log_of(rate),
        _ => None,
    }
}

/// Upper limits of the log rates of runs that did not end in time.
fn limits(history: &History) -> impl Iterator<Item = (&Point, f64)> {
    history.trials.iter().filter_map(|trial| match trial.outcome {
        Outcome::TimedOut { at_most_gflops } => log_of(at_most_gflops).map(|log| (&trial.point, log)),
        _ => None,
    })
}

fn log_of(rate: f64) -> Option<f64> {
    Some(rate.ln()).filter(|log| log.is_finite())
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (!values.is_empty()).then(|| (mean, variance.sqrt()))
}
