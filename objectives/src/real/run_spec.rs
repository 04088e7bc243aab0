//! The run of a trial.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use space::Candidate;

use super::guard::{STDERR, STDOUT};
use crate::foreign::Foreign;
use crate::launcher::MpiJob;
use crate::progress::ProgressPoint;

/// A run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// Its parameters.
    pub candidate: Candidate,
    /// The part of it that is run.
    pub extent: Extent,
    /// What is measured in turn with it in the same process, by windows; `None` for the candidate alone.
    pub reference: Option<Candidate>,
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
        Self { candidate: candidate.clone(), extent: Extent::Whole, reference: None, nodes: Vec::new() }
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

impl RunProgram {
    /// Names of the files in the folder of a run in which it may print its progress, the likeliest first; none where it prints none.
    pub(super) fn progress_files(&self) -> Vec<&str> {
        match self {
            Self::Ours => vec![STDERR],
            Self::Launched(job) if job.simulated.is_some() => Vec::new(),
            Self::Launched(_) => vec![STDOUT],
            Self::Foreign(engine) if engine.reports_progress() => {
                engine.profile().output.as_deref().into_iter().chain([STDOUT, STDERR]).collect()
            }
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// The progress that a line of these files reports.
    pub(super) fn progress_of(&self, line: &str) -> Option<ProgressPoint> {
        match self {
            Self::Ours | Self::Launched(_) => ProgressPoint::of_our_line(line),
            Self::Foreign(engine) => engine.progress_of(line),
        }
    }
}
