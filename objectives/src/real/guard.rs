//! The guard: it runs one command, ends all its descendants and records how it ended.
//!
//! The body of the hidden verb `hpl-tune __guard`, in two stages. The first is the guard itself. It starts
//! the second, `__guard --exec`, which asks the kernel to kill it when the guard dies, unblocks the signals, allows no core
//! and executes the command in its place. So any command dies with its guard, and no `unsafe` `pre_exec` is
//! needed.
//!
//! The guard is event driven (signalfd, pipes): during a measured run it only wakes four times a
//! second to check whether its parent is alive.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hpl::program::files::sync_contents;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};

use super::capture::Capture;
use super::processes::{GRACE, descendants, end_all};
use super::record::{EndedBy, GuardRecord};
use super::words::quoted;
use crate::Exit;

/// The hidden verb, as the program must dispatch it to [`main`].
pub const VERB: &str = "__guard";
pub(super) const STDOUT: &str = "stdout.txt";
pub(super) const STDERR: &str = "stderr.txt";

/// Exit codes of `env` and `timeout` for a command that does not exist, or cannot be started.
pub(super) const NOT_FOUND: u8 = 127;
pub(super) const NOT_STARTED: u8 = 126;

const EXEC: &str = "--exec";
/// Interval at which the guard checks its parent. SIGUSR1 wakes it earlier, but it is sent at the end of the thread
/// that started the guard, and only once, so the guard must also poll.
const PARENT_CHECK: Duration = Duration::from_millis(250);

/// Runs the verb: `--parent PID --deadline-s S [--grace-s G] --folder DIR -- CMD…`, all in this order. The folder receives
/// `stdout.txt`, `stderr.txt` and `guard.json`. G: seconds between SIGTERM and SIGKILL.
///
/// `arguments` are those after the verb. Must be called first in the program, while it has one thread: the
/// guard blocks signals. Returns 0 when the record was written, for every end of the command; otherwise, with a
/// message on stderr, 1 when it was not, 2 for wrong arguments, 126 when nothing was started. In every case
/// all descendants are ended.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let [exec, guard, dashes, program, rest @ ..] = &arguments[..]
        && exec == EXEC
        && dashes == "--"
        && let Some(guard) = number(guard)
    {
        return become_command(Pid::from_raw(guard), program, rest);
    }
    let Some(order) = Order::parse(&arguments) else {
        complain(&format!("usage: {VERB} --parent PID --deadline-s S [--grace-s G] --folder DIR -- COMMAND…"));
        return ExitCode::from(2);
    };
    match order.carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Trouble { code, message }) => {
            complain(&message);
            ExitCode::from(code)
        }
    }
}

/// A command that the kernel kills when this process ends, by the second stage; only for programs that dispatch [`VERB`].
pub fn tied<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    // The running program itself, even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.args([VERB, EXEC, &std::process::id().to_string(), "--"]).args(words);
    command
}

/// The second stage: becomes the command, or ends with 126 or 127.
fn become_command(guard: Pid, program: &OsStr, rest: &[OsString]) -> ExitCode {
    let prepared = prctl::set_pdeathsig(Signal::SIGKILL)
        .and_then(|()| SigSet::empty().thread_set_mask())
        .and_then(|()| without_core());
    if let Err(errno) = prepared {
        complain(&format!("cannot prepare {}: {errno}", program.display()));
        return ExitCode::from(NOT_STARTED);
    }
    // The guard may have died before the request to the kernel.
    if getppid() != guard {
        return ExitCode::from(NOT_STARTED);
    }
    let error = Command::new(program).args(rest).exec();
    complain(&format!("cannot start {}: {error}", program.display()));
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
}

/// Asks the system to write no core of this process. That of a run is as large as the matrix: it may fill the disk, and a crash would
/// count as ended at the time limit if that came before the whole core was written. The limit is 1 byte: at 0 Linux still gives the core
/// to a program that `core_pattern` names, as apport, and at 1 to none (`do_coredump`).
fn without_core() -> Result<(), Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, hard.min(1), hard)
}

/// The arguments of the guard.
#[derive(Debug, PartialEq)]
struct Order {
    parent: Pid,
    limit: Duration,
    grace: Duration,
    folder: PathBuf,
    command: Vec<OsString>,
}

impl Order {
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let seconds = |text: &OsStr| Duration::try_from_secs_f64(number(text)?).ok();
        let [k1, parent, k2, limit, rest @ ..] = arguments else { return None };
        let (grace, rest) = match rest {
            [key, grace, rest @ ..] if key == "--grace-s" => (seconds(grace)?, rest),
            rest => (GRACE, rest),
        };
        let [k3, folder, dashes, command @ ..] = rest else { return None };
        let known = k1 == "--parent" && k2 == "--deadline-s" && k3 == "--folder" && dashes == "--";
        if !known || command.is_empty() {
            return None;
        }
        let parent = Pid::from_raw(number(parent)?);
        Some(Self { parent, limit: seconds(limit)?, grace, folder: folder.into(), command: command.to_vec() })
    }

    fn carry_out(self) -> Result<(), Trouble> {
        let signals = self.tie_to_parent().map_err(|errno| not_started(format!("cannot set up the guard: {errno}")))?;
        if getppid() != self.parent {
            return Err(not_started("the parent is gone, nothing was started".to_owned()));
        }
        let oom_kills_before = oom_kills();
        let started_utc = jiff::Timestamp::now().to_string();
        let mut run = GuardedCommand::start(&self.command, &self.folder, signals).map_err(not_started)?;
        let ended_by = run.watch(self.parent, self.limit);
        let stragglers = if ended_by == EndedBy::Itself { descendants().len() } else { 0 };
        let survivors = run.end(self.grace);
        let output_error = run.finish_output().or_else(|| {
            // Who finds the record after a power loss takes the output for whole.
            sync_contents(&self.folder).err().map(|error| error.to_string())
        });
        let usage =
            getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|errno| not_recorded(format!("getrusage: {errno}")))?;
        let record = GuardRecord {
            schema_version: GuardRecord::SCHEMA,
            command: quoted(&self.command),
            started_utc,
            wall_s: run.wall.as_secs_f64(),
            limit_s: self.limit.as_secs_f64(),
            ended_by,
            exit: run.status.map(Exit::from),
            user_s: seconds(usage.user_time()),
            system_s: seconds(usage.system_time()),
            max_rss_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
            oom_kills: oom_kills().saturating_sub(oom_kills_before),
            stragglers,
            survivors: survivors.into_iter().map(Pid::as_raw).collect(),
            output_error,
        };
        let path = GuardRecord::path(&self.folder);
        record.write(&self.folder).map_err(|error| not_recorded(format!("cannot write {}: {error}", path.display())))
    }

    /// Makes the guard the parent of the run's orphans, and wakes it when its parent dies.
    fn tie_to_parent(&self) -> Result<SignalFd, Errno> {
        let mut set = SigSet::empty();
        set.extend(ENDING);
        // SIGUSR1 means that the parent's thread ended; the parent itself may still be alive, so check it.
        set.extend([Signal::SIGUSR1, Signal::SIGCHLD]);
        set.thread_block()?;
        prctl::set_child_subreaper(true)?;
        prctl::set_pdeathsig(Signal::SIGUSR1)?;
        SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
    }
}

/// Why the guard failed.
struct Trouble {
    code: u8,
    message: String,
}

fn not_started(message: String) -> Trouble {
    Trouble { code: NOT_STARTED, message }
}

fn not_recorded(message: String) -> Trouble {
    Trouble { code: 1, message }
}

const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// The command while it runs.
struct GuardedCommand {
    child: Child,
    ended: bool,
    /// How the child ended, after its end.
    status: Option<ExitStatus>,
    /// Time from start to end; up to now while the child runs.
    wall: Duration,
    begun: Instant,
    output: [Capture; 2],
    signals: SignalFd,
}

impl GuardedCommand {
    fn start(command: &[OsString], folder: &Path, signals: SignalFd) -> Result<Self, String> {
        let capture = |name: &str| {
            let path = folder.join(name);
            Capture::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut output = [capture(STDOUT)?, capture(STDERR)?];
        // Before the start: under load the child may have ended before this process runs again.
        let begun = Instant::now();
        let mut child = tied(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start a process: {error}"))?;
        output[0].attach(child.stdout.take().expect("stdout is piped"));
        output[1].attach(child.stderr.take().expect("stderr is piped"));
        Ok(Self { child, ended: false, status: None, wall: Duration::ZERO, begun, output, signals })
    }

    /// Waits until the run ends or must be ended.
    fn watch(&mut self, parent: Pid, limit: Duration) -> EndedBy {
        loop {
            if self.has_ended() {
                return EndedBy::Itself;
            }
            if getppid() != parent {
                return EndedBy::ParentGone;
            }
            let left = limit.saturating_sub(self.wall);
            if left.is_zero() {
                return EndedBy::Deadline;
            }
            self.sleep(left.min(PARENT_CHECK));
            while let Ok(Some(signal)) = self.signals.read_signal() {
                if ENDING.iter().any(|ending| *ending as u32 == signal.ssi_signo) {
                    return EndedBy::Asked;
                }
            }
            self.read_output();
        }
    }

    /// Reads what the run has printed since the last call, up to a buffer full of each stream.
    fn read_output(&mut self) {
        for capture in &mut self.output {
            capture.pump();
        }
    }

    /// Waits until something happens, for at most `time`.
    fn sleep(&self, time: Duration) {
        let streams = self.output.iter().filter_map(Capture::fd);
        let all = streams.chain([self.signals.as_fd()]);
        let mut fds: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // Rounded up, so that the last wait before a deadline does not become a busy loop.
        let timeout = PollTimeout::try_from(time + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        // An error here (no memory) only makes the next check earlier.
        let _ = poll(&mut fds, timeout);
    }

    fn has_ended(&mut self) -> bool {
        if !self.ended {
            self.wall = self.begun.elapsed();
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(status) => (self.ended, self.status) = (true, status),
                // SIGCHLD was ignored by the parent of the tuner: the kernel keeps no status.
                Err(_) => self.ended = true,
            }
        }
        self.ended
    }

    /// Ends and reaps all descendants; returns those that are still running.
    fn end(&mut self, grace: Duration) -> Vec<Pid> {
        end_all(grace, descendants, || {
            // What is asked to end may print more before it does than a pipe holds.
            self.read_output();
            // Exact because of the subreaper: while any descendant is alive, the guard has a child.
            self.has_ended() && no_child_left()
        })
    }

    /// Completes the output files; returns the error, if any.
    fn finish_output(&mut self) -> Option<String> {
        let errors = self.output.each_mut().map(|capture| capture.finish().err());
        errors.into_iter().flatten().next().map(|error| error.to_string())
    }
}

/// Reaps the children that have ended; returns whether none remains.
fn no_child_left() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Err(Errno::ECHILD) => return true,
            // One was reaped; EINVAL is one that ended by a real-time signal, which nix has no name for.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Processes that the system has ended for lack of memory since boot.
fn oom_kills() -> u64 {
    let counters = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    counters.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

fn seconds(time: TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}

fn number<T: std::str::FromStr>(text: &OsStr) -> Option<T> {
    text.to_str()?.parse().ok()
}

/// Prints a message on stderr, if it is still open.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "hpl-tune {VERB}: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Order> {
        Order::parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn orders_are_read_or_refused() {
        let order = parse("--parent 7 --deadline-s 1.5 --folder d -- a --parent").unwrap();
        assert_eq!(order.parent, Pid::from_raw(7));
        assert_eq!(order.limit, Duration::from_millis(1500));
        assert_eq!((order.command, order.grace), (vec!["a".into(), "--parent".into()], GRACE));
        let patient = parse("--parent 7 --deadline-s 1 --grace-s 10 --folder d -- a").unwrap();
        assert_eq!(patient.grace, Duration::from_secs(10));
        for wrong in [
            "",
            "--parent 7",
            "--parent x --deadline-s 1 --folder d -- a",
            "--parent 7 --deadline-s -1 --folder d -- a",
            "--parent 7 --deadline-s 1 --grace-s x --folder d -- a",
            "--parent 7 --deadline-s inf --folder d -- a",
            "--parent 7 --deadline-s NaN --folder d -- a",
            "--parent 7 --deadline-s 1 --folder d --",
            "--parent 7 --deadline-s 1 --folder d a b",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
