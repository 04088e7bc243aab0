//! One column of the panel: find the pivot, exchange rows, scale.
//!
//! Each thread posts a candidate of its rows; the first thread takes the best of them to the process column.

use super::panel_thread::{Ended, MainThread, PanelThread, Shared};
use super::pivot_candidate::{HEAD, agree};
use crate::backend::host::kernels::vector;
use crate::comm::Comm;
use crate::mat::Mat;

/// Copies row `i` of a view.
fn copy_row(a: Mat<'_>, i: usize, out: &mut [f64]) {
    for (j, value) in out.iter_mut().enumerate() {
        *value = a.at(i, j);
    }
}

impl<C: Comm> PanelThread<'_, C> {
    /// Column `j`: l_ij ← a_ij / u_jj for all rows i below the pivot row, which becomes row j of L1.
    pub(super) fn pivot(&mut self, j: usize) -> Result<(), Ended> {
        let start = self.active(j);
        let place = start + vector::argmax_abs(self.shared.kernels.isa(), &self.tile.col(j)[start..]);
        if self.shared.procs == 1 && self.shared.barrier.threads() == 1 {
            self.interchange(j, place);
        } else {
            self.propose(j, place);
            self.decide(j)?;
            self.exchange(j);
        }
        let pivot = self.l1.at(j, j);
        if pivot == 0.0 {
            // The column is zero: nothing to eliminate.
            return Ok(());
        }
        let below = self.active(j + 1);
        let column = &mut self.tile.col_mut(j)[below..];
        let reciprocal = pivot.recip();
        if reciprocal.is_finite() {
            vector::scale(self.shared.kernels.isa(), column, reciprocal);
        } else {
            column.iter_mut().for_each(|value| *value /= pivot);
        }
        Ok(())
    }

    /// All rows are here: L1(j) ← A(place), A(place) ← A(j).
    fn interchange(&mut self, j: usize, place: usize) {
        for col in 0..self.shared.shape.jb {
            let column = self.tile.col_mut(col);
            let pivot = column[place];
            column[place] = column[j];
            self.l1.set(j, col, pivot);
        }
        self.note(j, self.global(place));
    }

    /// Global row of row `place` of this thread.
    fn global(&self, place: usize) -> f64 {
        self.shared.rows.global(self.shared.row, self.shared.shape.ii + self.above + place) as f64
    }

    /// Row j was interchanged with global row `pivot`, which is now in L1.
    fn note(&mut self, j: usize, pivot: f64) {
        if let Some(MainThread { pivots, info, .. }) = &mut self.main {
            pivots[j] = pivot;
            if **info == 0.0 && self.l1.at(j, j) == 0.0 {
                **info = (self.shared.shape.ia + j + 1) as f64;
            }
        }
    }

    /// Row `place` of this thread is its candidate, if there is such a row. The first thread of the process row with
    /// the diagonal block has the current row.
    fn propose(&mut self, j: usize, place: usize) {
        let (jb, tile) = (self.shared.shape.jb, self.tile.as_ref());
        let mut head = [-1.0, 0.0, 0.0, 0.0];
        if place < tile.rows() {
            let row = self.shared.row as f64;
            head = [tile.at(place, j).abs(), (self.above + place) as f64, self.global(place), row];
            copy_row(tile, place, &mut self.best.words[HEAD..HEAD + jb]);
        }
        self.best.words[..HEAD].copy_from_slice(&head);
        if self.thread == 0 && self.shared.row == self.shared.shape.row {
            copy_row(tile, j, &mut self.best.words[HEAD + jb..]);
        }
    }

    /// The best candidate of all threads and process rows. All threads of one process row choose alike; of more than
    /// one, the first thread tells the others.
    fn decide(&mut self, j: usize) -> Result<(), Ended> {
        let Shared { slots, barrier, procs, shape, .. } = self.shared;
        let (threads, with_current) = (barrier.threads(), self.best.len(true));
        let mine = self.best.len(self.thread == 0);
        slots.post((self.thread, j), 0, &self.best.words[..mine]);
        barrier.wait()?;
        if *procs == 1 || self.main.is_some() {
            let head = |thread: usize| {
                let mut value = [0.0];
                slots.read((thread, j), 0, &mut value);
                value[0]
            };
            // The first of equals, whose rows are above.
            let best = (1..threads).fold(
                0,
                |best, thread| {
                    if head(thread).total_cmp(&head(best)).is_gt() { thread } else { best }
                },
            );
            let (candidate, current) = self.best.words.split_at_mut(HEAD + shape.jb);
            if best != self.thread {
                slots.read((best, j), 0, candidate);
            }
            // Who has the pivot's place puts the current row there; messages may have to carry it.
            if self.thread != 0 && best == self.thread {
                slots.read((0, j), HEAD + shape.jb, current);
            }
        }
        if *procs > 1 {
            if let Some(MainThread { column, .. }) = &self.main {
                agree(*column, shape.row, &mut self.best)?;
                slots.post((threads, j), 0, &self.best.words[..with_current]);
            }
            barrier.wait()?;
            if self.main.is_none() {
                slots.read((threads, j), 0, &mut self.best.words);
            }
        }
        Ok(())
    }

    /// L1(j) ← the pivot row. Its place gets the row that left the diagonal block, on whichever rank and thread it is.
    fn exchange(&mut self, j: usize) {
        for (col, &value) in self.best.row().iter().enumerate() {
            self.l1.set(j, col, value);
        }
        let place = (self.best.words[1] as usize).wrapping_sub(self.above);
        if self.best.words[3] == self.shared.row as f64 && place < self.tile.rows() {
            for (col, &value) in self.best.current().iter().enumerate() {
                self.tile.set(place, col, value);
            }
        }
        self.note(j, self.best.words[2]);
    }
}
