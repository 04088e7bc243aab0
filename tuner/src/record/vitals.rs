//! What the machine did to a trial: time that others took of it, its clock, and the power that it took.

use hpl::machine::host::{CpuTimes, facts};
use hpl::measure::power::{PowerSampler, PowerSamples};

use crate::power::PowerReader;
use crate::record::Circumstances;

/// Watches the host during one trial.
#[derive(Debug)]
pub struct Vitals<'a> {
    before: Option<CpuTimes>,
    clock_hz: Option<f64>,
    looked: bool,
    power: PowerSampler<'a>,
}

impl<'a> Vitals<'a> {
    /// Begins to watch.
    pub fn start(power: &'a PowerReader) -> Self {
        Self { before: facts().cpu_times, clock_hz: None, looked: false, power: power.start() }
    }

    /// Takes the clock, once, while the trial runs, and power when it is time; called some times a second.
    pub fn look(&mut self) {
        self.power.look();
        if !self.looked {
            self.looked = true;
            self.clock_hz = facts().clock_hz;
        }
    }

    /// What surrounded the trial that took `wall_s` seconds and left `left_s` of the budget, as yet without its power, and the samples
    /// of that.
    pub fn end(self, wall_s: f64, left_s: f64) -> (Circumstances, PowerSamples) {
        let stolen = |before: &CpuTimes| facts().cpu_times?.stolen_since(before);
        let steal_share = self.before.as_ref().and_then(stolen);
        let samples = self.power.end();
        (Circumstances { wall_s, left_s, steal_share, clock_hz: self.clock_hz, ..Circumstances::default() }, samples)
    }
}
