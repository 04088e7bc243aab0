//! The memory check of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use space::workspace::{RunShape, Workspace, leading_dimension};
use space::{Candidate, EngineParams, HplParams};

use super::RunError;
use crate::comm::grid;
use crate::lu::solve::{local_shapes, matrix_len};

/// Memory that a run can fill without swapping, including memory kept from earlier runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FreeMemory {
    /// Bytes for all ranks, which are threads of one process.
    OneProcess(u64),
    /// The nodes of ranks that are processes, each rank on one of them.
    Nodes(Vec<NodeMemory>),
}

/// The memory of a node for those of its ranks that take part in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeMemory {
    free_bytes: u64,
    /// Kept from earlier runs by the ranks of the job on this node, also by those that are not in the run: before it begins they
    /// return what it does not use.
    kept_bytes: u64,
    ranks: Vec<usize>,
}

/// What a rank finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankMemory {
    /// Free memory of its node.
    pub(super) free_bytes: u64,
    /// Memory that its process keeps from earlier runs.
    pub(super) kept_bytes: u64,
}

impl NodeMemory {
    /// The nodes with any of the first `ranks` ranks of a job, which has on each of its ranks, in order, this node and this memory.
    pub(super) fn of_run(job: impl IntoIterator<Item = (usize, RankMemory)>, ranks: usize) -> Vec<Self> {
        let mut nodes: BTreeMap<usize, Self> = BTreeMap::new();
        for (rank, (node, RankMemory { free_bytes, kept_bytes })) in job.into_iter().enumerate() {
            if rank < ranks {
                nodes.entry(node).or_default().add(rank, free_bytes, kept_bytes);
            } else if let Some(node) = nodes.get_mut(&node) {
                node.kept_bytes = node.kept_bytes.saturating_add(kept_bytes);
            }
        }
        nodes.into_values().collect()
    }

    /// Adds a rank that finds so much free memory on the node, and keeps some itself.
    fn add(&mut self, rank: usize, free_bytes: u64, kept_bytes: u64) {
        self.free_bytes = if self.ranks.is_empty() { free_bytes } else { self.free_bytes.min(free_bytes) };
        self.kept_bytes = self.kept_bytes.saturating_add(kept_bytes);
        self.ranks.push(rank);
    }

    fn bytes(&self) -> u64 {
        self.free_bytes.saturating_add(self.kept_bytes)
    }
}

impl FreeMemory {
    /// Memory of all ranks if each takes as much as the others: that per rank of the node with the least, times the ranks.
    pub(super) fn in_equal_parts(&self) -> u64 {
        match self {
            Self::OneProcess(bytes) => *bytes,
            Self::Nodes(nodes) => {
                let ranks: usize = nodes.iter().map(|node| node.ranks.len()).sum();
                let of_each = nodes.iter().map(|node| node.bytes() / node.ranks.len() as u64).min();
                of_each.unwrap_or(0).saturating_mul(ranks as u64)
            }
        }
    }

    /// Memory of all nodes.
    fn bytes(&self) -> u64 {
        match self {
            Self::OneProcess(bytes) => *bytes,
            Self::Nodes(nodes) => nodes.iter().map(NodeMemory::bytes).fold(0, u64::saturating_add),
        }
    }

    /// Memory of all ranks together when the first node is full, if ranks fill theirs in proportion to their parts of the matrix.
    fn usable_bytes(&self, hpl: &HplParams, engine: &EngineParams) -> u64 {
        let Self::Nodes(nodes) = self else { return self.bytes() };
        // What is larger than all memory has the parts of the largest that is not: its blocks may be too many to list.
        let lacks = self.needed_bytes(hpl, engine.threads) > self.bytes();
        let n = if lacks { self.most_n(hpl, engine.threads).min(hpl.n) } else { hpl.n };
        let (ld, cols) = local_shapes(&HplParams { n, ..*hpl }, &engine.weights);
        let sum = |lens: &[usize]| lens.iter().map(|&len| len as f64).sum::<f64>();
        let all = sum(&ld) * sum(&cols);
        let part = |&rank: &usize| {
            let (row, col) = grid::coords(hpl.pmap, rank, hpl.p, hpl.q);
            ld[row] as f64 * cols[col] as f64
        };
        let full = |node: &NodeMemory| node.bytes() as f64 * (all / node.ranks.iter().map(part).sum::<f64>());
        nodes.iter().map(full).fold(self.bytes() as f64, f64::min) as u64
    }

    /// Memory that a run takes whose ranks have `threads` threads each, all ranks together: [`Workspace::bytes`].
    fn needed_bytes(&self, hpl: &HplParams, threads: usize) -> u64 {
        let workspace = if matches!(self, Self::OneProcess(_)) { Workspace::Hpl } else { Workspace::OurProcesses };
        workspace.bytes(self.shape(hpl, threads))
    }

    /// The largest order, a multiple of NB, that fits one process; no larger one fits the nodes.
    fn most_n(&self, hpl: &HplParams, threads: usize) -> usize {
        Workspace::Hpl.largest_n(self.bytes(), hpl.nb, self.shape(hpl, threads))
    }

    fn shape(&self, hpl: &HplParams, threads: usize) -> RunShape {
        let together = match self {
            Self::OneProcess(_) => hpl.ranks(),
            Self::Nodes(nodes) => nodes.iter().map(|node| node.ranks.len()).max().unwrap_or(1),
        };
        RunShape::on_hosts(hpl, threads, together.saturating_mul(threads))
    }

    /// The largest order below that of `hpl`, a multiple of NB, that fits; 0 when not even one block does.
    fn largest_n(&self, hpl: &HplParams, engine: &EngineParams) -> usize {
        let most = self.most_n(hpl, engine.threads);
        if matches!(self, Self::OneProcess(_)) {
            return most;
        }
        let fits = |blocks: usize| {
            let hpl = HplParams { n: blocks * hpl.nb, ..*hpl };
            self.needed_bytes(&hpl, engine.threads) <= self.usable_bytes(&hpl, engine)
        };
        // `low` blocks fit, `high` do not.
        let (mut low, mut high) = (0, (most / hpl.nb + 1).min(hpl.n.div_ceil(hpl.nb)));
        while high > low + 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        low * hpl.nb
    }
}

/// Checks that a run fits into `free` main memory. A GPU checks its own memory when it gets the matrix.
///
/// # Errors
/// [`RunError::TooLarge`], [`RunError::Padded`].
pub(super) fn check_memory(Candidate { hpl, engine }: &Candidate, free: &FreeMemory) -> Result<(), RunError> {
    if engine.device.is_gpu() {
        return Ok(());
    }
    let &HplParams { n, nb, p, q, align, .. } = hpl;
    let (needed_bytes, free_bytes) = (free.needed_bytes(hpl, engine.threads), free.usable_bytes(hpl, engine));
    if needed_bytes <= free_bytes {
        let padded_bytes = padded_bytes(hpl);
        return if padded_bytes <= free_bytes {
            Ok(())
        } else {
            Err(RunError::Padded { align, padded_bytes, free_bytes })
        };
    }
    let largest_n = free.largest_n(hpl, engine);
    Err(RunError::TooLarge { n, p, q, nb, needed_bytes, free_bytes, largest_n })
}

/// Memory of [A | b] on all ranks, whose columns have the length of the leading dimension: some multiples of a large ALIGN.
fn padded_bytes(hpl: &HplParams) -> u64 {
    let ld = leading_dimension(hpl.n.div_ceil(hpl.p.max(1)), hpl.align);
    let [n, p, ld] = [hpl.n, hpl.p, ld].map(|size| size as u128);
    u64::try_from(p.saturating_mul(ld).saturating_mul(8 * (n + 1))).unwrap_or(u64::MAX)
}

/// Elements of the local matrices of all ranks.
pub(super) fn matrix_lens(candidate: &Candidate) -> Vec<usize> {
    (0..candidate.hpl.ranks()).map(|rank| matrix_len(candidate, rank)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use space::{Share, Weights, order};

    use super::*;

    /// Nodes of so many bytes each, which ranks fill in order, `each` per node.
    fn nodes(bytes: &[u64], each: usize) -> FreeMemory {
        let node = |(at, &bytes): (usize, &u64)| {
            let mut node = NodeMemory::default();
            (at * each..(at + 1) * each).for_each(|rank| node.add(rank, bytes, 0));
            node
        };
        FreeMemory::Nodes(bytes.iter().enumerate().map(node).collect())
    }

    fn shares(values: &[f64]) -> Vec<Share> {
        values.iter().map(|&value| Share::new(value).unwrap()).collect()
    }

    fn candidate(n: usize, nb: usize, (p, q): (usize, usize), columns: &[f64]) -> Candidate {
        let hpl = HplParams { nb, ..HplParams::baseline(n, p, q) };
        let weights = Weights { rows: Vec::new(), columns: shares(columns) };
        Candidate { hpl, engine: EngineParams { weights, ..EngineParams::default() } }
    }

    /// The order that the message of a refusal names.
    fn named(candidate: &Candidate, free: &FreeMemory) -> usize {
        match check_memory(candidate, free) {
            Err(RunError::TooLarge { largest_n, .. }) => largest_n,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_node_with_more_of_the_matrix_needs_more_memory() {
        // The run needs 3.4 GB, rank 0 two thirds of it.
        let weighted = candidate(20_000, 100, (1, 2), &[1.0, 0.5]);
        check_memory(&weighted, &FreeMemory::OneProcess(3_600_000_000)).unwrap();
        check_memory(&candidate(20_000, 100, (1, 2), &[]), &nodes(&[1_800_000_000; 2], 1)).unwrap();
        check_memory(&weighted, &nodes(&[2_400_000_000, 1_300_000_000], 1)).unwrap();
        named(&weighted, &nodes(&[1_300_000_000, 2_400_000_000], 1));
        let equal = nodes(&[1_800_000_000; 2], 1);
        let largest_n = named(&weighted, &equal);
        assert!((17_000..18_500).contains(&largest_n), "{largest_n}");
        check_memory(&candidate(largest_n, 100, (1, 2), &[1.0, 0.5]), &equal).unwrap();
    }

    #[test]
    fn few_blocks_are_not_in_equal_parts() {
        // Of 10001 columns rank 0 has 4000.
        let uneven = candidate(10_000, 2000, (1, 4), &[]);
        let needed = nodes(&[0], 4).needed_bytes(&uneven.hpl, 1);
        named(&uneven, &nodes(&[needed / 10 * 3; 4], 1));
        check_memory(&uneven, &nodes(&[needed / 10 * 4 + needed / 100; 4], 1)).unwrap();
        // Ranks of one node share its memory.
        check_memory(&uneven, &nodes(&[needed + needed / 1000], 4)).unwrap();
        named(&uneven, &nodes(&[needed - needed / 1000], 4));
    }

    /// What it receives is no memory for what it sends.
    #[test]
    fn a_process_needs_memory_for_messages_of_its_own() {
        let run = candidate(20_000, 256, (4, 4), &[]);
        let needed = FreeMemory::OneProcess(0).needed_bytes(&run.hpl, 1);
        check_memory(&run, &FreeMemory::OneProcess(needed)).unwrap();
        let largest_n = named(&run, &nodes(&[needed], 16));
        assert!((18_000..20_000).contains(&largest_n), "{largest_n}");
        check_memory(&run, &nodes(&[needed + needed / 7], 16)).unwrap();
    }

    /// 63 copies of L1 of NB = 8192, and what the threads have solved.
    #[test]
    fn threads_need_memory_for_their_copies_of_l1() {
        let mut run = candidate(100_000, 8192, (1, 1), &[]);
        let free = FreeMemory::OneProcess(120_000_000_000);
        check_memory(&run, &free).unwrap();
        run.engine.threads = 64;
        for free in [free, nodes(&[120_000_000_000], 1)] {
            let largest_n = named(&run, &free);
            assert!((80_000..100_000).contains(&largest_n), "{largest_n}");
            check_memory(&Candidate { hpl: HplParams { n: largest_n, ..run.hpl }, ..run.clone() }, &free).unwrap();
        }
    }

    #[test]
    fn an_order_beyond_all_memory_is_refused() {
        let free = nodes(&[1 << 30, 1 << 31], 2);
        let largest_n = named(&candidate(order::MAX_N, 1, (2, 2), &[]), &free);
        check_memory(&candidate(largest_n, 1, (2, 2), &[]), &free).unwrap();
        assert_eq!(named(&candidate(1000, 100, (2, 2), &[]), &nodes(&[0, 0], 2)), 0);
    }

    /// A leading dimension is no power of two.
    #[test]
    fn padding_is_that_of_the_leading_dimension() {
        let mut run = candidate(40_000, 128, (1, 1), &[]);
        run.hpl.align = 1 << 16;
        let refused = check_memory(&run, &FreeMemory::OneProcess(32_000_000_000)).unwrap_err();
        let RunError::Padded { padded_bytes, .. } = refused else { panic!("{refused}") };
        assert_eq!(padded_bytes, 8 * 3 * (1 << 16) * 40_001);
        check_memory(&run, &FreeMemory::OneProcess(padded_bytes)).unwrap();
    }

    #[test]
    fn equal_parts_are_those_of_the_node_with_the_least_per_rank() {
        assert_eq!(FreeMemory::OneProcess(7).in_equal_parts(), 7);
        let (mut one, mut two) = (NodeMemory::default(), NodeMemory::default());
        one.add(0, 1000, 20);
        two.add(1, 1800, 30);
        two.add(2, 1600, 10);
        assert_eq!(FreeMemory::Nodes(vec![one, two]).in_equal_parts(), 3 * 820);
    }

    #[test]
    fn ranks_outside_of_the_grid_return_what_they_keep() {
        let rank = |node, free_bytes, kept_bytes| (node, RankMemory { free_bytes, kept_bytes });
        // Two nodes of two ranks each, after a run on all of them, and a third node without a rank of the next run.
        let job = [rank(0, 100, 40), rank(0, 90, 30), rank(2, 200, 50), rank(2, 80, 60), rank(4, 10, 70)];
        let bytes = |ranks| NodeMemory::of_run(job, ranks).iter().map(NodeMemory::bytes).collect::<Vec<_>>();
        assert_eq!(bytes(1), [100 + 40 + 30]);
        assert_eq!(bytes(3), [90 + 40 + 30, 200 + 50 + 60]);
        assert_eq!(bytes(5), [90 + 40 + 30, 80 + 50 + 60, 10 + 70]);
        let one = FreeMemory::Nodes(NodeMemory::of_run(job, 1));
        assert_eq!(one.in_equal_parts(), 170, "for one rank, not two");
    }

    proptest! {
        #[test]
        fn the_named_order_passes(
            (p, q) in (1_usize..4, 1_usize..5),
            (n, nb) in (1_usize..60_000, 16_usize..400),
            weights in prop::collection::vec(0.1_f64..3.0, 4),
            bytes in prop::collection::vec(0_u64..1 << 33, 12),
            depth in 0_usize..3,
        ) {
            let mut run = candidate(n, nb, (p, q), &weights[..q]);
            run.hpl.depth = depth;
            let free = nodes(&bytes[..p * q], 1);
            if let Err(RunError::TooLarge { largest_n, needed_bytes, free_bytes, .. }) = check_memory(&run, &free) {
                prop_assert!(largest_n < n && largest_n.is_multiple_of(nb) && needed_bytes > free_bytes);
                run.hpl.n = largest_n;
                let refused = matches!(check_memory(&run, &free), Err(RunError::TooLarge { .. }));
                prop_assert!(largest_n == 0 || !refused);
            }
        }
    }
}
