//! The cores of the ranks of an MPI job.
//!
//! Ranks of one node with the same allowed cores share them evenly: their launcher has not bound them. Ranks that
//! their launcher has bound use their own cores.

use serde::{Deserialize, Serialize};
use space::Candidate;

use super::rank_threads::shared_in_panels;
use crate::machine::affinity;

/// Node and cores of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankPlacement {
    /// Number of the node, the same for all its ranks.
    pub(super) node: usize,
    /// Its host name.
    pub(super) host: String,
    /// The cores that this rank may use.
    pub(super) cores: Vec<usize>,
}

/// The placements of all ranks of the job, in order. A run uses the first P·Q ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nodes(pub(super) Vec<RankPlacement>);

impl Nodes {
    /// Threads of each rank when `ranks` of them share their cores evenly; at least 1.
    pub(super) fn threads_each(&self, ranks: usize) -> usize {
        let share = |(rank, placement): (usize, &RankPlacement)| {
            placement.cores.len() / self.colocated(rank, ranks).len().max(1)
        };
        self.0.iter().enumerate().take(ranks).map(share).min().unwrap_or(1).max(1)
    }

    /// The cores of rank `rank` of a run, and those it borrows for panels; empty if threads would have to share a core.
    pub(super) fn cores_in(&self, candidate: &Candidate, rank: usize) -> Vec<usize> {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads);
        let colocated = self.colocated(rank, hpl.ranks());
        let sets = colocated.iter().map(|&other| self.cores_of(other, hpl.ranks(), threads)).collect();
        let shared = shared_in_panels(hpl, sets, colocated.iter().copied());
        colocated.into_iter().zip(shared).find(|(other, _)| *other == rank).map(|(_, cores)| cores).unwrap_or_default()
    }

    /// The cores of rank `rank`'s threads, with `threads` threads in each of `ranks` ranks; empty if threads would have
    /// to share a core.
    pub(super) fn cores_of(&self, rank: usize, ranks: usize, threads: usize) -> Vec<usize> {
        let colocated = self.colocated(rank, ranks);
        let placement = &self.0[rank];
        let differs = |other: &RankPlacement| other.node == placement.node && other.cores != placement.cores;
        let taken = |core: &usize| self.0[..ranks].iter().any(|other| differs(other) && other.cores.contains(core));
        let index = colocated.iter().position(|&other| other == rank);
        if placement.cores.iter().any(taken) {
            return Vec::new();
        }
        let sets = affinity::core_sets(&placement.cores, colocated.len(), threads);
        sets.zip(index).map(|(mut sets, index)| sets.swap_remove(index)).unwrap_or_default()
    }

    /// How many of the first `ranks` ranks run on the node of rank `rank`.
    pub(super) fn ranks_on_node(&self, rank: usize, ranks: usize) -> usize {
        self.0[..ranks].iter().filter(|placement| placement.node == self.0[rank].node).count()
    }

    /// The ranks among the first `ranks` ranks with the same node and cores as `rank`, itself included.
    fn colocated(&self, rank: usize, ranks: usize) -> Vec<usize> {
        (0..ranks).filter(|&other| self.0[other] == self.0[rank]).collect()
    }
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    fn nodes(placements: &[(usize, &[usize])]) -> Nodes {
        Nodes(
            placements
                .iter()
                .map(|&(node, cores)| RankPlacement { node, host: format!("n{node}"), cores: cores.to_vec() })
                .collect(),
        )
    }

    #[test]
    fn unbound_ranks_share_their_node() {
        let all: &[usize] = &[0, 1, 2, 3];
        let two_nodes = nodes(&[(0, all), (0, all), (0, all), (3, all)]);
        // Node 0 has three ranks for four cores.
        assert_eq!(two_nodes.threads_each(4), 1);
        assert_eq!(two_nodes.threads_each(2), 2);
        assert_eq!(two_nodes.threads_each(1), 4);
        assert_eq!([0, 1].map(|rank| two_nodes.cores_of(rank, 2, 2)), [[0, 1], [2, 3]]);
        assert_eq!(two_nodes.cores_of(3, 4, 4), all);
        assert_eq!(two_nodes.cores_of(0, 4, 2), [0; 0], "six threads for four cores");
        assert_eq!([0, 3].map(|rank| two_nodes.ranks_on_node(rank, 4)), [3, 1]);
        assert_eq!(two_nodes.ranks_on_node(0, 2), 2);
    }

    #[test]
    fn ranks_of_a_process_row_borrow_cores_for_panels_without_look_ahead() {
        let cores: &[usize] = &[0, 1, 2, 3, 4, 5];
        let node = nodes(&[(0, cores), (0, cores)]);
        let in_run = |depth, rank| {
            let hpl = HplParams { depth, ..HplParams::baseline(100, 1, 2) };
            let candidate = Candidate { hpl, engine: EngineParams { threads: 3, ..EngineParams::default() } };
            node.cores_in(&candidate, rank)
        };
        assert_eq!([0, 1].map(|rank| in_run(0, rank)), [[0, 1, 2, 4, 5], [3, 4, 5, 1, 2]]);
        assert_eq!([0, 1].map(|rank| in_run(1, rank)), [[0, 1, 2], [3, 4, 5]]);
    }

    #[test]
    fn bound_ranks_keep_their_cores() {
        let bound = nodes(&[(0, &[0, 1]), (0, &[2, 3]), (0, &[2, 3])]);
        assert_eq!((bound.threads_each(2), bound.threads_each(3)), (2, 1));
        assert_eq!(bound.cores_of(0, 3, 2), [0, 1]);
        assert_eq!([1, 2].map(|rank| bound.cores_of(rank, 3, 1)), [[2], [3]]);
        assert_eq!(bound.cores_of(1, 3, 2), [0; 0]);
    }

    #[test]
    fn cores_of_partly_equal_sets_are_not_used() {
        let overlapping = nodes(&[(0, &[0, 1]), (0, &[1, 2]), (2, &[1])]);
        assert_eq!([0, 1].map(|rank| overlapping.cores_of(rank, 3, 1)), [[0; 0], [0; 0]]);
        assert_eq!(overlapping.cores_of(0, 1, 1), [0], "the other rank is not in this run");
        assert_eq!(overlapping.cores_of(2, 3, 1), [1], "another node has its own core 1");
    }
}
