//! Processes on the nodes of the runs: each reads the sensors of power of its node, its clock, its heat and what others take of it.
//!
//! The launcher of the session starts `hpl-tune __node-agent` ([`agent`]) once on each node. It prints what it finds and then lines (`line`) of each
//! sample, with the time by the clock of its node; the launcher brings the lines to this process, where a thread takes them into
//! `states`. A line arrives a moment after its sample, so that the shortest of these delays says by how much the clocks differ.
//!
//! The processes read the file of a lease (`lease`) that only a living session renews, and end themselves without it: whatever becomes of the
//! session, of its launcher and of the resource manager, none stays. A session waits for them some seconds at its start, and after a run for the last samples,
//! two seconds and a pace at most.

pub mod agent;
mod lease;
mod line;
mod started;
mod states;
pub mod vitals;

use std::path::{Path, PathBuf};

pub use objectives::launcher::short;
pub use started::{AgentCommand, NodeAgents};
pub use states::NodeReadings;

/// Where the sensors of node `name` are: below `root`, in which `{node}` stands for the name, so that tests have a tree for each.
pub fn root_of(root: &Path, name: &str) -> PathBuf {
    match root.to_str() {
        Some(text) => text.replace("{node}", short(name)).into(),
        None => root.to_owned(),
    }
}
