//! Power of this node while something runs, as its own sensors measure it.
//!
//! [`PowerSensors`] finds the sensors that can be read and says what would make others readable: `powercap` (RAPL of Intel and AMD), `perf` (the
//! same counters as events of the kernel), `hwmon` (power meters of ACPI, Grace, accelerators of AMD), `cray` (`pm_counters`), `gpus` (accelerators of
//! NVIDIA), `dcmi` (the management controller). What is known of them is a [`SensorSet`], of this node or another. A sensor gives
//! energy since some moment, or power now. [`PowerSampler`] reads them about once a second; [`SampleMaker`] makes mean powers between
//! the samples. None of this is a calibrated meter.

mod cray;
mod dcmi;
mod files;
mod found;
mod gpus;
mod hwmon;
mod perf;
mod perf_call;
mod powercap;
mod sampler;
mod samples;
mod sensor;
mod sensors;

pub use found::Unreadable;
pub use sampler::{MOST_CPU, PowerSampler, cpu_s};
pub use samples::{PowerSamples, SampleMaker};
pub use sensor::{Covers, SensorFacts, SensorValue};
pub use sensors::{PowerSensors, SensorSet};
