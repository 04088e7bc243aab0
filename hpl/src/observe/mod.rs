//! What is seen of a run.
//!
//! [`phases`] adds up the time of each phase of each step, [`trace`] records what each thread did when, [`picture`] draws
//! that, and [`watch`] is told of the progress.

pub mod phases;
pub mod picture;
pub mod trace;
pub mod watch;

pub use self::watch::Watch;
