//! Who a trial is, before it ends.

use serde::{Deserialize, Serialize};

use crate::power::RunPower;

/// What surrounded a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Circumstances {
    /// Wall-clock seconds that it took, start and end of the process included.
    pub wall_s: f64,
    /// Wall-clock seconds of the budget left after it.
    pub left_s: f64,
    /// As [`super::Row::steal_share`].
    pub steal_share: Option<f64>,
    /// As [`super::Row::clock_hz`].
    pub clock_hz: Option<f64>,
    /// As [`super::Row::gpu_clock_hz`].
    pub gpu_clock_hz: Option<f64>,
    /// As [`super::Row::gpu_temperature_c`].
    pub gpu_temperature_c: Option<f64>,
    /// As [`super::Row::nodes_apart`].
    pub nodes_apart: Option<String>,
    /// The power that it took.
    pub power: RunPower,
}

/// A posterior at one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Median of the expected GFLOP/s.
    pub rate_gflops: f64,
    /// Standard deviation of its natural logarithm.
    pub sd: f64,
}

/// Who a trial is; all that is known of it before it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Number of the trial in its session, from 0.
    pub trial: u64,
    /// The trial whose candidate is measured again.
    pub repeat_of: Option<u64>,
    /// The trial measured just before, or first in the same round, to compare with.
    pub paired_with: Option<u64>,
    /// As [`super::Row::reference_trial`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_trial: Option<u64>,
    /// What chose the candidate.
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// Name of the engine.
    pub engine: String,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// The command, quoted for a shell.
    pub command: String,
    /// As [`super::Row::nodes`].
    pub nodes: Option<String>,
}

impl Identity {
    /// [`super::Row::strategy`] of a run of the baseline configuration.
    pub const BASELINE: &str = "baseline";
    /// [`super::Row::strategy`] of the usual configuration on a group of nodes, by which the speed of the group is known.
    pub const REFERENCE: &str = "reference";
    /// [`super::Row::strategy`] of the runs of the design, for an engine that no model was made for.
    pub const DESIGN: &str = "design";
    /// [`super::Row::strategy`] of repeats of the best that no strategy asked for: before a search ends early, and in time that is left.
    pub const RACE: &str = "race";
    /// [`super::Row::strategy`] of the runs that compare baseline and best after the final run.
    pub const CONFIRM: &str = "confirm";
    /// [`super::Row::strategy`] of the runs of the expert's configuration, between those of baseline and best.
    pub const EXPERT: &str = "expert";
    /// [`super::Row::strategy`] of the whole runs of leaders that windows have found.
    pub const PROMOTE: &str = "promote";
    /// [`super::Row::strategy`] of the final, verified run.
    pub const FINAL: &str = "final";
}
