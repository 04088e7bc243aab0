//! What a strategy looks at, and what it answers.

use std::collections::HashSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use space::dims::{Point, Space};

use crate::record::Prediction;
use crate::search::history::History;

/// All that a strategy may look at.
pub struct Ctx<'a> {
    /// What can be proposed.
    pub space: &'a dyn Space,
    /// What is known.
    pub history: &'a History,
    /// What the model expects.
    pub prior: &'a dyn Prior,
    /// Wall-clock seconds left for search trials.
    pub budget_left_s: f64,
    /// Wall-clock seconds of the whole budget.
    pub budget_total_s: f64,
    /// Trials that measure two points in turn; `None` where no two can be.
    pub pairs: Option<PairTrials<'a>>,
    /// Chooses the random numbers of the proposal: another one for each proposal of a search.
    pub trial: u64,
    /// Seed of the session.
    pub seed: u64,
}

impl Ctx<'_> {
    /// Whether these two can be measured in turn.
    pub(super) fn can_pair(&self, points: [&Point; 2]) -> bool {
        self.pairs.is_some_and(|pairs| pairs.rule.allows(points))
    }
}

/// Trials that measure two points in turn, in one process.
#[derive(Clone, Copy)]
pub struct PairTrials<'a> {
    /// Wall-clock time of one, in that of runs of both one after the other.
    pub cost: f64,
    /// Which two points can be measured so.
    pub rule: &'a dyn PointPairs,
}

/// Which two points can be measured in turn.
pub trait PointPairs: Sync {
    /// Whether these two can.
    fn allows(&self, points: [&Point; 2]) -> bool;
}

/// What a model expects of a point before it is run.
pub trait Prior: Sync {
    /// Natural logarithm of the expected GFLOP/s.
    fn log_rate(&self, point: &Point) -> f64;

    /// Expected wall-clock cost of one run, in seconds.
    fn cost_s(&self, point: &Point) -> f64;

    /// What a distribution of the blocks among nodes of unequal speed adds to the log rate, beside that by the measured speeds: 0 or
    /// less, mostly. It is arithmetic, and holds whatever else the runs contradict.
    fn balance(&self, _: &Point) -> f64 {
        0.0
    }

    /// [`Prior::balance`] of many points; `None` where it is 0 for all.
    fn balances(&self, _: &[Point]) -> Option<Vec<f64>> {
        None
    }

    /// [`Prior::log_rate`] of many points; a prior that holds a table overrides it.
    fn log_rates(&self, points: &[Point]) -> Vec<f64> {
        points.iter().map(|point| self.log_rate(point)).collect()
    }

    /// What is expected without the runs of earlier sessions, where those are part of it: they may mislead.
    fn without_earlier_runs(&self) -> Option<&dyn Prior> {
        None
    }

    /// [`Prior::cost_s`] of many points.
    fn costs_s(&self, points: &[Point]) -> Vec<f64> {
        points.iter().map(|point| self.cost_s(point)).collect()
    }
}

/// A point to run next.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Canonical point of the space.
    pub point: Point,
    /// The trial that this one repeats, `None` for a point never tried.
    pub repeat_of: Option<u64>,
    /// What is to be measured in turn with it, in the same process; `None` where it is measured alone.
    pub reference: Option<Point>,
    /// One short clause for the record: why this point.
    pub why: String,
    /// Expected GFLOP/s and its relative standard deviation, where the strategy has a posterior.
    pub predicted: Option<Prediction>,
}

/// A search strategy.
pub trait Strategy: Sync {
    /// Name as in `--strategy` and in the record.
    fn name(&self) -> &'static str;

    /// The next point, `None` when nothing is left that is worth a run.
    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal>;
}

/// The generator of one proposal: a stream per trial number, so that nothing but the record decides.
pub(super) fn rng(ctx: &Ctx<'_>) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(ctx.seed);
    rng.set_stream(ctx.trial);
    rng
}

/// The points without a trial that fit the time left by the model, all of them where none does; in the order of the space.
pub(super) fn untried<'a>(ctx: &Ctx<'a>) -> Vec<&'a Point> {
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let points: &'a [Point] = ctx.space.points();
    let costs_s = ctx.prior.costs_s(points);
    let untried = || points.iter().zip(&costs_s).filter(|(point, _)| !tried.contains(point));
    let fitting: Vec<&Point> =
        untried().filter(|(_, cost_s)| **cost_s <= ctx.budget_left_s).map(|(point, _)| point).collect();
    if fitting.is_empty() { untried().map(|(point, _)| point).collect() } else { fitting }
}

/// Whether a run of `point` fits the time left, by the model.
pub(super) fn fits(ctx: &Ctx<'_>, point: &Point) -> bool {
    ctx.prior.cost_s(point) <= ctx.budget_left_s
}

/// The point that the prior expects most of; equals are drawn.
pub(super) fn most_expected<'a>(ctx: &Ctx<'_>, points: Vec<&'a Point>) -> Option<&'a Point> {
    let mut rng = rng(ctx);
    let ranked = points.into_iter().map(|point| (finite(ctx.prior.log_rate(point)), rng.random::<u64>(), point));
    ranked.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, _, point)| point)
}

/// A model may answer NaN or infinity where it has no data: no point is expected to be worse.
pub(super) fn finite(log_rate: f64) -> f64 {
    if log_rate.is_finite() { log_rate } else { f64::MIN_POSITIVE.ln() }
}

#[cfg(test)]
mod tests {
    use space::listed::Listed;

    use super::super::testing::{Dear, ordered};
    use super::*;

    #[test]
    fn what_is_drawn_fits_the_time_left() {
        let space = Listed::product(vec![ordered("nb", &[5.0, 6.0, 7.0])], |_| true);
        let history = History::default();
        let count = |budget_left_s: f64| {
            let (space, history, prior) = (&space, &history, &Dear);
            let ctx = Ctx { space, history, prior, budget_left_s, budget_total_s: 1e3, pairs: None, trial: 0, seed: 1 };
            untried(&ctx).len()
        };
        assert_eq!([1e3, 50.0, 0.5].map(count), [3, 2, 3]);
    }
}
