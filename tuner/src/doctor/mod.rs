//! The look at a machine before a session: what is there, whether it is good, and what to change.
//!
//! [`settings`] judges what the system's files say (clock, huge pages, limits, memory, load, NUMA, accelerators), [`around`] what is
//! around this process: cores as they compute now, variables, libraries, MPI, the job, [`power`] the sensors of power. All give
//! [`advice::Advice`], a line each.
//! Detection is elsewhere: [`hpl::machine::host`], [`crate::pack::facts`], [`crate::session`].

pub mod advice;
pub mod around;
mod memory;
pub mod power;
pub mod settings;
