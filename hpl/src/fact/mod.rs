//! Recursive panel factorization by one process column.
//!
//! One [`sweep`](Fact::sweep) serves both levels: with blocks of one column it is PFACT, with blocks of jb
//! columns it is RFACT. At each block the columns are `done | blk | rest`, and the variants differ in when
//! they apply which product [HPL, `src/pfact/HPL_pdrpan*.c`, `HPL_pdpan*.c`]. L1 is held by every process
//! row, so that the triangular solves need no message. It lies in the panel as L1 of HPL.dat says, as it is or
//! transposed; the sweep does not see which.

mod pivot;

use std::ops::Range;

use space::{HplParams, Looking};

use crate::comm::{Comm, PeerGone};
use crate::kernels::{Kernels, stored};
use crate::layout::Axis;
use crate::panel::PanelMut;
use crate::plan::PanelShape;

/// How the recursion goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    /// PFACT: the variant at up to `nbmin` columns.
    pub(crate) pfact: Looking,
    /// RFACT: the variant above.
    pub(crate) rfact: Looking,
    /// NBMIN, at least 1.
    pub(crate) nbmin: usize,
    /// NDIV, at least 2.
    pub(crate) ndiv: usize,
}

impl Recipe {
    /// What the parameters say.
    pub(crate) fn new(params: &HplParams) -> Self {
        Self { pfact: params.pfact, rfact: params.rfact, nbmin: params.nbmin, ndiv: params.ndiv }
    }

    /// Columns of a block when `n` columns are divided: ⌈⌈n/NBMIN⌉/NDIV⌉·NBMIN, 1 at the leaves.
    fn width(&self, n: usize) -> usize {
        if n <= self.nbmin { 1 } else { n.div_ceil(self.nbmin).div_ceil(self.ndiv) * self.nbmin }
    }
}

/// A panel factorization under way on one rank.
pub(crate) struct Fact<'a, C, K> {
    /// How the recursion goes.
    pub(crate) recipe: Recipe,
    /// The kernels for products of more than one column.
    pub(crate) kernels: &'a K,
    /// The process column.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Axis,
    /// Size and owners of the panel.
    pub(crate) shape: PanelShape,
    /// Its parts.
    pub(crate) panel: PanelMut<'a>,
}

impl<C: Comm, K: Kernels> Fact<'_, C, K> {
    /// Factors the panel: A ← L (multipliers), L1 with U, pivots, info.
    ///
    /// # Errors
    /// [`PeerGone`] when the process column breaks.
    pub(crate) fn run(mut self) -> Result<(), PeerGone> {
        *self.panel.info = 0.0;
        self.recurse(0..self.shape.jb)
    }

    fn recurse(&mut self, cols: Range<usize>) -> Result<(), PeerGone> {
        let width = self.recipe.width(cols.len());
        let looking = if width == 1 { self.recipe.pfact } else { self.recipe.rfact };
        self.sweep(looking, cols, width)
    }

    /// Factors `cols` block by block. Outer levels have applied all columns before them.
    fn sweep(&mut self, looking: Looking, cols: Range<usize>, width: usize) -> Result<(), PeerGone> {
        let mut at = cols.start;
        while at < cols.end {
            let blk = at..(at + width).min(cols.end);
            let (done, rest) = (cols.start..blk.start, blk.end..cols.end);
            match looking {
                Looking::Left => {
                    self.solve(&done, &blk);
                    self.eliminate(&done, &blk);
                }
                Looking::Crout => self.eliminate(&done, &blk),
                Looking::Right => {}
            }
            // A one-column "block" of a recursive level is divided no further either.
            if blk.len() == 1 {
                self.pivot(at)?
            } else {
                self.recurse(blk.clone())?
            }
            match looking {
                Looking::Left => {}
                Looking::Crout => {
                    self.eliminate_u(&blk, &done, &rest);
                    self.solve(&blk, &rest);
                }
                Looking::Right => {
                    self.solve(&blk, &rest);
                    self.eliminate(&blk, &rest);
                }
            }
            at = blk.end;
        }
        Ok(())
    }

    /// First local row that columns up to `col` have left in play.
    fn active(&self, col: usize) -> usize {
        if self.shape.top > 0 { col } else { 0 }
    }

    /// U(k, cols) ← L1(k, k)⁻¹ · U(k, cols)
    fn solve(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        if k.len() < 2 || cols.is_empty() {
            return;
        }
        // Both orders occur: U right of its triangle, never left of it.
        let (left, right) = self.panel.l1.reborrow().split_cols(cols.start);
        let triangle = left.as_ref().sub(k.start, k.start, k.len(), k.len());
        stored::trsm(self.kernels, triangle, right.sub(k.start, 0, k.len(), cols.len()));
    }

    /// A(below k, cols) ← A(below k, cols) − A(below k, k) · U(k, cols)
    fn eliminate(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        if k.is_empty() || cols.is_empty() {
            return;
        }
        let (top, m) = (self.active(k.end), self.shape.mp - self.active(k.end));
        let (left, right) = self.panel.a.reborrow().split_cols(cols.start);
        let l = left.as_ref().sub(top, k.start, m, k.len());
        let c = right.sub(top, 0, m, cols.len());
        let u = self.panel.l1.as_ref().sub(k.start, cols.start, k.len(), cols.len());
        stored::gemm(self.kernels, l, u, c);
    }

    /// U(blk, rest) ← U(blk, rest) − L1(blk, done) · U(done, rest)
    fn eliminate_u(&mut self, blk: &Range<usize>, done: &Range<usize>, rest: &Range<usize>) {
        if done.is_empty() || rest.is_empty() {
            return;
        }
        let (left, right) = self.panel.l1.reborrow().split_cols(rest.start);
        let l = left.as_ref().sub(blk.start, done.start, blk.len(), done.len());
        let (above, below) = right.sub(done.start, 0, blk.end - done.start, rest.len()).split_rows(done.len());
        stored::gemm_within(self.kernels, l, above.as_ref(), below);
    }
}

#[cfg(test)]
mod tests;
