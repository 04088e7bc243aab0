//! Panel factorization by one process column: the operations of the [recursion](crate::recursion), carried out.
//!
//! L1 is held by every process row, so that the triangular solves need no message. It lies in the panel as L1 of
//! HPL.dat says, as it is or transposed; the recursion does not see which.

mod pivot;

use std::ops::Range;

use crate::comm::{Comm, PeerGone};
use crate::kernels::{Kernels, stored};
use crate::layout::Axis;
use crate::panel::PanelMut;
use crate::plan::PanelShape;
use crate::recursion::{Op, Recipe};

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
        let (recipe, cols) = (self.recipe, 0..self.shape.jb);
        recipe.walk(cols, &mut |op| self.apply(op))
    }

    fn apply(&mut self, op: Op) -> Result<(), PeerGone> {
        match op {
            Op::Pivot(j) => self.pivot(j)?,
            Op::Solve { k, cols } => self.solve(&k, &cols),
            Op::Eliminate { k, cols } => self.eliminate(&k, &cols),
            Op::EliminateU { blk, done, rest } => self.eliminate_u(&blk, &done, &rest),
        }
        Ok(())
    }

    /// First local row that columns up to `col` have left in play.
    fn active(&self, col: usize) -> usize {
        if self.shape.top > 0 { col } else { 0 }
    }

    /// U(k, cols) ← L1(k, k)⁻¹ · U(k, cols)
    fn solve(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        // Both orders occur: U right of its triangle, never left of it.
        let (left, right) = self.panel.l1.reborrow().split_cols(cols.start);
        let triangle = left.as_ref().sub(k.start, k.start, k.len(), k.len());
        stored::trsm(self.kernels, triangle, right.sub(k.start, 0, k.len(), cols.len()));
    }

    /// A(below k, cols) ← A(below k, cols) − A(below k, k) · U(k, cols)
    fn eliminate(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        let (top, m) = (self.active(k.end), self.shape.mp - self.active(k.end));
        let (left, right) = self.panel.a.reborrow().split_cols(cols.start);
        let l = left.as_ref().sub(top, k.start, m, k.len());
        let c = right.sub(top, 0, m, cols.len());
        let u = self.panel.l1.as_ref().sub(k.start, cols.start, k.len(), cols.len());
        stored::gemm(self.kernels, l, u, c);
    }

    /// U(blk, rest) ← U(blk, rest) − L1(blk, done) · U(done, rest)
    fn eliminate_u(&mut self, blk: &Range<usize>, done: &Range<usize>, rest: &Range<usize>) {
        let (left, right) = self.panel.l1.reborrow().split_cols(rest.start);
        let l = left.as_ref().sub(blk.start, done.start, blk.len(), done.len());
        let (above, below) = right.sub(done.start, 0, blk.end - done.start, rest.len()).split_rows(done.len());
        stored::gemm_within(self.kernels, l, above.as_ref(), below);
    }
}

#[cfg(test)]
mod tests;
