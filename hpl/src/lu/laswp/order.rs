//! The order of the process rows in SWAP long.

use std::ops::Range;

use super::permutation::RowPermutation;
use crate::comm::grid::rank_at;

/// The process rows in the order of a row exchange, and the position of this rank.
pub(super) struct ProcessOrder {
    /// Process row at each position.
    ranks: Vec<usize>,
    /// Position of this rank.
    pub(super) at: usize,
}

impl ProcessOrder {
    /// The owner of the diagonal block comes first. The process rows with most displaced rows get the positions with the
    /// fewest hops; the hops of a position are the 1 bits of its number [HPL, `src/pgesv/HPL_logsort.c`].
    pub(super) fn new(permutation: &RowPermutation, me: usize) -> Self {
        let size = permutation.scattered.len();
        let mut rows: Vec<usize> = (1..size).map(|at| rank_at(at, permutation.owner, size)).collect();
        rows.sort_by_key(|&row| std::cmp::Reverse(permutation.scattered[row].len()));
        let mut slots: Vec<usize> = (1..size).collect();
        slots.sort_by_key(|at| at.count_ones());
        let mut ranks = vec![permutation.owner; size];
        slots.into_iter().zip(rows).for_each(|(at, row)| ranks[at] = row);
        let at = ranks.iter().position(|&rank| rank == me).expect("every process row has a position");
        Self { ranks, at }
    }

    /// Number of positions.
    pub(super) fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Process row at `position`.
    pub(super) fn rank(&self, position: usize) -> usize {
        self.ranks[position]
    }

    /// The entries of `lists`, which are by process row, one position after the other.
    pub(super) fn join<'a>(
        &'a self,
        lists: &'a [Vec<usize>],
        positions: Range<usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        self.ranks[positions].iter().flat_map(|&rank| lists[rank].iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Distribution;

    #[test]
    fn most_rows_take_fewest_hops() {
        for p in 1..=9 {
            let rows = Distribution::block_cyclic(300, 10, p);
            let pivots: Vec<usize> = (0..10).map(|j| 40 + j + j * j * 2).collect();
            let permutation = RowPermutation::new(&rows, 40, &pivots);
            let order = ProcessOrder::new(&permutation, p / 2);
            assert_eq!((order.rank(0), order.rank(order.at)), (permutation.owner, p / 2));
            let mut ranks = order.ranks.clone();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..p));
            let (len, hops) = (|at: usize| permutation.scattered[order.rank(at)].len(), |at: usize| at.count_ones());
            for (a, b) in (1..p).flat_map(|a| (1..p).map(move |b| (a, b))) {
                assert!(len(a) <= len(b) || hops(a) <= hops(b));
            }
        }
    }
}
