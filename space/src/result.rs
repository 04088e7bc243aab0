//! `result.json`: the result of one real run.

use serde::{Deserialize, Serialize};

use crate::Candidate;

/// Version of the `result.json` schema.
pub const RESULT_SCHEMA: u32 = 1;

/// One finished run of the engine, written by the run itself by rename.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`RESULT_SCHEMA`] of the writer.
    pub schema_version: u32,
    /// What was run, kernels resolved.
    pub candidate: Candidate,
    /// Time of factorization and back substitution in seconds, maximum over ranks.
    pub time_s: f64,
    /// GFLOP/s by [`crate::flops::rate_gflops`].
    pub rate_gflops: f64,
    /// Rate of independent multiply–adds of all threads right after the run, in GFLOP/s; `None` where several threads share a core,
    /// or in older files.
    #[serde(default)]
    pub fma_peak_gflops: Option<f64>,
    /// `rate_gflops` ÷ `fma_peak_gflops`.
    #[serde(default)]
    pub fma_peak_share: Option<f64>,
    /// Scaled residual; `None` when the threshold asks for none or the solve ended early.
    pub residual: Option<f64>,
    /// Whether the residual is below the threshold.
    pub passed: bool,
    /// Column of the first zero pivot, counted from 1; 0 when there was none.
    pub info: usize,
    /// Time to generate the matrix, in seconds.
    pub generate_s: f64,
    /// Time of the check, in seconds.
    pub check_s: f64,
    /// FNV-1a hash of the bits of the solution in hexadecimal, to compare two runs bit by bit;
    /// `None` when there is no solution, or in older files.
    #[serde(default)]
    pub x_hash: Option<String>,
    /// Time in each phase of each step.
    pub phases: Vec<PhaseTime>,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// Start of the core phase (factorization and back substitution, what HPL times) in UTC, RFC 3339, by the clock of rank 0; `None`
    /// in older files.
    #[serde(default)]
    pub core_started_utc: Option<String>,
    /// Host name.
    pub host: String,
    /// Kernels with version.
    pub kernel: String,
    /// The device of rank 0 with its libraries; `None` on the host, or in older files.
    #[serde(default)]
    pub device: Option<String>,
    /// Version of the engine.
    pub version: String,
}

impl RunResult {
    /// Start of the core phase: a time in UTC, and seconds after it. In older files what a run does before it generates the matrix is
    /// not known, and counts as nothing.
    pub fn core_start(&self) -> (&str, f64) {
        self.core_started_utc.as_deref().map_or((&self.started_utc, self.generate_s), |time| (time, 0.0))
    }
}

/// Seconds that one rank spent in each phase of one step.
///
/// Phases of the rank's first thread, in which no time is counted twice: panel work during an update with
/// look-ahead is not part of `update_s`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Step: index of the panel, from 0. The back substitution is the step after the last panel.
    pub step: u32,
    /// Rank.
    pub rank: u32,
    /// Panel factorization.
    pub fact_s: f64,
    /// Panel broadcast, waiting included.
    pub lbcast_s: f64,
    /// Row exchange, waiting included.
    pub rs_s: f64,
    /// Triangular solve and DGEMM.
    pub update_s: f64,
    /// Back substitution.
    pub trsv_s: f64,
    /// End of the step, since the start of the factorization; 0 where it was not recorded, and for the back
    /// substitution.
    #[serde(default)]
    pub end_s: f64,
}

impl PhaseTime {
    /// This phase of a step with all its times multiplied by `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            fact_s: factor * self.fact_s,
            lbcast_s: factor * self.lbcast_s,
            rs_s: factor * self.rs_s,
            update_s: factor * self.update_s,
            trsv_s: factor * self.trsv_s,
            end_s: factor * self.end_s,
            ..self
        }
    }
}
