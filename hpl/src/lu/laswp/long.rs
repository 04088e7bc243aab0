//! SWAP long: spread of the displaced rows along a tree, roll of the pieces of U around the process column.
//!
//! The two are independent and overlap; [HPL, `src/pgesv/HPL_pdlaswp01N.c`] does one after the other. With EQUIL the
//! pieces are balanced before the roll.

use super::equil::Equil;
use super::order::ProcessOrder;
use super::result::LaswpResult;
use super::roll::Roll;
use super::spread::Spread;
use super::state::LaswpState;
use crate::Error;
use crate::backend::Columns;
use crate::comm::{Comm, Completion};

/// One row exchange on one rank.
pub(super) struct Long<C: Comm> {
    order: ProcessOrder,
    spread: Spread<C>,
    equil: Equil<C>,
    roll: Roll<C>,
}

impl<C: Comm> Long<C> {
    /// Copies the rows that this rank sends and starts the sends that depend on no other message; pieces of U first, as
    /// the roll takes longer than the spread.
    pub(super) fn start(state: &mut LaswpState<'_, C>, equil: bool, columns: &mut impl Columns) -> Result<Self, Error> {
        let order = ProcessOrder::new(&state.permutation, state.me());
        let mut equil = Equil::start(state, &order, equil, columns)?;
        let mut roll = Roll::start(state, &order, &equil.pieces);
        if let Some(piece) = equil.advance(state, Completion::Test, columns)? {
            roll.set_own(piece);
        }
        roll.advance(state)?;
        let spread = Spread::start(state, &order, columns)?;
        Ok(Self { order, spread, equil, roll })
    }

    /// Forwards the messages that have arrived. With [`Completion::Wait`] it waits for the rows of its own piece, then for
    /// the pieces in the order of their distance, then for the displaced rows. Each message depends only on earlier ones in
    /// this order, which rules out a deadlock.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        self.spread.advance(state, &self.order, Completion::Test, columns)?;
        if let Some(piece) = self.equil.advance(state, completion, columns)? {
            self.roll.set_own(piece);
        }
        self.roll.advance(state)?;
        while completion == Completion::Wait && self.roll.wait(state)? {
            self.roll.advance(state)?;
            self.spread.advance(state, &self.order, Completion::Test, columns)?;
        }
        self.spread.advance(state, &self.order, completion, columns)
    }

    /// The exchanged rows of this rank.
    pub(super) fn into_result(self, state: &LaswpState<'_, C>) -> LaswpResult {
        let (permutation, pieces) = (&state.permutation, &self.equil.pieces);
        let rows: Vec<usize> = self.order.join(&permutation.gathered, 0..self.order.size()).collect();
        let placed = |(at, piece)| (piece, (0..).zip(rows[pieces[at]..pieces[at + 1]].iter().copied()).collect());
        let upper = self.roll.into_pieces().map(placed).collect();
        LaswpResult { upper, displaced: self.spread.into_placed(state), local: state.local_rows() }
    }

    /// Whether all messages have arrived.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.roll.complete() && self.spread.complete()
    }
}
