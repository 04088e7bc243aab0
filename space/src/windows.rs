//! The result of windows of a run: some steps measured, the whole run predicted.

use serde::{Deserialize, Serialize};

use crate::Candidate;
use crate::result::PhaseTime;

/// Version of the schema of [`WindowsResult`].
pub const WINDOWS_SCHEMA: u32 = 1;

/// Some steps of a run, measured without the steps before them, with the prediction for the whole run.
///
/// It is no [`crate::RunResult`] and cannot be read as one: the whole was not run. All times are measured but
/// those whose names begin with `predicted_`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowsResult {
    /// [`WINDOWS_SCHEMA`] of the writer.
    pub windows_schema_version: u32,
    /// The run that was sampled, kernels resolved.
    pub candidate: Candidate,
    /// The windows in the order in which they ran.
    pub windows: Vec<WindowResult>,
    /// Whether no check has failed.
    pub passed: bool,
    /// Time to generate the trailing matrices, in seconds.
    pub generate_s: f64,
    /// Time of the checks, in seconds.
    pub check_s: f64,
    /// Wall time of the whole measurement in seconds: memory, generation, windows, checks.
    pub wall_s: f64,
    /// Time in each phase of the steps that were run; `end_s` counts from the start of the window.
    pub phases: Vec<PhaseTime>,
    /// Predicted time of the whole run in seconds, back substitution included.
    pub predicted_time_s: f64,
    /// GFLOP/s of the predicted time by [`crate::flops::rate_gflops`].
    pub predicted_rate_gflops: f64,
    /// Half width of the interval around the predicted time that the measured steps leave open, in seconds: one
    /// standard error, or all that is extrapolated from one cycle of panel owners alone. Drift of the machine between this
    /// measurement and a run is not in it.
    pub predicted_spread_s: f64,
    /// Predicted time of the back substitution in seconds, from that of the largest trailing matrix.
    pub predicted_trsv_s: f64,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// Host name.
    pub host: String,
    /// Kernels with version.
    pub kernel: String,
    /// Version of the engine.
    pub version: String,
}

/// Version of the schema of [`PairResult`].
pub const PAIR_SCHEMA: u32 = 1;

/// Windows of two runs of the same order, measured in turn in one process and the same memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// [`PAIR_SCHEMA`] of the writer.
    pub pair_schema_version: u32,
    /// Natural logarithm of the candidate's rate divided by the reference's, as predicted by the windows alone for whole runs.
    pub predicted_log_ratio: f64,
    /// One standard error of it, from the differences between repeated windows.
    pub predicted_log_ratio_sd: f64,
    /// The windows of the candidate; its wall time is that of the whole measurement.
    pub candidate: WindowsResult,
    /// Those of the reference.
    pub reference: WindowsResult,
}

impl PairResult {
    /// Whether no check of either has failed.
    pub fn passed(&self) -> bool {
        self.candidate.passed && self.reference.passed
    }
}

/// One measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    /// Index of its first step, from 0.
    pub first: usize,
    /// Number of its steps.
    pub steps: usize,
    /// Time before its first step, in seconds: the panels that a run has in flight there, without overlap.
    pub prologue_s: f64,
    /// Time of each step in seconds, maximum over ranks.
    pub step_s: Vec<f64>,
    /// Scaled residual of what is left after the window; `None` when nothing is left, it is no number, or the
    /// threshold says not to check.
    pub residual: Option<f64>,
    /// Whether the residual is below the threshold; `None` when nothing was checked.
    pub passed: Option<bool>,
}
