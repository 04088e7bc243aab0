//! Common code of the two message patterns: gathers rows, sends and receives messages.

use std::ops::Range;
use std::sync::Arc;

use space::Form;

use super::permutation::RowPermutation;
use super::row_buffer::{RowBuffer, RowBufferMut, RowSource};
use crate::Error;
use crate::backend::Columns;
use crate::comm::buffers::MessagePool;
use crate::comm::grid::tag;
use crate::comm::{Comm, Completion, Request, Tag};
use crate::plan::Part;
use crate::plan::layout::Distribution;

/// Tags of the messages of one section: exchanges of several sections may be in flight at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTags {
    /// Pieces of U, with displaced rows in bin-exch.
    pub(super) rows: Tag,
    /// Displaced rows of the spread.
    pub(super) spread: Tag,
    /// Rows of U that EQUIL sends to neighbours.
    pub(super) equil: Tag,
}

impl RowTags {
    /// Tags of a section.
    pub(crate) const fn of(part: Part) -> Self {
        let first = tag::ROW_EXCHANGE + 3 * part as Tag;
        Self { rows: first, spread: first + 1, equil: first + 2 }
    }
}

/// State of one row exchange that both patterns use.
pub(super) struct LaswpState<'a, C: Comm> {
    pub(super) column: &'a C,
    pub(super) rows: &'a Distribution,
    pub(super) permutation: Arc<RowPermutation>,
    /// Local columns of the section.
    pub(super) section: Range<usize>,
    pub(super) form: Form,
    /// Whether the pattern is spread and roll.
    pub(super) long: bool,
    pub(super) tags: RowTags,
    /// Sends in flight.
    pub(super) sends: Vec<C::Send>,
}

impl<'a, C: Comm> LaswpState<'a, C> {
    /// Number of columns of the section.
    pub(super) fn cols(&self) -> usize {
        self.section.len()
    }

    pub(super) fn me(&self) -> usize {
        self.column.rank()
    }

    /// Memory for buffers.
    pub(super) fn pool(&self) -> &'a MessagePool {
        &self.column.buffers().rows
    }

    pub(super) fn owns_diagonal(&self) -> bool {
        self.me() == self.permutation.owner
    }

    /// Starts the send of a buffer.
    pub(super) fn send(&mut self, to: usize, tag: Tag, buffer: &RowBuffer) {
        let (buf, range) = buffer.msg().parts();
        self.sends.push(self.column.isend(to, tag, buf, range));
    }

    /// Posts the receive of `rows` rows; `None` for an empty message, which is never sent.
    pub(super) fn receive(&self, from: usize, tag: Tag, rows: usize) -> Option<C::Recv> {
        (rows * self.cols() > 0).then(|| self.column.irecv(from, tag, rows * self.cols()))
    }

    /// Completes `recv` of `rows` rows: with [`Completion::Test`] only if it has arrived.
    pub(super) fn take(
        &self,
        recv: &mut Option<C::Recv>,
        rows: usize,
        completion: Completion,
    ) -> Result<Option<RowBuffer>, Error> {
        let arrived = |recv: &mut C::Recv| completion == Completion::Wait || recv.ready();
        match recv.take_if(arrived) {
            Some(recv) => Ok(Some(RowBuffer::new(recv.wait()?, rows, self.cols(), self.form))),
            None => Ok(None),
        }
    }

    /// A buffer of `rows` rows to be written.
    pub(super) fn buffer(&self, rows: usize) -> RowBufferMut {
        let len = rows * self.cols();
        // In bin-exch messages double from round to round.
        let data = if self.long { self.pool().take(len) } else { self.pool().take_close(len) };
        RowBufferMut::new(data, rows, self.cols(), self.form)
    }

    /// Copies some local rows to a buffer; `None` when it is empty.
    pub(super) fn gather(
        &self,
        locals: impl Iterator<Item = usize>,
        columns: &mut impl Columns,
    ) -> Result<Option<RowBuffer>, Error> {
        let pairs: Vec<(usize, usize)> = locals.zip(0..).collect();
        if pairs.len() * self.cols() == 0 {
            return Ok(None);
        }
        let mut buffer = self.buffer(pairs.len());
        columns.copy_rows(RowSource::Matrix(&self.section), &pairs, &mut buffer)?;
        Ok(Some(buffer.done(self.pool())))
    }

    /// Local row of the source of row `i` of U, on its owner.
    pub(super) fn source(&self, i: usize) -> usize {
        self.rows.local(self.permutation.sources[i])
    }

    /// Local row of the source of entry `i` of `displaced`, on the owner of the diagonal block.
    pub(super) fn displaced_source(&self, i: usize) -> usize {
        self.rows.local(self.permutation.displaced[i].1)
    }

    /// Destination of entry `i` of `displaced`, on its owner: row below the diagonal block.
    pub(super) fn destination(&self, i: usize) -> usize {
        self.rows.local(self.permutation.displaced[i].0) - self.rows.local_from(self.me(), self.permutation.end)
    }

    /// Displaced rows with source and destination on this rank: (row of the diagonal block, row below it).
    pub(super) fn local_rows(&self) -> Vec<(usize, usize)> {
        let mine = self.permutation.scattered[self.me()].iter().filter(|_| self.owns_diagonal());
        mine.map(|&i| (self.permutation.displaced[i].1 - self.permutation.start, self.destination(i))).collect()
    }

    /// Rows `range` of `from` as a separate buffer: shared where they are contiguous, copied otherwise.
    pub(super) fn part(
        &self,
        from: &RowBuffer,
        range: Range<usize>,
        columns: &mut impl Columns,
    ) -> Result<RowBuffer, Error> {
        if let Some(shared) = from.shared_part(&range) {
            return Ok(shared);
        }
        let data = self.pool().take(range.len() * self.cols());
        let mut buffer = RowBufferMut::new(data, range.len(), self.cols(), self.form);
        let pairs: Vec<(usize, usize)> = range.zip(0..).collect();
        columns.copy_rows(RowSource::Buffer(from), &pairs, &mut buffer)?;
        Ok(buffer.done(self.pool()))
    }
}
