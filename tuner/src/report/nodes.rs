//! How fast the nodes of a session are.

use crate::record::session::Session;

/// A node of the session.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpeed {
    /// Its name.
    pub host: String,
    /// Its speed as part of the fastest; `None` where the record has no speeds of nodes: then none is slower by more than noise, or
    /// they were not measured.
    pub speed: Option<f64>,
}

/// The nodes of a session; none where it has only one.
pub(crate) fn speeds(session: &Session) -> Vec<NodeSpeed> {
    if session.hosts.len() < 2 {
        return Vec::new();
    }
    let relative = session.unequal.relative();
    let of_nodes = session.unequal.node_cores.is_some();
    let speed = |at: usize| relative.get(at).copied().filter(|_| of_nodes);
    let node = |(at, host): (usize, &String)| NodeSpeed { host: host.clone(), speed: speed(at) };
    session.hosts.iter().enumerate().map(node).collect()
}
