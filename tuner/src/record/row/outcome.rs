//! The outcome of a trial.

use objectives::Failure;
use objectives::real::Extent;
use serde::{Deserialize, Serialize};

/// What killed a trial whose session was ended at once each time that it ran, in words of [`Failure::Killed`].
pub(in crate::record) const KILLED_WITH_SESSION: &str = "the end of the session, each time that it ran";

/// What came of a run; all but the first are failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ended and the residual passed.
    Passed,
    /// It cannot run on this machine.
    Infeasible,
    /// It did not start.
    Launch,
    /// It was ended at its time limit.
    TimedOut,
    /// It ended by itself with an error.
    Crashed,
    /// It was ended by a signal from outside.
    Killed,
    /// It was ended for its use of memory.
    OutOfMemory,
    /// It ended, but its residual failed.
    Residual,
    /// It was ended because it could not be the best any more.
    Beaten,
    /// It was not run.
    Skipped,
    /// Its output could not be understood.
    Output,
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Infeasible { .. } => Self::Infeasible,
            Failure::Launch { .. } => Self::Launch,
            Failure::TimedOut { .. } => Self::TimedOut,
            Failure::Crashed { .. } => Self::Crashed,
            Failure::Killed { .. } => Self::Killed,
            Failure::OutOfMemory { .. } => Self::OutOfMemory,
            Failure::Residual { .. } => Self::Residual,
            Failure::Beaten { .. } => Self::Beaten,
            Failure::Skipped { .. } => Self::Skipped,
            Failure::Output { .. } => Self::Output,
        }
    }
}

impl Outcome {
    /// Whether a process of the engine was at work.
    pub fn ran(self) -> bool {
        !matches!(self, Self::Infeasible | Self::Launch | Self::Skipped)
    }

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Infeasible => "infeasible",
            Self::Launch => "launch",
            Self::TimedOut => "timed-out",
            Self::Crashed => "crashed",
            Self::Killed => "killed",
            Self::OutOfMemory => "out-of-memory",
            Self::Residual => "residual",
            Self::Beaten => "beaten",
            Self::Skipped => "skipped",
            Self::Output => "output",
        }
    }
}

/// The measured score: GFLOP/s of a full run whose residual passed.
pub(in crate::record) fn score_gflops(extent: Extent, passed: bool, rate_gflops: Option<f64>) -> Option<f64> {
    rate_gflops.filter(|_| passed && extent == Extent::Whole)
}

/// What compares with other trials of the same extent: the score of a full run, the estimate of windows whose checks passed.
pub(in crate::record) fn comparable_rate_gflops(
    extent: Extent,
    passed: bool,
    rate_gflops: Option<f64>,
    estimated_rate_gflops: Option<f64>,
) -> Option<f64> {
    match extent {
        Extent::Whole => score_gflops(extent, passed, rate_gflops),
        Extent::Windows => estimated_rate_gflops.filter(|_| passed),
    }
}
