//! The sampler: the sensors read now and then while something runs.
//!
//! It has no thread. Who waits for the run calls [`PowerSampler::look`] often; that reads the sensors when it is time, and never more
//! than `MOST_CPU` of the time allows.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use super::sensor::{Sensor, SensorValue};
use super::sensors::PowerSensors;

/// Seconds between two samples: the share of the time since the start, within these limits. So short runs have some tens of samples,
/// and long ones a sample each second.
const SHARE: f64 = 0.02;
const SHORTEST_S: f64 = 0.2;
const LONGEST_S: f64 = 1.0;

/// Processor seconds of the sampler per second.
const MOST_CPU: f64 = 1e-3;

/// Reads the sensors while something runs.
#[derive(Debug)]
pub struct PowerSampler<'a> {
    sensors: &'a PowerSensors,
    /// Seconds since 1970 when it began; later times are counted by a clock that is never set.
    start_s: f64,
    begun: Instant,
    last: Vec<Option<SensorValue>>,
    samples: PowerSamples,
}

/// What the sensors gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PowerSamples {
    /// Times of the samples, in seconds since 1970, UTC.
    pub times_s: Vec<f64>,
    /// Mean watts of each sensor between each sample and the next; `None` where it was not read at both.
    pub watts: Vec<Vec<Option<f64>>>,
    /// Processor seconds that reading took, of this thread.
    pub cpu_s: f64,
}

impl<'a> PowerSampler<'a> {
    /// Takes the first sample.
    pub fn start(sensors: &'a PowerSensors) -> Self {
        let start_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let samples = PowerSamples { watts: vec![Vec::new(); sensors.all().len()], ..PowerSamples::default() };
        let mut sampler = Self { sensors, start_s, begun: Instant::now(), last: Vec::new(), samples };
        sampler.sample();
        sampler
    }

    /// Takes a sample when it is time for one.
    pub fn look(&mut self) {
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        let last_s = self.samples.times_s.last().map_or(0.0, |time_s| time_s - self.start_s);
        let due = elapsed_s - last_s >= (SHARE * elapsed_s).clamp(SHORTEST_S, LONGEST_S);
        if due && self.samples.cpu_s <= MOST_CPU * elapsed_s {
            self.sample();
        }
    }

    /// Takes the last sample.
    pub fn end(mut self) -> PowerSamples {
        self.sample();
        self.samples
    }

    fn sample(&mut self) {
        if self.sensors.all().is_empty() {
            return;
        }
        let cpu_before = cpu_s();
        let time_s = self.start_s + self.begun.elapsed().as_secs_f64();
        let now: Vec<Option<SensorValue>> = self.sensors.all().iter().map(Sensor::read).collect();
        if let Some(&before_s) = self.samples.times_s.last() {
            for (index, sensor) in self.sensors.all().iter().enumerate() {
                let values = self.last[index].zip(now[index]);
                let watts = values.and_then(|(before, after)| sensor.watts_between(before, after, time_s - before_s));
                self.samples.watts[index].push(watts);
            }
        }
        self.samples.times_s.push(time_s);
        self.last = now;
        self.samples.cpu_s += (cpu_s() - cpu_before).max(0.0);
    }
}

impl PowerSamples {
    /// Whether a sensor was read and has shown more than 0 W. A counter that stands still measures nothing.
    pub fn moves(&self, sensor: usize) -> bool {
        self.watts[sensor].iter().flatten().any(|&watts| watts > 0.0)
    }

    /// Start and end of each interval, with the sum of these sensors in watts; intervals that lack one of them are left out.
    pub fn sum<'a>(&'a self, sensors: &'a [usize]) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let of = |interval: usize| sensors.iter().map(|&sensor| self.watts[sensor][interval]).sum::<Option<f64>>();
        let pairs = self.times_s.windows(2).enumerate();
        pairs.filter_map(move |(interval, pair)| Some((pair[0], pair[1], of(interval)?)))
    }

    /// Seconds from the first sample to the last.
    pub fn span(&self) -> Duration {
        let ends = self.times_s.first().zip(self.times_s.last());
        Duration::from_secs_f64(ends.map_or(0.0, |(first, last)| (last - first).max(0.0)))
    }
}

/// Processor seconds of this thread. By its clock, as getrusage sees only what lies before the last switch of threads.
fn cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

#[cfg(test)]
mod tests;
