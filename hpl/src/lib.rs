//! The HPL engine: distributed LU with partial pivoting on P×Q ranks, HPL's generator and residual.
//!
//! A newcomer's path: [`plan`] (what a step consists of, as plain values), [`lu`] (the main loop that runs them), [`backend`]
//! (threads and kernels), [`comm`] (messages), [`mat`] (views and memory). Around these: [`program`] starts ranks and makes
//! one result of their reports, [`machine`] asks the host, [`observe`] keeps what is seen of a run, and [`balance`] finds
//! shares for ranks of unequal speed.

pub mod backend;
pub mod balance;
pub mod comm;
mod error;
pub mod lu;
pub mod machine;
pub mod mat;
pub mod observe;
pub mod plan;
pub mod program;

pub use error::Error;
pub use lu::{Report, Residual, measure_windows, solve};
pub use observe::Watch;
