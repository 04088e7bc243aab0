//! Why a pack cannot be made.

use std::path::PathBuf;

use super::site::SiteError;
use crate::error::RecordError;
use crate::power::log::LogError;

/// Each message names what is wrong and the way out.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Nothing of the session was measured.
    #[error(
        "{}: the session was simulated (engine \"{engine}\"), nothing of it was measured, and a pack holds \
         measured scores alone; run a session on the machine itself, without --simulate",
        folder.display()
    )]
    Simulated {
        /// The run folder.
        folder: PathBuf,
        /// What its rows are said to be of.
        engine: String,
    },
    /// No whole run was verified.
    #[error(
        "{}: no passed final run of the best: {why}; a pack holds a whole run whose residual passed. Continue with hpl-tune --resume \
         {0}, or start a session with a larger --budget",
        folder.display()
    )]
    NoFinal {
        /// The run folder.
        folder: PathBuf,
        /// What there is instead, as a clause.
        why: String,
    },
    /// The session goes on.
    #[error("{}: a session works there, or a report is written; wait for its end", folder.display())]
    AtWork {
        /// The run folder.
        folder: PathBuf,
    },
    /// The output of the run is not what it wrote.
    #[error("{}: {problem}", file.display())]
    Output {
        /// The file.
        file: PathBuf,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// The site file cannot be used.
    #[error("{}: {cause}", file.display())]
    Site {
        /// The file.
        file: PathBuf,
        /// What is wrong, with its line.
        cause: SiteError,
    },
    /// The readings of the meter cannot be used.
    #[error("{}: {cause}", file.display())]
    PowerLog {
        /// The file.
        file: PathBuf,
        /// What is wrong, with its line.
        cause: LogError,
    },
    /// The run folder cannot be read, or the pack not written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The folder of the pack is taken.
    #[error("{} exists; choose another folder with --out, or remove it", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
}
