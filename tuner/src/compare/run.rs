//! One run as a comparison sees it, whatever it was read from.

use jiff::Timestamp;
use objectives::real::Extent;
use space::Candidate;

use crate::report::{OURS_ALONE, words};

/// What of a candidate its source reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// All of it.
    All,
    /// All but what our engine alone has.
    WithoutOurs,
    /// What HPL prints: neither threads nor what our engine alone has.
    Output,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// Its residual passed.
    Passed {
        /// GFLOP/s, measured or of windows estimated.
        rate_gflops: f64,
        /// The scaled residual, the largest one of windows.
        residual: Option<f64>,
    },
    /// Its residual failed.
    Wrong,
    /// It has a rate, and no check.
    Unchecked,
    /// It has no rate: it crashed, hung, or was not made.
    Lost,
}

/// Where a run was made, and by what; `None` where its source does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunOrigin {
    /// Host, or all nodes of the job.
    pub host: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// Kernels with their version.
    pub kernel: Option<String>,
    /// Programs with their versions.
    pub versions: Option<String>,
    /// The command.
    pub command: Option<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What was run.
    pub candidate: Candidate,
    /// What of that is known.
    pub known: Known,
    /// Whole, or windows of it.
    pub extent: Extent,
    /// What came of it.
    pub ended: Ended,
    /// Its start.
    pub started: Option<Timestamp>,
    /// Where, and by what.
    pub origin: RunOrigin,
}

impl Run {
    /// The rate, where the run passed.
    pub fn rate_gflops(&self) -> Option<f64> {
        match self.ended {
            Ended::Passed { rate_gflops, .. } => Some(rate_gflops),
            _ => None,
        }
    }

    /// The known words of the candidate, most important first.
    pub fn words(&self) -> Vec<(String, String)> {
        let known = |name: &str| match self.known {
            Known::All => true,
            Known::WithoutOurs => !OURS_ALONE.contains(&name),
            Known::Output => name != "threads" && !OURS_ALONE.contains(&name),
        };
        words(&self.candidate).into_iter().filter(|(name, _)| known(name)).collect()
    }
}
