//! The right to write in a run folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};

use hpl::machine::host::facts;

use super::RunFolder;
use crate::error::RecordError;
use crate::record::plain;

/// The right to write in a run folder, held until dropped. A killed tuner loses it at once.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked holds the open file until it is another program.
        let _ = self.file.unlock();
    }
}

impl RunFolder {
    /// Claim the right to write here.
    ///
    /// # Errors
    /// [`RecordError::Locked`] when another tuner holds it.
    pub fn lock(&self) -> Result<Lock, RecordError> {
        let path = self.lock_file();
        // A link in its place would have another file emptied.
        let mut file = plain::open_with(&path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
            .map_err(RecordError::write(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.locked_by(file)),
            Err(TryLockError::Error(cause)) => return Err(RecordError::Write { path, cause }),
        }
        file.set_len(0).map_err(RecordError::write(&path))?;
        writeln!(file, "{} {}", std::process::id(), facts().hostname).map_err(RecordError::write(&path))?;
        Ok(Lock { file })
    }

    /// Keeps tuners out while this is held, which others may hold, too; `None` where there is nothing to lock, or nothing that this user
    /// may open.
    ///
    /// # Errors
    /// [`RecordError::Locked`] when a tuner works here.
    pub fn lock_shared(&self) -> Result<Option<Lock>, RecordError> {
        let Ok(file) = plain::open(&self.lock_file()) else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Lock { file })),
            Err(TryLockError::WouldBlock) => Err(self.locked_by(file)),
            // A file system without locks cannot show it.
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    fn locked_by(&self, mut lock: File) -> RecordError {
        let mut text = String::new();
        // Only for the message: a lock file without a readable number is still locked.
        let holder = lock.read_to_string(&mut text).ok().and_then(|_| holder(&text));
        RecordError::Locked { path: self.root.clone(), holder }
    }
}

/// `pid 77 on n1`, as a lock file says; `None` where it says nothing of that kind.
fn holder(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let pid: u32 = words.next()?.parse().ok()?;
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let host = words.next().filter(is_name).map_or(String::new(), |host| format!(" on {host}"));
    Some(format!("pid {pid}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_tuner_is_refused_with_the_pid_of_the_first() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, lock) = RunFolder::create(&parent.path().join("runs/a")).unwrap();
        let message = folder.lock().unwrap_err().to_string();
        assert!(message.contains(&format!("pid {}", std::process::id())), "{message}");
        assert!(message.contains(&folder.root().display().to_string()), "{message}");
        drop(lock);
        folder.lock().unwrap();
    }

    #[test]
    fn a_lock_names_process_and_host_and_nothing_else() {
        let said = ["77 n1\n", "77\n", "77 \u{1b}[31m", "x n1", ""].map(holder);
        assert_eq!(
            said,
            [Some("pid 77 on n1".to_owned()), Some("pid 77".to_owned()), Some("pid 77".to_owned()), None, None]
        );
    }

    /// As in a folder from an archive of somebody else, which belongs to who has unpacked it.
    #[test]
    fn a_lock_that_is_a_link_leaves_what_it_leads_to_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        drop(lock);
        let other = parent.path().join("thesis.tex");
        std::fs::write(&other, "text").unwrap();
        std::fs::remove_file(folder.lock_file()).unwrap();
        std::os::unix::fs::symlink(&other, folder.lock_file()).unwrap();
        let error = folder.lock().unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "text");
    }
}
