//! The nodes that a session watches, and how a process is started on each.

use std::path::Path;

use objectives::foreign::Foreign;

use crate::cluster::placement;
use crate::record::session::Session;
use crate::session::engine::Engine;
use crate::session::power::{self, NodeProcesses};

/// What starts a process of `program` on each node of the runs; `None` where all runs are on this node, or it is not known how.
///
/// # Errors
/// Nodes of another engine that could not be found, in words: then this node alone is watched.
pub(super) fn processes(session: &Session, engine: &Engine, program: &Path) -> Result<Option<NodeProcesses>, String> {
    if session.is_simulated() || power::runs_on_this_node(session) || !power::can_be_asked(session, engine) {
        return Ok(None);
    }
    let nodes = match engine {
        Engine::Foreign(foreign) if session.hosts.is_empty() => nodes_of(foreign, session, program)?,
        _ => session.hosts.clone(),
    };
    Ok(power::words(engine, &nodes, program).map(|words| NodeProcesses { nodes, words }))
}

/// The nodes on which the ranks of another engine run: a rank on each says its name.
fn nodes_of(foreign: &Foreign, session: &Session, program: &Path) -> Result<Vec<String>, String> {
    let count: usize = session.nodes.iter().map(|node| node.count).sum();
    let cores = session.nodes.iter().map(|node| node.cores).min().unwrap_or(1);
    let found = placement::one_rank_on_each(foreign, (count, cores), program).map_err(|error| {
        let first = error.to_string().lines().next().unwrap_or_default().to_owned();
        format!("power and clocks: not asked of the nodes, as it is not known which they are: {first}")
    })?;
    let names: Vec<String> = found.hosts().into_iter().map(|(host, _)| host.to_owned()).collect();
    if names.len() < count {
        return Err(format!(
            "power and clocks: not asked of the nodes: {count} ranks of {cores} threads were started on {} alone, of {count} nodes",
            names.join(", ")
        ));
    }
    Ok(names)
}
