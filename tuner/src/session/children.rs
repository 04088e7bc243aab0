//! The ends of child processes, which a program that starts this one may have told the system to ignore.
//!
//! Then no status of a child is kept: a calibration that worked, or a command of Slurm, seems to have failed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGCHLD;

/// Lets the system keep how children end, where it was told not to. A refusal leaves that as it is.
pub fn keep_their_ends() {
    if is_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        // Any handler will do.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}

/// Whether a process with this `status`, see proc_pid_status(5), ignores the ends of its children.
fn is_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1u64 << (SIGCHLD - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert!(is_ignored("Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000011000\nSigCgt:\t0\n"));
        assert!(!is_ignored("SigBlk:\t0000000000010000\nSigIgn:\t0000000000001000\n"));
        assert!(!is_ignored("") && !is_ignored("SigIgn:\tx"));
        let status = Command::new("env").args(["--ignore-signal=CHLD", "cat", "/proc/self/status"]).output().unwrap();
        assert!(is_ignored(&String::from_utf8_lossy(&status.stdout)));
    }
}
