//! Pivot candidates, and the choice of the best one over a process column.
//!
//! A candidate is {|value|, local row, global row, process row} with its row of the panel; the message also contains the current
//! row, which leaves the diagonal block. Binary exchange over the process column, counted from the owner of the diagonal block;
//! ranks beyond the largest power of two send their candidate before it and receive the result at the end
//! [HPL, `src/pfact/HPL_pdmxswp.c`].

use crate::comm::grid::{position, rank_at, tag};
use crate::comm::reduce::power_of_two;
use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::mat::Buffer;
use crate::sync::Arc;

/// Doubles before the rows.
pub(super) const HEAD: usize = 4;

/// The best candidate so far on a thread or rank: head, candidate row and, once it is received, the current row.
pub(crate) struct PivotCandidate {
    pub(super) words: Vec<f64>,
    jb: usize,
    /// Memory of messages, used again once their receivers have read them.
    sent: Vec<Arc<Buffer>>,
}

impl PivotCandidate {
    /// The candidate of a thread without active rows: any other candidate is better.
    pub(super) fn none(jb: usize) -> Self {
        let mut words = vec![0.0; HEAD + 2 * jb];
        words[0] = -1.0;
        Self { words, jb, sent: Vec::new() }
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

    /// A message with the first `len` words.
    fn message(&mut self, len: usize) -> Arc<Buffer> {
        let free = self.sent.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
        let at = free.unwrap_or(self.sent.len());
        if free.is_none() {
            self.sent.push(Arc::new(Buffer::of(self.words.len())));
        }
        let buffer = Arc::get_mut(&mut self.sent[at]).expect("new, or nobody reads it");
        buffer[..len].copy_from_slice(&self.words[..len]);
        Arc::clone(&self.sent[at])
    }

    /// Takes the candidate of `other` if it is better, and the current row if `other` contains it. NaN is better than any
    /// number and ties go to the smaller process row, so that all ranks make the same choice.
    fn merge(&mut self, other: &[f64]) {
        let better = other[0].total_cmp(&self.words[0]).then(self.words[3].total_cmp(&other[3])).is_gt();
        let (candidate, current) = other.split_at(HEAD + self.jb);
        if better {
            self.words[..HEAD + self.jb].copy_from_slice(candidate);
        }
        self.words[HEAD + self.jb..][..current.len()].copy_from_slice(current);
    }
}

/// Max-reduction: every rank gets the best candidate and the current row, which rank `root` owns.
pub(super) fn agree<C: Comm>(column: &C, root: usize, best: &mut PivotCandidate) -> Result<(), PeerGone> {
    let size = column.size();
    let me = position(column.rank(), root, size);
    let half = power_of_two(size);
    let send = |to: usize, best: &mut PivotCandidate, with_current: bool| {
        let len = best.len(with_current);
        column.isend(rank_at(to, root, size), tag::PIVOT, best.message(len), 0..len)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads;

    /// A rank is ahead of another one by less than two columns.
    #[test]
    fn messages_use_the_memory_of_earlier_ones() {
        const SIZE: usize = 5;
        std::thread::scope(|scope| {
            for comm in threads::world(SIZE, false) {
                scope.spawn(move || {
                    let (rank, mut best) = (comm.rank(), PivotCandidate::none(2));
                    for column in 0..200 {
                        let (value, largest) = (((rank + column) % SIZE) as f64, (2 * SIZE - 1 - column % SIZE) % SIZE);
                        best.words.copy_from_slice(&[value, 0.0, 0.0, rank as f64, value, value, 7.0, column as f64]);
                        if rank > 0 {
                            best.words[HEAD + 2..].fill(0.0);
                        }
                        agree(&comm, 0, &mut best).unwrap();
                        assert_eq!((best.words[3], best.row()), (largest as f64, &[4.0; 2][..]));
                        assert_eq!(best.current(), [7.0, column as f64]);
                    }
                    // Three messages of a column, and those of the column before.
                    assert!(best.sent.len() <= 6, "{}", best.sent.len());
                });
            }
        });
    }
}
