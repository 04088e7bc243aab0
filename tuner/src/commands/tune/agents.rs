//! The nodes that a session watches, and how a process is started on each.

use std::path::Path;

use objectives::foreign::Foreign;
use space::machine::Node;

use crate::cluster::placement;
use crate::session::engine::Engine;
use crate::session::power::{self, NodeProcesses, SessionNodes};

/// What starts a process of `program` on each node of the runs; `None` where all runs are on this node, or it is not known how.
///
/// # Errors
/// Nodes of another engine that could not be found, in words: then this node alone is watched.
pub(super) fn processes(of_runs: &SessionNodes<'_>, program: &Path) -> Result<Option<NodeProcesses>, String> {
    let SessionNodes { session, engine, described } = *of_runs;
    if session.is_simulated() || of_runs.are_this_one() || !power::can_be_asked(session, engine) {
        return Ok(None);
    }
    let nodes = match engine {
        Engine::Foreign(foreign) if session.hosts.is_empty() => {
            let nodes = if session.nodes.is_empty() { described } else { &session.nodes };
            nodes_of(foreign, nodes, program)?
        }
        _ => session.hosts.clone(),
    };
    Ok(power::words(engine, &nodes, program).map(|words| NodeProcesses { nodes, words }))
}

/// The nodes on which the ranks of another engine run: a rank on each says its name.
fn nodes_of(foreign: &Foreign, nodes: &[Node], program: &Path) -> Result<Vec<String>, String> {
    let count: usize = nodes.iter().map(|node| node.count).sum();
    let cores = nodes.iter().map(|node| node.cores).min().unwrap_or(1);
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
