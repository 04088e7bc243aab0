//! One sensor: what is known of it, where its value is, and how its next reading follows from the last.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dcmi::asked::Dcmi;
use super::files;
use super::perf_call::EnergyEvent;
use crate::machine::nvml::{self, Nvml};

/// More watts than any sensor measures: what seems to be more is a counter that began anew.
const MOST_W: f64 = 20e3;

/// Watts by which a counter with a range is taken to advance at most when its readings lie far apart.
const WRAP_W: f64 = 1e3;

/// What a sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The whole node.
    Node,
    /// Processors and memory together.
    Platform,
    /// The package of a processor.
    Package,
    /// Memory beside a package.
    Memory,
    /// An accelerator.
    Accelerator,
}

/// The value of a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorValue {
    /// Energy since some moment, in joules.
    Joules(f64),
    /// Power now, in watts.
    Watts(f64),
}

/// Where the value of a sensor is.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// A file with joules × this.
    Energy(PathBuf, f64),
    /// A file with watts × this.
    Power(PathBuf, f64),
    /// The energy of this accelerator.
    NvmlEnergy(Arc<Nvml>, nvml::GpuIndex),
    /// Its power.
    NvmlPower(Arc<Nvml>, nvml::GpuIndex),
    /// A counter of the kernel.
    Event(Arc<EnergyEvent>),
    /// What a program says now and then.
    Asked(Arc<Dcmi>),
}

impl Access {
    /// The value; `None` where it cannot be read any more, or none has come since the last call.
    pub(super) fn read(&self) -> Option<SensorValue> {
        match self {
            Self::Energy(path, unit) => files::number(path).ok().map(|value| SensorValue::Joules(value / unit)),
            Self::Power(path, unit) => files::number(path).ok().map(|value| SensorValue::Watts(value / unit)),
            Self::NvmlEnergy(nvml, device) => nvml.energy_j(*device).map(SensorValue::Joules),
            Self::NvmlPower(nvml, device) => nvml.power_w(*device).map(SensorValue::Watts),
            Self::Event(event) => event.joules().map(SensorValue::Joules),
            Self::Asked(dcmi) => dcmi.look().map(SensorValue::Watts),
        }
    }
}

/// What is known of a sensor that could be read when it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SensorFacts {
    /// The interface that has it, `powercap`.
    pub source: String,
    /// Its name there, `package-0`.
    pub name: String,
    /// What it measures.
    pub covers: Covers,
    /// Joules after which its counter begins at 0 again, if it does.
    pub range_j: Option<f64>,
    /// Seconds that may lie between two of its values, where it gives one now and then; `None` for one that gives a value whenever it is
    /// read.
    pub apart_s: Option<f64>,
}

impl SensorFacts {
    /// One whose counter does not begin again, and which gives a value whenever it is read.
    pub(super) fn new(source: &str, name: impl Into<String>, covers: Covers) -> Self {
        Self { source: source.to_owned(), name: name.into(), covers, range_j: None, apart_s: None }
    }

    /// Mean watts between two values that are `seconds` apart; `None` where they do not say it.
    pub fn watts_between(&self, before: SensorValue, after: SensorValue, seconds: f64) -> Option<f64> {
        let watts = match (before, after) {
            (SensorValue::Watts(before), SensorValue::Watts(after)) => (before + after) / 2.0,
            (SensorValue::Joules(before), SensorValue::Joules(after)) => {
                self.joules_between(before, after, seconds)? / seconds
            }
            _ => return None,
        };
        (seconds > 0.0 && (0.0..=MOST_W).contains(&watts)).then_some(watts)
    }

    fn joules_between(&self, before: f64, after: f64, seconds: f64) -> Option<f64> {
        match self.range_j {
            // It may have begun anew more than once.
            Some(range) if seconds * WRAP_W > range => None,
            Some(range) if after < before => Some(after + range - before),
            _ => (after >= before).then_some(after - before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(range_j: Option<f64>) -> SensorFacts {
        SensorFacts { range_j, ..SensorFacts::new("powercap", "package-0", Covers::Package) }
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on() {
        let sensor = counter(Some(262_143.0));
        let watts = |before, after, seconds| {
            sensor.watts_between(SensorValue::Joules(before), SensorValue::Joules(after), seconds)
        };
        assert_eq!(watts(100.0, 300.0, 2.0), Some(100.0));
        assert_eq!(watts(262_043.0, 50.0, 1.0), Some(150.0));
        assert_eq!(watts(300.0, 300.0, 1.0), Some(0.0));
        assert_eq!(watts(100_000.0, 0.0, 1.0), None, "162 kW: it was reset");
        assert_eq!(watts(100.0, 300.0, 300.0), None, "it may have begun anew in between");
        assert_eq!(watts(100.0, 300.0, 0.0), None);
    }

    #[test]
    fn without_a_range_a_smaller_value_says_nothing() {
        let sensor = counter(None);
        assert_eq!(sensor.watts_between(SensorValue::Joules(10.0), SensorValue::Joules(5.0), 1.0), None);
        assert_eq!(sensor.watts_between(SensorValue::Joules(10.0), SensorValue::Joules(510.0), 1000.0), Some(0.5));
        assert_eq!(sensor.watts_between(SensorValue::Watts(100.0), SensorValue::Watts(200.0), 5.0), Some(150.0));
        assert_eq!(sensor.watts_between(SensorValue::Watts(100.0), SensorValue::Joules(200.0), 5.0), None);
    }
}
