//! Row exchange: the pivot rows of a panel become U, the rows they displace take their places.
//!
//! With one process row this is a local interchange, which the update does. Otherwise the rows travel along
//! the process column by one of two patterns of messages that end alike: every process row has all rows of U
//! and the displaced rows whose places it owns, as [`RowBuffer`]s, which are the messages themselves. They are
//! never put together to one U of a whole section: each slab of the update takes its columns from them
//! ([`LaswpResult::fill`]).
//!
//! An exchange is started, polled beside other work as often as one likes, and finished.

mod bin_exch;
mod equil;
mod long;
mod order;
mod permutation;
mod result;
mod roll;
mod row_buffer;
mod spread;
mod state;

use std::ops::Range;
use std::sync::Arc;

use space::{Form, Swap};

pub(crate) use permutation::RowPermutation;
pub(crate) use result::LaswpResult;

use self::bin_exch::BinExch;
use self::long::Long;
pub(crate) use self::row_buffer::{RowBuffer, RowBufferMut, Source};
pub(crate) use self::state::RowTags;
use self::state::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;
use crate::plan::layout::Axis;

/// What all row exchanges of a run share.
pub(crate) struct Laswp<'a, C> {
    /// The process column, of at least two ranks.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Axis,
    /// SWAP.
    pub(crate) swap: Swap,
    /// EQUIL: lengths of U pieces are balanced between process rows before they roll; no numerical scaling.
    pub(crate) equil: bool,
    /// U: storage of rows in messages.
    pub(crate) u: Form,
}

/// An exchange under way. Until it is finished nothing may change its columns.
pub(crate) struct LaswpOp<'a, C: Comm> {
    state: LaswpState<'a, C>,
    pattern: Pattern<C>,
}

/// SWAP as it goes on.
enum Pattern<C: Comm> {
    BinExch(BinExch<C>),
    Long(Box<Long<C>>),
}

impl<'a, C: Comm> Laswp<'a, C> {
    /// Copies the rows of this rank into messages and starts their sends, without waiting for anything. `section` are its
    /// local columns, some of the `u_cols` columns of U.
    ///
    /// # Errors
    /// When a rank of the process column or a thread fails.
    pub(crate) fn start(
        &self,
        permutation: Arc<RowPermutation>,
        section: &Range<usize>,
        u_cols: usize,
        tags: RowTags,
        columns: &mut impl Columns,
    ) -> Result<LaswpOp<'a, C>, Error> {
        let (column, rows, cols, form) = (self.column, self.rows, section.len(), self.u);
        let long = match self.swap {
            Swap::BinExch => false,
            Swap::Long => true,
            // As in `HPL_pdupdate`, whose n is the columns of U.
            Swap::Mix { threshold } => u_cols > threshold,
        };
        let section = section.clone();
        let mut state = LaswpState { column, rows, permutation, section, cols, form, long, tags, sends: Vec::new() };
        let pattern = if long {
            Pattern::Long(Box::new(Long::start(&mut state, self.equil, columns)?))
        } else {
            Pattern::BinExch(BinExch::start(&mut state, columns)?)
        };
        Ok(LaswpOp { state, pattern })
    }
}

impl<C: Comm> LaswpOp<'_, C> {
    /// Takes the messages that have arrived and sends what they make possible; never waits for one.
    ///
    /// # Errors
    /// When a rank of the process column fails.
    pub(crate) fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.advance(Completion::Test, columns)
    }

    /// Waits for the messages that are missing. The sends that come with the rows may still be under way.
    ///
    /// # Errors
    /// When a rank of the process column or a thread fails.
    pub(crate) fn finish(mut self, columns: &mut impl Columns) -> Result<(LaswpResult, Vec<C::Send>), Error> {
        self.advance(Completion::Wait, columns)?;
        let exchanged = match self.pattern {
            Pattern::BinExch(pattern) => pattern.into_result(&self.state),
            Pattern::Long(pattern) => pattern.into_result(&self.state),
        };
        Ok((exchanged, self.state.sends))
    }

    fn advance(&mut self, completion: Completion, columns: &mut impl Columns) -> Result<(), Error> {
        match &mut self.pattern {
            Pattern::BinExch(pattern) => pattern.advance(&mut self.state, completion, columns),
            Pattern::Long(pattern) => pattern.advance(&mut self.state, completion, columns),
        }
    }
}

#[cfg(test)]
mod tests;
