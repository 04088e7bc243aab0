//! How the launcher of an engine starts other programs, and asks for a clock.

use std::ffi::OsString;
use std::path::Path;

use objectives::launcher::{MpiJob, is_srun, words};
use objectives::slurm_clock::SlurmClock;
use space::Candidate;

use super::Engine;

/// A command and its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineCommand {
    /// Its words.
    pub words: Vec<OsString>,
    /// Variables in addition to the inherited ones.
    pub variables: Vec<(String, String)>,
}

impl Engine {
    /// Whether its runs are started by Slurm's `srun`.
    pub fn is_started_by_srun(&self) -> bool {
        match self {
            Self::Ours => false,
            Self::Launched(job) => job.simulated.is_none() && is_srun(&words(&job.launcher)),
            Self::Foreign(foreign) => foreign.is_started_by_srun(),
        }
    }

    /// This engine with the clock of its nodes asked of Slurm, for candidates that have one.
    #[must_use]
    pub fn clocked_by(self, slurm_clock: Option<SlurmClock>) -> Self {
        match self {
            Self::Ours => Self::Ours,
            Self::Launched(job) => Self::Launched(MpiJob { slurm_clock, ..job }),
            Self::Foreign(foreign) => Self::Foreign(Box::new(foreign.clocked_by(slurm_clock))),
        }
    }

    /// The command that starts `words` in the place of its program, as it would start the ranks of `candidate`. `None` where it starts no
    /// program, or not by a word alone.
    pub fn started_in_its_place(&self, candidate: &Candidate, words: &[OsString]) -> Option<EngineCommand> {
        let folder = Path::new(".");
        match self {
            Self::Ours => None,
            Self::Launched(job) => {
                let variables = job.environment().into_iter().collect();
                Some(EngineCommand { words: job.started_in_its_place(candidate, words), variables })
            }
            Self::Foreign(foreign) => Some(EngineCommand {
                words: foreign.started_in_its_place(candidate, folder, words)?,
                variables: foreign.environment(candidate, folder),
            }),
        }
    }
}
