//! The spread of SWAP long: displaced rows from the owner of the diagonal block down a binomial tree.
//!
//! A position gets the rows of all positions that it serves in one message, and passes on what is not its own
//! [HPL, `src/pgesv/HPL_spreadN.c`].

use std::ops::Range;

use super::long::ProcessOrder;
use super::result::Placed;
use super::row_buffer::RowBuffer;
use super::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;

/// Positions whose rows come through `at`, its own first.
fn served(at: usize, size: usize) -> Range<usize> {
    let lowest_bit = at & at.wrapping_neg();
    if at == 0 { 0..size } else { at..size.min(at + lowest_bit) }
}

/// Positions that `at` serves at once, the largest group first.
fn children(at: usize, size: usize) -> impl Iterator<Item = usize> {
    let reach = served(at, size).len();
    (0..usize::BITS).rev().map(|bit| 1 << bit).filter(move |&step| step < reach).map(move |step| at + step)
}

/// One rank's part.
pub(super) struct Spread<C: Comm> {
    awaited: Option<C::Recv>,
    held: Option<RowBuffer>,
}

impl<C: Comm> Spread<C> {
    /// The owner of the diagonal block sends its rows; the others expect theirs.
    pub(super) fn start(
        state: &mut LaswpState<'_, C>,
        order: &ProcessOrder,
        columns: &mut impl Columns,
    ) -> Result<Self, Error> {
        let (at, size) = (order.at, order.size());
        if at > 0 {
            let (parent, rows) = (order.rank(at & (at - 1)), Self::rows(state, order, served(at, size)));
            return Ok(Self { awaited: state.expect(parent, state.tags.spread, rows), held: None });
        }
        for child in children(at, size) {
            let leaving = order.join(&state.permutation.scattered, served(child, size)).map(|i| state.leaving(i));
            if let Some(piece) = state.gather(leaving, columns)? {
                state.send(order.rank(child), state.tags.spread, &piece);
            }
        }
        Ok(Self { awaited: None, held: None })
    }

    /// Passes on the rows of others once they have arrived.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        order: &ProcessOrder,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        let (at, size) = (order.at, order.size());
        if self.awaited.is_none() {
            return Ok(());
        }
        let all = Self::rows(state, order, served(at, size));
        let Some(held) = state.take(&mut self.awaited, all, completion)? else { return Ok(()) };
        for child in children(at, size) {
            let (before, rows) = (Self::rows(state, order, at..child), Self::rows(state, order, served(child, size)));
            if rows > 0 {
                let part = held.part(before..before + rows, columns, state.pool())?;
                state.send(order.rank(child), state.tags.spread, &part);
            }
        }
        self.held = Some(held);
        Ok(())
    }

    /// Displaced rows of some positions.
    fn rows(state: &LaswpState<'_, C>, order: &ProcessOrder, positions: Range<usize>) -> usize {
        order.join(&state.permutation.scattered, positions).count()
    }

    /// The displaced rows whose places are here, which come first in what this rank got.
    pub(super) fn into_placed(self, state: &LaswpState<'_, C>) -> Vec<Placed> {
        let mine = state.permutation.scattered[state.me()].iter();
        let places: Vec<(usize, usize)> = (0..).zip(mine.map(|&i| state.place(i))).collect();
        self.held.map(|held| (held, places)).into_iter().collect()
    }

    /// Whether no message is missing.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.awaited.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position but the first is served once, by the one without its lowest bit, after at most ⌈log2 P⌉ hops.
    #[test]
    fn the_spread_is_a_tree() {
        for size in 1..20 {
            let mut served_by = vec![Vec::new(); size];
            for at in 0..size {
                let mut all: Vec<usize> = children(at, size).flat_map(|child| served(child, size)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(served(at, size).skip(1)));
                children(at, size).for_each(|child| served_by[child].push(at));
            }
            assert!(served_by[0].is_empty());
            assert!((1..size).all(|at| served_by[at] == [at & (at - 1)]));
        }
        assert!(children(0, 8).eq([4, 2, 1]));
        assert!(children(0, 6).eq([4, 2, 1]) && children(4, 6).eq([5]) && children(2, 6).eq([3]));
    }
}
