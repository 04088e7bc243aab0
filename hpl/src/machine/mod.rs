//! The host: its hardware and its cores.
//!
//! [`host`] reads the hardware, [`affinity`] binds threads to cores, [`bindings`] reports the cores of the ranks of a job,
//! [`controls`] sets clocks and power limits, [`accelerators`] reads clock and heat of accelerators, `nvml` is the library of NVIDIA's
//! driver.

pub mod accelerators;
pub mod affinity;
pub mod bindings;
pub mod controls;
pub mod host;
pub(crate) mod nvml;
