//! Runs that failed as the disk was full, or the quota of its user: that says nothing of their candidates.

use std::io;
use std::path::Path;

use nix::errno::Errno;

use super::guard::STDERR;
use super::record::{EndedBy, GuardRecord};
use super::verdict::tail;
use crate::{Exit, Failure};

/// Exit code of our programs where a result could not be written.
const NOT_WRITTEN: i32 = 5;

/// The error of the system for which the run in `folder` failed with `failure`, where that is a full disk or quota: its folder could not be
/// prepared, its guard could not write, or the run itself not its result. `None` for all other failures.
pub fn lack_of_room(folder: &Path, failure: &Failure) -> Option<io::Error> {
    let of_start_or_guard = match failure {
        Failure::Launch { why: said, .. } | Failure::Output { problem: said, .. } => told(said),
        _ => None,
    };
    of_start_or_guard.or_else(|| {
        let record = GuardRecord::read(folder).ok()?;
        let of_output = record.output_error.as_deref().and_then(told);
        of_output.or_else(|| if ended_unwritten(&record) { told(&printed(folder)) } else { None })
    })
}

/// Whether a run ended as one of our engine does that could not write its result. Other engines end so for reasons of their own, but tell
/// errors of the system in other words.
fn ended_unwritten(record: &GuardRecord) -> bool {
    record.ended_by == EndedBy::Itself && record.exit == Some(Exit::Code(NOT_WRITTEN))
}

/// The end of what the run printed on stderr.
fn printed(folder: &Path) -> String {
    String::from_utf8_lossy(&tail(&folder.join(STDERR))).into_owned()
}

/// The error of a full disk or quota that `text` tells, as the standard library words it.
fn told(text: &str) -> Option<io::Error> {
    let full = [Errno::ENOSPC, Errno::EDQUOT].map(|errno| errno as i32);
    let code = full.into_iter().find(|code| text.contains(&format!("(os error {code})")))?;
    Some(io::Error::from_raw_os_error(code))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::{self, QuotaExceeded, StorageFull};

    use super::*;

    /// What a run lacked that ended by itself with this code, after it had printed so much on stderr.
    fn of_run(code: i32, said: &str) -> Option<ErrorKind> {
        let folder = tempfile::tempdir().unwrap();
        let exit = Exit::Code(code);
        GuardRecord::of_end(EndedBy::Itself, Some(exit)).write(folder.path()).unwrap();
        std::fs::write(folder.path().join(STDERR), said).unwrap();
        let failure = Failure::Crashed { exit, telling_lines: Vec::new() };
        lack_of_room(folder.path(), &failure).map(|error| error.kind())
    }

    /// The run had passed, and was recorded as a crash of its candidate.
    #[test]
    fn a_result_that_finds_no_room_is_no_crash() {
        let full =
            "hpl-tune: cannot write /t/result.json: No space left on device (os error 28) at path \"/t/.result\"\n";
        assert_eq!(of_run(5, full), Some(StorageFull));
        // A launcher says more behind it.
        let quota = "xhpl: cannot write to --result /t/result.json: Disk quota exceeded (os error 122)\nexit code 5\n";
        assert_eq!(of_run(5, quota), Some(QuotaExceeded));
        assert_eq!(of_run(5, "hpl-tune: cannot write /t/result.json: Input/output error (os error 5)\n"), None);
        assert_eq!(of_run(1, full), None);
        assert_eq!(of_run(5, "the grid 1×5 is too long; No space left on device\n"), None);
    }

    #[test]
    fn what_the_guard_could_not_write_counts() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |failure: &Failure| lack_of_room(folder.path(), failure).map(|error| error.kind());
        let (file, problem) =
            ("guard.json".to_owned(), "cannot write: No space left on device (os error 28)".to_owned());
        assert_eq!(kind(&Failure::Output { file, problem, telling_lines: Vec::new() }), Some(StorageFull));
        let (what, why) = ("/t/HPL.dat".to_owned(), "Disk quota exceeded (os error 122)".to_owned());
        assert_eq!(kind(&Failure::Launch { what, why }), Some(QuotaExceeded));
        let crash = Failure::Crashed { exit: Exit::Code(5), telling_lines: Vec::new() };
        assert_eq!(kind(&crash), None, "its guard has left no record");
        let output_error = Some("No space left on device (os error 28)".to_owned());
        let record = GuardRecord::of_end(EndedBy::Itself, Some(Exit::Code(1)));
        GuardRecord { output_error, ..record }.write(folder.path()).unwrap();
        assert_eq!(kind(&crash), Some(StorageFull));
    }
}
