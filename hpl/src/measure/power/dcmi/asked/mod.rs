//! Power of the node as its management controller (BMC) says it: IPMI's DCMI, asked by the programs of those who maintain it.
//!
//! An answer takes a part of a second, and some controllers give none. So [`Dcmi::look`] never waits: it takes the answer to the last question, if
//! it has come, and asks the next one when it is time. A program that hangs is ended. A controller averages, and asking it takes processor
//! time of the node, so that it is asked only where nothing else measures the processors.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// What stands in front of the power in their outputs.
const LABELS: [&str; 2] = ["Instantaneous power reading", "Current Power"];

/// Time between two questions, and between two to a controller that has failed to answer so often one after the other.
const PACE: Duration = Duration::from_secs(5);
const SLOW_PACE: Duration = Duration::from_secs(60);
const FAILURES: u32 = 3;
/// Time for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A controller, asked by a program.
#[derive(Debug)]
pub(in super::super) struct Dcmi {
    program: PathBuf,
    arguments: &'static [&'static str],
    patience: Duration,
    asking: Mutex<Asking>,
}

/// The question under way.
#[derive(Debug, Default)]
struct Asking {
    child: Option<Child>,
    /// When the last question began.
    begun: Option<Instant>,
    /// Whether its program was ended.
    ended: bool,
    failures: u32,
}

impl Dcmi {
    pub(super) fn new(program: &Path, arguments: &'static [&'static str], patience: Duration) -> Self {
        Self { program: program.to_owned(), arguments, patience, asking: Mutex::default() }
    }

    /// The watts of an answer that has come since the last call. Never waits.
    pub(in super::super) fn look(&self) -> Option<f64> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.answer(&mut asking);
        let pace = if asking.failures < FAILURES { PACE } else { SLOW_PACE };
        if asking.child.is_none()
            && asking.begun.is_none_or(|begun| begun.elapsed() >= pace)
            && self.ask(&mut asking).is_err()
        {
            asking.failures += 1;
        }
        answer.and_then(Result::ok)
    }

    /// Starts the program.
    fn ask(&self, asking: &mut Asking) -> io::Result<()> {
        asking.begun = Some(Instant::now());
        asking.ended = false;
        let mut command = Command::new(&self.program);
        command.args(self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // So that it is ended with all that it has started, and not by a Ctrl-C.
        asking.child = Some(command.process_group(0).spawn()?);
        Ok(())
    }

    /// What the program under way has said, if it has ended: watts, or why there are none.
    fn answer(&self, asking: &mut Asking) -> Option<Result<f64, String>> {
        let asked = asking.begun?.elapsed();
        let child = asking.child.as_mut()?;
        let status = match child.try_wait() {
            Ok(None) => {
                if asked > self.patience && !asking.ended {
                    asking.ended = true;
                    asking.failures += 1;
                    end(child);
                }
                // A process that hangs in the kernel stays, and no other one is started.
                return None;
            }
            Ok(Some(status)) => Ok(status),
            Err(error) => Err(error.to_string()),
        };
        let mut child = asking.child.take()?;
        if asking.ended || asked > self.patience {
            // Nobody knows when it was.
            return None;
        }
        let out = said(child.stdout.take().map(OwnedFd::from));
        let err = said(child.stderr.take().map(OwnedFd::from));
        let answer = match (status, watts(&out)) {
            (Ok(status), Some(watts)) if status.success() => Ok(watts),
            (Err(error), _) => Err(error),
            _ => {
                let line = [&err, &out].into_iter().flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
                Err(line.map_or("it gives no power".to_owned(), |line| line.trim().chars().take(200).collect()))
            }
        };
        asking.failures = if answer.is_ok() { 0 } else { asking.failures + 1 };
        Some(answer)
    }

    /// Asks once and waits for the answer.
    pub(super) fn first(&self) -> io::Result<Result<f64, String>> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(&mut asking)?;
        let begun = Instant::now();
        while begun.elapsed() < self.patience {
            if let Some(answer) = self.answer(&mut asking) {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        asking.child.iter().for_each(end);
        asking.ended = true;
        Ok(Err(format!("no answer within {} s", self.patience.as_secs_f64())))
    }
}

impl Drop for Dcmi {
    fn drop(&mut self) {
        let asking = self.asking.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = &mut asking.child {
            end(child);
            let _ = child.try_wait();
        }
    }
}

/// Ends a program with all that it has started. It was not waited for, so that its number belongs to nobody else.
fn end(child: &Child) {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
}

/// What is in the pipe of a program that has ended. What it has started may hold the pipe open: nothing is waited for.
fn said(pipe: Option<OwnedFd>) -> String {
    let Some(pipe) = pipe else { return String::new() };
    if fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_err() {
        return String::new();
    }
    let mut buffer = [0; 8192];
    let read = File::from(pipe).read(&mut buffer).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

/// The watts in an output such as `Instantaneous power reading:   214 Watts`.
fn watts(output: &str) -> Option<f64> {
    let value = output.lines().find_map(|line| {
        let (label, value) = line.split_once(':')?;
        LABELS.contains(&label.trim()).then(|| value.split_whitespace().next()?.parse::<f64>().ok())?
    });
    value.filter(|watts| watts.is_finite() && *watts >= 0.0)
}

#[cfg(test)]
mod tests;
