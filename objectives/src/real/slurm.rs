//! The Slurm job of the runs: calls of its commands, and cancelling of steps.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a Slurm command.
const ANSWERS: Duration = Duration::from_secs(10);

/// Names of the steps by which Open MPI's mpirun starts its helpers on the nodes.
const HELPERS: [&str; 2] = ["orted", "prted"];

/// The short output of a Slurm command; `None` if the command does not exist, fails or exceeds the time limit.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let started = Instant::now();
    // The output is short: it fits into the pipe.
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > ANSWERS {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// Cancels the steps of this process's job that run `program`, whose srun or mpirun is gone; does nothing outside of a job.
pub fn cancel_steps(program: &Path) {
    let Ok(job) = std::env::var("SLURM_JOB_ID") else { return };
    let listed = output_of("squeue", &["--steps", "--noheader", "--jobs", &job, "--format", "%i %j"]);
    let left: Vec<String> = steps(&listed.unwrap_or_default(), program);
    if !left.is_empty() {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        let _ = output_of("scancel", &[&["--signal=KILL"][..], &left].concat());
    }
}

/// The steps in `listed` (numbers and names) that run `program`.
fn steps(listed: &str, program: &Path) -> Vec<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let of_run = |step: &&str| HELPERS.contains(step) || *step == name;
    let steps = listed.lines().filter_map(|line| line.trim().split_once(' '));
    steps.filter(|(_, step)| of_run(&step.trim())).map(|(number, _)| number.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_program_and_helpers_of_mpirun_are_those_of_a_run() {
        let listed = "17.batch batch\n17.3 xhpl\n 17.4 orted\n17.5 other\n17.extern extern\n";
        assert_eq!(steps(listed, Path::new("/opt/xhpl")), ["17.3", "17.4"]);
        assert!(steps("", Path::new("xhpl")).is_empty());
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_has_no_answer() {
        assert_eq!(output_of("echo", &["2", "3"]).as_deref(), Some("2 3\n"));
        assert_eq!(output_of("false", &[]), None);
        assert_eq!(output_of("no-such-command", &[]), None);
    }
}
