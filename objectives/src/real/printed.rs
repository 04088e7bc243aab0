//! The outcome of a run of another engine, from its output.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use space::Candidate;
use space::flops::rate_gflops;
use space::stats::median;

use super::guard::STDOUT;
use super::record::{EndedBy, GuardRecord};
use super::verdict::{no_result, printed};
use crate::foreign::{Foreign, PrintedResult};
use crate::{Exit, Failure, Measurement};

/// Maximum number of bytes read from an output at once; our own captures are far smaller.
pub(super) const MOST_BYTES: u64 = 16 << 20;

/// Maximum relative difference between the printed rate and that from N and the printed time, beyond the rounding of the
/// time: some programs count 3N² flops less.
const ROUNDING: f64 = 0.02;

/// Half of the last digit of a printed time in seconds.
const LAST_DIGIT_S: f64 = 0.006;

/// The outcome of the run of `candidate` in `folder` that ended as `record` states: each result must have passed its check;
/// the score is the median of their rates. A result that was printed before the guard ended the run is valid.
pub(super) fn judge_printed(
    engine: &Foreign,
    candidate: &Candidate,
    command: Vec<String>,
    folder: &Path,
    record: &GuardRecord,
) -> Result<Measurement, Failure> {
    let file = folder.join(engine.profile().output.as_deref().unwrap_or(STDOUT));
    let bad =
        |problem: String| Failure::Output { file: file.display().to_string(), problem, telling_lines: printed(folder) };
    let parts = parts(&file, MOST_BYTES);
    let readings: Vec<_> = parts.iter().flat_map(|part| engine.read(complete_lines(part, record))).collect();
    if readings.is_empty() && ended_well(record) {
        return Err(bad(format!("no line matches the pattern of a result, {}", engine.result_pattern())));
    }
    let unfinished = || match no_result(folder, record) {
        // Exit code 2 has a meaning for our engine only.
        Failure::Infeasible { .. } if record.oom_kills > 0 => {
            Failure::OutOfMemory { max_rss_bytes: record.max_rss_bytes }
        }
        Failure::Infeasible { .. } => {
            Failure::Crashed { exit: record.exit.unwrap_or(Exit::Code(2)), telling_lines: printed(folder) }
        }
        Failure::Output { .. } => {
            bad(format!("{} results, {} were asked for", readings.len(), engine.profile().repeats))
        }
        failure => failure,
    };
    if readings.len() < engine.profile().repeats {
        return Err(unfinished());
    }
    let with = |verdict: Option<bool>| readings.iter().find(|reading| reading.passed == verdict);
    let failed = with(Some(false));
    // A result may be printed before its check: a run that is ended in between is not wrong.
    let last_unchecked = readings.last().is_some_and(|last| last.passed.is_none());
    if failed.is_none() && last_unchecked && !ended_well(record) {
        return Err(unfinished());
    }
    if let Some(wrong) = failed.or_else(|| with(None)) {
        return Err(Failure::Residual { value: wrong.residual, info: 0 });
    }
    if let Some(problem) = readings.iter().find_map(|reading| contradiction(reading, candidate, record)) {
        return Err(bad(problem));
    }
    match record.exit {
        Some(exit) if record.ended_by == EndedBy::Itself && exit != Exit::Code(0) => {
            Err(Failure::Crashed { exit, telling_lines: printed(folder) })
        }
        _ => Ok(measurement(engine, candidate, command, &readings, record)),
    }
}

fn ended_well(record: &GuardRecord) -> bool {
    record.ended_by == EndedBy::Itself && record.exit == Some(Exit::Code(0))
}

/// The lines of an output; of a run that was ended without the last one, where that is not whole: a verdict in it may be cut.
fn complete_lines<'a>(output: &'a str, record: &GuardRecord) -> &'a str {
    let end = output.rfind('\n').map_or(0, |end| end + 1);
    if ended_well(record) { output } else { &output[..end] }
}

/// A contradiction in a result.
fn contradiction(reading: &PrintedResult, candidate: &Candidate, record: &GuardRecord) -> Option<String> {
    let (n, rate) = (candidate.hpl.n, reading.rate_gflops);
    if !(rate.is_finite() && rate > 0.0) {
        return Some(format!("a rate of {rate} GFLOP/s"));
    }
    if let Some((name, printed, asked)) = reading.other_than(&candidate.hpl) {
        return Some(format!("a result for {name} = {printed}, {asked} was asked for"));
    }
    let time_s = time_of(n, rate);
    if time_s > 1.05 * record.wall_s + 0.05 {
        return Some(format!(
            "{rate} GFLOP/s take {time_s:.2} s at N = {n}, the program ran for {:.2} s",
            record.wall_s
        ));
    }
    let printed_s = reading.time_s.filter(|printed_s| (printed_s - time_s).abs() > ROUNDING * time_s + LAST_DIGIT_S);
    printed_s.map(|printed_s| format!("{rate} GFLOP/s, but its N and its time of {printed_s} s give another rate"))
}

/// Seconds of a run at this rate.
fn time_of(n: usize, rate: f64) -> f64 {
    rate_gflops(n, 1.0) / rate
}

fn measurement(
    engine: &Foreign,
    candidate: &Candidate,
    command: Vec<String>,
    readings: &[PrintedResult],
    record: &GuardRecord,
) -> Measurement {
    let rates: Vec<f64> = readings.iter().map(|reading| reading.rate_gflops).collect();
    let rate = median(&rates).unwrap_or(0.0);
    let host = nix::unistd::gethostname().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned());
    Measurement {
        rate_gflops: rate,
        time_s: time_of(candidate.hpl.n, rate),
        residual: readings.iter().filter_map(|reading| reading.residual).fold(0.0, f64::max),
        passed: true,
        wall_s: record.wall_s,
        generate_s: 0.0,
        check_s: 0.0,
        started_utc: record.started_utc.clone(),
        command,
        kernel: engine.profile().name.clone(),
        host,
        result: None,
    }
}

/// The text of a file, lossily decoded, but for the middle of a very large one; empty when there is none.
pub(super) fn text(path: &Path) -> String {
    parts(path, MOST_BYTES).concat()
}

/// The text of a file, lossily decoded; of more than `most` bytes the whole lines of the first and of the last half of so many, as two
/// parts: a check in one of them may be of a result between them. None of an unreadable file: it contains no result, which the message states.
fn parts(path: &Path, most: u64) -> Vec<String> {
    let parts = bytes(path, most).unwrap_or_default();
    parts.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn bytes(path: &Path, most: u64) -> io::Result<Vec<Vec<u8>>> {
    let about = fs::metadata(path)?;
    // What is a pipe or a device would never end.
    if !about.is_file() {
        return Ok(Vec::new());
    }
    let mut file = fs::File::open(path)?;
    let mut first = Vec::new();
    if about.len() <= most {
        file.take(most).read_to_end(&mut first)?;
        return Ok(vec![first]);
    }
    let mut last = Vec::new();
    file.by_ref().take(most / 2).read_to_end(&mut first)?;
    file.seek(SeekFrom::Start(about.len() - most / 2))?;
    file.take(most / 2).read_to_end(&mut last)?;
    // A line that is cut may say something else.
    first.truncate(first.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    last.drain(..last.iter().position(|&byte| byte == b'\n').map_or(last.len(), |end| end + 1));
    Ok(vec![first, last])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result at the end of a very large output was lost.
    #[test]
    fn a_large_output_is_read_at_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("HPL.out");
        let lines: String = (0..1000).map(|line| format!("line {line:03}\n")).collect();
        fs::write(&path, &lines).unwrap();
        assert_eq!(parts(&path, 9000), [lines.as_str()]);
        assert_eq!(parts(&path, 50), ["line 000\nline 001\n", "line 998\nline 999\n"]);
        assert_eq!(parts(&path, 2), ["", ""]);
        assert!(parts(&folder.path().join("none"), 50).is_empty() && parts(folder.path(), 50).is_empty());
    }
}
