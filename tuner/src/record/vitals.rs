//! What the machine did to a trial: time that others took of it, its clock, that and the heat of accelerators, and the power that it took.

use hpl::machine::accelerators::{AcceleratorState, Accelerators};
use hpl::machine::host::{CpuTimes, facts};
use hpl::measure::power::{PowerSampler, PowerSamples};

use crate::power::PowerReader;
use crate::record::Circumstances;

/// Watches the host during one trial.
#[derive(Debug)]
pub struct Vitals<'a> {
    /// Whether the trial is on this host, or on it and others.
    is_here: bool,
    before: Option<CpuTimes>,
    clock_hz: Option<f64>,
    accelerators: &'a Accelerators,
    /// Their last clock and their highest temperature.
    seen: AcceleratorState,
    looks: u64,
    power: PowerSampler<'a>,
}

impl<'a> Vitals<'a> {
    /// Begins to watch; `accelerators`: those that the runs are on.
    pub fn start(power: &'a PowerReader, accelerators: &'a Accelerators) -> Self {
        let is_here = !power.runs_elsewhere();
        let before = if is_here { facts().cpu_times } else { None };
        let seen = AcceleratorState::default();
        Self { is_here, before, clock_hz: None, accelerators, seen, looks: 0, power: power.start() }
    }

    /// Takes the clock, and power when it is time, while the trial runs; called some times a second. Of few clocks the last one counts, which
    /// is from the second half of the trial: at its start it may still wait for its launcher.
    pub fn look(&mut self) {
        self.power.look();
        self.looks += 1;
        if self.looks.is_power_of_two() {
            if self.is_here {
                self.clock_hz = facts().clock_hz;
            }
            let AcceleratorState { clock_hz, temperature_c } = self.accelerators.read();
            let hottest = self.seen.temperature_c.into_iter().chain(temperature_c).reduce(f64::max);
            self.seen = AcceleratorState { clock_hz, temperature_c: hottest };
        }
    }

    /// What surrounded the trial that took `wall_s` seconds and left `left_s` of the budget, as yet without its power, and the samples
    /// of that.
    pub fn end(self, wall_s: f64, left_s: f64) -> (Circumstances, PowerSamples) {
        let stolen = |before: &CpuTimes| facts().cpu_times?.stolen_since(before);
        let steal_share = self.before.as_ref().and_then(stolen);
        let samples = self.power.end();
        let around = Circumstances {
            wall_s,
            left_s,
            steal_share,
            clock_hz: self.clock_hz,
            gpu_clock_hz: self.seen.clock_hz,
            gpu_temperature_c: self.seen.temperature_c,
            ..Circumstances::default()
        };
        (around, samples)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::power::RunsOn;

    /// As where a session was started on a login node, whose hypervisor takes nothing of the runs.
    #[test]
    fn this_host_says_nothing_of_runs_on_others() {
        let (root, accelerators) = (tempfile::tempdir().unwrap(), Accelerators::default());
        let power = PowerReader::new(root.path(), None, RunsOn::Others { this: "login".into() });
        let mut vitals = Vitals::start(&power, &accelerators);
        // Some ticks of the counters.
        std::thread::sleep(Duration::from_millis(50));
        vitals.look();
        let (around, _) = vitals.end(1.0, 10.0);
        assert_eq!((around.steal_share, around.clock_hz), (None, None));
    }
}
