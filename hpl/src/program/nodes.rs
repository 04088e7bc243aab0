//! The cores of the ranks of an MPI job.
//!
//! Ranks of one node with the same allowed cores share them evenly: their launcher has not bound them. Ranks that
//! their launcher has bound use their own cores.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use space::Candidate;

use super::rank_threads::shared_in_panels;
use crate::machine::affinity;

/// Node and cores of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RankPlacement {
    /// Number of the node, the same for all its ranks.
    pub(super) node: usize,
    /// Its host name.
    pub(super) host: String,
    /// The cores that this rank may use, each by a logical CPU that it may use.
    pub(super) cores: Vec<usize>,
    /// The same cores, each by its first logical CPU, as ranks with other logical CPUs of them name them.
    pub(super) physical: Vec<usize>,
}

/// The placements of all ranks of the job, in order. A run uses the first P·Q ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nodes(pub(super) Vec<RankPlacement>);

/// The ranks of a run, those with the same node and cores together.
pub(super) struct RunRanks<'a> {
    ranks: usize,
    groups: Vec<SharedCores<'a>>,
}

/// Cores of a node with the ranks that share them.
struct SharedCores<'a> {
    cores: &'a [usize],
    /// Ascending; at least one.
    ranks: Vec<usize>,
    /// Whether ranks with other cores may use some of these, too.
    overlap: bool,
}

impl Nodes {
    /// The ranks of a run on the first `ranks` ranks.
    pub(super) fn of_run(&self, ranks: usize) -> RunRanks<'_> {
        let ranks = ranks.min(self.0.len());
        let mut alike: HashMap<&RankPlacement, Vec<usize>> = HashMap::new();
        for (rank, placement) in self.0[..ranks].iter().enumerate() {
            alike.entry(placement).or_default().push(rank);
        }
        // The first list with a core of a node, and the cores that are in a list that differs from it.
        let mut lists: HashMap<(usize, usize), &[usize]> = HashMap::new();
        let mut overlaps = HashSet::new();
        for &placement in alike.keys() {
            let cores = &placement.cores[..];
            for at in placement.physical.iter().map(|&core| (placement.node, core)) {
                if *lists.entry(at).or_insert(cores) != cores {
                    overlaps.insert(at);
                }
            }
        }
        let groups = alike.into_iter().map(|(placement, ranks)| {
            let overlap = placement.physical.iter().any(|&core| overlaps.contains(&(placement.node, core)));
            SharedCores { cores: &placement.cores, ranks, overlap }
        });
        RunRanks { ranks, groups: groups.collect() }
    }
}

impl RunRanks<'_> {
    /// Threads of each rank when the ranks share their cores evenly; at least 1.
    pub(super) fn threads_each(&self) -> usize {
        self.groups.iter().map(|group| group.cores.len() / group.ranks.len()).min().unwrap_or(1).max(1)
    }

    /// The cores of the threads of each rank, with `threads` threads in each; empty if threads would have to share a core.
    pub(super) fn cores(&self, threads: usize) -> Vec<Vec<usize>> {
        self.of_each(|group| group.sets(threads))
    }

    /// The same for a run of `candidate`, followed by the cores that each rank borrows for panels.
    pub(super) fn cores_in(&self, candidate: &Candidate) -> Vec<Vec<usize>> {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads);
        self.of_each(|group| shared_in_panels(hpl, group.sets(threads), group.ranks.iter().copied()))
    }

    /// The cores of each rank, which `of_group` finds for the ranks of a group.
    fn of_each(&self, of_group: impl Fn(&SharedCores<'_>) -> Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); self.ranks];
        for group in &self.groups {
            for (&rank, cores) in group.ranks.iter().zip(of_group(group)) {
                all[rank] = cores;
            }
        }
        all
    }
}

impl SharedCores<'_> {
    /// The cores of each of these ranks' threads; empty if threads would have to share a core.
    fn sets(&self, threads: usize) -> Vec<Vec<usize>> {
        let ranks = self.ranks.len();
        let sets = if self.overlap { None } else { affinity::core_sets(self.cores, ranks, threads) };
        sets.unwrap_or_else(|| vec![Vec::new(); ranks])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use space::{EngineParams, HplParams};

    use super::*;

    fn nodes(placements: &[(usize, &[usize])]) -> Nodes {
        Nodes(
            placements
                .iter()
                .map(|&(node, cores)| {
                    let (cores, physical) = (cores.to_vec(), cores.to_vec());
                    RankPlacement { node, host: format!("n{node}"), cores, physical }
                })
                .collect(),
        )
    }

    fn in_run(depth: usize, (p, q): (usize, usize), threads: usize) -> Candidate {
        let hpl = HplParams { depth, ..HplParams::baseline(100, p, q) };
        Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
    }

    #[test]
    fn unbound_ranks_share_their_node() {
        let all: &[usize] = &[0, 1, 2, 3];
        let two_nodes = nodes(&[(0, all), (0, all), (0, all), (3, all)]);
        // Node 0 has three ranks for four cores.
        assert_eq!([4, 2, 1].map(|ranks| two_nodes.of_run(ranks).threads_each()), [1, 2, 4]);
        assert_eq!(two_nodes.of_run(2).cores(2), [[0, 1], [2, 3]]);
        assert_eq!(two_nodes.of_run(4).cores(4)[3], all);
        assert_eq!(two_nodes.of_run(4).cores(2)[0], [0; 0], "six threads for four cores");
    }

    #[test]
    fn ranks_of_a_process_row_borrow_cores_for_panels_without_look_ahead() {
        let cores: &[usize] = &[0, 1, 2, 3, 4, 5];
        let node = nodes(&[(0, cores), (0, cores)]);
        let cores_at = |depth| node.of_run(2).cores_in(&in_run(depth, (1, 2), 3));
        assert_eq!(cores_at(0), [[0, 1, 2, 4, 5], [3, 4, 5, 1, 2]]);
        assert_eq!(cores_at(1), [[0, 1, 2], [3, 4, 5]]);
    }

    #[test]
    fn bound_ranks_keep_their_cores() {
        let bound = nodes(&[(0, &[0, 1]), (0, &[2, 3]), (0, &[2, 3])]);
        assert_eq!([2, 3].map(|ranks| bound.of_run(ranks).threads_each()), [2, 1]);
        assert_eq!(bound.of_run(3).cores(2), [vec![0, 1], vec![], vec![]]);
        assert_eq!(bound.of_run(3).cores(1), [[0], [2], [3]]);
    }

    #[test]
    fn cores_of_partly_equal_sets_are_not_used() {
        let overlapping = nodes(&[(0, &[0, 1]), (0, &[1, 2]), (2, &[1])]);
        // Another node has its own core 1.
        assert_eq!(overlapping.of_run(3).cores(1), [vec![], vec![], vec![1]]);
        assert_eq!(overlapping.of_run(1).cores(1), [[0]], "the other rank is not in this run");
    }

    /// Each had a core of its own, and its threads waited without giving it up.
    #[test]
    fn ranks_on_the_hyperthreads_of_one_core_share_it() {
        // Logical CPUs 0 to 3 are the first of their cores, 4 to 7 the second.
        let on = |cpu: usize| RankPlacement { cores: vec![cpu], ..nodes(&[(0, &[cpu % 4])]).0.swap_remove(0) };
        let cores = |cpus: [usize; 2]| Nodes(cpus.map(on).to_vec()).of_run(2).cores(1);
        assert_eq!(cores([0, 4]), [[0; 0]; 2]);
        assert_eq!(cores([0, 5]), [[0], [5]]);
    }

    /// Cores of rank `rank` of `ranks`, found from the placements of all.
    fn cores_by_comparison(Nodes(all): &Nodes, rank: usize, ranks: usize, threads: usize) -> Vec<usize> {
        let own = &all[rank];
        let differs = |other: &RankPlacement| other.node == own.node && other.cores != own.cores;
        let taken = |core: &usize| all[..ranks].iter().any(|other| differs(other) && other.cores.contains(core));
        if own.cores.iter().any(taken) {
            return Vec::new();
        }
        let alike: Vec<usize> = (0..ranks).filter(|&other| all[other] == *own).collect();
        let index = alike.iter().position(|&other| other == rank).unwrap();
        let sets = affinity::core_sets(&own.cores, alike.len(), threads);
        sets.map(|mut sets| sets.swap_remove(index)).unwrap_or_default()
    }

    proptest! {
        #[test]
        fn groups_of_ranks_have_the_cores_that_a_comparison_of_all_finds(
            placed in prop::collection::vec((0_usize..3, 0_usize..6, 0_usize..7), 1..14),
            most in 1_usize..14,
            rows in 1_usize..14,
            depth in 0_usize..2,
            threads in 1_usize..4,
        ) {
            let lists: Vec<(usize, Vec<usize>)> =
                placed.iter().map(|&(node, first, len)| (node, (first..first + len).collect())).collect();
            let placements: Vec<(usize, &[usize])> = lists.iter().map(|(node, cores)| (*node, &cores[..])).collect();
            let found = nodes(&placements);
            let ranks = most.min(placements.len());
            let p = (1..=rows).rev().find(|&p| ranks.is_multiple_of(p)).unwrap();
            let candidate = in_run(depth, (p, ranks / p), threads);
            let run = found.of_run(ranks);

            let cores: Vec<_> = (0..ranks).map(|rank| cores_by_comparison(&found, rank, ranks, threads)).collect();
            prop_assert_eq!(run.cores(threads), cores.clone());
            let placed = &placements;
            let alike = |rank: usize| (0..ranks).filter(move |&other| placed[other] == placed[rank]);
            for (rank, found) in run.cores_in(&candidate).into_iter().enumerate() {
                let sets = alike(rank).map(|other| cores[other].clone()).collect();
                let shared = shared_in_panels(&candidate.hpl, sets, alike(rank));
                let at = alike(rank).position(|other| other == rank).unwrap();
                prop_assert_eq!(&found, &shared[at]);
            }
            let each = (0..ranks).map(|rank| placed[rank].1.len() / alike(rank).count()).min().unwrap();
            prop_assert_eq!(run.threads_each(), each.max(1));
        }
    }
}
