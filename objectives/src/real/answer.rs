//! Commands that answer soon: those of Slurm, and children that look at what may crash or hang.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a command.
const ANSWERS: Duration = Duration::from_secs(10);

/// The short output of a command; `None` if the command does not exist, fails or takes more than ten seconds.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    answer(Command::new(program).args(arguments))
}

/// The same of a command with an environment of its own.
pub fn answer(command: &mut Command) -> Option<String> {
    answer_within(command, ANSWERS)
}

/// The same of a command that may take so long.
pub fn answer_within(command: &mut Command, limit: Duration) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let started = Instant::now();
    // The output is short: it fits into the pipe.
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}
