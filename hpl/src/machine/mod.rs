//! What the host is and what it reaches.
//!
//! [`host`] reads its facts, [`affinity`] binds threads to cores, [`bindings`] says where the ranks of a job run. [`probe`]
//! measures what kernels, memory and messages reach, [`preflight`] the cores one by one, [`survey`] all ranks at once.

pub mod affinity;
pub mod bindings;
pub mod host;
pub mod preflight;
pub mod probe;
pub mod survey;
