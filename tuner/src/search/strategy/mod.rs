//! What to run next: functions of a context over the points of a space.
//!
//! The life of a trial: the driver builds a [`Ctx`] from the record, a strategy proposes a [`Proposal`],
//! the driver runs it, records it, and asks again. A strategy keeps no state of its own: whatever it needs
//! it derives from the context, its rng from (seed, trial number). To resume is to read the record and ask.

mod acquisition;
mod at_once;
pub mod bayes;
#[cfg(test)]
mod conformance;
mod context;
pub(crate) mod design;
mod drift;
mod expected;
mod feasible;
mod gp;
pub mod informed;
pub mod lead;
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

pub(crate) use at_once::at_once;
pub use context::{Ctx, PairTrials, PointPairs, Prior, Proposal, Strategy};
pub use surrogate::Surrogate;

/// Names of all strategies, the default first.
pub const NAMES: &[&str] = &["bayes", "nelder-mead", "random", "local"];

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
