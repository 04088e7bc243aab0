//! Row exchange: the pivot rows of a panel become U, the rows they displace take their places.
//!
//! With one process row this is a local interchange. Otherwise U is gathered and replicated in all process
//! rows, by one of two exchanges that end alike.

mod bin_exch;
mod long;
mod moves;

use space::Swap;

pub(crate) use moves::Moves;

use crate::comm::{Comm, PeerGone};
use crate::layout::Axis;
use crate::mat::MatMut;
use crate::panel::Pool;

/// Interchanges rows in place: row j of the stacked [U; C] with row `pivots[j]`, for j = 0, 1, …; indices
/// count from the first row of U.
pub(crate) fn interchange(u: &mut MatMut<'_>, c: &mut MatMut<'_>, pivots: &[usize]) {
    let jb = u.rows();
    for col in 0..u.cols() {
        let (top, below) = (u.col_mut(col), c.col_mut(col));
        for (j, &pivot) in pivots.iter().enumerate() {
            if pivot < jb {
                top.swap(j, pivot);
            } else {
                std::mem::swap(&mut top[j], &mut below[pivot - jb]);
            }
        }
    }
}

/// What all row exchanges of a run share.
pub(crate) struct Exchange<'a, C> {
    /// The process column.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Axis,
    /// SWAP.
    pub(crate) swap: Swap,
}

impl<C: Comm> Exchange<'_, C> {
    /// Moves the rows of some columns: `a` has all local rows of them, `u` becomes U (jb rows), the same in
    /// all process rows. The rows of the diagonal block in `a` stay as they were. At most
    /// [`spare_words`] doubles of `pool` buffers are in use at a time.
    ///
    /// # Errors
    /// [`PeerGone`] when the process column breaks.
    pub(crate) fn run(
        &self,
        moves: &Moves,
        a: &mut MatMut<'_>,
        u: &mut MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<(), PeerGone> {
        let long = match self.swap {
            Swap::BinExch => false,
            Swap::Long => true,
            Swap::Mix { threshold } => a.cols() > threshold,
        };
        self.gather_own(moves, a, u);
        if long { self.spread_roll(moves, a, u, pool) } else { self.bin_exch(moves, a, u, pool) }
    }

    /// U(i) ← A(source of i) for the sources that are here.
    fn gather_own(&self, moves: &Moves, a: &MatMut<'_>, u: &mut MatMut<'_>) {
        let mine: Vec<(usize, usize)> =
            moves.gathered[self.column.rank()].iter().map(|&i| (i, self.rows.local(moves.sources[i]))).collect();
        for col in 0..a.cols() {
            let (from, to) = (a.col(col), u.col_mut(col));
            for &(i, local) in &mine {
                to[i] = from[local];
            }
        }
    }
}

#[cfg(test)]
mod tests;
