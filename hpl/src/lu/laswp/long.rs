//! SWAP long: displaced rows spread along a tree, pieces of U roll around the process column.
//!
//! The two need nothing of each other and go on side by side; [HPL, `src/pgesv/HPL_pdlaswp01N.c`] does one after
//! the other. With EQUIL the pieces are made equally long before they roll.

use std::ops::Range;

use super::equil::Equil;
use super::result::LaswpResult;
use super::roll::Roll;
use super::spread::Spread;
use super::{Completion, LaswpState, RowPermutation};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;
use crate::comm::grid::rank_at;

/// The process rows in the order of an exchange, as one of them sees it.
pub(super) struct ProcessOrder {
    /// Process row at each position.
    ranks: Vec<usize>,
    /// Position of this rank.
    pub(super) at: usize,
}

impl ProcessOrder {
    /// First the owner of the diagonal block; the others so that those with most displaced rows get them over the
    /// fewest hops, which are as many as their position has bits [HPL, `src/pgesv/HPL_logsort.c`].
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

    /// What `lists`, by process row, have, one position after the other.
    pub(super) fn join<'a>(
        &'a self,
        lists: &'a [Vec<usize>],
        positions: Range<usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        self.ranks[positions].iter().flat_map(|&rank| lists[rank].iter().copied())
    }
}

/// One exchange on one rank.
pub(super) struct Long<C: Comm> {
    order: ProcessOrder,
    spread: Spread<C>,
    equil: Equil<C>,
    roll: Roll<C>,
}

impl<C: Comm> Long<C> {
    /// Copies what leaves this rank and sends what needs no message of others; pieces of U first, whose way is the
    /// longer one.
    pub(super) fn start(state: &mut LaswpState<'_, C>, equil: bool, columns: &mut impl Columns) -> Result<Self, Error> {
        let order = ProcessOrder::new(&state.permutation, state.me());
        let mut equil = Equil::start(state, &order, equil, columns)?;
        let mut roll = Roll::expect(state, &order, &equil.pieces);
        if let Some(own) = equil.advance(state, Completion::Test, columns)? {
            roll.own(own);
        }
        roll.advance(state)?;
        let spread = Spread::start(state, &order, columns)?;
        Ok(Self { order, spread, equil, roll })
    }

    /// Passes on what has arrived. A rank that waits does so for rows of its piece, then for the pieces in the order
    /// of their distance, then for displaced rows: each of these needs only what comes before it in this order, so
    /// that no ranks wait for each other.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        self.spread.advance(state, &self.order, Completion::Test, columns)?;
        if let Some(own) = self.equil.advance(state, completion, columns)? {
            self.roll.own(own);
        }
        self.roll.advance(state)?;
        while completion == Completion::Wait && self.roll.wait(state)? {
            self.roll.advance(state)?;
            self.spread.advance(state, &self.order, Completion::Test, columns)?;
        }
        self.spread.advance(state, &self.order, completion, columns)
    }

    /// The rows that stay on this rank.
    pub(super) fn into_result(self, state: &LaswpState<'_, C>) -> LaswpResult {
        let (permutation, pieces) = (&state.permutation, &self.equil.pieces);
        let rows: Vec<usize> = self.order.join(&permutation.gathered, 0..self.order.size()).collect();
        let place = |(at, piece)| (piece, (0..).zip(rows[pieces[at]..pieces[at + 1]].iter().copied()).collect());
        let upper = self.roll.into_pieces().map(place).collect();
        LaswpResult { upper, displaced: self.spread.into_placed(state), staying: state.staying() }
    }

    /// Whether no message is missing.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.roll.complete() && self.spread.complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Axis;

    #[test]
    fn most_rows_take_fewest_hops() {
        for p in 1..=9 {
            let rows = Axis::block_cyclic(300, 10, p);
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
