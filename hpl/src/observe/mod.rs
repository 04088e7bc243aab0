//! Observation of a run.
//!
//! [`phases`] adds up the time of each phase of each step, [`trace`] records the work of each thread with time stamps,
//! [`picture`] has the common parts of SVG pictures, and [`watch`] receives the progress.

pub mod phases;
pub mod picture;
pub mod trace;
pub mod watch;

pub use self::watch::Watch;
