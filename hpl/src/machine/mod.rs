//! The host: its hardware, its cores, and measurements of its rates.
//!
//! [`host`] reads the hardware, [`affinity`] binds threads to cores, [`bindings`] reports the cores of the ranks of a job.
//! [`probe`] measures the rates of kernels, memory and messages, [`preflight`] each core, [`survey`] all ranks at the same time.

pub mod affinity;
pub mod bindings;
pub mod host;
pub mod preflight;
pub mod probe;
pub mod survey;
