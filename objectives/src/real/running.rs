//! A started run: its outcome, its progress, and how to end it.

use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStderr};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::followed::Followed;
use super::guard;
use super::processes::KILL_WAIT;
use super::record::{EndedBy, GuardRecord};
use super::run_spec::RunSpec;
use super::runs::RealRuns;
use super::words::telling_lines;
use crate::progress::ProgressPoint;
use crate::{Exit, Failure, Observation};

/// Time for a guard to end its run after its tuner died; then a resuming tuner ends both.
pub(super) const GUARD_END: Duration = Duration::from_secs(2);

/// Added to a time that is cut to whole milliseconds: one below a millisecond is no wait otherwise, and many runs that are looked at in turn
/// keep a core busy.
const ALMOST_1_MS: Duration = Duration::from_micros(999);

/// A started run. Dropping it ends the run.
#[derive(Debug)]
pub struct Running {
    guard: Child,
    /// Closed at the end of the guard, the only process that has its other end.
    stderr: ChildStderr,
    said: Vec<u8>,
    folder: PathBuf,
    followed: Vec<Followed>,
    ended: bool,
    begun: Instant,
    runs: RealRuns,
    run: RunSpec,
}

impl Running {
    /// The run of `run` in `folder` under `guard`, whose stderr is piped.
    pub(super) fn new(
        mut guard: Child,
        followed: Vec<Followed>,
        folder: PathBuf,
        runs: RealRuns,
        run: RunSpec,
    ) -> Self {
        let stderr = guard.stderr.take().expect("stderr is piped");
        Self { guard, stderr, said: Vec::new(), folder, followed, ended: false, begun: Instant::now(), runs, run }
    }

    /// Waits for the outcome for at most `time`. Returns earlier, without one, when a signal arrives.
    pub fn finish_within(&mut self, time: Duration) -> Option<Result<Observation, Failure>> {
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let timeout = PollTimeout::try_from(left.saturating_add(ALMOST_1_MS)).unwrap_or(PollTimeout::MAX);
            let mut stderr = [PollFd::new(self.stderr.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut stderr, timeout), Ok(1..)) {
                return None;
            }
            let mut buffer = [0; 4096];
            match self.stderr.read(&mut buffer) {
                Ok(0) | Err(_) => return Some(self.conclude()),
                Ok(count) => self.said.extend(&buffer[..count]),
            }
        }
    }

    /// The progress that the run has printed so far; empty if its engine prints none. Reads the output since the last
    /// call.
    pub fn progress(&mut self) -> &[ProgressPoint] {
        let engine = &self.runs.engine;
        let mut traces = self.followed.iter_mut().map(|followed| followed.look(engine));
        traces.find(|trace| !trace.is_empty()).unwrap_or_default()
    }

    /// Tells the guard to end the run, and does not wait for it.
    pub fn ask_to_end(&self) {
        if !self.ended {
            // The guard was not waited for, so its id cannot belong to another process.
            let _ = kill(Pid::from_raw(self.guard.id().cast_signed()), Signal::SIGTERM);
        }
    }

    /// Ends the run with all its processes and returns its outcome: it may have ended at the last moment. Takes a second or so, up to
    /// half a minute where a process hangs in the kernel. `None` where its guard did not answer. [`RealRuns::adopt`] finds the same.
    pub fn cancel(mut self) -> Option<Result<Observation, Failure>> {
        self.end()
    }

    fn conclude(&mut self) -> Result<Observation, Failure> {
        let status = self.guard.wait();
        self.ended = true;
        let problem = match GuardRecord::read(&self.folder) {
            Ok(record) => {
                if was_cut_short(&record) {
                    self.runs.end_step(&self.run.nodes, Some(self.begun));
                }
                let record = self.runs.by_its_clock(&self.folder, record);
                return self.runs.judge(&self.run, &self.folder, &record);
            }
            Err(problem) => problem.to_string(),
        };
        self.runs.end_marked(&self.folder, &self.run.nodes);
        let said = telling_lines(&self.said, 10).join("; ");
        match status.map(Exit::from) {
            Ok(Exit::Code(code)) if code == i32::from(guard::NOT_STARTED) => {
                Err(Failure::Launch { what: self.folder.display().to_string(), why: said })
            }
            Ok(Exit::Signal(signal)) => {
                Err(Failure::Killed { by: format!("the end of its guard, which {}", Exit::Signal(signal)) })
            }
            _ => Err(Failure::Output {
                file: GuardRecord::path(&self.folder).display().to_string(),
                problem: if said.is_empty() { problem } else { said },
                telling_lines: Vec::new(),
            }),
        }
    }

    fn end(&mut self) -> Option<Result<Observation, Failure>> {
        if self.ended {
            return None;
        }
        self.ask_to_end();
        let begun = Instant::now();
        while begun.elapsed() < self.runs.grace() + KILL_WAIT + GUARD_END {
            if let Some(outcome) = self.finish_within(GUARD_END) {
                return Some(outcome);
            }
        }
        // A guard that is still alive is stopped, or hangs in the kernel.
        let _ = self.guard.kill();
        self.runs.end_marked(&self.folder, &self.run.nodes);
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the command did not come to its own end, so that a launcher may have left its ranks on other nodes: the guard ended it, or a
/// signal of the system or of somebody else.
fn was_cut_short(record: &GuardRecord) -> bool {
    record.ended_by != EndedBy::Itself || !matches!(record.exit, Some(Exit::Code(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step of an srun that was killed went on beside the next run.
    #[test]
    fn a_launcher_that_was_killed_may_have_left_its_ranks() {
        let cut = |ended_by: EndedBy, exit: Option<Exit>| was_cut_short(&GuardRecord::of_end(ended_by, exit));
        assert!(cut(EndedBy::Itself, Some(Exit::Signal(9))) && cut(EndedBy::Itself, None));
        assert!(cut(EndedBy::Deadline, Some(Exit::Code(0))) && cut(EndedBy::Asked, None));
        assert!(!cut(EndedBy::Itself, Some(Exit::Code(0))) && !cut(EndedBy::Itself, Some(Exit::Code(1))));
    }
}
