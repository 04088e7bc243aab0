//! The solver: `[A | b]` is generated, factored and solved, and x is checked.
//!
//! [`solve`] is the run of one rank. Its main loop is `gesv`, which executes the tasks of the
//! [`plan`](crate::plan): a panel is factored (`fact`) and broadcast along the process rows ([`bcast`]), rows are exchanged
//! along the process columns (`laswp`), and the trailing matrix is updated ([`update`](crate::backend::host)).
//! `trsv` solves U x = y, `residual` checks x against the matrix, which [`matgen`] generates a second time.

pub mod bcast;
pub(crate) mod fact;
pub(crate) mod gesv;
#[cfg(test)]
mod interleavings;
pub(crate) mod laswp;
pub mod matgen;
pub(crate) mod panel;
pub(crate) mod residual;
pub(crate) mod solve;
pub(crate) mod spread_roll;
pub(crate) mod sums;
pub(crate) mod trsv;

pub use self::residual::Residual;
pub use self::solve::{Report, measure_windows, solve};
