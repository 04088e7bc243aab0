//! Our `xhpl` on the processes of an MPI job: short jobs that say where its ranks run and what they reach.

pub(crate) mod bindings;
pub(crate) mod cluster;
pub(crate) mod lost;
pub(crate) mod nodes;
pub(crate) mod survey;

use std::ffi::OsString;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use hpl::program::files::nameless_file;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::launcher::MpiJob;
use objectives::real::{ChildOutput, guard, quoted, slurm, telling_lines};
use space::Candidate;

use crate::exit::bad_input;

/// How often the job is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Lines that are printed of a job that failed.
const LINES: usize = 12;
/// Time that a launcher has to end its processes.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Time in which one that was killed ends.
const KILLED: Duration = Duration::from_secs(5);

/// Of a job with more output than all its ranks can have to say.
const TOO_LONG: &str = "it prints without end; look at what the launcher prints beside the output of its program";

/// The command line of a job that has the ranks of `candidate` in `folder`, with more `flags` of its program, and what it prints.
/// It ends with this process.
///
/// # Errors
/// A job that cannot be started, fails, or does not end within `limit`, with the last lines of its standard error; `way_out` of
/// the last.
pub(crate) fn said(
    job: &MpiJob,
    candidate: &Candidate,
    flags: &[&str],
    folder: &Path,
    limit: Duration,
    way_out: &str,
) -> anyhow::Result<(String, Vec<u8>)> {
    let mut words = job.command(candidate);
    words.extend(flags.iter().map(OsString::from));
    // A launcher that was killed leaves its step.
    let cancel = |begun| slurm::cancel_steps(&job.program, &job.nodes, Some(begun));
    answer(&words, &variables(job), folder, limit, way_out, cancel)
}

/// Variables for the environment of its launcher, as of a run; a run on the same nodes may be under way and has the folder of that.
fn variables(job: &MpiJob) -> Vec<(String, String)> {
    job.environment().map(|(name, folder)| (name, format!("{folder}-p"))).into_iter().collect()
}

/// As [`said`], of the job that `words` start with more variables in its environment; `cancel` ends what is left of one that failed, and was
/// started since the moment that it is given: the session itself and runs may be steps of the same name.
///
/// # Errors
/// As of [`said`].
pub(crate) fn answer(
    words: &[OsString],
    variables: &[(String, String)],
    folder: &Path,
    limit: Duration,
    way_out: &str,
    cancel: impl FnOnce(Instant),
) -> anyhow::Result<(String, Vec<u8>)> {
    let line = quoted(words).join(" ");
    let mut stderr = nameless_file(&std::env::temp_dir(), folder).context("cannot make a temporary file")?;
    let kept = stderr.try_clone().context("cannot share a temporary file")?;
    let mut command = guard::tied(words);
    command.envs(variables.iter().cloned());
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(kept);
    let begun = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {line}"))?;
    let said = within(child, limit, way_out).map_err(|reason| {
        cancel(begun);
        let mut text = Vec::new();
        let _ = stderr.rewind().and_then(|()| stderr.read_to_end(&mut text));
        let lines = telling_lines(&text, LINES).iter().map(|line| format!("\n  {line}")).collect::<String>();
        bad_input(format!("{line}: {reason}{lines}"))
    })?;
    Ok((line, said))
}

/// What a job prints until it ends, or why that is no answer; `way_out` of one that is not done within `limit`.
fn within(mut child: Child, limit: Duration, way_out: &str) -> Result<Vec<u8>, String> {
    let mut output = ChildOutput::of(&mut child);
    let started = Instant::now();
    let mut asked = None;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        match asked {
            // A launcher that is asked ends its processes; those of a killed one would stay.
            None if started.elapsed() > limit || output.is_too_long() => {
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
                asked = Some(Instant::now());
            }
            // It hangs in the kernel, and is left behind.
            Some(asked) if asked.elapsed() > LAST_WORDS + KILLED => break None,
            Some(asked) if asked.elapsed() > LAST_WORDS => {
                child.kill().map_err(|error| error.to_string())?;
                output.wait(LOOK);
            }
            _ => {
                output.wait(LOOK);
            }
        }
    };
    if output.is_too_long() {
        return Err(TOO_LONG.to_owned());
    }
    let Some(status) = status.filter(|_| asked.is_none()) else {
        return Err(format!("no answer within {} s; {way_out}", limit.as_secs_f64()));
    };
    if !status.success() {
        return Err(status.to_string());
    }
    output.rest().ok_or_else(|| TOO_LONG.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A process that a launcher left in the background kept the answer of its job back.
    #[test]
    fn a_job_has_answered_when_its_launcher_has_ended() {
        let said = |script: &str| {
            let mut shell = Command::new("sh");
            within(shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap(), LAST_WORDS, "wait")
        };
        let begun = Instant::now();
        assert_eq!(said("sleep 11 2>&- & echo here"), Ok(b"here\n".to_vec()));
        assert!(begun.elapsed() < LAST_WORDS, "{:?}", begun.elapsed());
        assert_eq!(said("head -c 300000 /dev/zero").map(|said| said.len()), Ok(300_000));
        assert_eq!(said("exec cat /dev/zero"), Err(TOO_LONG.to_owned()));
        assert_eq!(said("echo here; exit 3"), Err("exit status: 3".to_owned()));
    }

    /// Short jobs on single nodes at the same time removed the folder of Open MPI's sessions from under each other.
    #[test]
    fn short_jobs_of_open_mpi_have_folders_of_their_own() {
        let on = |launcher: &str, nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|&node| node.to_owned()).collect();
            MpiJob::new(launcher, "xhpl".into()).on(&nodes)
        };
        let of = |nodes: &[&str]| variables(&on("mpirun -np {np}", nodes)).remove(0);
        let (name, folder) = of(&["n1"]);
        assert_eq!(name, "OMPI_MCA_orte_tmpdir_base");
        assert_ne!(folder, of(&["n2"]).1);
        assert_ne!(Some((name, folder)), on("mpirun -np {np}", &["n1"]).environment(), "that of a run");
        assert!(variables(&on("mpirun", &[])).is_empty() && variables(&on("srun", &["n1"])).is_empty());
    }
}
