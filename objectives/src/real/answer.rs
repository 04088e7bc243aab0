//! Commands that answer soon: those of Slurm, and children that look at what may crash or hang.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Time limit of a command.
const ANSWERS: Duration = Duration::from_secs(10);

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Time in which a killed child ends, and in which all that one has printed is read after its end.
const REST: Duration = Duration::from_secs(1);

/// Bytes of an answer at most, more than the ranks of the largest machines say of themselves: what prints on and on gives none.
const MOST_BYTES: usize = 64 << 20;

/// The output of a command, in which `�` stands for what is no UTF-8; `None` if the command does not exist, fails, takes more than ten
/// seconds or prints without end.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    answer(Command::new(program).args(arguments))
}

/// The output as by [`output_of`], of a command that may have an environment and a folder of its own.
pub fn answer(command: &mut Command) -> Option<String> {
    answer_within(command, ANSWERS)
}

/// The output as by [`output_of`], of a command that may take as long as `limit`.
pub fn answer_within(command: &mut Command, limit: Duration) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut output = ChildOutput::of(&mut child);
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() <= limit && !output.is_too_long() => {
                output.wait(LOOK);
            }
            _ => {
                let _ = child.kill();
                // One that hangs in the kernel does not end, and is left behind.
                let killed = Instant::now();
                while killed.elapsed() < REST && matches!(child.try_wait(), Ok(None)) {
                    std::thread::sleep(LOOK);
                }
                return None;
            }
        }
    };
    let said = output.rest().filter(|_| status.success())?;
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// What a child prints, read while it runs: a pipe holds little, and a process that outlives the child may keep it open.
#[derive(Debug)]
pub struct ChildOutput {
    /// `None` once the output has ended.
    pipe: Option<ChildStdout>,
    bytes: Vec<u8>,
}

impl ChildOutput {
    /// The standard output of `child`, which is piped.
    pub fn of(child: &mut Child) -> Self {
        Self { pipe: child.stdout.take(), bytes: Vec::new() }
    }

    /// Waits for more output for at most `time`, and reads it; whether there was any.
    pub fn wait(&mut self, time: Duration) -> bool {
        let Some(pipe) = &mut self.pipe else {
            std::thread::sleep(time);
            return false;
        };
        let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        if !matches!(poll(&mut ready, timeout), Ok(1..)) {
            return false;
        }
        let mut buffer = [0; 16 * 1024];
        match pipe.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => {
                self.pipe = None;
                false
            }
            Ok(count) => {
                if !self.is_too_long() {
                    self.bytes.extend(&buffer[..count]);
                }
                true
            }
        }
    }

    /// Whether it is longer than any answer; no more of it is kept.
    pub fn is_too_long(&self) -> bool {
        self.bytes.len() > MOST_BYTES
    }

    /// All that was printed by the child, which has ended; `None` where that is longer than any answer.
    pub fn rest(mut self) -> Option<Vec<u8>> {
        let begun = Instant::now();
        while begun.elapsed() < REST && self.wait(Duration::ZERO) {}
        (!self.is_too_long()).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Option<String> {
        answer_within(Command::new("sh").args(["-c", script]), limit)
    }

    /// What was left kept the pipe open, and the answer was waited for until it ended.
    #[test]
    fn a_command_that_leaves_a_process_has_answered() {
        let begun = Instant::now();
        assert_eq!(shell("sleep 11 & echo here", ANSWERS).as_deref(), Some("here\n"));
        assert!(begun.elapsed() < ANSWERS, "{:?}", begun.elapsed());
    }

    /// A command with more to say than a pipe holds was ended at the limit.
    #[test]
    fn answers_may_be_long() {
        assert_eq!(shell("head -c 300000 /dev/zero", ANSWERS).map(|text| text.len()), Some(300_000));
    }

    /// The steps of a job were not found where one of them had a name in Latin-1.
    #[test]
    fn an_answer_with_bytes_that_are_no_text_is_one() {
        assert_eq!(shell(r"printf '17.2 xhpl\n17.3 \351t\351\n'", ANSWERS).as_deref(), Some("17.2 xhpl\n17.3 �t�\n"));
    }

    /// All that came until the time limit was kept, some gigabytes.
    #[test]
    fn a_command_that_prints_without_end_has_no_answer() {
        let begun = Instant::now();
        let limit = Duration::from_mins(5);
        assert_eq!(shell("exec cat /dev/zero", limit), None);
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_command_that_takes_too_long_or_fails_has_no_answer() {
        assert_eq!(shell("echo here; exec sleep 30", Duration::from_millis(50)), None);
        assert_eq!(shell("exec >&-; exec sleep 30", Duration::from_millis(50)), None);
        assert_eq!(shell("echo here; exit 1", ANSWERS), None);
    }
}
