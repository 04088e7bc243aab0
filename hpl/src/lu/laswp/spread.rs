//! The spread of SWAP long: displaced rows from the owner of the diagonal block down a binomial tree.
//!
//! A position gets the rows of all positions that it serves in one message, and passes on what is not its own
//! [HPL, `src/pgesv/HPL_spreadN.c`].

use std::ops::Range;

use super::order::ProcessOrder;
use super::result::Placed;
use super::row_buffer::RowBuffer;
use super::state::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;
use crate::lu::spread_roll::{children, parent, served};

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
            let (parent, rows) = (order.rank(parent(at)), Self::rows(state, order, served(at, size)));
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
                let part = state.part(&held, before..before + rows, columns)?;
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
