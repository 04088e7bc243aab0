//! The timeline: a predicted run step by step, with a clock for each process.
//!
//! The closed forms of [`crate::mcl`] depend on N, NB, P and Q; a timeline also models waits between ranks, the overlap by
//! look-ahead, and messages that share a node's link. All of it is predicted, nothing measured.

mod costs;
pub mod events;
pub(crate) mod noise;
pub mod own;
mod placement;
mod platform;
pub mod recursion;
mod rows;
mod shape;
mod speeds;
#[cfg(test)]
mod tests;

pub use platform::{Cached, GemmTerms, LinkCosts, Platform, PlatformError};

/// The program whose schedule is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// The engine of this project: broadcasts are forwarded without blocking, look-ahead acts on every grid.
    Ours,
    /// Netlib's program: a rank forwards the panel with a blocking send, between its other operations;
    /// look-ahead of any depth above 1 is taken as 1, and has no effect at Q = 1.
    Netlib,
}

impl Schedule {
    /// Whether the forward of a panel blocks until it is received.
    pub fn forwards_block(self) -> bool {
        self == Self::Netlib
    }

    /// The effective look-ahead on `q` process columns for DEPTH `depth`.
    pub fn depth(self, depth: usize, q: usize) -> usize {
        match self {
            Self::Ours => depth,
            Self::Netlib if q == 1 => 0,
            Self::Netlib => depth.min(1),
        }
    }
}

/// A predicted run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Factorization and back substitution in seconds, until the last process ends: what HPL times.
    pub total_s: f64,
    /// One entry per panel, in their order.
    pub steps: Vec<StepTimes>,
    /// Back substitution in seconds.
    pub trsv_s: f64,
}

/// One step of a predicted run, in seconds; phases as in [`space::result::PhaseTime`].
///
/// Phases are means over all processes; time hidden by look-ahead is counted in the phase that hides it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTimes {
    /// Panel factorization.
    pub fact_s: f64,
    /// Panel broadcast, waiting included.
    pub lbcast_s: f64,
    /// Row exchange, waiting included.
    pub rs_s: f64,
    /// Triangular solve and DGEMM.
    pub update_s: f64,
    /// Moment at which the last process has ended this step.
    pub end_s: f64,
}

impl Timeline {
    /// Phases summed over the steps; `end_s` is that of the last step.
    pub fn sums(&self) -> StepTimes {
        self.steps.iter().fold(StepTimes::default(), |sum, step| StepTimes {
            fact_s: sum.fact_s + step.fact_s,
            lbcast_s: sum.lbcast_s + step.lbcast_s,
            rs_s: sum.rs_s + step.rs_s,
            update_s: sum.update_s + step.update_s,
            end_s: step.end_s,
        })
    }
}
