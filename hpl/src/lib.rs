//! The HPL engine: distributed LU with partial pivoting on P×Q ranks, HPL's generator and residual.
//!
//! Reading order: [`mat`] (views), `layout` (who owns what), `plan` (what a step consists of), `gesv`
//! (the main loop), then the phases it calls.

pub mod affinity;
pub mod comm;
pub mod files;
pub mod host;
pub mod kernels;
pub mod layout;
pub mod mat;
pub mod matgen;
pub mod phases;
pub mod plan;
pub mod team;
mod watch;

pub use watch::Watch;
