//! The outcome of a run, from the files in its folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use space::flops::rate_gflops;
use space::result::RESULT_SCHEMA;
use space::windows::{PAIR_SCHEMA, PairResult, WINDOWS_SCHEMA};
use space::{RunResult, WindowsResult};

use super::guard::{NOT_FOUND, NOT_STARTED, STDERR, STDOUT};
use super::record::{EndedBy, GuardRecord};
use super::words::telling_lines;
use crate::{Exit, Failure, Measurement, PairMeasurement, WindowsMeasurement};

/// File in the folder of a trial with the result of our engine.
pub const RESULT: &str = "result.json";

/// Exit code of `hpl-tune run` for an infeasible candidate.
const REFUSED: i32 = 2;
const LINES: usize = 10;
const TAIL_BYTES: u64 = 16 * 1024;

/// The outcome of the run in `folder` that ended as `record` states. Only a run whose own residual check
/// passed is a measurement. A result that was written before the guard ended its run is valid.
pub(super) fn judge(folder: &Path, record: &GuardRecord) -> Result<Measurement, Failure> {
    let bad = |problem| bad_result(folder, problem);
    let Some(result) = read(&folder.join(RESULT)).map_err(bad)? else { return Err(no_result(folder, record)) };
    let residual = match result.residual {
        Some(residual) if result.passed => residual,
        value => return Err(Failure::Residual { value, info: result.info }),
    };
    if let Some(problem) = contradiction(&result, residual, record) {
        return Err(bad(problem));
    }
    ended_well(folder, record)?;
    Ok(measurement(result, residual, record))
}

/// The outcome of windows of a run, as [`judge`] for a whole run: every check must have passed.
pub(super) fn judge_windows(folder: &Path, record: &GuardRecord) -> Result<WindowsMeasurement, Failure> {
    let bad = |problem| bad_result(folder, problem);
    let found = parsed::<WindowsResult>(&folder.join(RESULT)).map_err(bad)?;
    let Some(result) = found else { return Err(no_result(folder, record)) };
    let result = checked(result, record, bad)?;
    ended_well(folder, record)?;
    Ok(WindowsMeasurement { result, wall_s: record.wall_s, command: record.command.clone(), pair: None })
}

/// The outcome of windows of a candidate and of a reference in turn, as [`judge_windows`]: both must have passed.
pub(super) fn judge_pair(folder: &Path, record: &GuardRecord) -> Result<WindowsMeasurement, Failure> {
    let bad = |problem| bad_result(folder, problem);
    let found = parsed::<PairResult>(&folder.join(RESULT)).map_err(bad)?;
    let Some(PairResult { pair_schema_version, predicted_log_ratio, predicted_log_ratio_sd, candidate, reference }) =
        found
    else {
        return Err(no_result(folder, record));
    };
    if pair_schema_version != PAIR_SCHEMA {
        return Err(bad(format!("schema version {pair_schema_version} of a pair, this program reads {PAIR_SCHEMA}")));
    }
    let [result, reference] = [checked(candidate, record, bad)?, checked(reference, record, bad)?];
    if !predicted_log_ratio.is_finite() || predicted_log_ratio_sd.is_nan() || predicted_log_ratio_sd < 0.0 {
        return Err(bad(format!(
            "a logarithm of {predicted_log_ratio} ± {predicted_log_ratio_sd} of the ratio of two rates"
        )));
    }
    ended_well(folder, record)?;
    let pair = PairMeasurement {
        reference: Box::new(reference),
        log_ratio: predicted_log_ratio,
        log_ratio_sd: predicted_log_ratio_sd,
    };
    Ok(WindowsMeasurement { result, wall_s: record.wall_s, command: record.command.clone(), pair: Some(pair) })
}

/// The result of windows that passed their checks and say a rate.
fn checked(
    result: WindowsResult,
    record: &GuardRecord,
    bad: impl Fn(String) -> Failure,
) -> Result<WindowsResult, Failure> {
    if result.windows_schema_version != WINDOWS_SCHEMA {
        let found = result.windows_schema_version;
        return Err(bad(format!("schema version {found}, this program reads {WINDOWS_SCHEMA}")));
    }
    if !result.passed {
        let value =
            result.windows.iter().find(|window| window.passed == Some(false)).and_then(|window| window.residual);
        return Err(Failure::Residual { value, info: 0 });
    }
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(result.predicted_time_s)
        || !positive(result.predicted_rate_gflops)
        || result.wall_s > record.wall_s + 0.5
    {
        let (time_s, rate) = (result.predicted_time_s, result.predicted_rate_gflops);
        return Err(bad(format!("{time_s} s and {rate} GFLOP/s estimated from {} s of windows", result.wall_s)));
    }
    Ok(result)
}

/// A failure if the program ended by itself with an error.
fn ended_well(folder: &Path, record: &GuardRecord) -> Result<(), Failure> {
    match record.exit {
        Some(exit) if record.ended_by == EndedBy::Itself && exit != Exit::Code(0) => {
            Err(Failure::Crashed { exit, telling_lines: printed(folder) })
        }
        _ => Ok(()),
    }
}

/// The failure of a run whose result has this problem.
fn bad_result(folder: &Path, problem: String) -> Failure {
    Failure::Output { file: folder.join(RESULT).display().to_string(), problem, telling_lines: printed(folder) }
}

/// The result in `path`, `None` when there is none, or what is wrong with it.
fn read(path: &Path) -> Result<Option<RunResult>, String> {
    let Some(result) = parsed::<RunResult>(path)? else { return Ok(None) };
    if result.schema_version == RESULT_SCHEMA {
        Ok(Some(result))
    } else {
        Err(format!("schema version {}, this program reads {RESULT_SCHEMA}", result.schema_version))
    }
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// A contradiction in a result.
fn contradiction(result: &RunResult, residual: f64, record: &GuardRecord) -> Option<String> {
    let (time_s, rate) = (result.time_s, result.rate_gflops);
    let expected = rate_gflops(result.candidate.hpl.n, time_s);
    if !(time_s > 0.0 && residual >= 0.0) {
        Some(format!("time {time_s} s with residual {residual}"))
    } else if (rate - expected).abs() > 0.01 * expected {
        Some(format!("{rate} GFLOP/s, but its N and its time give {expected}"))
    } else if time_s > 1.01 * record.wall_s + 0.01 {
        Some(format!("a time of {time_s} s, but the program ran for {} s", record.wall_s))
    } else {
        None
    }
}

/// Why a run has no result.
pub(super) fn no_result(folder: &Path, record: &GuardRecord) -> Failure {
    let killed = |by: &str| Failure::Killed { by: by.to_owned() };
    match (record.ended_by, record.exit) {
        (EndedBy::Deadline, _) => Failure::TimedOut { limit_s: record.limit_s },
        (EndedBy::ParentGone, _) => killed("its guard, because the tuner was gone"),
        (EndedBy::Asked, _) => killed("its guard, which was asked to stop"),
        (EndedBy::Itself, Some(Exit::Code(0))) => Failure::Output {
            file: folder.join(RESULT).display().to_string(),
            problem: "missing, although the program ended without an error".to_owned(),
            telling_lines: printed(folder),
        },
        (EndedBy::Itself, exit) if record.oom_kills > 0 && explained_by_kill(exit) => {
            Failure::OutOfMemory { max_rss_bytes: record.max_rss_bytes }
        }
        (EndedBy::Itself, Some(Exit::Signal(signal))) if FROM_OUTSIDE.iter().any(|s| *s as i32 == signal) => {
            killed(&format!("another process; the run {}", Exit::Signal(signal)))
        }
        (EndedBy::Itself, Some(Exit::Code(code))) if [NOT_FOUND, NOT_STARTED].map(i32::from).contains(&code) => {
            let what = record.command.first().cloned().unwrap_or_default();
            Failure::Launch { what, why: printed(folder).join("; ") }
        }
        (EndedBy::Itself, Some(Exit::Code(REFUSED))) => Failure::Infeasible { why: printed(folder).join("; ") },
        (EndedBy::Itself, Some(exit)) => Failure::Crashed { exit, telling_lines: printed(folder) },
        (EndedBy::Itself, None) => killed("something unknown; the system kept no status"),
    }
}

/// Whether a run may have ended so because the system has killed one of its processes: another one of this machine may have been killed.
fn explained_by_kill(exit: Option<Exit>) -> bool {
    match exit {
        Some(Exit::Signal(signal)) => signal == Signal::SIGKILL as i32,
        // A launcher whose rank was killed ends with a code of its own, but not with those that say why a run did not begin.
        Some(Exit::Code(code)) => ![REFUSED, NOT_STARTED.into(), NOT_FOUND.into()].contains(&code),
        None => true,
    }
}

/// Signals that are sent by other processes, not caused by a fault of the program.
const FROM_OUTSIDE: [Signal; 5] = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

fn measurement(result: RunResult, residual: f64, record: &GuardRecord) -> Measurement {
    Measurement {
        rate_gflops: result.rate_gflops,
        time_s: result.time_s,
        residual,
        passed: result.passed,
        wall_s: record.wall_s,
        generate_s: result.generate_s,
        check_s: result.check_s,
        started_utc: record.started_utc.clone(),
        command: record.command.clone(),
        kernel: result.kernel.clone(),
        host: result.host.clone(),
        result: Some(result),
    }
}

/// Telling lines of stderr, or else of stdout.
pub(super) fn printed(folder: &Path) -> Vec<String> {
    let of = |name| telling_lines(&tail(&folder.join(name)), LINES);
    let errors = of(STDERR);
    if errors.is_empty() { of(STDOUT) } else { errors }
}

/// The end of a file; empty when there is none.
pub(super) fn tail(path: &Path) -> Vec<u8> {
    let mut end = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let length = file.metadata().map_or(0, |about| about.len());
        // An unreadable file is not shown; the failure itself is known from the record.
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).and_then(|_| file.read_to_end(&mut end));
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(ended_by: EndedBy, exit: Exit, oom_kills: u64) -> &'static str {
        let folder = tempfile::tempdir().unwrap();
        let record = GuardRecord { oom_kills, ..GuardRecord::of_end(ended_by, Some(exit)) };
        judge(folder.path(), &record).unwrap_err().kind()
    }

    #[test]
    fn an_end_without_a_result_has_one_kind() {
        use EndedBy::{Asked, Deadline, Itself, ParentGone};
        let cases = [
            (Deadline, Exit::Signal(15), 0, "timed-out"),
            (Deadline, Exit::Signal(9), 1, "timed-out"),
            (ParentGone, Exit::Signal(15), 0, "killed"),
            (Asked, Exit::Signal(15), 0, "killed"),
            (Itself, Exit::Signal(9), 1, "out-of-memory"),
            // A shell or mpirun reports the signal of the process that the system ended.
            (Itself, Exit::Code(137), 1, "out-of-memory"),
            // Of a launcher with its own codes.
            (Itself, Exit::Code(1), 1, "out-of-memory"),
            (Itself, Exit::Signal(9), 0, "killed"),
            (Itself, Exit::Signal(15), 0, "killed"),
            (Itself, Exit::Signal(11), 0, "crashed"),
            (Itself, Exit::Code(1), 0, "crashed"),
            (Itself, Exit::Code(2), 0, "infeasible"),
            (Itself, Exit::Code(126), 0, "launch"),
            (Itself, Exit::Code(127), 0, "launch"),
            (Itself, Exit::Code(0), 0, "output"),
            (Itself, Exit::Code(0), 1, "output"),
            // Another process of the machine was killed for lack of memory.
            (Itself, Exit::Signal(15), 1, "killed"),
            (Itself, Exit::Signal(11), 1, "crashed"),
            (Itself, Exit::Signal(7), 1, "crashed"),
            (Itself, Exit::Signal(6), 1, "crashed"),
            (Itself, Exit::Code(2), 1, "infeasible"),
            (Itself, Exit::Code(126), 1, "launch"),
            (Itself, Exit::Code(127), 1, "launch"),
        ];
        for (ended_by, exit, oom_kills, expected) in cases {
            assert_eq!(kind(ended_by, exit, oom_kills), expected, "{ended_by:?} {exit:?} {oom_kills}");
        }
    }
}
