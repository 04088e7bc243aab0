//! Power of the node as its management controller (BMC) says it: IPMI's DCMI, asked by the programs of those who maintain it.
//!
//! An answer takes a part of a second, and some controllers give none. So [`Dcmi::look`] never waits: it takes the answer to the last question, if
//! it has come, and asks the next one when it is time. A program that hangs is ended. A controller averages, and asking it takes processor
//! time of the node, so that it is asked only where nothing else measures the processors.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};

const SOURCE: &str = "dcmi";
/// Where the kernel has the controller.
const DEVICES: [&str; 3] = ["dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0"];
/// Programs that ask it, with their arguments.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("ipmitool", &["dcmi", "power", "reading"]), ("ipmi-dcmi", &["--get-system-power-statistics"])];
/// What stands in front of the power in their outputs.
const LABELS: [&str; 2] = ["Instantaneous power reading", "Current Power"];

/// Time between two questions, and between two to a controller that has failed to answer so often one after the other.
const PACE: Duration = Duration::from_secs(5);
const SLOW_PACE: Duration = Duration::from_secs(60);
const FAILURES: u32 = 3;
/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for the first one, for which the session waits.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// Seconds that may lie between two answers.
const APART_S: f64 = 20.0;

/// A controller, asked by a program.
#[derive(Debug)]
pub(super) struct Dcmi {
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
    fn new(program: &Path, arguments: &'static [&'static str], patience: Duration) -> Self {
        Self { program: program.to_owned(), arguments, patience, asking: Mutex::default() }
    }

    /// The watts of an answer that has come since the last call. Never waits.
    pub(super) fn look(&self) -> Option<f64> {
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
    fn first(&self) -> io::Result<Result<f64, String>> {
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

/// The controller of the node below `root`, where nothing that was found measures the processors.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    let processors = found.sensors.iter().any(|(facts, _)| facts.covers != Covers::Accelerator);
    if processors || !DEVICES.iter().any(|device| root.join(device).exists()) {
        return;
    }
    for (name, arguments) in PROGRAMS {
        // A name alone is searched on the path of programs.
        let program = if root == Path::new("/") { name.into() } else { root.join("usr/bin").join(name) };
        let dcmi = Dcmi::new(&program, arguments, FIRST_PATIENCE);
        match dcmi.first() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(Ok(_)) => {
                let dcmi = Dcmi::new(&program, arguments, PATIENCE);
                let facts = SensorFacts { apart_s: Some(APART_S), ..SensorFacts::new(SOURCE, "node", Covers::Node) };
                found.push(facts, Access::Asked(dcmi.into()));
                return;
            }
            Ok(Err(why)) => return unreadable(found, format!("{name} says: {why}"), &way_out(&why)),
            Err(error) => return unreadable(found, format!("{name}: {error}"), "see whether that program can be run"),
        }
    }
    let why = "there is a management controller, and no program to ask it".to_owned();
    unreadable(found, why, "install ipmitool, or ipmi-dcmi of FreeIPMI");
}

fn unreadable(found: &mut FoundSensors, why: String, way_out: &str) {
    let (source, name, way_out) = (SOURCE.to_owned(), "node".to_owned(), way_out.to_owned());
    found.unreadable.push(Unreadable { source, name, why, way_out });
}

fn way_out(why: &str) -> String {
    if why.to_lowercase().contains("permission denied") {
        "sudo chmod a+rw /dev/ipmi0 until the next boot, which lets everyone command the controller; docs/power.md has a udev rule for a group"
            .to_owned()
    } else {
        "see what ipmitool dcmi power reading says as root: not every controller has DCMI, and some have it switched off".to_owned()
    }
}

#[cfg(test)]
mod tests;
