//! One column of the panel: find the pivot, swap the rows, scale.
//!
//! Each thread posts the best candidate of its rows; the first thread reduces the best of them over the process column.

use super::panel_thread::{FactShared, FactStopped, MainThread, PanelThread};
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
    pub(super) fn pivot(&mut self, j: usize) -> Result<(), FactStopped> {
        let start = self.active(j);
        let row = start + vector::argmax_abs(self.shared.kernels.isa(), &self.tile.col(j)[start..]);
        if self.shared.procs == 1 && self.shared.barrier.threads() == 1 {
            self.swap_local(j, row);
        } else {
            self.set_candidate(j, row);
            self.choose_pivot(j)?;
            self.swap_rows(j);
        }
        let pivot = self.l1.at(j, j);
        if pivot == 0.0 {
            // The whole column is zero: no scaling needed.
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

    /// With one process row and one thread: L1(j) ← A(row), A(row) ← A(j).
    fn swap_local(&mut self, j: usize, row: usize) {
        for col in 0..self.shared.shape.jb {
            let column = self.tile.col_mut(col);
            let pivot = column[row];
            column[row] = column[j];
            self.l1.set(j, col, pivot);
        }
        self.record_pivot(j, self.global(row));
    }

    /// Global row of row `row` of this thread.
    fn global(&self, row: usize) -> f64 {
        self.shared.rows.global(self.shared.row, self.shared.shape.ii + self.above + row) as f64
    }

    /// Records that row j was swapped with global row `pivot`, which is now in L1.
    fn record_pivot(&mut self, j: usize, pivot: f64) {
        if let Some(MainThread { pivots, info, .. }) = &mut self.main {
            pivots[j] = pivot;
            if **info == 0.0 && self.l1.at(j, j) == 0.0 {
                **info = (self.shared.shape.ia + j + 1) as f64;
            }
        }
    }

    /// Makes row `row` of this thread its candidate, if there is such a row. The first thread of the process row with
    /// the diagonal block adds the current row.
    fn set_candidate(&mut self, j: usize, row: usize) {
        let (jb, tile) = (self.shared.shape.jb, self.tile.as_ref());
        let mut head = [-1.0, 0.0, 0.0, 0.0];
        if row < tile.rows() {
            let process_row = self.shared.row as f64;
            head = [tile.at(row, j).abs(), (self.above + row) as f64, self.global(row), process_row];
            copy_row(tile, row, &mut self.best.words[HEAD..HEAD + jb]);
        }
        self.best.words[..HEAD].copy_from_slice(&head);
        if self.thread == 0 && self.shared.row == self.shared.shape.row {
            copy_row(tile, j, &mut self.best.words[HEAD + jb..]);
        }
    }

    /// Chooses the best candidate of all threads and process rows. With one process row, every thread makes the same choice;
    /// with more, the first thread posts the result for the others.
    fn choose_pivot(&mut self, j: usize) -> Result<(), FactStopped> {
        let FactShared { slots, barrier, procs, shape, .. } = self.shared;
        let (threads, with_current) = (barrier.threads(), self.best.len(true));
        let mine = self.best.len(self.thread == 0);
        slots.post((self.thread, j), 0, &self.best.words[..mine]);
        // Among equals the first thread, whose rows are above.
        let best = barrier.largest(self.thread, self.best.words[0])?;
        if *procs == 1 || self.main.is_some() {
            let (candidate, current) = self.best.words.split_at_mut(HEAD + shape.jb);
            if best != self.thread {
                slots.read((best, j), 0, candidate);
            }
            // The thread with the pivot row needs the current row, which replaces the pivot row; so may a message.
            if self.thread != 0 && best == self.thread {
                slots.read((0, j), HEAD + shape.jb, current);
            }
        }
        if *procs > 1 {
            if let Some(MainThread { column, .. }) = &self.main {
                agree(*column, shape.row, &mut self.best)?;
                slots.post((threads, j), 0, &self.best.words[..with_current]);
            }
            barrier.wait(self.thread)?;
            if self.main.is_none() {
                slots.read((threads, j), 0, &mut self.best.words);
            }
        }
        Ok(())
    }

    /// L1(j) ← the pivot row; on the rank and thread that own the pivot row, A(pivot row) ← the current row.
    fn swap_rows(&mut self, j: usize) {
        for (col, &value) in self.best.row().iter().enumerate() {
            self.l1.set(j, col, value);
        }
        let row = (self.best.words[1] as usize).wrapping_sub(self.above);
        if self.best.words[3] == self.shared.row as f64 && row < self.tile.rows() {
            for (col, &value) in self.best.current().iter().enumerate() {
                self.tile.set(row, col, value);
            }
        }
        self.record_pivot(j, self.best.words[2]);
    }
}
