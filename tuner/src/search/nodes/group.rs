//! Groups of nodes, of which each runs a trial at the same time as the others.

use std::collections::{BTreeMap, BTreeSet};

use space::unequal::ALIKE;

use crate::record::{Identity, Row, names_in_order};

/// Share by which a node may be slower than the typical one and still be in a group: all of its nodes wait for the slowest.
const SLOWER: f64 = 0.05;

/// Groups that run trials at the same time, at most. Each takes a launcher, a guard and open files of this node, and of more groups than a stage
/// has trials the others would run the reference alone.
pub const MOST_GROUPS: usize = 64;

/// Some nodes that run a trial together; a single node is a group of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// Names of the nodes, in the order of the ranks.
    pub hosts: Vec<String>,
    /// Its name, as [`Row::nodes`] has it.
    pub name: String,
}

impl NodeGroup {
    /// The group of these nodes.
    pub fn new(hosts: &[String]) -> Self {
        Self { hosts: hosts.to_vec(), name: names_in_order(hosts) }
    }
}

/// Groups of `size` nodes each, neighbours in the order of `hosts`, [`MOST_GROUPS`] of them at most; nodes that fill none are left.
///
/// # Panics
/// When `size` is 0.
pub fn groups(hosts: &[String], size: usize) -> Vec<NodeGroup> {
    hosts.chunks_exact(size).take(MOST_GROUPS).map(NodeGroup::new).collect()
}

/// The nodes that may share a run with others, in the order of `hosts`: those of which the survey does not say that they are slow
/// (`surveyed`, relative speeds; none where it says nothing), and which the trials on single nodes do not find to be so (`logs`,
/// logarithms of speeds by name; none of a node on which no reference has passed). Of nodes that are not among those `tried`, and where no trial
/// ran on single nodes, the survey alone says.
pub fn alike<'a>(
    hosts: &'a [String],
    surveyed: &[f64],
    logs: &BTreeMap<&str, f64>,
    tried: &BTreeSet<&str>,
) -> Vec<String> {
    let by_survey = |at: usize| surveyed.get(at).is_none_or(|speed| *speed >= 1.0 - ALIKE);
    let is_fast = |host: &str| logs.get(host).is_some_and(|log| log.exp() >= 1.0 - SLOWER);
    let by_trials = |host: &str| logs.is_empty() || !tried.contains(host) || is_fast(host);
    let is_alike = |(at, host): &(usize, &'a String)| by_survey(*at) && by_trials(host);
    hosts.iter().enumerate().filter(is_alike).map(|(_, host)| host.clone()).collect()
}

/// `single nodes`, or `groups of 4 nodes`.
pub fn on_nodes(size: usize) -> String {
    if size == 1 { "single nodes".to_owned() } else { format!("groups of {size} nodes") }
}

/// The rows of runs on `size` nodes.
pub fn of_size(rows: &[Row], size: usize) -> Vec<Row> {
    rows.iter().filter(|row| nodes_of(row) == size).cloned().collect()
}

/// The sizes of the groups that `rows` ran on, rising: of each the reference runs first.
pub fn sizes(rows: &[Row]) -> Vec<usize> {
    let references = rows.iter().filter(|row| row.strategy == Identity::REFERENCE);
    let mut sizes: Vec<usize> = references.map(nodes_of).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn nodes_of(row: &Row) -> usize {
    row.nodes.as_deref().map_or(0, |names| names.split(' ').count())
}

#[cfg(test)]
mod tests {
    use super::super::speed::tests::{hosts, on};
    use super::*;

    #[test]
    fn groups_are_neighbours_and_the_rest_is_left() {
        let of = groups(&hosts(11), 4);
        assert_eq!(of.len(), 2);
        assert_eq!(of[1].hosts, ["n5", "n6", "n7", "n8"]);
        // Names of rows are in alphabetic order, ranks in that of the job.
        let late = NodeGroup::new(&["n9".to_owned(), "n10".to_owned()]);
        assert_eq!((late.name.as_str(), late.hosts[0].as_str()), ("n10 n9", "n9"));
        assert_eq!(groups(&hosts(3), 4), []);
        // A session on 4000 nodes started as many launchers at once.
        assert_eq!((groups(&hosts(4000), 1).len(), groups(&hosts(96), 2).len()), (MOST_GROUPS, 48));
    }

    #[test]
    fn slow_nodes_and_those_that_took_no_trial_share_no_run() {
        let hosts = hosts(6);
        let alike_of = |tried: usize, surveyed: &[f64], logs: &[(&str, f64)]| {
            let tried = hosts.iter().take(tried).map(String::as_str).collect();
            let logs = logs.iter().map(|(node, speed)| (*node, speed.ln())).collect();
            alike(&hosts, surveyed, &logs, &tried).join(" ")
        };
        let alike_by = |surveyed: &[f64], logs: &[(&str, f64)]| alike_of(6, surveyed, logs);
        assert_eq!(alike_by(&[], &[]), "n1 n2 n3 n4 n5 n6");
        assert_eq!(alike_by(&[1.0, 0.9, 1.0, 1.0, 1.0, 0.8], &[]), "n1 n3 n4 n5");
        // A node that is faster waits for the others; n6 took no trial that passed.
        let trials = [("n1", 1.0), ("n2", 1.3), ("n3", 0.97), ("n4", 0.9), ("n5", 1.0)];
        assert_eq!(alike_by(&[1.0, 1.0, 1.0, 1.0, 0.9, 1.0], &trials), "n1 n2 n3");
        // No trial was on n5 and n6.
        assert_eq!(alike_of(4, &[1.0, 1.0, 1.0, 1.0, 0.9, 1.0], &trials[..4]), "n1 n2 n3 n6");
    }

    #[test]
    fn rows_are_told_apart_by_how_many_nodes_they_ran_on() {
        let row = |trial, nodes, nb| on(trial, nodes, nb, (1.0, 1.0));
        // What ran on three nodes is no stage: no reference has run on them.
        let rows = [row(0, "n1", 64), row(1, "n1 n2", 64), row(2, "n3", 64), row(3, "n1 n2 n3", 96)];
        assert_eq!(sizes(&rows), [1, 2]);
        let numbers = |size| of_size(&rows, size).iter().map(|row| row.trial).collect::<Vec<u64>>();
        assert_eq!((numbers(1), numbers(2), numbers(4)), (vec![0, 2], vec![1], vec![]));
    }
}
