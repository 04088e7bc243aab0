//! The run of a trial.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::foreign::Foreign;
use crate::launcher::MpiJob;

/// A run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// Its parameters.
    pub candidate: Candidate,
    /// The part of it that is run.
    pub extent: Extent,
    /// Names of the nodes that it is kept to; none for all that the launcher reaches.
    pub nodes: Vec<String>,
}

/// The part of a run that is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// The whole run, with its residual.
    #[default]
    Whole,
    /// Windows, from which the time of the whole is estimated; our engine only.
    Windows,
}

impl RunSpec {
    /// A whole run of `candidate`.
    pub fn whole(candidate: &Candidate) -> Self {
        Self { candidate: candidate.clone(), extent: Extent::Whole, nodes: Vec::new() }
    }
}

/// The program of a run.
#[derive(Debug, Clone)]
pub(super) enum RunProgram {
    /// `hpl-tune run`.
    Ours,
    /// Our `xhpl` on the processes of an MPI job.
    Launched(Arc<MpiJob>),
    /// Another HPL.
    Foreign(Arc<Foreign>),
}
