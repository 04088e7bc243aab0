//! The failures of a run, each with its facts.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// Why a run has no score. Serialises with its [`kind`](Failure::kind) under the key `outcome`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Failure {
    /// The candidate cannot run on this machine; the engine refused it before it began.
    #[error("infeasible: {why}")]
    Infeasible {
        /// The refusal in words.
        why: String,
    },
    /// The run could not be started.
    #[error("cannot start {what}: {why}")]
    Launch {
        /// The file, folder or program that caused the failure.
        what: String,
        /// The system's reason.
        why: String,
    },
    /// The run was ended at its time limit: its time is at least the limit.
    #[error("ended at its limit of {limit_s:.1} s")]
    TimedOut {
        /// The limit in seconds, from the start of the command.
        limit_s: f64,
    },
    /// The program ended by itself without success.
    #[error("{exit}{}", after(telling_lines))]
    Crashed {
        /// How it ended.
        exit: Exit,
        /// Lines that it printed: the last ones, and the first.
        telling_lines: Vec<String>,
    },
    /// The program was ended from outside: by an operator, a batch system, or the end of the tuner.
    #[error("killed: {by}")]
    Killed {
        /// The cause, as far as it is known.
        by: String,
    },
    /// The system ended a process of the run for lack of memory.
    #[error("out of memory at {max_rss_bytes} bytes in one process; lower N or the number of ranks")]
    OutOfMemory {
        /// Largest resident set of one process of the run.
        max_rss_bytes: u64,
    },
    /// The run finished, but its solution is wrong or was not checked.
    #[error("residual {} did not pass{}", value.map_or("missing".to_owned(), |v| v.to_string()), pivot(*info))]
    Residual {
        /// The scaled residual; `None` when it is missing or not a number.
        value: Option<f64>,
        /// Column of the first zero pivot, counted from 1; 0 when there was none.
        info: usize,
    },
    /// The run was ended because its progress showed that it could not be the best.
    #[error(
        "ended after {done_percent:.0} % of its work: it would reach {estimated_rate_gflops:.1} GFLOP/s, the best has {best_rate_gflops:.1}"
    )]
    Beaten {
        /// Flops done, in percent.
        done_percent: f64,
        /// GFLOP/s of the whole run, estimated: the best run's, times the ratio of the two at this share of the work.
        estimated_rate_gflops: f64,
        /// GFLOP/s of the best run.
        best_rate_gflops: f64,
    },
    /// The run was deliberately not started.
    #[error("skipped: {why}")]
    Skipped {
        /// The reason.
        why: String,
    },
    /// The files of the run are unreadable or contradictory.
    #[error("{file}: {problem}{}", after(telling_lines))]
    Output {
        /// The file with the problem.
        file: String,
        /// What is wrong with it.
        problem: String,
        /// Lines that the program printed: the last ones, and the first.
        telling_lines: Vec<String>,
    },
}

impl Failure {
    /// The name of this kind of failure in records and tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Infeasible { .. } => "infeasible",
            Self::Launch { .. } => "launch",
            Self::TimedOut { .. } => "timed-out",
            Self::Crashed { .. } => "crashed",
            Self::Killed { .. } => "killed",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::Residual { .. } => "residual",
            Self::Beaten { .. } => "beaten",
            Self::Skipped { .. } => "skipped",
            Self::Output { .. } => "output",
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "ended by signal {number} ({})", signal.as_str()),
                Err(_) => write!(f, "ended by signal {number}"),
            },
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        // A process that was waited for has one of the two.
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or(0)), Self::Code)
    }
}

fn after(telling_lines: &[String]) -> String {
    if telling_lines.is_empty() { String::new() } else { format!(" after: {}", telling_lines.join(" | ")) }
}

fn pivot(info: usize) -> String {
    if info == 0 { String::new() } else { format!(" (zero pivot in column {info})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_record_is_the_kind() {
        let lines = vec!["a".to_owned()];
        let all = [
            Failure::Infeasible { why: "x".into() },
            Failure::Launch { what: "x".into(), why: "y".into() },
            Failure::TimedOut { limit_s: 1.5 },
            Failure::Crashed { exit: Exit::Signal(11), telling_lines: lines.clone() },
            Failure::Killed { by: "x".into() },
            Failure::OutOfMemory { max_rss_bytes: 7 },
            Failure::Residual { value: None, info: 3 },
            Failure::Beaten { done_percent: 40.0, estimated_rate_gflops: 90.0, best_rate_gflops: 100.0 },
            Failure::Skipped { why: "x".into() },
            Failure::Output { file: "f".into(), problem: "p".into(), telling_lines: lines },
        ];
        for failure in all {
            let json = serde_json::to_value(&failure).unwrap();
            assert_eq!(json["outcome"], failure.kind());
            assert_eq!(serde_json::from_value::<Failure>(json).unwrap(), failure);
        }
    }

    #[test]
    fn a_residual_that_is_not_a_number_survives_its_record() {
        let json = serde_json::to_string(&Failure::Residual { value: Some(f64::NAN), info: 0 }).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), Failure::Residual { value: None, info: 0 });
    }

    #[test]
    fn messages_say_what_happened() {
        let crash = Failure::Crashed { exit: Exit::Signal(11), telling_lines: vec!["one".into(), "two".into()] };
        assert_eq!(crash.to_string(), "ended by signal 11 (SIGSEGV) after: one | two");
        assert_eq!(
            Failure::Residual { value: None, info: 3 }.to_string(),
            "residual missing did not pass (zero pivot in column 3)"
        );
    }
}
