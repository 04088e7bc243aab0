//! The P×Q grid of ranks with the groups along its rows and columns.

use space::Pmap;

use crate::comm::{Comm, PeerGone, Tag};

/// Tags of the engine's messages, one per purpose.
pub(crate) mod tag {
    use super::Tag;
    /// Pivot candidates along a process column.
    pub(crate) const PIVOT: Tag = 1;
    /// Partial right-hand sides along a process row.
    pub(crate) const TRSV_Y: Tag = 5;
    /// Pieces of x.
    pub(crate) const TRSV_X: Tag = 6;
    /// Reductions.
    pub(crate) const REDUCE: Tag = 7;
    /// First of the tags of row exchanges along a process column, three for each section.
    pub(crate) const ROW_EXCHANGE: Tag = 16;

    /// First and number of the tags for panels along a process row. A later panel may arrive first, so panels in flight
    /// at the same time have different tags: DEPTH is less than these are, by a hard rule, and MPI has at least 32768.
    const LBCAST: Tag = 1 << 12;
    pub(super) const LBCASTS: usize = space::rules::MAX_DEPTH + 1;

    /// Tag of the `number`-th broadcast along a process row.
    pub(crate) fn lbcast(number: usize) -> Tag {
        LBCAST + (number % LBCASTS) as Tag
    }
}

/// The position of one rank in the grid, with the groups of its row and column.
pub struct Grid<C> {
    /// Process row, 0 ≤ row < P.
    pub row: usize,
    /// Process column, 0 ≤ col < Q.
    pub col: usize,
    /// Number of process rows P.
    pub p: usize,
    /// Number of process columns Q.
    pub q: usize,
    /// The Q ranks of this process row; the rank in this group is the process column.
    pub row_comm: C,
    /// The P ranks of this process column; the rank in this group is the process row.
    pub col_comm: C,
}

/// Process row and column of a rank.
pub fn coords(pmap: Pmap, rank: usize, p: usize, q: usize) -> (usize, usize) {
    match pmap {
        Pmap::Row => (rank / q, rank % q),
        Pmap::Column => (rank % p, rank / p),
    }
}

impl<C: Comm> Grid<C> {
    /// Builds the groups; called by every rank of `comm`, which has P·Q ranks.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned.
    pub fn new(comm: &C, pmap: Pmap, p: usize, q: usize) -> Result<Self, PeerGone> {
        let (row, col) = coords(pmap, comm.rank(), p, q);
        let row_comm = comm.split(row, col)?;
        let col_comm = comm.split(col, row)?;
        Ok(Self { row, col, p, q, row_comm, col_comm })
    }
}

/// Position of rank `rank` counted from rank `root` around a ring of `size`.
pub(crate) fn position(rank: usize, root: usize, size: usize) -> usize {
    if rank >= root { rank - root } else { rank + size - root }
}

/// Rank at `position` counted from rank `root` around a ring of `size`.
pub(crate) fn rank_at(position: usize, root: usize, size: usize) -> usize {
    let rank = root + position;
    if rank >= size { rank - size } else { rank }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn both_orders_fill_the_grid() {
        for pmap in [Pmap::Row, Pmap::Column] {
            let mut coords: Vec<_> = (0..6).map(|rank| coords(pmap, rank, 2, 3)).collect();
            coords.sort();
            assert_eq!(coords, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        }
        assert_eq!(coords(Pmap::Row, 1, 2, 3), (0, 1));
        assert_eq!(coords(Pmap::Column, 1, 2, 3), (1, 0));
    }

    /// The tags of panels 0 and 4096 are the same: both were in flight at DEPTH 4096.
    #[test]
    fn panels_in_flight_have_different_tags() {
        let depth = space::rules::MAX_DEPTH;
        let tags: BTreeSet<Tag> = (7..=7 + depth).map(tag::lbcast).collect();
        assert_eq!((tags.len(), tag::LBCASTS), (depth + 1, depth + 1));
        assert!(*tags.last().unwrap() < 1 << 15);
    }

    #[test]
    fn positions_invert() {
        for (rank, root) in (0..5).flat_map(|rank| (0..5).map(move |root| (rank, root))) {
            assert_eq!(rank_at(position(rank, root, 5), root, 5), rank);
        }
    }
}
