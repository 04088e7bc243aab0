//! `hpl-tune __restore`: the process that puts the settings of the node back when its session is gone.
//!
//! Its standard input is a pipe whose other end only the session has: the kernel closes it at any end of the session, `kill -9`
//! included. It has a process group of its own and blocks the signals by which a terminal or a batch system ends a job, so that it lives
//! longer than the session.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use std::os::unix::process::CommandExt;

use nix::sys::signal::{SigSet, Signal};

use super::found::FoundSettings;

/// The hidden verb, as the program must dispatch it to [`main`].
pub const VERB: &str = "__restore";

/// Starts it for the file at `record`, whose controls are below `root`.
///
/// # Errors
/// No process.
pub(super) fn start(record: &Path, root: &Path) -> io::Result<Child> {
    // The running program itself, even if its file was replaced.
    Command::new("/proc/self/exe")
        .arg(VERB)
        .args([record, root])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Runs the verb with the arguments after it: the record's file and the root of the controls. Must be called while the program has one
/// thread.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let [record, root] = &arguments[..] else { return ExitCode::from(2) };
    let mut set = SigSet::empty();
    set.extend([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT]);
    // Unblocked, they would end it earlier: the file that it works by stays then.
    let _ = set.thread_block();
    let mut nothing = Vec::new();
    // Whatever happens to the pipe, the session is gone.
    let _ = io::stdin().read_to_end(&mut nothing);
    match FoundSettings::restore(Path::new(record), Path::new(root)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "hpl-tune: settings of the node: {problem}");
            ExitCode::FAILURE
        }
    }
}
