//! Power of this node while something runs, as its own sensors measure it.
//!
//! [`PowerSensors`] finds the sensors that can be read and says what would make others readable: `powercap` (RAPL of Intel and AMD),
//! `hwmon` (power meters of ACPI, Grace, accelerators of AMD), `cray` (`pm_counters`), `gpus` (accelerators of
//! NVIDIA, by `nvml`). A
//! [`Sensor`] gives energy since some moment, or power now. [`PowerSampler`] reads those that together stand for the node about once
//! a second and makes mean powers between its samples of them. None of this is a calibrated meter.

mod cray;
mod files;
mod found;
mod gpus;
mod hwmon;
mod nvml;
mod powercap;
mod sampler;
mod sensor;
mod sensors;

pub use found::Unreadable;
pub use sampler::{PowerSampler, PowerSamples};
pub use sensor::{Covers, Sensor, SensorValue};
pub use sensors::PowerSensors;
