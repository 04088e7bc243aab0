//! The HPL engine: distributed LU with partial pivoting on P×Q ranks, HPL's generator and residual.
//!
//! Reading order: [`mat`] (views), `layout` (who owns what), `plan` (what a step consists of), `gesv`
//! (the main loop), then the phases it calls.

pub mod affinity;
pub mod balance;
pub mod bcast;
pub mod bindings;
pub mod comm;
mod error;
mod fact;
pub mod files;
mod gesv;
pub mod grid;
pub mod host;
pub mod kernels;
pub mod layout;
pub mod mat;
pub mod matgen;
pub mod matvec;
mod panel;
pub mod phases;
pub mod picture;
pub mod plan;
pub mod preflight;
pub mod probe;
pub mod program;
pub mod recursion;
mod reduce;
mod residual;
mod solve;
pub mod survey;
mod swap;
pub mod team;
pub mod trace;
mod trsv;
mod update;
mod watch;
pub mod windows;
pub mod xhpl;

pub use error::Error;
pub use residual::Residual;
pub use solve::{Report, measure_windows, solve};
pub use update::slab_count;
pub use watch::Watch;
