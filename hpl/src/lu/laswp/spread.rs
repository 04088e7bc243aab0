//! The spread of SWAP long: displaced rows are sent from the owner of the diagonal block down a binomial tree.
//!
//! A position receives the rows of all positions of its subtree in one message, and forwards those of the others
//! [HPL, `src/pgesv/HPL_spreadN.c`].

use std::ops::Range;

use super::order::ProcessOrder;
use super::result::PlacedRows;
use super::row_buffer::RowBuffer;
use super::state::LaswpState;
use crate::Error;
use crate::backend::Columns;
use crate::comm::{Comm, Completion};
use crate::lu::spread_roll::{children, parent, subtree};

/// The spread on one rank.
pub(super) struct Spread<C: Comm> {
    awaited: Option<C::Recv>,
    received: Option<RowBuffer>,
}

impl<C: Comm> Spread<C> {
    /// Starts the sends on the owner of the diagonal block, and posts the receive on the other ranks.
    pub(super) fn start(
        state: &mut LaswpState<'_, C>,
        order: &ProcessOrder,
        columns: &mut impl Columns,
    ) -> Result<Self, Error> {
        let (at, size) = (order.at, order.size());
        if at > 0 {
            let (parent, rows) = (order.rank(parent(at)), Self::rows(state, order, subtree(at, size)));
            return Ok(Self { awaited: state.receive(parent, state.tags.spread, rows), received: None });
        }
        for child in children(at, size) {
            let entries = order.join(&state.permutation.scattered, subtree(child, size));
            if let Some(buffer) = state.gather(entries.map(|i| state.displaced_source(i)), columns)? {
                state.send(order.rank(child), state.tags.spread, &buffer);
            }
        }
        Ok(Self { awaited: None, received: None })
    }

    /// Forwards the rows of other positions once they have arrived.
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
        let all = Self::rows(state, order, subtree(at, size));
        let Some(received) = state.take(&mut self.awaited, all, completion)? else { return Ok(()) };
        for child in children(at, size) {
            let (before, rows) = (Self::rows(state, order, at..child), Self::rows(state, order, subtree(child, size)));
            if rows > 0 {
                let part = state.part(&received, before..before + rows, columns)?;
                state.send(order.rank(child), state.tags.spread, &part);
            }
        }
        self.received = Some(received);
        Ok(())
    }

    /// Number of displaced rows of some positions.
    fn rows(state: &LaswpState<'_, C>, order: &ProcessOrder, positions: Range<usize>) -> usize {
        order.join(&state.permutation.scattered, positions).count()
    }

    /// The displaced rows whose destinations this rank owns; they come first in its message.
    pub(super) fn into_placed(self, state: &LaswpState<'_, C>) -> Vec<PlacedRows> {
        let mine = state.permutation.scattered[state.me()].iter();
        let pairs: Vec<(usize, usize)> = (0..).zip(mine.map(|&i| state.destination(i))).collect();
        self.received.map(|received| (received, pairs)).into_iter().collect()
    }

    /// Whether all messages have arrived.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.awaited.is_none()
    }
}
