//! `trials.parquet`, made of the journal.
//!
//! A table of all trials takes some thirty times the memory of what the search keeps of them, and the allocator keeps what it was given.
//! So a child makes it, the hidden verb `hpl-tune __table FOLDER PARENT`: it reads journal and session of the run folder, replaces
//! the file in one step, and ends. The journal stays the truth: a child that fails or is killed leaves the table as it was.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::error::RecordError;
use crate::record::folder::RunFolder;
use crate::record::session::{RowsByPlace, Session};
use crate::record::{Row, journal, parquet};

/// The hidden verb, as the program must dispatch it to [`main`].
pub const VERB: &str = "__table";

/// Who makes the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableWriter {
    /// This process.
    Here,
    /// A child.
    Child {
        /// The path of `hpl-tune`.
        program: PathBuf,
    },
}

impl TableWriter {
    /// A child of the running program itself, even if its file was replaced.
    pub fn child() -> Self {
        Self::Child { program: PathBuf::from("/proc/self/exe") }
    }

    /// Writes the trials that the journal of `folder` has into its `trials.parquet`.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written; what was there stays then.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RecordError> {
        match self {
            Self::Here => write(folder),
            Self::Child { program } => by_child(program, folder),
        }
    }
}

/// All trials of the journal; those of some nodes or of others in their order among the rest.
fn write(folder: &RunFolder) -> Result<(), RecordError> {
    let session = Session::load(&folder.session_toml())?;
    let RowsByPlace { all, some, elsewhere } = session.split(journal::read(&folder.journal())?.rows);
    let is_of_all = some.is_empty() && elsewhere.is_empty();
    let mut rows: Vec<Row> = all.into_iter().chain(some).chain(elsewhere).collect();
    if !is_of_all {
        rows.sort_by_key(|row| row.trial);
    }
    parquet::write(&folder.trials(), &rows)
}

/// By a child in a process group of its own: a signal to that of the session is none to it.
fn by_child(program: &Path, folder: &RunFolder) -> Result<(), RecordError> {
    let path = folder.trials();
    let failed = |cause: io::Error| RecordError::Write { path: path.clone(), cause };
    let done = Command::new(program)
        .arg(VERB)
        .arg(folder.root())
        .arg(std::process::id().to_string())
        .env_clear()
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(failed(io::Error::other(format!("the process that makes it: {}, {}", done.status, said.trim()))))
}

/// Runs the verb with the arguments after it: the run folder, and the process that waits for the table. It ends with that.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let [folder, parent] = &arguments[..] else { return ExitCode::from(2) };
    // A resumed session may write the table as well.
    let bound = prctl::set_pdeathsig(Signal::SIGKILL);
    if bound.is_err() || parent.to_str() != Some(&getppid().to_string()) {
        return ExitCode::FAILURE;
    }
    match RunFolder::open(Path::new(folder)).and_then(|folder| write(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "{problem}");
            ExitCode::FAILURE
        }
    }
}
