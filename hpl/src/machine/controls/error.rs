//! Why a control cannot be used.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a control cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is none.
    #[error("there is no {}; {way_out}", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
        /// What would bring it.
        way_out: &'static str,
    },
    /// It cannot be read or written.
    #[error("{}: {why}; {way_out}", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
        /// What would open it.
        way_out: String,
    },
    /// It is switched off.
    #[error("{} says that this package obeys no limit; switch it on as root: echo 1 > {}", path.display(), path.display())]
    Disabled {
        /// The file that says so.
        path: PathBuf,
    },
    /// The kernel has made something else of what was written.
    #[error("{}: {asked} was written, it reads {found}: firmware or driver does not let it go there", path.display())]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// What was written.
        asked: u64,
        /// What it reads.
        found: String,
    },
    /// An accelerator.
    #[error("{what}: {why}; {way_out}")]
    Gpu {
        /// Which, or the library of all.
        what: String,
        /// What is wrong.
        why: String,
        /// What would change that.
        way_out: &'static str,
    },
    /// There is no room for a search below what is set.
    #[error("{} is {found} and its least is {least}: nothing below it can be tried", path.display())]
    NoRange {
        /// The file.
        path: PathBuf,
        /// What is set.
        found: u64,
        /// The least that is possible.
        least: u64,
    },
}

impl ControlError {
    pub(super) fn closed(path: &Path, interface: &str, error: &io::Error) -> Self {
        let (why, way_out) = match error.kind() {
            ErrorKind::PermissionDenied => (
                "this user may not write it".to_owned(),
                format!("run as root, or let root open it until the next boot: sudo chmod a+w {}", path.display()),
            ),
            ErrorKind::ReadOnlyFilesystem => {
                ("the file system is read-only".to_owned(), "run outside of the container, as root".to_owned())
            }
            _ => (error.to_string(), format!("see whether {interface} works on this node, as root")),
        };
        Self::Closed { path: path.to_owned(), why, way_out }
    }
}
