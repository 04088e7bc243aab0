//! What the machine did to the trials, and how fast its nodes are.

use crate::record::Row;
use crate::record::session::Session;
use crate::report::Summary;
use crate::report::sentences::steadiness;

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
pub(super) fn speeds(session: &Session) -> Vec<NodeSpeed> {
    if session.hosts.len() < 2 {
        return Vec::new();
    }
    let relative = session.unequal.relative();
    let of_nodes = session.unequal.node_cores.is_some();
    let speed = |at: usize| relative.get(at).copied().filter(|_| of_nodes);
    let node = |(at, host): (usize, &String)| NodeSpeed { host: host.clone(), speed: speed(at) };
    session.hosts.iter().enumerate().map(node).collect()
}

/// Clock and steal of the last trial that has them, then what the report says of all.
pub(super) fn machine(rows: &[Row], summary: &Summary) -> Option<String> {
    let last = rows.iter().rev().find(|row| row.clock_hz.is_some() || row.steal_share.is_some());
    let last = last.map(|row| {
        let clock = row.clock_hz.map(|hz| format!("clock {:.2} GHz", hz / 1e9));
        let stolen = row.steal_share.map(|share| format!("{:.1} % taken by the hypervisor", 100.0 * share));
        let said: Vec<String> = [clock, stolen].into_iter().flatten().collect();
        format!("trial {}: {}", row.trial, said.join(", "))
    });
    let said: Vec<String> = [last, steadiness(summary)].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}
