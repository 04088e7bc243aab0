//! SWAP long: displaced rows spread along a tree, pieces of U roll around the process column.
//!
//! The two need nothing of each other and go on side by side; [HPL, `src/pgesv/HPL_pdlaswp01N.c`] does one after
//! the other. With EQUIL the pieces are made equally long before they roll.

use super::equil::Equil;
use super::order::ProcessOrder;
use super::result::LaswpResult;
use super::roll::Roll;
use super::spread::Spread;
use super::state::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;

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
