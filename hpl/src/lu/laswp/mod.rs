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
mod permutation;
mod result;
mod roll;
mod row_buffer;
mod spread;

use std::ops::Range;
use std::sync::Arc;

use space::{Form, Swap};

pub(crate) use permutation::RowPermutation;
pub(crate) use result::LaswpResult;

use self::bin_exch::BinExch;
use self::long::Long;
pub(crate) use self::row_buffer::{RowBuffer, RowBufferMut, Source};
use crate::Error;
use crate::backend::Columns;
use crate::backend::host::team::HelperPanicked;
use crate::comm::buffers::Pool;
use crate::comm::grid::tag;
use crate::comm::{Comm, Request, Tag};
use crate::plan::Part;
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

/// Tags of the messages of one section: exchanges of different sections may be under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTags {
    /// Pieces of U, with displaced rows in bin-exch.
    rows: Tag,
    /// Displaced rows that spread.
    spread: Tag,
    /// Rows of U that move between neighbours to make the pieces equally long.
    equil: Tag,
}

impl RowTags {
    /// Tags of a section.
    pub(crate) const fn of(part: Part) -> Self {
        let first = tag::ROW_EXCHANGE + 3 * part as Tag;
        Self { rows: first, spread: first + 1, equil: first + 2 }
    }
}

/// An exchange under way. Until it is finished nothing may change its columns.
pub(crate) struct LaswpOp<'a, C: Comm> {
    state: LaswpState<'a, C>,
    pattern: Pattern<C>,
}

/// What the two patterns have in common.
struct LaswpState<'a, C: Comm> {
    column: &'a C,
    rows: &'a Axis,
    permutation: Arc<RowPermutation>,
    /// Local columns of the section.
    section: Range<usize>,
    /// How many they are.
    cols: usize,
    form: Form,
    /// Whether the pattern is spread and roll.
    long: bool,
    tags: RowTags,
    /// Sends under way.
    sends: Vec<C::Send>,
}

/// SWAP as it goes on.
enum Pattern<C: Comm> {
    BinExch(BinExch<C>),
    Long(Box<Long<C>>),
}

/// Whether to wait for messages that have not arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completion {
    Test,
    Wait,
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

impl<'a, C: Comm> LaswpState<'a, C> {
    fn me(&self) -> usize {
        self.column.rank()
    }

    /// Memory for pieces.
    fn pool(&self) -> &'a Pool {
        &self.column.buffers().rows
    }

    fn owns_diagonal(&self) -> bool {
        self.me() == self.permutation.owner
    }

    /// Starts sending a piece.
    fn send(&mut self, to: usize, tag: Tag, piece: &RowBuffer) {
        let (buf, range) = piece.msg().parts();
        self.sends.push(self.column.isend(to, tag, buf, range));
    }

    /// Starts receiving a piece of `rows` rows; `None` when there is nothing to receive.
    fn expect(&self, from: usize, tag: Tag, rows: usize) -> Option<C::Recv> {
        (rows * self.cols > 0).then(|| self.column.irecv(from, tag, rows * self.cols))
    }

    /// The piece of `rows` rows that `recv` brings, if it has arrived or there is patience to wait.
    fn take(
        &self,
        recv: &mut Option<C::Recv>,
        rows: usize,
        completion: Completion,
    ) -> Result<Option<RowBuffer>, Error> {
        let arrived = |recv: &mut C::Recv| completion == Completion::Wait || recv.ready();
        match recv.take_if(arrived) {
            Some(recv) => Ok(Some(RowBuffer::new(recv.wait()?, rows, self.cols, self.form))),
            None => Ok(None),
        }
    }

    /// A piece of `rows` rows to be written.
    fn buffer(&self, rows: usize) -> RowBufferMut {
        let len = rows * self.cols;
        // In bin-exch messages double from round to round.
        let data = if self.long { self.pool().take(len) } else { self.pool().take_close(len) };
        RowBufferMut::new(data, rows, self.cols, self.form)
    }

    /// The piece of some local rows; `None` when it is empty.
    fn gather(
        &self,
        locals: impl Iterator<Item = usize>,
        columns: &mut impl Columns,
    ) -> Result<Option<RowBuffer>, HelperPanicked> {
        let pairs: Vec<(usize, usize)> = locals.zip(0..).collect();
        if pairs.len() * self.cols == 0 {
            return Ok(None);
        }
        let mut buffer = self.buffer(pairs.len());
        columns.gather(&self.section, &pairs, &mut buffer)?;
        Ok(Some(buffer.done(self.pool())))
    }

    /// Local row of the source of row `i` of U, which is here.
    fn source(&self, i: usize) -> usize {
        self.rows.local(self.permutation.sources[i])
    }

    /// Local row whose content entry `i` of `displaced` is, on the owner of the diagonal block.
    fn leaving(&self, i: usize) -> usize {
        self.rows.local(self.permutation.displaced[i].1)
    }

    /// Where entry `i` of `displaced` goes, which is here: row below the diagonal block.
    fn place(&self, i: usize) -> usize {
        self.rows.local(self.permutation.displaced[i].0) - self.rows.local_from(self.me(), self.permutation.end)
    }

    /// On the owner of the diagonal block: pairs (row of the block, row below it) of the rows that stay here.
    fn staying(&self) -> Vec<(usize, usize)> {
        let mine = self.permutation.scattered[self.me()].iter().filter(|_| self.owns_diagonal());
        mine.map(|&i| (self.permutation.displaced[i].1 - self.permutation.start, self.place(i))).collect()
    }
}

#[cfg(test)]
mod tests;
