//! The process conditioned on the record.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use space::dims::Point;
use space::stats::{mean, squared_deviations};

use super::balance::Balance;
use crate::record::left::LEVEL;
use crate::search::history::{HARDLY_SD, History, RUN_SD, Trial, TrialResult};
use crate::search::strategy::drift::{Drift, SpeedStep};
use crate::search::strategy::expected::Expected;
use crate::search::strategy::gp::data::{Data, Observed};
use crate::search::strategy::gp::hyper::{Beliefs, LogNormal};
use crate::search::strategy::gp::kernel::KernelDims;
use crate::search::strategy::gp::posterior::{Change, FIT_POINTS, Marginal, Posterior};
use crate::search::strategy::prior::Flat;
use crate::search::strategy::warp::{USUAL_LOSS, Warp};
use crate::search::strategy::{Ctx, Prior, at_once};

/// Standard deviation of the offset: model and runs may differ by such a factor everywhere.
pub(crate) const OFFSET_SD: f64 = 0.5;
/// How far the slope's uncertainty may move points that the prior sets apart by one standard deviation of its own. A prior
/// that separates points by less may even have the wrong order; one that says "ten times slower" is not doubted that much.
const DOUBT: f64 = USUAL_LOSS;
/// Log odds for the prior before it is judged; a guess has none.
const TRUST: f64 = 1.0;
/// Standard deviation of the slope of a guess, about 1.
const DOUBT_OF_A_GUESS: f64 = 0.5;
/// What all dimensions do together: where nothing is known of it, and what a model that holds leaves of it. Rates that are wrong by 10
/// to 30 % leave a few percent (`datasets/simulated`), as timelines on unseen runs do.
pub(crate) const TOGETHER: LogNormal = LogNormal { median: USUAL_LOSS, spread: 0.4 };
pub(crate) const LEFT_BY_A_MODEL: LogNormal = LogNormal { median: 0.08, ..TOGETHER };
/// Of single runs.
pub(crate) const NOISE: LogNormal = LogNormal::about(RUN_SD);
/// Slope from which runs are taken to confirm the prior.
const CONFIRMED: f64 = 0.5;
/// No prior.
static NOTHING: Flat = Flat { cost_s: 1.0 };
/// Hypotheses less likely than this, relative to the best, are left out.
const NEGLIGIBLE: f64 = 1.0 - LEVEL;

/// Runs, or points of more runs, that are taken into the process, at most: the time of a suggestion grows with them. Where runs are
/// short, as many as the hyperparameters are fitted to.
pub(crate) const RUNS: usize = 500;

/// Seconds of a usual run for each of them: a suggestion takes about a tenth of that, on one core of 2020.
const RUN_S: f64 = 0.006;

/// Runs, or means of points, that the process is conditioned on, at most: fewer where runs are short.
pub(crate) fn most_runs(history: &History) -> usize {
    let most = history.usual_s().unwrap_or(f64::INFINITY) / RUN_S;
    most.clamp(FIT_POINTS as f64, RUNS as f64) as usize
}

/// Whether there are more runs than are taken by themselves.
pub(super) fn is_long(history: &History) -> bool {
    history.trials.len() > most_runs(history)
}

/// A speed that wanders, see [`Beliefs`].
const WANDER: LogNormal = LogNormal { median: 0.003, spread: 1.0 };
const MEMORY: LogNormal = LogNormal { median: 10.0, spread: 1.0 };

/// Standard deviation of a change of the machine's speed, by itself and beside what was estimated of it.
const CHANGE: f64 = 0.1;
/// Changes of a session, at most.
const CHANGES: usize = 3;

/// Gain in log density that decides between two.
fn decisive() -> f64 {
    -(1.0 - LEVEL).ln()
}

/// The posterior of log rate over a space.
pub struct Surrogate<'a> {
    pub(super) ctx: &'a Ctx<'a>,
    pub(super) expected: Expected<'a>,
    /// The scale of what is expected.
    pub(super) prior_scale: Warp,
    /// What is expected of all points of the space on that scale, in its order, and how far it spreads.
    pub(super) levels: Vec<f64>,
    pub(super) spread: f64,
    /// What is known of the distribution of blocks.
    pub(super) balance: Balance<'a>,
    /// The scale of what is measured.
    pub(super) seen: Warp,
    pub(super) drift: Drift,
    /// One for each hypothesis worth its time; none before the first observation.
    pub(super) fits: Vec<Fitted>,
    /// The first trial after a change that is likely, but not yet accepted.
    pub(super) suspect: Option<usize>,
    /// The best score of a hypothesis by passed runs alone, and how many these or their means are: timeouts that say something are others
    /// under each prior.
    pub(super) evidence: (f64, usize),
}

pub(super) struct Fitted {
    /// How well each run is predicted from all the others, with the odds for the hypothesis.
    pub(super) score: f64,
    /// Probability of the hypothesis.
    pub(super) weight: f64,
    /// Mean of what was expected of the tried points.
    pub(super) centre: f64,
    /// Mean of what that leaves unexplained.
    pub(super) level: f64,
    pub(super) posterior: Posterior,
}

/// What may be so of what is expected: mean and standard deviation of its slope, the log odds for it before any run, and what all
/// dimensions do together beyond it.
#[derive(Clone, Copy)]
struct Hypothesis {
    slope_mean: f64,
    slope_sd: f64,
    odds: f64,
    signal: LogNormal,
}

/// A run: its point, the logarithm of its rate, its place among the trials, when it was in the length of a usual run, and whether it was
/// measured in turn with another one in that trial.
#[derive(Clone, Copy)]
struct FittedRun<'a> {
    point: &'a Point,
    log: f64,
    trial: usize,
    time: f64,
    is_paired: bool,
}

impl<'a> Surrogate<'a> {
    /// Fits the surrogate to the record. Evaluates the prior at every point of the space: see
    /// [`PriorTable`](crate::search::strategy::prior::PriorTable).
    pub fn new(ctx: &'a Ctx<'a>) -> Self {
        let with = Self::expecting(ctx, ctx.prior);
        let without = ctx.prior.without_earlier_runs().map(|prior| Self::expecting(ctx, prior));
        let count = with.evidence.1.max(1) as f64;
        // As if each were by as many runs: those about a change of speed are left out.
        let score = |Self { evidence: (score, runs), .. }: &Self| score * count / (*runs).max(1) as f64;
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
        let prior_scale = Warp { best: expected.top };
        let balance = Balance::new(ctx);
        let levels: Vec<f64> = expected.all.iter().map(|&log| prior_scale.level(log)).collect();
        let levels = balance.taken_off(levels, expected.is_guess());
        let spread = moments(&levels).map_or(0.0, |moments| moments.1);
        let runs = fitted_runs(ctx.history, log_rate);
        let mut runs: Vec<FittedRun<'_>> = runs.collect();
        let mut surrogate = Self {
            ctx,
            expected,
            prior_scale,
            levels,
            spread,
            balance,
            seen: prior_scale,
            drift: Drift::default(),
            fits: Vec::new(),
            suspect: None,
            evidence: (0.0, 0),
        };
        surrogate.condition(&runs);
        while let Some((change, doubtful)) = surrogate.likely_change(&runs) {
            let (before, after) = runs.split_at(change.at);
            let old: HashSet<&Point> = before.iter().map(|run| run.point).collect();
            if !after.iter().any(|new| old.contains(new.point)) {
                surrogate.suspect = Some(runs[change.at].trial);
                break;
            }
            let believed = change.gain > decisive() + (runs.len() as f64).ln();
            if !believed || surrogate.drift.len() == CHANGES {
                break;
            }
            surrogate.drift.add(SpeedStep { at: runs[change.at].trial, size: change.size });
            // It is not known on which side of the change these were run.
            runs.drain(doubtful);
            surrogate.condition(&runs);
            // Levels below the best are closer to each other than rates: what that left of the change is now seen.
            let left = surrogate.fits.first().map(|fit| fit.posterior.change_means(surrogate.drift.len()));
            surrogate.drift.adjust(&left.unwrap_or_default());
            surrogate.condition(&runs);
        }
        let evidence = surrogate.fits.first().map(|fit| (fit.score, fit.posterior.data.len()));
        surrogate.evidence = evidence.unwrap_or_default();
        let limits = surrogate.binding_limits();
        if !limits.is_empty() {
            runs.extend(limits);
            surrogate.condition(&runs);
        }
        surrogate
    }

    /// What is assumed about levels before any run: this by all dimensions together, by each alone what the space says.
    pub(super) fn beliefs(&self, signal: LogNormal) -> Beliefs {
        Beliefs { offset_sd: OFFSET_SD, ..Beliefs::of_rates(self.ctx.space, signal, NOISE) }
    }

    /// What is expected of a point, on the levelled scale, with blocks dealt by the measured speeds. A guess knows of no other.
    pub(super) fn expected(&self, point: &Point) -> f64 {
        let level = self.prior_scale.level(self.expected.log_rate(point));
        if self.expected.is_guess() { level } else { level - self.balance.of(point) }
    }

    /// Levels of runs, as if blocks were dealt by the measured speeds, with the number of changes before each.
    fn levels_of<'b>(&self, runs: &[FittedRun<'b>]) -> Vec<Observed<'b>> {
        let one = |&FittedRun { point, log, trial, time, is_paired }: &FittedRun<'b>| Observed {
            point,
            y: self.seen.level(log + self.drift.correction(trial)) - self.balance.of(point),
            changes: self.drift.before(trial),
            time,
            pair: is_paired.then_some(trial),
        };
        runs.iter().map(one).collect()
    }

    fn condition(&mut self, runs: &[FittedRun<'_>]) {
        let corrected = runs.iter().map(|run| run.log + self.drift.correction(run.trial));
        let Some(best) = corrected.reduce(f64::max) else { return };
        self.seen = Warp { best };
        let observations = self.levels_of(runs);
        let tried: HashSet<&Point> = observations.iter().map(|run| run.point).collect();
        let mut levels: Vec<f64> = tried.into_iter().map(|point| self.expected(point)).collect();
        // The order of a hash set is not the same twice, and sums depend on it.
        levels.sort_by(f64::total_cmp);
        let Some((centre, _)) = moments(&levels) else { return };
        let basis = |point: &Point| self.expected(point) - centre;
        let observations = observations.into_iter();
        let is_long = is_long(self.ctx.history);
        let data = if is_long {
            // What is above the power limit is never chosen, however fast it is.
            let above = self.ctx.history.above_limit();
            let all = Data::gathered(observations, basis);
            all.thinned_for(most_runs(self.ctx.history), |point| !above.contains(point))
        } else {
            Data::single(observations, basis)
        };
        let axes = KernelDims::new(self.ctx.space.dims());
        let is_steady = self.drift.len() == 0;
        let begun = self.hypotheses().into_iter().filter_map(|Hypothesis { slope_mean, slope_sd, odds, signal }| {
            let mut data = data.clone();
            let unexplained = |run: &usize| data.y[*run] - slope_mean * data.basis[*run];
            let of_point = |runs: &Vec<usize>| mean(&runs.iter().map(unexplained).collect::<Vec<_>>());
            let level = moments(&data.alike().iter().map(of_point).collect::<Vec<_>>())?.0;
            data.y.iter_mut().for_each(|y| *y -= level);
            let change_sd = if is_steady { 0.0 } else { CHANGE };
            let wander = if is_long { LogNormal::NONE } else { WANDER };
            let beliefs = Beliefs { change_sd, wander, memory: MEMORY, slope_mean, slope_sd, ..self.beliefs(signal) };
            Some((data, level, beliefs, odds))
        });
        let fitted = |(data, level, beliefs, odds): (Data, f64, Beliefs, f64)| {
            let posterior = Posterior::fitted(&axes, beliefs, data)?;
            Some(Fitted { score: posterior.leave_one_out() + odds, weight: 1.0, centre, level, posterior })
        };
        let fits = at_once(begun, fitted).into_iter().flatten().collect();
        self.fits = weighed(fits, self.expected.is_guess());
    }

    /// The change of speed that would explain the runs best, where it is worth a thought: at least two runs on either side.
    /// With the runs between its earliest and its latest likely place.
    fn likely_change(&self, runs: &[FittedRun<'_>]) -> Option<(Change, Range<usize>)> {
        let changes = self.changes(runs)?;
        let inner = changes.iter().filter(|change| change.at >= 2 && change.at + 2 <= runs.len());
        let best = *inner.max_by(|a, b| a.gain.total_cmp(&b.gain)).filter(|change| change.gain > 0.5 * decisive())?;
        let likely = |change: &&Change| change.gain > best.gain - decisive();
        let places = || changes.iter().filter(likely).map(|change| change.at);
        Some((best, places().min()?..places().max()?))
    }

    /// What a change of speed before each run would explain. Many runs are gathered by their points, and those of points that
    /// the process is not conditioned on say nothing.
    fn changes(&self, runs: &[FittedRun<'_>]) -> Option<Vec<Change>> {
        let Fitted { centre, level, posterior, .. } = self.fits.first()?;
        let levels = self.levels_of(runs).into_iter().map(|run| Observed { y: run.y - level, ..run });
        if !is_long(self.ctx.history) {
            let data = Data::single(levels, |point| self.expected(point) - centre);
            let runs: Vec<(usize, f64)> = data.y.iter().copied().enumerate().collect();
            let axes = KernelDims::new(self.ctx.space.dims());
            let all = Posterior::new(&axes, posterior.beliefs.clone(), posterior.hyper.clone(), data)?;
            return Some(all.changes(CHANGE, &runs));
        }
        let data = posterior.data.points.iter().zip(&posterior.data.changes);
        let places: HashMap<(&Point, usize), usize> =
            data.enumerate().map(|(i, (x, &after))| ((x, after), i)).collect();
        let place = |run: Observed<'_>| places.get(&(run.point, run.changes)).copied();
        let known = levels.enumerate().filter_map(|(at, run)| Some((at, (place(run)?, run.y))));
        let (numbers, known): (Vec<usize>, Vec<(usize, f64)>) = known.unzip();
        let changes = posterior.changes(CHANGE, &known).into_iter();
        Some(changes.map(|change| Change { at: numbers[change.at], ..change }).collect())
    }

    /// What is expected holds, or it says nothing; a model may even have the wrong order.
    fn hypotheses(&self) -> Vec<Hypothesis> {
        let nothing = Hypothesis { slope_mean: 0.0, slope_sd: 0.0, odds: 0.0, signal: TOGETHER };
        if self.spread == 0.0 {
            return vec![nothing];
        }
        if self.expected.is_guess() {
            return vec![nothing, Hypothesis { slope_mean: 1.0, slope_sd: DOUBT_OF_A_GUESS, ..nothing }];
        }
        let slope_sd = (DOUBT / self.spread).min(1.0);
        let holds = Hypothesis { slope_mean: 1.0, slope_sd, odds: TRUST, signal: LEFT_BY_A_MODEL };
        vec![Hypothesis { slope_sd, ..nothing }, holds]
    }

    /// The timeouts of points that never passed whose limit is below what the surrogate expects: only they say something new. They
    /// are taken as if they had just reached it, the highest rate that they can have had, or as far below what is expected as
    /// a slow candidate hardly is: farther below it, a run has hung.
    fn binding_limits(&self) -> Vec<FittedRun<'a>> {
        let passed: HashSet<&Point> =
            self.ctx.history.trials.iter().filter(|run| log_rate(run).is_some()).map(|run| &run.point).collect();
        let limits: Vec<FittedRun<'_>> =
            fitted_runs(self.ctx.history, limit).filter(|limit| !passed.contains(limit.point)).collect();
        let points: Vec<&Point> = limits.iter().map(|limit| limit.point).collect();
        let expected = self.predict(&points).into_iter();
        let levels = self.levels_of(&limits).into_iter().map(|run| run.y + self.balance.of(run.point));
        let binding = expected.zip(levels).zip(&limits).filter(|((at, level), _)| *level < at.mean);
        let taken = |((at, level), limit): ((Marginal, f64), &FittedRun<'a>)| {
            let mean = level.max(at.mean - HARDLY_SD * at.sd);
            let log = self.seen.log_rate(Marginal { mean, sd: 0.0 }).mean - self.drift.correction(limit.trial);
            FittedRun { log, ..*limit }
        };
        binding.map(taken).collect()
    }
}

/// Log rate of a passed run.
pub(crate) fn log_rate(trial: &Trial) -> Option<f64> {
    match trial.outcome {
        TrialResult::Rate(rate) => log_of(rate),
        _ => None,
    }
}

/// The runs of which `log` says something; of a pair that passed both.
fn fitted_runs(history: &History, log: fn(&Trial) -> Option<f64>) -> impl Iterator<Item = FittedRun<'_>> {
    let usual_s = history.usual_s();
    let begun = history.trials.iter().scan(0.0, |passed_s, run| {
        let begun_s = *passed_s;
        *passed_s += run.wall_s;
        Some(begun_s)
    });
    let runs = history.trials.iter().zip(begun).enumerate();
    runs.flat_map(move |(trial, (run, begun_s))| {
        let time = usual_s.map_or(trial as f64, |usual_s| begun_s / usual_s);
        let pair = run.pair.as_ref().filter(|_| log_rate(run).is_some());
        let at = |point, log| FittedRun { point, log, trial, time, is_paired: pair.is_some() };
        let own = log(run).map(|log| at(&run.point, log));
        let reference = pair.filter(|_| own.is_some()).and_then(|pair| Some(at(&pair.reference, log_of(pair.rate)?)));
        [own, reference].into_iter().flatten()
    })
}

/// Upper limit of the log rate of a run that did not end in time.
fn limit(trial: &Trial) -> Option<f64> {
    match trial.outcome {
        TrialResult::TimedOut { at_most_gflops } => log_of(at_most_gflops),
        _ => None,
    }
}

/// The best first, with those that are worth their time with it, and their probabilities; or the best `alone`, as of
/// guesses: a curved and a flat prior together would call both the middle and the ends good.
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
