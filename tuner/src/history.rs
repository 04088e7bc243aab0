//! The trials of a session as strategies see them.

use space::dims::Point;

/// One finished trial at the target N.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Number of the trial in the session, from 0.
    pub number: u64,
    /// What was run, canonical.
    pub point: Point,
    /// What came of it.
    pub outcome: Outcome,
    /// Wall-clock seconds that the trial cost.
    pub wall_s: f64,
}

/// What a strategy learns from a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// A run with a passed residual, in GFLOP/s.
    Rate(f64),
    /// Ended at its time limit: the rate is at most this many GFLOP/s.
    TimedOut {
        /// Rate that a run finishing just at the limit would have had.
        at_most_gflops: f64,
    },
    /// Crashed, failed its residual, or could not start.
    Failed,
}

/// All finished trials of a session, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The trials, by rising number.
    pub trials: Vec<Trial>,
}
