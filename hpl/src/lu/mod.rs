//! The solver: `[A | b]` is generated, factored and solved, and x is checked.
//!
//! [`solve`] is the run as one rank sees it. Its main loop is `gesv`, which runs the tasks of the
//! [`plan`](crate::plan): a panel is factored (`fact`), broadcast along the process rows ([`bcast`]) and used for the update of
//! the trailing matrix ([`update`](crate::backend::host)), for which rows are exchanged along the process columns (`laswp`).
//! `trsv` solves U x = y, `residual` checks x against the matrix that [`matgen`] generates anew.

pub mod bcast;
pub(crate) mod fact;
pub(crate) mod gesv;
pub(crate) mod laswp;
pub mod matgen;
pub(crate) mod panel;
pub(crate) mod residual;
pub(crate) mod solve;
pub(crate) mod spread_roll;
pub(crate) mod trsv;

pub use self::residual::Residual;
pub use self::solve::{Report, measure_windows, solve};
