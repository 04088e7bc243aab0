//! EQUIL: pieces of U are made equally long, within one row, before they roll.
//!
//! This balances lengths of messages between process rows; it is no numerical scaling. Rows go from neighbour to
//! neighbour in the order of the exchange, so that each boundary between two pieces is crossed by at most one
//! message; [HPL, `src/pgesv/HPL_equil.c`] spreads them along trees. As there, two process rows have nothing to
//! gain, and pieces that are balanced stay as they are.

use std::ops::Range;

use super::order::ProcessOrder;
use super::row_buffer::{RowBuffer, RowBufferMut};
use super::state::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;

/// Where pieces of these lengths begin when they lie one after the other, and where the last ends.
fn bounds(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Bounds of pieces as long as each other, within one row; the first ones are the longer.
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

/// Rows of U that become one message: this rank's piece, or rows for a neighbour.
struct Outgoing {
    /// Rows in the order of the pieces.
    rows: Range<usize>,
    buffer: RowBufferMut,
    /// Rows not yet written.
    missing: usize,
    /// Rank that gets it; `None` for this rank's piece.
    to: Option<usize>,
}

/// One rank's part.
pub(super) struct Equil<C: Comm> {
    /// Bounds of the pieces as they roll.
    pub(super) pieces: Vec<usize>,
    outgoing: Vec<Outgoing>,
    /// Rows from neighbours.
    awaited: Vec<(Range<usize>, Option<C::Recv>)>,
}

impl<C: Comm> Equil<C> {
    /// Copies this rank's rows into its piece and into what goes to the neighbours; `equil` says whether anything
    /// does.
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
        // Rows cross a boundary upwards when too many are found below it.
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
        let awaited = awaited.map(|(rows, from)| (rows.clone(), state.expect(from, state.tags.equil, rows.len())));
        let awaited = awaited.collect();
        let own: Vec<usize> = gathered[state.me()].iter().map(|&i| state.source(i)).collect();
        let mut written = Vec::new();
        for (rows, to) in outgoing.into_iter().filter(|(rows, _)| !rows.is_empty() && state.cols > 0) {
            let here = common(&rows, &(found[at]..found[at + 1]));
            let pairs: Vec<(usize, usize)> = here.clone().map(|row| (own[row - found[at]], row - rows.start)).collect();
            let mut buffer = state.buffer(rows.len());
            columns.gather(&state.section, &pairs, &mut buffer)?;
            written.push(Outgoing { missing: rows.len() - here.len(), rows, buffer, to });
        }
        Ok(Self { pieces, outgoing: written, awaited })
    }

    /// Writes the rows that have arrived, sends what is complete, and returns this rank's piece when it is.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<Option<RowBuffer>, Error> {
        for (rows, recv) in &mut self.awaited {
            let Some(piece) = state.take(recv, rows.len(), completion)? else { continue };
            for message in &mut self.outgoing {
                let here = common(&message.rows, rows);
                message.missing -= here.len();
                let pairs: Vec<(usize, usize)> = here.map(|row| (row - rows.start, row - message.rows.start)).collect();
                columns.copy_rows(&piece, &pairs, &mut message.buffer)?;
            }
        }
        let mut own = None;
        for message in self.outgoing.extract_if(.., |message| message.missing == 0) {
            let piece = message.buffer.done(state.pool());
            match message.to {
                Some(to) => state.send(to, state.tags.equil, &piece),
                None => own = Some(piece),
            }
        }
        Ok(own)
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
        assert_eq!(balanced(&bounds([9, 1].into_iter())), [0, 9, 10], "two pieces stay");
    }
}
