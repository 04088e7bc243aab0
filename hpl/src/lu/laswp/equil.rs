//! EQUIL: the pieces of U of all process rows get the same number of rows, within one row, before the roll.
//!
//! This balances lengths of messages between process rows; it is not a numerical scaling. Rows are sent between
//! neighbours in the process order of the row exchange, so that at most one message crosses each boundary between
//! two pieces; [HPL, `src/pgesv/HPL_equil.c`] spreads them along trees. As there, two process rows and balanced
//! pieces are left unchanged.

use std::ops::Range;

use super::order::ProcessOrder;
use super::row_buffer::{RowBuffer, RowBufferMut, RowSource};
use super::state::LaswpState;
use crate::Error;
use crate::backend::Columns;
use crate::comm::{Comm, Completion};

/// Start of each piece when pieces of these lengths follow each other, and the end of the last one.
fn bounds(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Bounds of pieces of equal length within one row; longer pieces come first.
fn balanced(found: &[usize]) -> Vec<usize> {
    let (pieces, rows) = (found.len() - 1, found[found.len() - 1]);
    let length = |i: usize| rows / pieces + usize::from(i < rows % pieces);
    let optimal = found.windows(2).all(|ends| (rows / pieces..=rows.div_ceil(pieces)).contains(&(ends[1] - ends[0])));
    if pieces <= 2 || optimal { found.to_vec() } else { bounds((0..pieces).map(length)) }
}

/// Rows that two ranges have in common.
fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// Rows of U of one message: this rank's piece, or rows for a neighbour.
struct Outgoing {
    /// Rows in the order of the pieces.
    rows: Range<usize>,
    buffer: RowBufferMut,
    /// Rows not yet written.
    missing: usize,
    /// Receiver; `None` for this rank's piece.
    to: Option<usize>,
}

/// EQUIL on one rank.
pub(super) struct Equil<C: Comm> {
    /// Bounds of the pieces in the roll.
    pub(super) pieces: Vec<usize>,
    outgoing: Vec<Outgoing>,
    /// Rows from neighbours.
    awaited: Vec<(Range<usize>, Option<C::Recv>)>,
}

impl<C: Comm> Equil<C> {
    /// Copies this rank's rows into its piece and, if `equil`, into the messages for its neighbours.
    pub(super) fn start(
        state: &LaswpState<'_, C>,
        order: &ProcessOrder,
        equil: bool,
        columns: &mut impl Columns,
    ) -> Result<Self, Error> {
        let (at, gathered) = (order.at, &state.permutation.gathered);
        let found = bounds((0..order.size()).map(|at| gathered[order.rank(at)].len()));
        let pieces = if equil { balanced(&found) } else { found.clone() };
        let (mut outgoing, mut awaited) = (vec![(pieces[at]..pieces[at + 1], None)], Vec::new());
        // Rows are sent upwards across a boundary when there are too many below it.
        if at > 0 {
            let neighbour = order.rank(at - 1);
            outgoing.push((found[at]..pieces[at], Some(neighbour)));
            awaited.push((pieces[at]..found[at], neighbour));
        }
        if at + 1 < order.size() {
            let neighbour = order.rank(at + 1);
            outgoing.push((pieces[at + 1]..found[at + 1], Some(neighbour)));
            awaited.push((found[at + 1]..pieces[at + 1], neighbour));
        }
        let awaited = awaited.into_iter().filter(|(rows, _)| !rows.is_empty());
        let awaited = awaited.map(|(rows, from)| (rows.clone(), state.receive(from, state.tags.equil, rows.len())));
        let awaited = awaited.collect();
        let sources: Vec<usize> = gathered[state.me()].iter().map(|&i| state.source(i)).collect();
        let mut written = Vec::new();
        for (rows, to) in outgoing.into_iter().filter(|(rows, _)| !rows.is_empty() && state.cols() > 0) {
            let local = common(&rows, &(found[at]..found[at + 1]));
            let pair = |row: usize| (sources[row - found[at]], row - rows.start);
            let pairs: Vec<(usize, usize)> = local.clone().map(pair).collect();
            let mut buffer = state.buffer(rows.len());
            columns.copy_rows(RowSource::Matrix(&state.section), &pairs, &mut buffer)?;
            written.push(Outgoing { missing: rows.len() - local.len(), rows, buffer, to });
        }
        Ok(Self { pieces, outgoing: written, awaited })
    }

    /// Copies the rows that have arrived, sends the messages that are complete, and returns this rank's piece once it is
    /// complete.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<Option<RowBuffer>, Error> {
        for (rows, recv) in &mut self.awaited {
            let Some(received) = state.take(recv, rows.len(), completion)? else { continue };
            for message in &mut self.outgoing {
                let shared = common(&message.rows, rows);
                message.missing -= shared.len();
                let pair = |row| (row - rows.start, row - message.rows.start);
                let pairs: Vec<(usize, usize)> = shared.map(pair).collect();
                columns.copy_rows(RowSource::Buffer(&received), &pairs, &mut message.buffer)?;
            }
        }
        let mut own_piece = None;
        for message in self.outgoing.extract_if(.., |message| message.missing == 0) {
            let buffer = message.buffer.done(state.pool());
            match message.to {
                Some(to) => state.send(to, state.tags.equil, &buffer),
                None => own_piece = Some(buffer),
            }
        }
        Ok(own_piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_differ_by_one_at_most() {
        for lengths in [vec![0, 9, 1, 4], vec![7, 0, 0], vec![3, 3, 4], vec![5, 1, 3, 3], vec![0, 0, 0, 2, 0]] {
            let found = bounds(lengths.iter().copied());
            let pieces = balanced(&found);
            let mut sizes: Vec<usize> = pieces.windows(2).map(|ends| ends[1] - ends[0]).collect();
            assert_eq!(sizes.iter().sum::<usize>(), lengths.iter().sum::<usize>());
            sizes.sort_unstable();
            assert!(sizes[sizes.len() - 1] - sizes[0] <= 1, "{lengths:?}");
        }
        assert_eq!(balanced(&bounds([3, 4, 3].into_iter())), [0, 3, 7, 10], "balanced already");
        assert_eq!(balanced(&bounds([9, 1].into_iter())), [0, 9, 10], "two pieces are unchanged");
    }
}
