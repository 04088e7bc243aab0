//! What can go wrong between the tuner and its run folder.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An error of the run folder; every message names the file and the way out.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A record could not be written. What was written before is intact.
    #[error("cannot write {}: {cause}{}", path.display(), way_out(cause))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A record could not be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file is there, but is not what it should be.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first thing wrong with it.
        reason: String,
    },
    /// The file was written by a newer program.
    #[error("{} has schema {found}, this program knows up to {known}; use the hpl-tune that wrote it, or a newer one",
        path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Schema version found.
        found: u64,
        /// Newest version known here.
        known: u32,
    },
    /// The file was written by an older program, and says what other rules made of its record.
    #[error("{} has schema {found}, this program checks {known}; use the hpl-tune that wrote it, or make it again from its run folder",
        path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Schema version found.
        found: u64,
        /// The version known here.
        known: u32,
    },
    /// Another tuner works in this folder.
    #[error("another hpl-tune{} works in {}; wait for it to end, or use another folder",
        holder.as_ref().map(|holder| format!(" ({holder})")).unwrap_or_default(), path.display())]
    Locked {
        /// The run folder.
        path: PathBuf,
        /// Its process id and host, where the lock file says them.
        holder: Option<String>,
    },
    /// A new session would land in a folder that is in use.
    #[error("{} exists and is not empty; continue with --resume {}, or choose another folder with --out",
        path.display(), objectives::real::quoted([path]).join(""))]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder's session was ended before it began.
    #[error("{}: the session was ended before it began; start it again with the command that started it", path.display())]
    NeverBegan {
        /// The folder.
        path: PathBuf,
    },
    /// The folder, or what it holds, is another user's.
    #[error("{} belongs to user {owner}, you are user {you}: the commands in it would run with your rights; copy the run folder, \
        look into engine.toml and session.toml, and use the copy", path.display())]
    NotYours {
        /// The folder or file.
        path: PathBuf,
        /// Number of the user that it belongs to.
        owner: u32,
        /// Number of this user.
        you: u32,
    },
    /// Others may write where only this user should.
    #[error("{} is writable by others (mode {mode:03o}): the commands in it would run with your rights; look into engine.toml and \
        session.toml, then: chmod -R go-w on the run folder", path.display())]
    Open {
        /// The folder or file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Another user's folder, which is for that user alone.
    #[error("{}: no permission to read it; its owner lets a group read by --shared-folder, or by chmod -R g+rX", path.display())]
    Private {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no session.
    #[error("{} is not a run folder: it has no session.toml", path.display())]
    NoSession {
        /// The folder.
        path: PathBuf,
    },
}

impl RecordError {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |cause| Self::Write { path, cause }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |cause| Self::Read { path, cause }
    }

    /// Whether a full disk is the cause.
    pub(crate) fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Write { cause, .. } if full.contains(&cause.kind()))
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

fn way_out(cause: &io::Error) -> &'static str {
    match cause.kind() {
        // Not every command has --out, and only a session --resume.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space; a session goes on with --resume"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; make it writable, or choose another place"
        }
        _ => "",
    }
}

/// The version of a line or a file, read before the rest: what is newer is refused for its version, not for a key unknown here.
#[derive(Deserialize)]
pub(crate) struct Version {
    pub(crate) schema_version: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `run --result` and `predict --plot` were told to use `--out`, and a calibration on a full disk to continue.
    #[test]
    fn the_way_out_of_a_file_that_cannot_be_written_names_no_flag_that_the_command_lacks() {
        let said = |kind: io::ErrorKind| RecordError::write(Path::new("/x"))(io::Error::from(kind)).to_string();
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert!(said(kind).ends_with("; make it writable, or choose another place"), "{}", said(kind));
        }
        let full = said(io::ErrorKind::StorageFull);
        assert!(full.ends_with("; free some space; a session goes on with --resume"), "{full}");
    }
}
