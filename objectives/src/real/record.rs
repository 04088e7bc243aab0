//! `guard.json`: the guard's record of how a run ended.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hpl::program::files::write_atomically;
use serde::{Deserialize, Serialize};

use crate::Exit;

/// Version of the `guard.json` schema.
const SCHEMA: u32 = 1;
const NAME: &str = "guard.json";

/// The guard's record of a run. It is written by rename, so an existing file is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardRecord {
    /// 1.
    pub schema_version: u32,
    /// The words of the command, quoted for bash where needed.
    pub command: Vec<String>,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// Wall-clock seconds from the start of the command to its end.
    pub wall_s: f64,
    /// The deadline, in seconds from the start.
    pub limit_s: f64,
    /// The cause of the command's end.
    pub ended_by: EndedBy,
    /// How the command ended; `None` when it could not be ended, or the system kept no status.
    pub exit: Option<Exit>,
    /// Processor seconds in user mode, all processes of the run that were waited for.
    pub user_s: f64,
    /// Processor seconds in the kernel, likewise.
    pub system_s: f64,
    /// Largest resident set of one process of the run.
    pub max_rss_bytes: u64,
    /// Processes that the system ended for lack of memory during the run, on the whole machine.
    pub oom_kills: u64,
    /// Processes still running at the command's end, which the guard ended.
    pub stragglers: usize,
    /// Processes that could not be ended: hung in the kernel, or of another user; normally empty.
    pub survivors: Vec<i32>,
    /// Why `stdout.txt` or `stderr.txt` is incomplete, or what the run wrote may not be on the disk.
    pub output_error: Option<String>,
}

/// The cause of a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// It ended by itself, or something other than the guard ended it.
    Itself,
    /// The guard, at the deadline.
    Deadline,
    /// The guard, because the tuner was gone.
    ParentGone,
    /// The guard, after SIGTERM, SIGINT, SIGHUP or SIGQUIT.
    Asked,
}

/// Why there is no guard record.
#[derive(Debug, thiserror::Error)]
pub enum GuardRecordError {
    /// It cannot be read; most often it does not exist because the guard was killed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is no guard record of this version.
    #[error("{}: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and reason.
        source: serde_json::Error,
    },
    /// It was written by another version of the program.
    #[error("{}: schema version {found}, this program reads {SCHEMA}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
}

impl GuardRecord {
    pub(super) const SCHEMA: u32 = SCHEMA;

    /// The file's path in the folder of a trial.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Reads the record of the trial in `folder`.
    ///
    /// # Errors
    /// When the file is missing, damaged or of another version.
    pub fn read(folder: &Path) -> Result<Self, GuardRecordError> {
        let path = Self::path(folder);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(source) => return Err(GuardRecordError::Read { path, source }),
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(record) if record.schema_version == SCHEMA => Ok(record),
            Ok(record) => Err(GuardRecordError::Version { path, found: record.schema_version }),
            Err(source) => Err(GuardRecordError::Parse { path, source }),
        }
    }

    /// Writes the record, whole or not at all.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        write_atomically(&Self::path(folder), &serde_json::to_vec_pretty(self)?)
    }
}

#[cfg(test)]
impl GuardRecord {
    /// That of a run which ended so after a second.
    pub(super) fn of_end(ended_by: EndedBy, exit: Option<Exit>) -> Self {
        Self {
            schema_version: SCHEMA,
            command: vec!["hpl-tune".to_owned()],
            started_utc: String::new(),
            wall_s: 1.0,
            limit_s: 2.0,
            ended_by,
            exit,
            user_s: 1.0,
            system_s: 0.0,
            max_rss_bytes: 1,
            oom_kills: 0,
            stragglers: 0,
            survivors: Vec::new(),
            output_error: None,
        }
    }
}
