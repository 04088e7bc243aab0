//! The HPL engine: distributed LU with partial pivoting on P×Q ranks, HPL's generator and residual.
//!
//! Where to start reading: [`plan`] (the tasks of each step, as plain values), [`lu`] (the main loop that runs them), [`backend`]
//! (threads and kernels), [`comm`] (messages), [`mat`] (views and memory). Around these: [`program`] starts ranks and combines
//! their reports into one result, [`machine`] detects the host's hardware, [`measure`] measures its rates, [`observe`] records times and progress of a run, and
//! [`balance`] computes shares of the matrix for ranks of unequal speed.

pub mod backend;
pub mod balance;
pub mod comm;
mod error;
pub mod lu;
pub mod machine;
pub mod mat;
pub mod measure;
#[cfg(loom)]
pub mod models;
pub mod observe;
pub mod plan;
pub mod program;
#[cfg(not(loom))]
mod sync;
#[cfg(loom)]
pub mod sync;

pub use error::Error;
pub use lu::{Report, Residual, measure_windows, solve};
pub use observe::Watch;
