//! Measured rates of this machine: the engine's own kernels and messages, timed outside of a run.
//!
//! [`probe`] measures kernels, memory and messages for the shapes that occur on ranks, for the calibration. [`preflight`] measures
//! each core before a session, [`survey`] each rank of a job and the links between them while all ranks compute, [`power`] what the
//! node takes during a run.

pub mod power;
pub mod preflight;
pub mod probe;
pub mod survey;
