//! Finds and ends processes: by parent, or by the environment variable that marks a trial.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The environment variable of every process of a run; its value is the absolute path of the trial's folder.
pub const TRIAL_VARIABLE: &str = "HPL_TUNE_TRIAL";

/// Time between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// The same for a launcher, which has to end its ranks on other hosts in this time.
pub(super) const LAUNCHERS_GRACE: Duration = Duration::from_secs(10);
/// Maximum wait after SIGKILL; a process that is still alive then hangs in the kernel.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(9);
const PAUSE: Duration = Duration::from_millis(5);

/// Ends a set of processes until `gone` is true: SIGTERM to each, after `grace` SIGKILL, repeated because the set may
/// grow while it is read. `gone` must be true three times in a row: during an `exec` a process shows no
/// environment for a moment. Stops [`KILL_WAIT`] after that. Returns the processes that are left.
pub(super) fn end_all(grace: Duration, find: impl Fn() -> Vec<Pid>, mut gone: impl FnMut() -> bool) -> Vec<Pid> {
    let begun = Instant::now();
    let mut asked = HashSet::new();
    let mut unseen = 0;
    while unseen < 3 {
        unseen = if gone() { unseen + 1 } else { 0 };
        if begun.elapsed() > grace + KILL_WAIT {
            return find();
        }
        for pid in find() {
            // A process that has already ended is no error.
            if begun.elapsed() >= grace {
                let _ = kill(pid, Signal::SIGKILL);
            } else if asked.insert(pid) {
                let _ = kill(pid, Signal::SIGTERM);
            }
        }
        sleep(PAUSE);
    }
    Vec::new()
}

/// All descendants of the calling process by parent id, without zombies. If the calling process is a
/// subreaper, these include processes in other sessions and those whose parent has ended.
pub(super) fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for pid in all() {
        if let Some((parent, zombie)) = parent_of(pid) {
            children.entry(parent).or_default().push((pid, zombie));
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![Pid::this().as_raw()];
    while let Some(parent) = queue.pop() {
        for (pid, zombie) in children.remove(&parent).unwrap_or_default() {
            queue.push(pid);
            if !zombie {
                found.push(Pid::from_raw(pid));
            }
        }
    }
    found
}

/// All processes whose environment marks them as belonging to the trial in `folder`, except the caller.
pub(super) fn marked(folder: &Path) -> Vec<Pid> {
    let marker = [TRIAL_VARIABLE.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    let belongs = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marker)
    };
    all().filter(|pid| *pid != Pid::this().as_raw()).filter(belongs).map(Pid::from_raw).collect()
}

fn all() -> impl Iterator<Item = i32> {
    let number = |name: &OsStr| name.to_str().and_then(|name| name.parse().ok());
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| number(&entry.file_name()))
}

/// Parent id of a process, with whether it is a zombie; `None` when it has ended.
fn parent_of(pid: i32) -> Option<(i32, bool)> {
    parent_in(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The same from its `stat`, of which proc_pid_stat(5) names the fields.
fn parent_in(stat: &[u8]) -> Option<(i32, bool)> {
    // The second field is the program's name in brackets, which may hold anything.
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    // Field 20. A process shows the state of its first thread, which may have ended before the others.
    let threads: usize = fields.nth(15).and_then(|threads| threads.parse().ok()).unwrap_or(1);
    Some((parent, ["Z", "X"].contains(&state) && threads <= 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One whose first thread had ended was taken for a zombie, and its other threads went on after the run.
    #[test]
    fn a_process_is_a_zombie_once_none_of_its_threads_runs() {
        let of = |state: &str, threads: usize| {
            let stat = format!("7 (a) Z 1 (b) {state} 42 7 7 0 -1 4 0 0 0 0 5 5 0 0 20 0 {threads} 0 100 0 0\n");
            parent_in(stat.as_bytes())
        };
        assert_eq!([of("S", 1), of("R", 9)], [Some((42, false)); 2]);
        assert_eq!([of("Z", 1), of("X", 0)], [Some((42, true)); 2]);
        assert_eq!(of("Z", 3), Some((42, false)));
        assert_eq!([parent_in(b"7 (a) Z 42"), parent_in(b"7 (a)"), parent_in(b"")], [Some((42, true)), None, None]);
    }

    #[test]
    fn this_process_is_the_child_of_its_parent() {
        assert_eq!(parent_of(Pid::this().as_raw()), Some((Pid::parent().as_raw(), false)));
    }
}
