//! The ends of child processes, which a program that starts this one may have told the system to ignore.
//!
//! Then no status of a child is kept: a calibration that worked, or a command of Slurm, seems to have failed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGCHLD;

use crate::signals::is_ignored;

/// Lets the system keep how children end, where it was told not to. A refusal leaves that as it is.
pub fn keep_their_ends() {
    if is_ignored(SIGCHLD) {
        // Any handler will do.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}
