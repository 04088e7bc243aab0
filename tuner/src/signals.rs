//! Signals: what goes away when one ends this program, and which ones whoever starts it has told the system to ignore, as `nohup` does.

use std::path::PathBuf;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit;

/// Removes the temporary `folder` where a signal ends this process from now on; not for one that ignores it.
///
/// # Errors
/// When the system refuses the handlers, or a thread to wait for them.
pub(crate) fn removed_at_a_signal(folder: PathBuf) -> std::io::Result<()> {
    let heard = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(heard)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            // What cannot be removed stays, as on NFS.
            let _ = std::fs::remove_dir_all(&folder);
            signal_hook::low_level::exit(exit::INTERRUPTED.into());
        }
    })?;
    Ok(())
}

/// Whether this process ignores `signal`; not where the system does not say.
pub(crate) fn is_ignored(signal: i32) -> bool {
    is_ignored_by(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

/// Whether a process with this `status`, see proc_pid_status(5), ignores `signal`.
fn is_ignored_by(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1u64 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use signal_hook::consts::SIGCHLD;

    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000011000\nSigCgt:\t0\n";
        assert!(is_ignored_by(status, SIGCHLD) && !is_ignored_by(status, SIGHUP));
        assert!(!is_ignored_by("SigBlk:\t0000000000010000\nSigIgn:\t0000000000001000\n", SIGCHLD));
        assert!(!is_ignored_by("", SIGCHLD) && !is_ignored_by("SigIgn:\tx", SIGCHLD));
        let of = |flag: &str| {
            let output = Command::new("env").args([flag, "cat", "/proc/self/status"]).output().unwrap();
            let status = String::from_utf8_lossy(&output.stdout).into_owned();
            [SIGCHLD, SIGHUP, SIGQUIT].map(|signal| is_ignored_by(&status, signal))
        };
        assert!(of("--ignore-signal=CHLD")[0]);
        assert_eq!(of("--ignore-signal=HUP,QUIT")[1..], [true, true]);
        assert_eq!(of("--default-signal=HUP,QUIT")[1..], [false, false]);
    }
}
