//! What a trial is to run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::foreign::Foreign;
use crate::launcher::MpiJob;

/// A run that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// With which parameters.
    pub candidate: Candidate,
    /// How much of it.
    pub extent: Extent,
}

/// How much of a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// All of it, with its residual.
    #[default]
    Whole,
    /// Windows, from which the time of the whole is estimated; our engine only.
    Windows,
}

impl Job {
    /// A whole run of `candidate`.
    pub fn whole(candidate: &Candidate) -> Self {
        Self { candidate: candidate.clone(), extent: Extent::Whole }
    }
}

/// Which program runs a job.
#[derive(Debug, Clone)]
pub(super) enum Engine {
    /// `hpl-tune run`.
    Ours,
    /// Our `xhpl` on the processes of an MPI job.
    Launched(Arc<MpiJob>),
    /// Another HPL.
    Foreign(Arc<Foreign>),
}
