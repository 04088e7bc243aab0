//! Row exchange: the pivot rows of a panel become U, and the rows of the diagonal block replace them.
//!
//! With one process row this is a local row swap, which the update does. Otherwise the rows are exchanged along
//! the process column by one of two message patterns with the same result: every process row has all rows of U
//! and the displaced rows whose destination it owns, as [`RowBuffer`]s, which are the messages themselves. A U of
//! the whole section is never assembled: each slab of the update takes its columns from the messages
//! ([`LaswpResult::fill`]).
//!
//! An exchange is started, polled during other work any number of times, and finished.

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
pub(crate) use self::row_buffer::{RowBuffer, RowBufferMut, RowSource, copy_stored};
use self::state::LaswpState;
pub(crate) use self::state::RowTags;
use crate::Error;
use crate::backend::Columns;
use crate::comm::{Comm, Completion};
use crate::plan::layout::Distribution;

/// Parameters of all row exchanges of a run.
pub(crate) struct Laswp<'a, C> {
    /// The process column, of at least two ranks.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Distribution,
    /// SWAP.
    pub(crate) swap: Swap,
    /// EQUIL: lengths of U pieces are balanced between process rows before the roll; no numerical scaling.
    pub(crate) equil: bool,
    /// U: storage of rows in messages.
    pub(crate) u: Form,
}

/// A row exchange in flight. Its columns must stay unchanged until it is finished.
pub(crate) struct LaswpOp<'a, C: Comm> {
    state: LaswpState<'a, C>,
    pattern: Pattern<C>,
}

/// The message pattern chosen by SWAP.
enum Pattern<C: Comm> {
    BinExch(BinExch<C>),
    Long(Box<Long<C>>),
}

impl<'a, C: Comm> Laswp<'a, C> {
    /// Copies the rows of this rank into messages and starts their sends; it never waits. `section`: local columns of the
    /// exchange, some of the `u_cols` columns of U.
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
        let (column, rows, form) = (self.column, self.rows, self.u);
        let long = match self.swap {
            Swap::BinExch => false,
            Swap::Long => true,
            // As in `HPL_pdupdate`, whose n is the columns of U.
            Swap::Mix { threshold } => u_cols > threshold,
        };
        let section = section.clone();
        let mut state = LaswpState { column, rows, permutation, section, form, long, tags, sends: Vec::new() };
        let pattern = if long {
            Pattern::Long(Box::new(Long::start(&mut state, self.equil, columns)?))
        } else {
            Pattern::BinExch(BinExch::start(&mut state, columns)?)
        };
        Ok(LaswpOp { state, pattern })
    }
}

impl<C: Comm> LaswpOp<'_, C> {
    /// Tests the receives and starts the sends that depend on arrived messages; it never waits.
    ///
    /// # Errors
    /// When a rank of the process column fails.
    pub(crate) fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.advance(Completion::Test, columns)
    }

    /// Waits for all receives. Returns the rows, with sends that may still be in flight.
    ///
    /// # Errors
    /// When a rank of the process column or a thread fails.
    pub(crate) fn finish(mut self, columns: &mut impl Columns) -> Result<(LaswpResult, Vec<C::Send>), Error> {
        self.advance(Completion::Wait, columns)?;
        let result = match self.pattern {
            Pattern::BinExch(pattern) => pattern.into_result(&self.state),
            Pattern::Long(pattern) => pattern.into_result(&self.state),
        };
        Ok((result, self.state.sends))
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
