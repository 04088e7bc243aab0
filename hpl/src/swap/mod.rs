//! Row exchange: the pivot rows of a panel become U, the rows they displace take their places.
//!
//! With one process row this is a local interchange, which the update does. Otherwise U is gathered and
//! replicated in all process rows, by one of two exchanges that end alike. All threads copy, each its share of
//! the columns.

mod bin_exch;
mod long;
mod moves;

use space::Swap;

pub(crate) use crate::kernels::rows::interchange;
pub(crate) use moves::Moves;

use crate::Error;
use crate::comm::{Comm, Msg, Tag};
use crate::layout::Axis;
use crate::mat::MatMut;
use crate::panel::Pool;
use crate::team::Team;

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
    /// all process rows. The rows of the diagonal block in `a` stay as they were.
    ///
    /// # Errors
    /// When a rank of the process column or a thread fails.
    pub(crate) fn run(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        a: MatMut<'_>,
        u: MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<(), Error> {
        let long = match self.swap {
            Swap::BinExch => false,
            Swap::Long => true,
            Swap::Mix { threshold } => a.cols() > threshold,
        };
        if long { self.spread_roll(team, moves, a, u, pool) } else { self.bin_exch(team, moves, a, u, pool) }
    }

    /// Pairs (i, local row) of the rows of U whose source is here.
    fn own_sources(&self, moves: &Moves) -> Vec<(usize, usize)> {
        moves.gathered[self.column.rank()].iter().map(|&i| (i, self.rows.local(moves.sources[i]))).collect()
    }

    /// Pairs (index in `displaced`, local row) of the places that are here.
    fn own_places(&self, moves: &Moves) -> Vec<(usize, usize)> {
        let mine = moves.scattered[self.column.rank()].iter();
        mine.map(|&i| (i, self.rows.local(moves.displaced[i].0))).collect()
    }
}

/// Starts sending a message.
fn send<C: Comm>(comm: &C, to: usize, tag: Tag, msg: &Msg) -> C::Send {
    let (buf, range) = msg.parts();
    comm.isend(to, tag, buf, range)
}

#[cfg(test)]
mod tests;
