//! Pivot candidates, and how a process column agrees on one.
//!
//! A candidate is {|value|, local row, global row, process row} with its row of the panel; the row that leaves the diagonal
//! block travels with it. Binary exchange over the process column, counted from the owner of the diagonal block; ranks beyond
//! the largest power of two fold in first and receive the result at the end [HPL, `src/pfact/HPL_pdmxswp.c`].

use std::sync::Arc;

use crate::comm::grid::{position, rank_at, tag};
use crate::comm::reduce::power_of_two;
use crate::comm::{Comm, Msg, PeerGone, Request};

/// Doubles before the rows.
pub(super) const HEAD: usize = 4;

/// The best candidate that a thread or rank knows of: head, candidate row and, once it has arrived, the current row.
pub(crate) struct PivotCandidate {
    pub(super) words: Vec<f64>,
    jb: usize,
}

impl PivotCandidate {
    /// Of somebody with no row in play: any other candidate is better.
    pub(super) fn none(jb: usize) -> Self {
        let mut words = vec![0.0; HEAD + 2 * jb];
        words[0] = -1.0;
        Self { words, jb }
    }

    pub(super) fn row(&self) -> &[f64] {
        &self.words[HEAD..HEAD + self.jb]
    }

    pub(super) fn current(&self) -> &[f64] {
        &self.words[HEAD + self.jb..]
    }

    /// Length of a message with or without the current row.
    pub(super) fn len(&self, with_current: bool) -> usize {
        HEAD + if with_current { 2 * self.jb } else { self.jb }
    }

    /// Takes the other's candidate if it is better, and its current row if it has it. NaN is better than any
    /// number, ties go to the smaller process row: all ranks choose alike.
    fn merge(&mut self, other: &[f64]) {
        let better = other[0].total_cmp(&self.words[0]).then(self.words[3].total_cmp(&other[3])).is_gt();
        let (candidate, current) = other.split_at(HEAD + self.jb);
        if better {
            self.words[..HEAD + self.jb].copy_from_slice(candidate);
        }
        self.words[HEAD + self.jb..][..current.len()].copy_from_slice(current);
    }
}

/// Every rank ends with the best candidate and the current row, which the rank at `root` has.
pub(super) fn agree<C: Comm>(column: &C, root: usize, best: &mut PivotCandidate) -> Result<(), PeerGone> {
    let size = column.size();
    let me = position(column.rank(), root, size);
    let half = power_of_two(size);
    let send = |to: usize, best: &PivotCandidate, with_current: bool| {
        let len = best.len(with_current);
        column.isend(rank_at(to, root, size), tag::PIVOT, Arc::from(&best.words[..len]), 0..len)
    };
    let receive = |from: usize, len: usize| -> Result<Msg, PeerGone> {
        column.irecv(rank_at(from, root, size), tag::PIVOT, len).wait()
    };
    if me >= half {
        send(me - half, best, false).wait()?;
        let len = best.len(true);
        best.words.copy_from_slice(&receive(me - half, len)?);
        return Ok(());
    }
    if me + half < size {
        best.merge(&receive(me + half, best.len(false))?);
    }
    let mut mask = 1;
    while mask < half {
        let partner = me ^ mask;
        // The first `mask` positions have the current row, which started at position 0.
        let sent = send(partner, best, me < mask);
        best.merge(&receive(partner, best.len(partner < mask))?);
        sent.wait()?;
        mask *= 2;
    }
    if me + half < size {
        send(me + half, best, true).wait()?;
    }
    Ok(())
}
