//! What the machine did to a trial: time that others took of it, and its clock.

use hpl::machine::host::{CpuTimes, facts};

use crate::record::Circumstances;

/// Watches the host during one trial.
#[derive(Debug)]
pub struct Vitals {
    before: Option<CpuTimes>,
    clock_hz: Option<f64>,
    looked: bool,
}

impl Vitals {
    /// Begins to watch.
    pub fn start() -> Self {
        Self { before: facts().cpu_times, clock_hz: None, looked: false }
    }

    /// Takes the clock, once, while the trial runs.
    pub fn look(&mut self) {
        if !self.looked {
            self.looked = true;
            self.clock_hz = facts().clock_hz;
        }
    }

    /// What surrounded the trial that took `wall_s` seconds and left `left_s` of the budget.
    pub fn end(&self, wall_s: f64, left_s: f64) -> Circumstances {
        let stolen = |before: &CpuTimes| facts().cpu_times?.stolen_since(before);
        Circumstances { wall_s, left_s, steal_share: self.before.as_ref().and_then(stolen), clock_hz: self.clock_hz }
    }
}
