//! Whether a session is at work in a run folder, judged from outside and without its lock.
//!
//! On the machine of the session the kernel's table of locks says it, or the process whose number the lock file holds. The table is
//! empty in some sandboxes, and a session on another machine is in neither; then what is left are the files: a session at work saves
//! its clock every five seconds while a run is under way, and its report when it ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::record::plain::{self, TEXT_BYTES};

/// Seconds without a change after which files are no sign of life any more.
const FRESH_S: f64 = 20.0;

/// What is known of a session's process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// It is there.
    AtWork,
    /// It has ended, in whatever way.
    Over,
    /// Nothing changed for so many seconds, and there is no other way to know.
    Silent {
        /// Seconds since the last change.
        since_s: f64,
    },
}

/// What says whether a session is at work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Whether the kernel knows a lock on the lock file; `None` where its table is empty.
    pub held: Option<bool>,
    /// Whether there is a process with the number in the lock file; `None` for a session of another machine.
    pub process: Option<bool>,
    /// Whether the report is the newest file: sessions write it at their end.
    pub reported: bool,
    /// Seconds since anything changed in the folder.
    pub quiet_s: f64,
}

impl Evidence {
    /// What it comes to.
    pub fn judge(self) -> Work {
        match self {
            Self { held: Some(true), .. } => Work::AtWork,
            Self { reported: true, .. } => Work::Over,
            // Before the number of its process is believed, which is another one inside of a container.
            Self { quiet_s, .. } if quiet_s < FRESH_S => Work::AtWork,
            // A process of that number that could hold the lock and does not is another one.
            Self { process: Some(true), held: None, .. } => Work::AtWork,
            Self { process: Some(_), .. } => Work::Over,
            Self { process: None, quiet_s, .. } => Work::Silent { since_s: quiet_s },
        }
    }
}

/// Whether the kernel's table of locks, `/proc/locks`, has one to write on the file `lock`; `None` where the table is empty, or there is
/// no such file.
pub fn is_held(lock: &Path, table: &str) -> Option<bool> {
    let about = fs::metadata(lock).ok()?;
    let holder = process(lock);
    (!table.trim().is_empty()).then(|| table.lines().any(|line| holds(line, (about.dev(), about.ino()), holder)))
}

/// Whether there is a process with the number in the file `lock` that has not ended, and it is called as this program.
pub fn is_alive(lock: &Path) -> bool {
    let Some(process) = process(lock) else { return false };
    let of = |process: &str, file: &str| fs::read(format!("/proc/{process}/{file}")).ok();
    let process = process.to_string();
    let name = of(&process, "comm");
    let runs = of(&process, "stat").is_some_and(|stat| !has_ended(&String::from_utf8_lossy(&stat)));
    runs && name.is_some() && name == of("self", "comm")
}

/// Whether a process has ended of which this is the line in `/proc/PID/stat`, `1685 (hpl-tune) Z 1 …`: its number and name stay until its
/// parent asks how it ended. The name may have parentheses, too.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    matches!(state, None | Some("Z" | "X" | "x"))
}

/// The number in the lock file, the first word.
fn process(lock: &Path) -> Option<u32> {
    plain::text(lock, TEXT_BYTES).ok()?.split_whitespace().next()?.parse().ok()
}

/// Whether this line of the table, `1: FLOCK  ADVISORY  WRITE 1685 fe:00:5309333 0 EOF`, is a lock to write on a file of this device and
/// number. Some file systems have two numbers for a device: there the process decides.
fn holds(line: &str, (device, number): (u64, u64), holder: Option<u32>) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, "WRITE", process, file, ..] = words[..] else { return false };
    let Some((on, of)) = file.rsplit_once(':') else { return false };
    let device = format!("{:02x}:{:02x}", nix::sys::stat::major(device), nix::sys::stat::minor(device));
    of.parse() == Ok(number) && (on == device || holder.is_some_and(|holder| process.parse() == Ok(holder)))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::record::folder::RunFolder;

    const QUIET: Evidence = Evidence { held: None, process: None, reported: false, quiet_s: 120.0 };

    #[test]
    fn the_surest_sign_decides() {
        assert_eq!(Evidence { held: Some(true), reported: true, ..QUIET }.judge(), Work::AtWork, "a resumed one");
        assert_eq!(Evidence { reported: true, quiet_s: 0.0, ..QUIET }.judge(), Work::Over);
        assert_eq!(Evidence { quiet_s: 6.0, ..QUIET }.judge(), Work::AtWork, "on another machine");
        assert_eq!(QUIET.judge(), Work::Silent { since_s: 120.0 });
        assert_eq!(Evidence { process: Some(true), ..QUIET }.judge(), Work::AtWork, "it thinks for long");
        assert_eq!(Evidence { process: Some(false), ..QUIET }.judge(), Work::Over, "it was killed");
        let other = Evidence { process: Some(true), held: Some(false), ..QUIET };
        assert_eq!(other.judge(), Work::Over, "its number is that of another process now");
    }

    #[test]
    fn a_lock_is_found_by_its_file() {
        let line = "2: FLOCK  ADVISORY  WRITE 1685 fe:01:5309333 0 EOF";
        let device = nix::sys::stat::makedev(0xfe, 1);
        assert!(holds(line, (device, 5_309_333), None));
        assert!(!holds(line, (device, 5_309_334), Some(1685)), "another file");
        assert!(!holds(line, (device + 1, 5_309_333), None), "another device");
        assert!(holds(line, (device + 1, 5_309_333), Some(1685)), "another number of the device");
        assert!(!holds(&line.replace("WRITE", "READ"), (device, 5_309_333), None), "a reader keeps nobody out");
        assert!(!holds("gibberish", (device, 5_309_333), None));
    }

    #[test]
    fn a_process_has_ended_before_its_parent_asks() {
        assert!(has_ended("1685 (hpl-tune) Z 1 1685 1685 0 -1"));
        assert!(has_ended("1685 (a) R (b) X 1"));
        assert!(!has_ended("1685 (hpl) Z 1) S 1 1685"));
        assert!(!has_ended("1685 (hpl-tune) R 1 1685"));
        assert!(has_ended(""), "it went while it was read");
    }

    #[test]
    fn a_session_that_was_not_waited_for_is_not_at_work() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let mut child = Command::new(std::env::current_exe().unwrap());
        // The name of this program, and an end by itself.
        let mut child = child.arg("--list").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        fs::write(&lock, format!("{} n1\n", child.id())).unwrap();
        let stat = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let start = Instant::now();
        while !has_ended(&stat()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{}", stat());
            std::thread::sleep(Duration::from_millis(5));
        }
        let names = [child.id(), std::process::id()].map(|id| fs::read(format!("/proc/{id}/comm")).unwrap());
        assert_eq!(names[0], names[1], "its name is still there");
        assert!(!is_alive(&lock));
        child.wait().unwrap();
    }

    #[test]
    fn the_lock_of_a_session_is_seen_where_the_kernel_tells() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let path = folder.root().join("lock");
        assert!(is_alive(&path), "it is this process");
        let seen = || is_held(&path, &fs::read_to_string("/proc/locks").unwrap_or_default());
        let while_held = seen();
        drop(lock);
        assert_ne!(while_held, Some(false));
        assert_ne!(seen(), Some(true));
        assert_eq!(is_held(&path, ""), None, "a sandbox without a table");
        assert_eq!(is_held(&folder.root().join("none"), "x"), None);
        fs::write(&path, "4194304000 n1\n").unwrap();
        assert!(!is_alive(&path));
    }
}
