//! A successful evaluation of a candidate.

use serde::{Deserialize, Serialize};
use space::{RunResult, WindowsResult};

/// The result of a run that passed the residual check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The score in GFLOP/s.
    pub rate_gflops: f64,
    /// Time of factorization and back substitution in seconds.
    pub time_s: f64,
    /// Scaled residual; finite.
    pub residual: f64,
    /// Always true: a run that did not pass is [`Failure::Residual`](crate::Failure::Residual).
    pub passed: bool,
    /// Wall-clock seconds from the start of the command to its end.
    pub wall_s: f64,
    /// Seconds of the generation of the matrix.
    pub generate_s: f64,
    /// Seconds of the check.
    pub check_s: f64,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// The words of the command, quoted for bash where needed: joined with spaces, they repeat the run.
    pub command: Vec<String>,
    /// Kernels with version.
    pub kernel: String,
    /// Host name.
    pub host: String,
    /// The result that the engine wrote, with the time of each phase; `None` for other engines.
    pub result: Option<RunResult>,
}

/// The result of a successful trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A whole run.
    Whole(Measurement),
    /// Windows of a run.
    Windows(WindowsMeasurement),
}

/// Windows of a run: some steps measured, the time of the whole estimated from them.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowsMeasurement {
    /// The result that the engine wrote.
    pub result: WindowsResult,
    /// Wall-clock seconds from the start of the command to its end.
    pub wall_s: f64,
    /// The words of the command, quoted for bash where needed.
    pub command: Vec<String>,
    /// The reference that was measured in turn with it; `None` where it was measured alone.
    pub pair: Option<PairMeasurement>,
}

/// What windows of a candidate and of a reference in turn say of the two.
#[derive(Debug, Clone, PartialEq)]
pub struct PairMeasurement {
    /// The windows of the reference.
    pub reference: Box<WindowsResult>,
    /// Natural logarithm of the candidate's rate divided by the reference's, estimated for whole runs.
    pub log_ratio: f64,
    /// One standard error of it, by the differences between repeated windows.
    pub log_ratio_sd: f64,
}

impl WindowsMeasurement {
    /// Largest scaled residual of the windows.
    pub fn residual(&self) -> Option<f64> {
        self.result.windows.iter().filter_map(|window| window.residual).reduce(f64::max)
    }

    /// Standard deviation of the logarithm of the estimated rate, from the steps that were not measured.
    pub fn estimated_sd(&self) -> f64 {
        self.result.predicted_spread_s / self.result.predicted_time_s
    }

    /// Measured fraction of the time of a whole run.
    pub fn measured_share(&self) -> f64 {
        let steps = self.result.windows.iter().flat_map(|window| &window.step_s);
        (steps.sum::<f64>() / self.result.predicted_time_s).min(1.0)
    }
}
