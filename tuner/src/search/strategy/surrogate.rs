//! What model and runs together say about the rate of any point.
//!
//! level(log rate) = offset + slope · (level(log expected) − its mean) + g + drift + noise, see [`super::gp`],
//! [`super::warp`] and [`super::drift`].
//! The scale of what is expected is uncertain, which the offset takes up, and so is its worth, which the slope does. A
//! second hypothesis holds the slope of a model to be about 0: it says nothing, or the contrary. Both count as far as
//! they predict the runs, each from all the others; of guesses only the better one. A change of the machine's speed is
//! believed when it explains the runs much better than none, and a point that was run before it was run again after it.
//! Runs of earlier sessions are part of what is expected as long as the runs of this one are not predicted better
//! without them.
//!
//! After more than [`RUNS`] runs the process is conditioned on [`POINTS`] points: half of them those with the best means, the
//! others spread from the next best to the worst. No other point is taken for a leader, or run again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use space::dims::Point;
use space::stats::{mean, squared_deviations};

use super::drift::{Drift, Step};
use super::expected::Expected;
use super::gp::data::Data;
use super::gp::fit::{Beliefs, LogNormal};
use super::gp::kernel::Axes;
use super::gp::posterior::{Change, Marginal, Posterior};
use super::gp::screen::{Glance, Groups, glance};
use super::prior::Flat;
use super::warp::Warp;
use super::{Ctx, Prediction, Prior};
use crate::search::history::{History, Outcome, Trial};

/// Standard deviation of the offset: model and runs may differ by such a factor everywhere.
const OFFSET_SD: f64 = 0.5;
/// How far the slope's uncertainty may move points that the prior sets apart by one standard deviation of its own. A prior
/// that tells points apart by less may even be upside down; one that says "ten times slower" is not doubted that much.
const DOUBT: f64 = 0.2;
/// Log odds for the prior before it is judged; a guess has none.
const TRUST: f64 = 1.0;
/// Standard deviation of the slope of a guess, about 1.
const DOUBT_OF_A_GUESS: f64 = 0.5;
/// Slope from which runs are taken to confirm the prior.
const CONFIRMED: f64 = 0.5;
/// No prior.
static NOTHING: Flat = Flat { cost_s: 1.0 };
/// Hypotheses less likely than this, beside the best, are left out.
const NEGLIGIBLE: f64 = 0.02;

/// Runs of which all points are taken into the process, and the number of points that are taken of more runs: the time of a
/// suggestion grows with the cube of the points.
const RUNS: usize = 500;
const POINTS: usize = 400;

/// Distinct points that the process is conditioned on after so many runs, at most.
pub(super) fn most_points(runs: usize) -> usize {
    if runs > RUNS { POINTS } else { RUNS }
}

/// Standard deviation of a change of the machine's speed, and of what is left of it once it was estimated.
const CHANGE: f64 = 0.1;
const CHANGE_LEFT: f64 = 0.03;
/// Changes of a session, at most.
const CHANGES: usize = 3;
/// Gain in log density from which a change is suspected, and, besides the logarithm of the number of its possible places,
/// believed.
const SUSPICION: f64 = 1.5;
const BELIEF: f64 = 3.0;
/// Standard deviations by which a slow candidate is hardly below what is expected of it.
const HARDLY_BELOW: f64 = 3.0;
/// Where else a change may be: where its gain is less than the largest by at most this.
const ELSEWHERE: f64 = 3.0;

/// The posterior of log rate over a space.
pub struct Surrogate<'a> {
    ctx: &'a Ctx<'a>,
    expected: Expected<'a>,
    /// The scale of what is expected.
    told: Warp,
    /// What is expected of all points of the space on that scale, in its order, and how far it spreads.
    levels: Vec<f64>,
    spread: f64,
    /// The scale of what is measured.
    seen: Warp,
    drift: Drift,
    /// One for each hypothesis worth its time; none before the first observation.
    fits: Vec<Fitted>,
    /// The first trial after a change that is likely, but not yet believed in.
    suspect: Option<usize>,
}

struct Fitted {
    /// How well each run is predicted from all the others, with the odds for the hypothesis.
    score: f64,
    /// Probability of the hypothesis.
    weight: f64,
    /// Mean of what was expected of the tried points.
    centre: f64,
    /// Mean of what that leaves unexplained.
    level: f64,
    posterior: Posterior,
}

/// A run: its point, the logarithm of its rate, its place among the trials.
#[derive(Clone, Copy)]
struct Seen<'a> {
    point: &'a Point,
    log: f64,
    trial: usize,
}

impl<'a> Surrogate<'a> {
    /// Fits the surrogate to the record. Evaluates the prior at every point of the space: see
    /// [`PriorTable`](super::prior::PriorTable).
    pub fn new(ctx: &'a Ctx<'a>) -> Self {
        let with = Self::expecting(ctx, ctx.prior);
        let without = ctx.prior.without_earlier_runs().map(|prior| Self::expecting(ctx, prior));
        let score = |surrogate: &Self| surrogate.fits.first().map_or(0.0, |fitted| fitted.score);
        let best = without.filter(|without| score(without) > score(&with) + TRUST).unwrap_or(with);
        // Where the prior is found to say nothing, what is guessed without one may say more.
        let says_nothing = best.fits.first().is_some_and(|fitted| fitted.posterior.slope_mean() < CONFIRMED);
        if best.expected.is_guess() || !says_nothing {
            return best;
        }
        let guess = Self::expecting(ctx, &NOTHING);
        if score(&guess) > score(&best) - TRUST { guess } else { best }
    }

    fn expecting(ctx: &'a Ctx<'a>, prior: &'a dyn Prior) -> Self {
        let expected = Expected::new(ctx, prior);
        let told = Warp { best: expected.top };
        let levels: Vec<f64> = expected.all.iter().map(|&log| told.level(log)).collect();
        let spread = moments(&levels).map_or(0.0, |moments| moments.1);
        let trials = ctx.history.trials.iter().enumerate();
        let runs = trials.filter_map(|(trial, run)| Some(Seen { point: &run.point, log: log_rate(run)?, trial }));
        let mut runs: Vec<Seen<'_>> = runs.collect();
        let mut surrogate = Self {
            ctx,
            expected,
            told,
            levels,
            spread,
            seen: told,
            drift: Drift::default(),
            fits: Vec::new(),
            suspect: None,
        };
        surrogate.condition(&runs);
        while let Some((change, doubtful)) = surrogate.likely_change(&runs) {
            let (before, after) = runs.split_at(change.at);
            let old: HashSet<&Point> = before.iter().map(|run| run.point).collect();
            if !after.iter().any(|new| old.contains(new.point)) {
                surrogate.suspect = Some(runs[change.at].trial);
                break;
            }
            let believed = change.gain > BELIEF + (runs.len() as f64).ln();
            if !believed || surrogate.drift.len() == CHANGES {
                break;
            }
            surrogate.drift.add(Step { at: runs[change.at].trial, size: change.size });
            // It is not known on which side of the change these were run.
            runs.drain(doubtful);
            surrogate.condition(&runs);
            // Levels below the best are closer to each other than rates: what that left of the change is now seen.
            let left = surrogate.fits.first().map(|fit| fit.posterior.change_means(surrogate.drift.len()));
            surrogate.drift.adjust(&left.unwrap_or_default());
            surrogate.condition(&runs);
        }
        let limits = surrogate.binding_limits();
        if !limits.is_empty() {
            runs.extend(limits);
            surrogate.condition(&runs);
        }
        surrogate
    }

    /// What is believed about levels before any run: differences of 20 % by all dimensions together, by each alone as the space
    /// says, noise of 1 %: runs of HPL on machines that others share differ by 1.3 and 2.6 % (`datasets/landscapes`).
    fn beliefs(&self, slope_mean: f64, slope_sd: f64) -> Beliefs {
        let signal = LogNormal { median: 0.2, spread: 0.4 };
        let noise = LogNormal { median: 0.01, spread: 0.7 };
        let beliefs = Beliefs::of_rates(self.ctx.space, signal, noise);
        Beliefs { offset_sd: OFFSET_SD, slope_mean, slope_sd, ..beliefs }
    }

    /// What is expected of a point, on the levelled scale.
    fn expected(&self, point: &Point) -> f64 {
        self.told.level(self.expected.log_rate(point))
    }

    /// Levels of runs with the number of changes before each.
    fn levels_of<'b>(&self, runs: &[Seen<'b>]) -> Vec<(&'b Point, f64, usize)> {
        let level = |run: &Seen<'_>| self.seen.level(run.log + self.drift.correction(run.trial));
        runs.iter().map(|run| (run.point, level(run), self.drift.before(run.trial))).collect()
    }

    fn condition(&mut self, runs: &[Seen<'_>]) {
        let corrected = runs.iter().map(|run| run.log + self.drift.correction(run.trial));
        let Some(best) = corrected.reduce(f64::max) else { return };
        self.seen = Warp { best };
        let observations = self.levels_of(runs);
        let tried: HashSet<&Point> = observations.iter().map(|(point, ..)| *point).collect();
        let mut levels: Vec<f64> = tried.into_iter().map(|point| self.expected(point)).collect();
        // The order of a hash set is not the same twice, and sums depend on it.
        levels.sort_by(f64::total_cmp);
        let Some((centre, _)) = moments(&levels) else { return };
        let data = Data::in_parts(observations.iter().copied(), |point| self.expected(point) - centre)
            .thinned(most_points(runs.len()));
        let axes = Axes::new(self.ctx.space.dims());
        let is_steady = self.drift.len() == 0;
        let fits = self.hypotheses().into_iter().filter_map(|(slope_mean, slope_sd, odds)| {
            let mut data = data.clone();
            let unexplained: Vec<f64> = data.y.iter().zip(&data.basis).map(|(y, b)| y - slope_mean * b).collect();
            let level = moments(&unexplained)?.0;
            data.y.iter_mut().for_each(|y| *y -= level);
            let beliefs =
                Beliefs { change_sd: if is_steady { 0.0 } else { CHANGE_LEFT }, ..self.beliefs(slope_mean, slope_sd) };
            let posterior = Posterior::fitted(&axes, beliefs, data)?;
            Some(Fitted { score: posterior.leave_one_out() + odds, weight: 1.0, centre, level, posterior })
        });
        self.fits = weighed(fits.collect(), self.expected.is_guess());
    }

    /// The change of speed that would explain the runs best, where it is worth a thought: at least two runs on either side.
    /// With the runs between its earliest and its latest likely place.
    fn likely_change(&self, runs: &[Seen<'_>]) -> Option<(Change, Range<usize>)> {
        let changes = self.changes(runs)?;
        let inner = changes.iter().filter(|change| change.at >= 2 && change.at + 2 <= runs.len());
        let best = *inner.max_by(|a, b| a.gain.total_cmp(&b.gain)).filter(|change| change.gain > SUSPICION)?;
        let likely = |change: &&Change| change.gain > best.gain - ELSEWHERE;
        let places = || changes.iter().filter(likely).map(|change| change.at);
        Some((best, places().min()?..places().max()?))
    }

    /// What a change of speed before each run would explain. Many runs are gathered by their points, and those of points that
    /// the process is not conditioned on say nothing.
    fn changes(&self, runs: &[Seen<'_>]) -> Option<Vec<Change>> {
        let Fitted { centre, level, posterior, .. } = self.fits.first()?;
        let levels = self.levels_of(runs).into_iter().map(|(point, y, changes)| (point, y - level, changes));
        if runs.len() <= RUNS {
            let data = Data::single(levels, |point| self.expected(point) - centre);
            let runs: Vec<(usize, f64)> = data.y.iter().copied().enumerate().collect();
            let axes = Axes::new(self.ctx.space.dims());
            let all = Posterior::new(&axes, posterior.beliefs.clone(), posterior.hyper.clone(), data)?;
            return Some(all.changes(CHANGE, &runs));
        }
        let data = posterior.data.points.iter().zip(&posterior.data.changes);
        let places: HashMap<(&Point, usize), usize> =
            data.enumerate().map(|(i, (x, &after))| ((x, after), i)).collect();
        let known = levels.enumerate().filter_map(|(at, (x, y, after))| Some((at, (*places.get(&(x, after))?, y))));
        let (numbers, known): (Vec<usize>, Vec<(usize, f64)>) = known.unzip();
        let changes = posterior.changes(CHANGE, &known).into_iter();
        Some(changes.map(|change| Change { at: numbers[change.at], ..change }).collect())
    }

    /// Mean and standard deviation of the slope with the log odds: what is expected holds, or it says nothing; a model may
    /// even be upside down.
    fn hypotheses(&self) -> Vec<(f64, f64, f64)> {
        if self.spread == 0.0 {
            return vec![(0.0, 0.0, 0.0)];
        }
        let doubt = (DOUBT / self.spread).min(1.0);
        match self.expected.is_guess() {
            true => vec![(0.0, 0.0, 0.0), (1.0, DOUBT_OF_A_GUESS, 0.0)],
            false => vec![(0.0, doubt, 0.0), (1.0, doubt, TRUST)],
        }
    }

    /// The timeouts of points that never passed whose limit is below what the surrogate expects: only they say something new. They
    /// are taken as if they had just reached it, the highest rate that they can have had, or as far below what is expected as
    /// a slow candidate hardly is: farther below it, a run has hung.
    fn binding_limits(&self) -> Vec<Seen<'a>> {
        let passed: HashSet<&Point> =
            self.ctx.history.trials.iter().filter(|run| log_rate(run).is_some()).map(|run| &run.point).collect();
        let limits: Vec<Seen<'_>> = limits(self.ctx.history).filter(|limit| !passed.contains(limit.point)).collect();
        let points: Vec<&Point> = limits.iter().map(|limit| limit.point).collect();
        let expected = self.predict(&points).into_iter();
        let levels = self.levels_of(&limits).into_iter().map(|(_, level, _)| level);
        let binding = expected.zip(levels).zip(&limits).filter(|((at, level), _)| *level < at.mean);
        let taken = |((at, level), limit): ((Marginal, f64), &Seen<'a>)| {
            let mean = level.max(at.mean - HARDLY_BELOW * at.sd);
            let log = self.seen.log_rate(Marginal { mean, sd: 0.0 }).mean - self.drift.correction(limit.trial);
            Seen { log, ..*limit }
        };
        binding.map(taken).collect()
    }

    /// Those of the tried points, each with a trial, that may lead: of many only what the process is conditioned on.
    pub(crate) fn contenders<'b>(&self, mut tried: Vec<(&'b Point, u64)>) -> Vec<(&'b Point, u64)> {
        if self.ctx.history.trials.len() > RUNS
            && let Some(Fitted { posterior, .. }) = self.fits.first()
        {
            let known: HashSet<&Point> = posterior.data.points.iter().collect();
            tried.retain(|(point, _)| known.contains(point));
        }
        tried
    }

    /// Standard deviation of the log rate of one run, near the best.
    pub fn noise_sd(&self) -> f64 {
        self.fits.first().map_or_else(|| self.beliefs(1.0, 0.0).noise.median, |fitted| fitted.posterior.hyper.noise)
    }

    /// The number of points that the process is conditioned on.
    #[cfg(test)]
    pub(crate) fn conditioned_on(&self) -> usize {
        self.fits.first().map_or(0, |fitted| fitted.posterior.data.len())
    }

    /// The first trial after a change of speed that is likely, but not yet believed in.
    pub(crate) fn suspect(&self) -> Option<usize> {
        self.suspect
    }

    /// Mean and standard deviation on the levelled scale, without the noise of a run.
    pub(crate) fn predict(&self, points: &[&Point]) -> Vec<Marginal> {
        let mut by = self.predict_by(points);
        if by.len() == 1 {
            return by.remove(0).1;
        }
        let moments = |i: usize| {
            let mean: f64 = by.iter().map(|(weight, at)| weight * at[i].mean).sum();
            let square: f64 =
                by.iter().map(|(weight, at)| weight * (at[i].sd.powi(2) + (at[i].mean - mean).powi(2))).sum();
            Marginal { mean, sd: square.sqrt() }
        };
        (0..points.len()).map(moments).collect()
    }

    /// Draws of the levels of points, which rise and fall together: under each hypothesis by its probability, and under `ways`
    /// draws of its hyperparameters; none before the first run. `normal` gives standard normal numbers.
    pub(crate) fn draws(
        &self,
        points: &[&Point],
        (ways, count): (usize, usize),
        normal: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<f64>> {
        let axes = Axes::new(self.ctx.space.dims());
        let mut all = Vec::with_capacity(ways * count);
        for Fitted { centre, level, posterior, weight, .. } in &self.fits {
            let basis: Vec<f64> = points.iter().map(|point| self.expected(point) - centre).collect();
            for one in posterior.drawn(&axes, (ways as f64 * weight).round() as usize, normal) {
                let levels = one.joint(points, &basis).draws(count, normal);
                all.extend(levels.into_iter().map(|drawn| drawn.into_iter().map(|y| y + level).collect::<Vec<f64>>()));
            }
        }
        all
    }

    /// [`Self::predict`] under each hypothesis, with its probability.
    pub(crate) fn predict_by(&self, points: &[&Point]) -> Vec<(f64, Vec<Marginal>)> {
        let expected: Vec<f64> = points.iter().map(|point| self.expected(point)).collect();
        if self.fits.is_empty() {
            let sd = self.beliefs(1.0, 0.0).prior_sd().hypot(OFFSET_SD);
            return vec![(1.0, expected.into_iter().map(|mean| Marginal { mean, sd }).collect())];
        }
        let one = |Fitted { centre, level, posterior, weight, .. }: &Fitted| {
            let basis: Vec<f64> = expected.iter().map(|level| level - centre).collect();
            let marginals = posterior.predict(points, &basis).into_iter();
            (*weight, marginals.map(|at| Marginal { mean: at.mean + level, ..at }).collect())
        };
        self.fits.iter().map(one).collect()
    }

    /// A rough optimistic level of every point of the space: the mean plus `spread` standard deviations; the highest of the
    /// hypotheses'.
    pub(crate) fn optimistic(&self, spread: f64) -> Vec<f64> {
        let groups = Groups::new(self.ctx.space.points());
        let one = |Fitted { centre, level, posterior, .. }: &Fitted| -> Vec<f64> {
            let basis: Vec<f64> = self.levels.iter().map(|level| level - centre).collect();
            let value = |at: Glance| level + at.mean + spread * at.sd;
            glance(posterior, &groups, &basis).into_iter().map(value).collect()
        };
        let all = self.fits.iter().map(one);
        all.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect()).unwrap_or_else(|| self.levels.clone())
    }

    /// Posterior of the rate at one point.
    pub fn prediction(&self, point: &Point) -> Prediction {
        self.as_rate(self.predict(&[point])[0])
    }

    /// By how much the rate of one level exceeds that of another, relatively.
    pub(crate) fn gain(&self, from: f64, to: f64) -> f64 {
        let log = |mean| self.seen.log_rate(Marginal { mean, sd: 0.0 }).mean;
        (log(to) - log(from)).exp_m1()
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
fn limits(history: &History) -> impl Iterator<Item = Seen<'_>> {
    history.trials.iter().enumerate().filter_map(|(trial, run)| match run.outcome {
        Outcome::TimedOut { at_most_gflops } => Some(Seen { point: &run.point, log: log_of(at_most_gflops)?, trial }),
        _ => None,
    })
}

/// The best first, with those that are worth their time beside it, and their probabilities; or the best `alone`, as of
/// guesses: a bowl beside a level would call both its middle and its ends good.
fn weighed(mut fits: Vec<Fitted>, alone: bool) -> Vec<Fitted> {
    // Of equals, as before the second point, the last: what is expected.
    fits.reverse();
    fits.sort_by(|a, b| b.score.total_cmp(&a.score));
    let Some(best) = fits.first().map(|best| best.score) else { return fits };
    fits.iter_mut().for_each(|fit| fit.weight = (fit.score - best).exp());
    fits.retain(|fit| fit.weight >= NEGLIGIBLE);
    if alone {
        fits.truncate(1);
    }
    let sum: f64 = fits.iter().map(|fit| fit.weight).sum();
    fits.iter_mut().for_each(|fit| fit.weight /= sum);
    fits
}

fn log_of(rate: f64) -> Option<f64> {
    Some(rate.ln()).filter(|log| log.is_finite())
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let variance = squared_deviations(values) / values.len() as f64;
    (!values.is_empty()).then(|| (mean(values), variance.sqrt()))
}
