//! Clocks and power limits of the node during a session.
//!
//! [`NodeSetter`] makes the settings of each trial. Before its first change it writes what the node was found with to a file
//! ([`found`]) and starts a process that does nothing but put that back when the session ends, however it ends ([`restorer`]). Where that
//! process was killed too, the next `--resume` does it. Where Slurm sets the clock, it is Slurm that puts it back; [`slurm`] looks whether it did
//! what it was asked.

pub mod found;
pub mod restorer;
mod setter;
pub mod slurm;

pub use found::{FoundSettings, Restored};
pub use setter::NodeSetter;
pub use slurm::clock_doubt;
