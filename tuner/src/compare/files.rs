//! Runs in a file: what HPL prints, or the results of our engine as JSON, one after the other.

use objectives::real::Extent;
use serde::de::DeserializeOwned;
use serde_json::Value;
use space::result::RESULT_SCHEMA;
use space::windows::WINDOWS_SCHEMA;
use space::{Candidate, EngineParams, RunResult, WindowsResult, out};

use super::run::{Ended, Known, Run, RunOrigin};
use crate::record::session::Session;

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Neither of the two formats.
    #[error(
        "no result in it; give the output of HPL (lines WR… or WC… with N NB P Q time Gflops), a result.json, or a run folder"
    )]
    NoResult,
    /// A result of HPL's output that is not whole.
    #[error("line {line}: a result line of HPL that is cut off or damaged: {text}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// What is there.
        text: String,
    },
    /// JSON that is not a result.
    #[error("line {line}: {problem}")]
    Json {
        /// Line number where the value begins, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// The kind of the file in words, and its runs.
///
/// # Errors
/// [`FileError`] with the place.
pub fn runs(bytes: &[u8]) -> Result<(&'static str, Vec<Run>), FileError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let (kind, runs) =
        if first == Some(&b'{') { ("result.json", of_json(bytes)?) } else { ("HPL.out", of_output(bytes)?) };
    if runs.is_empty() { Err(FileError::NoResult) } else { Ok((kind, runs)) }
}

/// Longest part of a damaged line that a message shows, in characters.
const SHOWN: usize = 60;

fn of_output(bytes: &[u8]) -> Result<Vec<Run>, FileError> {
    let text = String::from_utf8_lossy(bytes);
    let begins = |line: &str| ["WR", "WC"].iter().any(|start| line.trim_start().starts_with(start));
    let damaged = |line: &&str| begins(line) && out::parse(line).is_empty();
    if let Some((index, line)) = text.lines().enumerate().find(|(_, line)| damaged(line)) {
        let text = line.trim().chars().take(SHOWN).collect();
        return Err(FileError::Damaged { line: index + 1, text });
    }
    let run = |record: out::OutRecord| {
        let ended = match record.passed {
            Some(true) if record.rate_gflops > 0.0 => {
                Ended::Passed { rate_gflops: record.rate_gflops, residual: record.residual }
            }
            Some(true) => Ended::Lost,
            Some(false) => Ended::Wrong,
            None => Ended::Unchecked,
        };
        let candidate = Candidate { hpl: record.params, engine: EngineParams::default() };
        let (started, origin) = (None, RunOrigin::default());
        Run { candidate, known: Known::Output, extent: Extent::Whole, ended, started, origin }
    };
    Ok(out::parse(&text).into_iter().map(run).collect())
}

fn of_json(bytes: &[u8]) -> Result<Vec<Run>, FileError> {
    // Counted for errors alone: the whole text before is read for it.
    let line_of = |offset: usize| {
        let skipped = bytes[offset..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        1 + bytes[..offset + skipped].iter().filter(|&&byte| byte == b'\n').count()
    };
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let mut runs = Vec::new();
    loop {
        let offset = values.byte_offset();
        let bad = |problem: String| FileError::Json { line: line_of(offset), problem };
        let Some(value) = values.next() else { return Ok(runs) };
        let value = value.map_err(|error| bad(format!("not JSON: {error}")))?;
        // What xhpl says of a run that it did not make.
        if value.get("skipped").is_some() {
            continue;
        }
        runs.push(of_value(value).map_err(bad)?);
    }
}

fn of_value(value: Value) -> Result<Run, String> {
    let has = |key: &str| value.get(key).is_some();
    if has("pair_schema_version") {
        return Err("this is already a comparison: windows of two runs in turn; give results of runs".to_owned());
    }
    if has("windows_schema_version") {
        let result: WindowsResult = versioned(value, "windows_schema_version", WINDOWS_SCHEMA)?;
        let residuals = result.windows.iter().filter_map(|window| window.residual);
        let (rate, residual) = (result.predicted_rate_gflops, residuals.reduce(f64::max));
        let ended = ended(rate, result.passed, residual);
        let made = [&result.host, &result.kernel, &result.version, &result.started_utc];
        return Ok(run(result.candidate.clone(), Extent::Windows, ended, made));
    }
    if has("schema_version") && has("candidate") {
        let result: RunResult = versioned(value, "schema_version", RESULT_SCHEMA)?;
        let ended = ended(result.rate_gflops, result.passed, result.residual);
        let made = [&result.host, &result.kernel, &result.version, &result.started_utc];
        return Ok(run(result.candidate.clone(), Extent::Whole, ended, made));
    }
    Err("not a result of a run; hpl-tune run --result and xhpl --json write such".to_owned())
}

/// A result without a residual was not checked, or has no solution.
fn ended(rate_gflops: f64, passed: bool, residual: Option<f64>) -> Ended {
    let rated = rate_gflops.is_finite() && rate_gflops > 0.0;
    match (passed, residual) {
        (true, Some(_)) if rated => Ended::Passed { rate_gflops, residual },
        (false, Some(_)) => Ended::Wrong,
        (_, None) if rated => Ended::Unchecked,
        _ => Ended::Lost,
    }
}

fn run(candidate: Candidate, extent: Extent, ended: Ended, [host, kernel, version, started]: [&String; 4]) -> Run {
    let origin = RunOrigin {
        host: Some(host.clone()),
        engine: Some(Session::OURS.to_owned()),
        kernel: Some(kernel.clone()),
        versions: Some(format!("hpl {version}")),
        command: None,
    };
    Run { candidate, known: Known::All, extent, ended, started: started.parse().ok(), origin }
}

/// A value of a version that is known here.
fn versioned<T: DeserializeOwned>(value: Value, key: &str, known: u32) -> Result<T, String> {
    let found = value.get(key).and_then(Value::as_u64);
    if found.is_none_or(|found| found == 0 || found > u64::from(known)) {
        let found = value.get(key).map_or("none".to_owned(), Value::to_string);
        return Err(format!("{key} {found}, this program reads up to {known}"));
    }
    serde_json::from_value(value).map_err(|error| format!("not a result: {error}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use space::HplParams;

    use super::*;

    /// HPL.out with a result of NB 128 per rate at N = 8000.
    pub(crate) fn output(rates: &[f64]) -> String {
        let result = |rate: &f64| {
            format!(
                "WR11C2R4        8000   128     1     2               3.50             {rate:.4e}\n\
                 ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.11204902e-03 ...... PASSED\n"
            )
            .replace("e1", "e+01")
        };
        rates.iter().map(result).collect()
    }

    fn result(rate: f64, second: u32) -> RunResult {
        RunResult {
            schema_version: RESULT_SCHEMA,
            candidate: Candidate { hpl: HplParams::baseline(1000, 1, 1), engine: EngineParams::default() },
            time_s: 1.0,
            rate_gflops: rate,
            device: None,
            fma_peak_gflops: None,
            fma_peak_share: None,
            residual: Some(0.003),
            passed: true,
            info: 0,
            generate_s: 0.1,
            check_s: 0.1,
            x_hash: None,
            phases: Vec::new(),
            started_utc: format!("2026-11-20T07:00:{second:02}Z"),
            core_started_utc: None,
            host: "node7".into(),
            kernel: "builtin".into(),
            version: "0.1.0".into(),
        }
    }

    #[test]
    fn results_of_our_engine_are_read_one_after_the_other() {
        let line = |result: &RunResult| serde_json::to_string(result).unwrap() + "\n";
        let wrong = RunResult { passed: false, ..result(9.0, 2) };
        let unchecked = RunResult { residual: None, passed: false, ..result(9.0, 3) };
        let skipped = "{\"schema_version\": 1, \"candidate\": {}, \"skipped\": \"no memory\"}\n";
        let text = line(&result(10.0, 1)) + skipped + &line(&wrong) + &line(&unchecked);
        let (kind, runs) = runs(text.as_bytes()).unwrap();
        assert_eq!((kind, runs.len()), ("result.json", 3));
        assert_eq!(runs[0].ended, Ended::Passed { rate_gflops: 10.0, residual: Some(0.003) });
        assert_eq!((runs[1].ended, runs[2].ended), (Ended::Wrong, Ended::Unchecked));
        assert_eq!((runs[0].origin.host.as_deref(), runs[0].started.is_some()), (Some("node7"), true));
    }

    #[test]
    fn output_of_hpl_tells_no_threads() {
        let text = output(&[97.5, 98.5]) + "WR11C2R4 8000 192 1 2 3.40 9.9500e+01\n";
        let (kind, runs) = runs(text.as_bytes()).unwrap();
        let rates: Vec<Option<f64>> = runs.iter().map(Run::rate_gflops).collect();
        assert_eq!((kind, rates), ("HPL.out", vec![Some(97.5), Some(98.5), None]));
        assert_eq!(runs[2].ended, Ended::Unchecked);
        assert!(runs[0].words().iter().all(|(name, _)| name != "threads"));
    }

    #[test]
    fn what_is_damaged_is_named_with_its_line() {
        let cut = output(&[97.5]) + "WR11C2R4        8000   256     1     2               3.";
        let newer = serde_json::to_string(&RunResult { schema_version: RESULT_SCHEMA + 1, ..result(1.0, 0) }).unwrap();
        let good = serde_json::to_string(&result(1.0, 0)).unwrap();
        let half = format!("{good}\n\n{}", &good[..50]);
        for (text, words) in [
            (cut.as_str(), "line 3: a result line of HPL that is cut off"),
            ("dear diary\n", "no result in it"),
            ("", "no result in it"),
            ("\n{\"a\": 1}", "line 2: not a result of a run"),
            ("{\"pair_schema_version\": 1}", "already a comparison"),
            (newer.as_str(), "this program reads up to 1"),
            (half.as_str(), "line 3: not JSON"),
            ("{\"schema_version\": 1, \"candidate\": 7}", "line 1: not a result"),
        ] {
            let message = runs(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(words), "'{words}' is not in: {message}");
        }
    }

    /// With all lines before counted for each value this took minutes.
    #[test]
    fn the_line_of_a_bad_value_is_told_after_many_good_ones() {
        let text = "{\"skipped\": \"no memory\"}\n".repeat(200_000) + "{\"a\": 1}";
        let message = runs(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("line 200001: not a result of a run"), "{message}");
    }
}
