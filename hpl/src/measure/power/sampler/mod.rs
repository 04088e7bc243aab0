//! The sampler: the sensors read now and then while something runs.
//!
//! It has no thread. Who waits for the run calls [`PowerSampler::look`] often; that reads the sensors when it is time, and never more
//! than `MOST_CPU` of the time allows.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use super::samples::{PowerSamples, SampleMaker};
use super::sensors::PowerSensors;

/// Seconds between two samples: the share of the time since the start, within these limits. So short runs have some tens of samples,
/// and long ones a sample each second.
const SHARE: f64 = 0.02;
const SHORTEST_S: f64 = 0.2;
const LONGEST_S: f64 = 1.0;

/// Processor seconds of the sampler per second.
pub const MOST_CPU: f64 = 1e-3;

/// Reads the sensors while something runs.
#[derive(Debug)]
pub struct PowerSampler<'a> {
    sensors: &'a PowerSensors,
    /// Seconds since 1970 when it began; later times are counted by a clock that is never set.
    start_s: f64,
    begun: Instant,
    made: SampleMaker,
}

impl<'a> PowerSampler<'a> {
    /// Takes the first sample.
    pub fn start(sensors: &'a PowerSensors) -> Self {
        let start_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let made = SampleMaker::of(sensors.set().clone());
        let mut sampler = Self { sensors, start_s, begun: Instant::now(), made };
        sampler.sample();
        sampler
    }

    /// Takes a sample when it is time for one.
    pub fn look(&mut self) {
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        let samples = self.made.samples();
        let last_s = samples.times_s.last().map_or(0.0, |time_s| time_s - self.start_s);
        let due = elapsed_s - last_s >= (SHARE * elapsed_s).clamp(SHORTEST_S, LONGEST_S);
        if due && samples.cpu_s <= MOST_CPU * elapsed_s {
            self.sample();
        }
    }

    /// Takes the last sample.
    pub fn end(mut self) -> PowerSamples {
        self.sample();
        self.made.into_samples()
    }

    fn sample(&mut self) {
        if self.sensors.set().all().is_empty() {
            return;
        }
        let cpu_before = cpu_s();
        let time_s = self.start_s + self.begun.elapsed().as_secs_f64();
        let values = self.sensors.read();
        self.made.add(time_s, &values);
        self.made.took((cpu_s() - cpu_before).max(0.0));
    }
}

/// Processor seconds of this thread. By its clock, as getrusage sees only what lies before the last switch of threads.
pub fn cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

#[cfg(test)]
mod tests;
