//! What to run next: functions of a context over the points of a space.
//!
//! The life of a trial: the driver builds a [`Ctx`] from the record, a strategy proposes a [`Proposal`],
//! the driver runs it, records it, and asks again. A strategy keeps no state of its own: whatever it needs
//! it derives from the context, its rng from (seed, trial number). To resume is to read the record and ask.

mod acquisition;
mod around;
pub mod bayes;
#[cfg(test)]
mod conformance;
pub(crate) mod design;
mod drift;
mod expected;
mod feasible;
mod gp;
pub mod informed;
pub mod left;
pub mod local;
pub mod nelder_mead;
pub mod prior;
pub mod random;
#[cfg(test)]
mod speed;
mod surrogate;
#[cfg(test)]
pub(crate) mod testing;
mod warp;

pub use surrogate::Surrogate;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use space::dims::{Point, Space};

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
    /// Number that the proposed trial will have.
    pub trial: u64,
    /// Seed of the session.
    pub seed: u64,
}

/// What a model expects of a point before it is run.
pub trait Prior: Sync {
    /// Natural logarithm of the expected GFLOP/s.
    fn log_rate(&self, point: &Point) -> f64;

    /// Expected wall-clock cost of one run, in seconds.
    fn cost_s(&self, point: &Point) -> f64;

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
    /// One short clause for the record: why this point.
    pub why: String,
    /// Expected GFLOP/s and its relative standard deviation, where the strategy has a posterior.
    pub predicted: Option<Prediction>,
}

/// A posterior at one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Median of the expected GFLOP/s.
    pub rate_gflops: f64,
    /// Standard deviation of its natural logarithm.
    pub sd: f64,
}

/// A search strategy.
pub trait Strategy {
    /// Name as in `--strategy` and in the record.
    fn name(&self) -> &'static str;

    /// The next point, `None` when nothing is left that is worth a run.
    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal>;
}

/// Names of all strategies, the default first.
pub const NAMES: [&str; 4] = ["bayes", "nelder-mead", "random", "local"];

/// The strategy of that name, `None` for any name that is not in [`NAMES`].
pub fn by_name(name: &str) -> Option<Box<dyn Strategy>> {
    match name {
        "bayes" => Some(Box::new(bayes::Bayes)),
        "nelder-mead" => Some(Box::new(nelder_mead::NelderMead)),
        "random" => Some(Box::new(random::Random)),
        "local" => Some(Box::new(local::LocalSearch)),
        _ => None,
    }
}

/// The generator of one proposal: a stream per trial number, so that nothing but the record decides.
fn rng(ctx: &Ctx<'_>) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(ctx.seed);
    rng.set_stream(ctx.trial);
    rng
}
