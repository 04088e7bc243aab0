//! The host: its hardware and its cores.
//!
//! [`host`] reads the hardware, [`affinity`] binds threads to cores, [`bindings`] reports the cores of the ranks of a job.

pub mod affinity;
pub mod bindings;
pub mod host;
