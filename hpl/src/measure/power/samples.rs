//! Samples: the values of the sensors of a node, read one after the other, and the mean powers between them.

use std::time::Duration;

use super::sensor::SensorValue;
use super::sensors::SensorSet;

/// What the sensors gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PowerSamples {
    /// Times of the samples, in seconds since 1970, UTC.
    pub times_s: Vec<f64>,
    /// Mean watts of each sensor between each sample and the next; `None` where it was not read at both.
    pub watts: Vec<Vec<Option<f64>>>,
    /// Processor seconds that reading took.
    pub cpu_s: f64,
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

/// Makes samples of the values of the sensors of a node.
#[derive(Debug)]
pub struct SampleMaker {
    set: SensorSet,
    /// The last value of each sensor, and at which sample it was read.
    last: Vec<Option<(usize, SensorValue)>>,
    samples: PowerSamples,
}

impl SampleMaker {
    /// Of the sensors in `set`.
    pub fn of(set: SensorSet) -> Self {
        let count = set.all().len();
        let samples = PowerSamples { watts: vec![Vec::new(); count], ..PowerSamples::default() };
        Self { set, last: vec![None; count], samples }
    }

    /// Adds the value of each sensor at a time in seconds since 1970, which is after that of the last sample. A sensor that gives a value
    /// now and then fills what lies between two of them.
    pub fn add(&mut self, time_s: f64, values: &[Option<SensorValue>]) {
        let now = self.samples.times_s.len();
        self.samples.times_s.push(time_s);
        for (index, sensor) in self.set.all().iter().enumerate() {
            let watts = &mut self.samples.watts[index];
            if now > 0 {
                watts.push(None);
            }
            let Some(value) = values.get(index).copied().flatten() else { continue };
            if let Some((then, before)) = self.last[index] {
                let seconds = time_s - self.samples.times_s[then];
                let joined = then + 1 == now || sensor.apart_s.is_some_and(|most_s| seconds <= most_s);
                let mean = sensor.watts_between(before, value, seconds).filter(|_| joined);
                watts[then..].fill(mean);
            }
            self.last[index] = Some((now, value));
        }
    }

    /// Counts processor seconds that reading took.
    pub fn took(&mut self, cpu_s: f64) {
        self.samples.cpu_s += cpu_s;
    }

    /// The samples so far.
    pub fn samples(&self) -> &PowerSamples {
        &self.samples
    }

    /// All samples.
    pub fn into_samples(self) -> PowerSamples {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::super::sensor::{Covers, SensorFacts};
    use super::*;

    #[test]
    fn a_slow_sensor_fills_what_lies_between_its_values() {
        let fast = SensorFacts::new("powercap", "package-0", Covers::Package);
        let slow = SensorFacts { apart_s: Some(3.0), ..SensorFacts::new("dcmi", "node", Covers::Node) };
        let mut made = SampleMaker::of([fast, slow].into_iter().collect());
        let watts = |watts: f64| Some(SensorValue::Watts(watts));
        let slow = [watts(100.0), None, None, watts(200.0), None, None, None, watts(300.0), watts(300.0)];
        for (second, slow) in slow.into_iter().enumerate() {
            let fast = watts(50.0).filter(|_| second != 4);
            made.add(1000.0 + second as f64, &[fast, slow]);
        }
        let samples = made.into_samples();
        let (mean, gap, end) = (Some(150.0), None, Some(300.0));
        assert_eq!(samples.watts[1], [mean, mean, mean, gap, gap, gap, gap, end], "four seconds are too many");
        assert_eq!(samples.watts[0].iter().flatten().count(), 6, "two intervals lack the fast one");
        assert_eq!(samples.sum(&[1]).count(), 4);
    }
}
