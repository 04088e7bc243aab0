//! The clocks of a simulated cluster: of all its runs, and of one.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use hpl::program::files::write_atomically;
use serde::{Deserialize, Serialize};

use super::power::SimulatedPower;

/// The environment variable with the time limit of a simulated run in seconds.
pub const LIMIT_VARIABLE: &str = "HPL_TUNE_SIMULATED_LIMIT_S";

/// The clock of a cluster, stored next to the cluster's file. Whoever waits for the runs moves it on: several may pass together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Runs so far.
    pub runs: u64,
    /// Total seconds of these runs.
    pub clock_s: f64,
}

impl Clock {
    fn path(cluster: &Path) -> PathBuf {
        cluster.with_extension("clock.json")
    }

    /// The clock of the cluster whose file is `cluster`; at 0 if none is stored yet.
    ///
    /// # Errors
    /// A file that cannot be read, or is no clock.
    pub fn read(cluster: &Path) -> io::Result<Self> {
        match std::fs::read(Self::path(cluster)) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Adds a run of `wall_s` seconds, or several at the same time.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn add(self, cluster: &Path, wall_s: f64) -> io::Result<()> {
        let later = Self { runs: self.runs + 1, clock_s: self.clock_s + wall_s };
        write_atomically(&Self::path(cluster), &serde_json::to_vec(&later)?)
    }
}

/// Time of one simulated run, stored in the folder of its trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunClock {
    /// Seconds on the simulated clock.
    pub simulated_wall_s: f64,
    /// Whether it was ended at its time limit.
    pub timed_out: bool,
    /// The power of the run, where its cluster says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<SimulatedPower>,
}

impl RunClock {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("simulated.json")
    }

    /// Time of the run in `folder`; `None` if it has not ended by itself.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(folder)).ok()?).ok()
    }

    /// Stores it in `folder`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(self, folder: &Path) -> io::Result<()> {
        write_atomically(&Self::path(folder), &serde_json::to_vec(&self)?)
    }
}
