//! The power of a simulated cluster.

use serde::{Deserialize, Serialize};

/// Power of each node of a simulated cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePower {
    /// When it only waits, in watts.
    pub idle_watts: f64,
    /// When all its cores compute, in watts.
    pub busy_watts: f64,
}

/// The power of a simulated run, of all its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPower {
    /// Length of the core phase in seconds; `None` for windows.
    pub core_s: Option<f64>,
    /// Mean power while its steps run, in watts.
    pub core_w: f64,
    /// GFLOP/s of a whole run.
    pub rate_gflops: Option<f64>,
    /// Length of the whole run in seconds.
    pub run_s: f64,
    /// Its mean power in watts.
    pub run_w: f64,
}

impl NodePower {
    /// Whether both are powers, and a busy node takes no less than an idle one.
    pub(super) fn is_valid(&self) -> bool {
        self.idle_watts >= 0.0 && self.busy_watts >= self.idle_watts && self.busy_watts.is_finite()
    }

    /// When a share of the time is busy, in watts.
    pub(super) fn watts(&self, busy: f64) -> f64 {
        self.idle_watts + (self.busy_watts - self.idle_watts) * busy
    }
}
