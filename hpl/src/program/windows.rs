//! Windows of a run instead of the whole run.

use std::io;
use std::path::Path;
use std::time::Instant;

use space::windows::{WINDOWS_SCHEMA, WindowResult, WindowsResult};
use space::{Candidate, flops};

use super::job::{self, Job, RankReport};
use super::{Ranks, RunError, RunOptions, Runner};
use crate::machine::host;
use crate::plan::windows::{WindowTimes, Windows, WindowsReport, predict};
use crate::program::files;

/// Measures windows of one candidate on threads of this process.
///
/// # Errors
/// [`RunError`]; a failed check is no error.
pub fn measure_candidate(
    candidate: &Candidate,
    windows: &Windows,
    options: &RunOptions<'_>,
) -> Result<WindowsResult, RunError> {
    Runner::new(&candidate.engine.kernels)?.measure_windows_on(&Ranks::threads(), candidate, windows, options)
}

/// Writes the result of windows as JSON, complete or not at all.
///
/// # Errors
/// Those of [`files::write_atomically`].
pub fn write_windows(path: &Path, result: &WindowsResult) -> io::Result<()> {
    files::write_atomically(path, &serde_json::to_vec(result)?)
}

impl Runner {
    /// Measures windows of one candidate with the loaded kernels, and predicts the time of its whole run.
    ///
    /// # Errors
    /// [`RunError`]; a failed check is no error.
    pub fn measure_windows_on(
        &self,
        ranks: &Ranks,
        candidate: &Candidate,
        windows: &Windows,
        options: &RunOptions<'_>,
    ) -> Result<WindowsResult, RunError> {
        let measurement = MeasurementStart::now();
        let candidate = self.accept(ranks, candidate, options.force)?;
        let windows = windows.of(&candidate.hpl)?;
        let kernels = ranks.kernels(&self.kernels, &candidate.engine.rank_kernels)?;
        let (outcome, of_ranks) = ranks.run_on_all(&candidate, &Job::Windows(windows), &kernels, &())?;
        let measured = (outcome.windows(), of_ranks);
        Ok(measurement.result(candidate, measured, options.threshold))
    }
}

/// A measurement that has started.
pub(super) struct MeasurementStart {
    clock: Instant,
    started_utc: String,
}

impl MeasurementStart {
    pub(super) fn now() -> Self {
        Self { clock: Instant::now(), started_utc: jiff::Timestamp::now().to_string() }
    }

    /// The result of the windows of `candidate`, with the predicted time of its whole run.
    pub(super) fn result(
        &self,
        candidate: Candidate,
        (report, of_ranks): (WindowsReport, Vec<RankReport>),
        threshold: f64,
    ) -> WindowsResult {
        let report = WindowsReport { phases: job::phases(&of_ranks), ..report };
        let kernel = job::kernels(&of_ranks[..candidate.hpl.ranks()]);
        WindowsResult {
            started_utc: self.started_utc.clone(),
            wall_s: self.clock.elapsed().as_secs_f64(),
            ..result_of(candidate, report, threshold, kernel, host::facts().hostname)
        }
    }
}

/// The result of the windows in `report`, with the phases of all ranks, and the prediction of the whole run of `candidate` on
/// `host`. Its start is the current time, its `wall_s` 0.
pub fn result_of(
    candidate: Candidate,
    report: WindowsReport,
    threshold: f64,
    kernel: String,
    host: String,
) -> WindowsResult {
    let prediction = predict(&candidate, &report);
    let WindowsReport { trsv_s, generate_s, check_s, phases, windows } = report;
    let windows: Vec<_> = windows.iter().map(|times| window(times, threshold)).collect();
    WindowsResult {
        windows_schema_version: WINDOWS_SCHEMA,
        passed: windows.iter().all(|window| window.passed != Some(false)),
        windows,
        generate_s,
        check_s,
        phases,
        predicted_time_s: prediction.time_s,
        predicted_rate_gflops: flops::rate_gflops(candidate.hpl.n, prediction.time_s),
        predicted_spread_s: prediction.spread_s,
        predicted_trsv_s: trsv_s,
        started_utc: jiff::Timestamp::now().to_string(),
        host,
        kernel,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        candidate,
        wall_s: 0.0,
    }
}

/// The result of one window; its residual is checked against a threshold above 0.
fn window(times: &WindowTimes, threshold: f64) -> WindowResult {
    let WindowTimes { window, prologue_s, step_s, residual } = times;
    let residual = residual.filter(|_| threshold > 0.0);
    WindowResult {
        first: window.first,
        steps: window.steps,
        prologue_s: *prologue_s,
        step_s: step_s.clone(),
        residual,
        passed: residual.map(|residual| residual < threshold),
    }
}
