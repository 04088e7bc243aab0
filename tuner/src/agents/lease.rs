//! A file that a living session renews, so that processes on other nodes know of its end.
//!
//! Clocks of nodes may differ, and a file server may show times late: what counts is whether the content changes, by the clock of the reader.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two renewals.
const RENEWED: Duration = Duration::from_secs(2);
/// Time between two looks.
const LOOK: Duration = Duration::from_secs(3);
/// Without a renewal for so long the session is gone.
const LASTS: Duration = Duration::from_secs(10);

/// What stands around the number in the name of a lease.
const NAME: (&str, &str) = ("power-nodes-", ".lease");

/// A lease that this process renews; it ends when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    stop: Option<Sender<()>>,
    renewer: Option<JoinHandle<()>>,
}

impl Lease {
    /// A new lease in `folder`. All others there end, as one session uses a folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn new(folder: &Path) -> std::io::Result<Self> {
        for entry in fs::read_dir(folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(NAME.0) && name.ends_with(NAME.1) {
                fs::remove_file(entry.path())?;
            }
        }
        // A name that no earlier lease had.
        let number = jiff::Timestamp::now().as_microsecond();
        let path = folder.join(format!("{}{number}{}", NAME.0, NAME.1));
        fs::write(&path, "0\n")?;
        let (stop, stopped) = channel();
        let renewed = path.clone();
        let renewer = std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            let mut count = 0_u64;
            while stopped.recv_timeout(RENEWED) == Err(RecvTimeoutError::Timeout) {
                count += 1;
                // A full disk or a missing file server: the next renewal may succeed in time.
                let _ = fs::write(&renewed, format!("{count}\n"));
            }
        })?;
        Ok(Self { path, stop: Some(stop), renewer: Some(renewer) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(renewer) = self.renewer.take() {
            let _ = renewer.join();
        }
        // Without the file its readers end at their next look.
        let _ = fs::remove_file(&self.path);
    }
}

/// Somebody else's lease.
#[derive(Debug)]
pub(super) struct SeenLease {
    path: PathBuf,
    content: Vec<u8>,
    looked: Option<Instant>,
    renewed: Instant,
}

impl SeenLease {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, content: Vec::new(), looked: None, renewed: Instant::now() }
    }

    /// Whether its session lives, as far as is known; looks at the file now and then.
    pub(super) fn holds(&mut self) -> bool {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return true;
        }
        match fs::read(&self.path) {
            Ok(content) if content != self.content => {
                self.content = content;
                self.renewed = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return false,
            // A file server that does not answer for a moment.
            Ok(_) | Err(_) => {}
        }
        // A look may have taken a while.
        self.looked = Some(Instant::now());
        self.renewed.elapsed() < LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_lease_holds_as_long_as_it_is_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::new(folder.path()).unwrap();
        let mut seen = SeenLease::new(lease.path().to_owned());
        assert!(seen.holds());
        let first = seen.content.clone();
        std::thread::sleep(RENEWED + Duration::from_millis(500));
        seen.looked = None;
        assert!(seen.holds() && seen.content != first, "it was renewed");
        drop(lease);
        assert_eq!(leases(folder.path()), 0);
        assert!(seen.holds(), "not looked at yet");
        seen.looked = None;
        assert!(!seen.holds());
    }

    #[test]
    fn a_lease_that_nobody_renews_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("power-nodes-7.lease");
        fs::write(&path, "5\n").unwrap();
        let mut seen = SeenLease::new(path.clone());
        assert!(seen.holds());
        seen.looked = None;
        assert!(seen.holds());
        (seen.looked, seen.renewed) = (None, seen.renewed.checked_sub(LASTS).unwrap());
        assert!(!seen.holds(), "its session was killed");
        // The next session in the folder ends it for all that still look.
        let _other = Lease::new(folder.path()).unwrap();
        assert!(!path.exists() && leases(folder.path()) == 1);
    }
}
