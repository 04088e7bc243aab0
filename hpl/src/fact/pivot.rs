//! One column of the panel: find the pivot, exchange rows, scale.
//!
//! A candidate is {|value|, local row, global row, process row} with its row of the panel; the row that
//! leaves the diagonal block travels with it. Binary exchange over the process column, counted from the
//! owner of the diagonal block; ranks beyond the largest power of two fold in first and hear the result at
//! the end [HPL, `src/pfact/HPL_pdmxswp.c`].

use std::sync::Arc;

use super::Fact;
use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::grid::{position, rank_at, tag};
use crate::kernels::{Kernels, vector};
use crate::mat::Mat;
use crate::reduce::power_of_two;

/// Doubles before the rows.
const HEAD: usize = 4;

/// The best candidate that a rank knows of: head, candidate row and, once it has arrived, the current row.
struct Candidate {
    words: Vec<f64>,
    jb: usize,
}

impl Candidate {
    /// A rank with no row in play: any other candidate is better.
    fn none(jb: usize) -> Self {
        let mut words = vec![0.0; HEAD + 2 * jb];
        words[0] = -1.0;
        Self { words, jb }
    }

    fn row(&self) -> &[f64] {
        &self.words[HEAD..HEAD + self.jb]
    }

    fn current(&self) -> &[f64] {
        &self.words[HEAD + self.jb..]
    }

    /// Length of a message with or without the current row.
    fn len(&self, with_current: bool) -> usize {
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

/// Copies row `i` of a view.
fn copy_row(a: Mat<'_>, i: usize, out: &mut [f64]) {
    for (j, value) in out.iter_mut().enumerate() {
        *value = a.at(i, j);
    }
}

impl<C: Comm, K: Kernels> Fact<'_, C, K> {
    /// Column `j`: l_ij ← a_ij / u_jj for all rows i below the pivot row, which becomes row j of L1.
    pub(super) fn pivot(&mut self, j: usize) -> Result<(), PeerGone> {
        let top = self.active(j);
        let local = top + vector::argmax_abs(&self.panel.a.col(j)[top..]);
        let pivot_row = if self.column.size() == 1 { self.interchange(j, local) } else { self.exchange(j, local)? };
        self.panel.pivots[j] = pivot_row;
        let pivot = self.panel.l1.at(j, j);
        if pivot == 0.0 {
            if *self.panel.info == 0.0 {
                *self.panel.info = (self.shape.ia + j + 1) as f64;
            }
            // The column is zero: nothing to eliminate.
            return Ok(());
        }
        let below = self.active(j + 1);
        let column = &mut self.panel.a.col_mut(j)[below..];
        let reciprocal = pivot.recip();
        if reciprocal.is_finite() {
            vector::scale(column, reciprocal);
        } else {
            column.iter_mut().for_each(|value| *value /= pivot);
        }
        Ok(())
    }

    /// All rows are here: L1(j) ← A(local), A(local) ← A(j). Returns the pivot's global row.
    fn interchange(&mut self, j: usize, local: usize) -> f64 {
        for col in 0..self.shape.jb {
            let column = self.panel.a.col_mut(col);
            let pivot = column[local];
            column[local] = column[j];
            self.panel.l1.set(j, col, pivot);
        }
        self.global(local)
    }

    /// Global row of a local row of the panel.
    fn global(&self, local: usize) -> f64 {
        self.rows.global(self.column.rank(), self.shape.ii + local) as f64
    }

    /// Agrees on the pivot with the other process rows and exchanges its row with the current one.
    fn exchange(&mut self, j: usize, local: usize) -> Result<f64, PeerGone> {
        let (jb, me) = (self.shape.jb, self.column.rank());
        let mut best = Candidate::none(jb);
        let a = self.panel.a.as_ref();
        if local < self.shape.mp {
            best.words[..HEAD].copy_from_slice(&[a.at(local, j).abs(), local as f64, self.global(local), me as f64]);
            copy_row(a, local, &mut best.words[HEAD..HEAD + jb]);
        }
        if me == self.shape.row {
            copy_row(a, j, &mut best.words[HEAD + jb..]);
        }
        self.agree(&mut best)?;
        for col in 0..jb {
            self.panel.l1.set(j, col, best.row()[col]);
        }
        // The pivot's place gets the row that left the diagonal block, on whichever rank it is.
        if best.words[3] == me as f64 {
            let local = best.words[1] as usize;
            for (col, &value) in best.current().iter().enumerate() {
                self.panel.a.set(local, col, value);
            }
        }
        Ok(best.words[2])
    }

    /// Every rank ends with the best candidate and the current row.
    fn agree(&self, best: &mut Candidate) -> Result<(), PeerGone> {
        let (size, root) = (self.column.size(), self.shape.row);
        let me = position(self.column.rank(), root, size);
        let half = power_of_two(size);
        let send = |to: usize, best: &Candidate, with_current: bool| {
            let len = best.len(with_current);
            self.column.isend(rank_at(to, root, size), tag::PIVOT, Arc::from(&best.words[..len]), 0..len)
        };
        let receive = |from: usize, len: usize| -> Result<Msg, PeerGone> {
            self.column.irecv(rank_at(from, root, size), tag::PIVOT, len).wait()
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
}
