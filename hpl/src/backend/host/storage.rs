//! Generation, back substitution and check of the matrix in main memory, by all threads.

use std::ops::Range;

use super::HostBackend;
use super::kernels::vector;
use super::team::Team;
use crate::Error;
use crate::backend::Storage;
use crate::lu::matgen;
use crate::lu::sums::{self, MatrixSums, RowSums};
use crate::mat::{Mat, MatMut};
use crate::plan::PanelShape;
use crate::plan::layout::Layout;

/// Columns that a thread generates before the next thread's: about a slab of the update.
const DEALT_COLS: usize = 256;

impl Storage for HostBackend<'_, '_> {
    fn device(&self) -> Option<String> {
        None
    }

    fn threads(&self) -> usize {
        self.team.threads()
    }

    fn generate(&mut self, layout: &Layout, place: (usize, usize)) -> Result<(), Error> {
        let parts = dealt(self.a.reborrow(), self.team.threads());
        let fill = |parts: Vec<(usize, MatMut<'_>)>| {
            parts.into_iter().for_each(|(at, part)| matgen::generate(layout, place, at..at + part.cols(), part));
        };
        Ok(self.team.map(parts, fill).map(drop)?)
    }

    fn generate_trailing(&mut self, layout: &Layout, place: (usize, usize), first: usize) -> Result<Vec<f64>, Error> {
        let rows = self.a.rows() - layout.rows.local_from(place.0, first);
        let parts = dealt(self.a.reborrow(), self.team.threads());
        let partial_sums = self.team.map(parts, |parts: Vec<(usize, MatMut<'_>)>| {
            let mut sums = vec![0.0; rows];
            for (at, part) in parts {
                matgen::generate_trailing(layout, place, first, at..at + part.cols(), part, &mut sums);
            }
            sums
        })?;
        let mut sum = vec![0.0; rows];
        partial_sums.iter().for_each(|partial| sums::add(&mut sum, partial));
        Ok(sum)
    }

    fn column(&mut self, rows: Range<usize>, col: usize) -> Result<Vec<f64>, Error> {
        Ok(self.a.as_ref().col(col)[rows].to_vec())
    }

    fn set_column(&mut self, row: usize, col: usize, values: &[f64]) -> Result<(), Error> {
        self.a.col_mut(col)[row..row + values.len()].copy_from_slice(values);
        Ok(())
    }

    fn warm_up(&mut self, panel: &PanelShape, col: usize) -> Result<(), Error> {
        let a = self.a.as_ref();
        let panel = a.sub(panel.ii, col, panel.mp, panel.jb.min(a.cols() - col));
        Ok(self.workspace.warm_up(self.kernels, self.team, panel)?)
    }

    fn trsv(&mut self, (row, col): (usize, usize), x: &mut [f64]) -> Result<(), Error> {
        solve_upper(self.a.as_ref().sub(row, col, x.len(), x.len()), x);
        Ok(())
    }

    fn gemv(&mut self, (row, col): (usize, usize), x: &[f64], y: &mut [f64]) -> Result<(), Error> {
        let (isa, a) = (self.kernels.isa(), self.a.as_ref().sub(row, col, y.len(), x.len()));
        let share = self.team.share(y.len(), x.len());
        let parts = y.chunks_mut(share).enumerate().collect();
        let product =
            |(part, y): (usize, &mut [f64])| vector::gemv(isa, a.sub(part * share, 0, y.len(), x.len()), x, y);
        Ok(self.team.map(parts, product).map(drop)?)
    }

    fn row_sums(&mut self, row: usize, cols: Range<usize>) -> Result<RowSums, Error> {
        let a = self.a.as_ref();
        let rows = a.rows() - row;
        let parts = shares(self.team, &cols);
        let work = |cols: Range<usize>| RowSums::of(a.sub(row, cols.start, rows, cols.len()));
        Ok(RowSums::joined(&self.team.map(parts, work)?, rows))
    }

    fn matrix_sums(&mut self, layout: &Layout, place: (usize, usize), x: &[f64]) -> Result<MatrixSums, Error> {
        let parts = shares(self.team, &(0..self.a.cols()));
        let work = |cols| MatrixSums::of(layout, place, cols, x);
        Ok(MatrixSums::joined(self.team.map(parts, work)?, self.a.rows()))
    }
}

/// The columns of `a` for `threads` threads in turn, some columns each, with the index of their first column. A page lies near the
/// thread that writes it first, so that the trailing matrix, whose columns all threads update, is near all of them to the end.
fn dealt(a: MatMut<'_>, threads: usize) -> Vec<Vec<(usize, MatMut<'_>)>> {
    let cols = DEALT_COLS.min(a.cols().div_ceil(threads)).max(1);
    let mut parts: Vec<_> = (0..threads).map(|_| Vec::new()).collect();
    for (i, part) in a.chunks_cols(cols).into_iter().enumerate() {
        parts[i % threads].push((i * cols, part));
    }
    parts
}

/// The columns `cols`, an equal number for each thread of `team`.
fn shares(team: &Team<'_>, cols: &Range<usize>) -> Vec<Range<usize>> {
    let share = cols.len().div_ceil(team.threads()).max(1);
    cols.clone().step_by(share).map(|at| at..cols.end.min(at + share)).collect()
}

/// x ← U⁻¹·x with U upper triangular.
pub(in crate::backend) fn solve_upper(u: Mat<'_>, x: &mut [f64]) {
    for j in (0..x.len()).rev() {
        x[j] /= u.at(j, j);
        let (above, xj) = x.split_at_mut(j);
        above.iter_mut().zip(u.col(j)).for_each(|(value, u)| *value -= u * xj[0]);
    }
}
