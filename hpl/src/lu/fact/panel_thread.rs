//! One thread's part in the factorization of a panel.

use std::ops::Range;

use super::pivot_candidate::PivotCandidate;
use super::slots::PivotSlots;
use super::solved_parts::SolvedParts;
use crate::backend::host::kernels::{Kernels, stored};
use crate::backend::host::team::{Barrier, BarrierBroken};
use crate::comm::{Comm, PeerGone};
use crate::mat::{Mat, MatMut, StoredMut};
use crate::plan::PanelShape;
use crate::plan::layout::Distribution;
use crate::plan::recursion::{Op, Recipe};

/// Why a thread stopped before the end of the factorization.
pub(crate) enum FactStopped {
    /// Another rank of the process column failed.
    Peer(PeerGone),
    /// Another thread of this rank stopped.
    BarrierBroken,
}

impl From<PeerGone> for FactStopped {
    fn from(error: PeerGone) -> Self {
        Self::Peer(error)
    }
}

impl From<BarrierBroken> for FactStopped {
    fn from(_: BarrierBroken) -> Self {
        Self::BarrierBroken
    }
}

/// Data that all threads of the factorization share.
pub(crate) struct FactShared<'a> {
    pub(super) recipe: Recipe,
    pub(super) kernels: &'a dyn Kernels,
    pub(super) rows: &'a Distribution,
    pub(super) shape: PanelShape,
    /// Process row.
    pub(super) row: usize,
    /// Process rows.
    pub(super) procs: usize,
    /// One slot for each thread, and one for the pivot chosen by the process column.
    pub(super) slots: PivotSlots,
    /// What is divided of the solves on L1.
    pub(super) solved: SolvedParts,
    pub(crate) barrier: Barrier,
}

impl<'a> FactShared<'a> {
    /// For the threads of `barrier`, on a rank of the process column `column`; `rows` is the owner table of the rows.
    pub(crate) fn new<C: Comm>(
        recipe: Recipe,
        kernels: &'a dyn Kernels,
        rows: &'a Distribution,
        shape: PanelShape,
        column: &C,
        barrier: Barrier,
    ) -> Self {
        let slots = PivotSlots::new(barrier.threads() + 1, PivotCandidate::none(shape.jb).len(true));
        // A BLAS may round otherwise for fewer columns, and process rows have different numbers of threads.
        let alike = kernels.strip_rows().is_some();
        let solved = SolvedParts::new(recipe, shape.jb, if alike { barrier.threads() } else { 1 });
        Self { recipe, kernels, rows, shape, row: column.rank(), procs: column.size(), slots, solved, barrier }
    }
}

/// Data that only the first thread uses.
pub(crate) struct MainThread<'p, C> {
    /// The process column, for messages.
    pub(crate) column: &'p C,
    /// Output: the pivot rows.
    pub(crate) pivots: &'p mut [f64],
    /// Output: column + 1 of the first zero pivot, else 0.
    pub(crate) info: &'p mut f64,
}

/// One thread with its rows of A.
pub(crate) struct PanelThread<'p, C> {
    pub(super) shared: &'p FactShared<'p>,
    pub(super) thread: usize,
    /// `Some` on the first thread.
    pub(super) main: Option<MainThread<'p, C>>,
    /// Rows of the panel above this thread's rows.
    pub(super) above: usize,
    pub(super) tile: MatMut<'p>,
    /// The thread's own copy of L1.
    pub(super) l1: StoredMut<'p>,
    /// Divided solves so far.
    pub(super) divided: usize,
    /// The pivot row, with the current row that it is swapped with.
    pub(super) best: PivotCandidate,
}

impl<'p, C: Comm> PanelThread<'p, C> {
    /// Thread `thread` with the rows `tile`, of which the first is row `above` of the panel.
    pub(crate) fn new(
        shared: &'p FactShared<'p>,
        thread: usize,
        main: Option<MainThread<'p, C>>,
        above: usize,
        tile: MatMut<'p>,
        l1: StoredMut<'p>,
    ) -> Self {
        Self { shared, thread, main, above, tile, l1, divided: 0, best: PivotCandidate::none(shared.shape.jb) }
    }

    /// Executes all operations in order, on a copy of this thread's rows of `from`.
    pub(crate) fn run(mut self, from: Mat<'_>) -> Result<(), FactStopped> {
        for j in 0..self.tile.cols() {
            let rows = self.above..self.above + self.tile.rows();
            self.tile.col_mut(j).copy_from_slice(&from.col(j)[rows]);
        }
        let (recipe, cols) = (self.shared.recipe, 0..self.shared.shape.jb);
        recipe.walk(cols, &mut |op| self.apply(op))
    }

    fn apply(&mut self, op: Op) -> Result<(), FactStopped> {
        match op {
            Op::Pivot(j) => self.pivot(j)?,
            Op::Solve { k, cols } => self.solve(&k, &cols)?,
            Op::Eliminate { k, cols } => self.eliminate(&k, &cols),
            Op::EliminateU { blk, done, rest } => self.eliminate_u(&blk, &done, &rest),
        }
        Ok(())
    }

    /// Index of this thread's first row that is still active before column `col`; its number of rows if none is.
    pub(super) fn active(&self, col: usize) -> usize {
        let done = if self.shared.shape.diag_rows > 0 { col } else { 0 };
        done.saturating_sub(self.above).min(self.tile.rows())
    }

    /// U(k, cols) ← L1(k, k)⁻¹ · U(k, cols), a large one by all threads, each some columns.
    fn solve(&mut self, k: &Range<usize>, cols: &Range<usize>) -> Result<(), FactStopped> {
        let own = self.own_cols(k, cols);
        self.solve_own(k, &own);
        let FactShared { solved, barrier, .. } = self.shared;
        let count = solved.count(k.len(), cols);
        if count > 1 {
            if !own.is_empty() {
                solved.post(self.divided, self.thread, self.l1.as_ref().sub(k.start, own.start, k.len(), own.len()));
            }
            barrier.wait(self.thread)?;
            self.read_parts(k, cols, count);
            self.divided += 1;
        }
        Ok(())
    }

    /// The columns of U(k, cols) that this thread computes.
    pub(super) fn own_cols(&self, k: &Range<usize>, cols: &Range<usize>) -> Range<usize> {
        let solved = &self.shared.solved;
        match solved.count(k.len(), cols) {
            1 => cols.clone(),
            count => solved.part(cols, self.thread, count),
        }
    }

    /// Copies the columns of U(k, cols) that other threads have solved.
    pub(super) fn read_parts(&mut self, k: &Range<usize>, cols: &Range<usize>, count: usize) {
        for part in (0..count).filter(|&part| part != self.thread) {
            let of_part = self.shared.solved.part(cols, part, count);
            let u = self.l1.reborrow().sub(k.start, of_part.start, k.len(), of_part.len());
            self.shared.solved.read(self.divided, part, u);
        }
    }

    /// U(k, cols) ← L1(k, k)⁻¹ · U(k, cols) by this thread.
    pub(super) fn solve_own(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        if cols.is_empty() {
            return;
        }
        // U is always right of its triangle: the columns can be split between them.
        let (left, right) = self.l1.reborrow().split_cols(cols.start);
        let triangle = left.as_ref().sub(k.start, k.start, k.len(), k.len());
        stored::trsm(self.shared.kernels, triangle, right.sub(k.start, 0, k.len(), cols.len()));
    }

    /// A(below k, cols) ← A(below k, cols) − A(below k, k) · U(k, cols)
    fn eliminate(&mut self, k: &Range<usize>, cols: &Range<usize>) {
        let active = self.active(k.end);
        let m = self.tile.rows() - active;
        let (left, right) = self.tile.reborrow().split_cols(cols.start);
        let l = left.as_ref().sub(active, k.start, m, k.len());
        let c = right.sub(active, 0, m, cols.len());
        let u = self.l1.as_ref().sub(k.start, cols.start, k.len(), cols.len());
        stored::gemm(self.shared.kernels, l, u, c);
    }

    /// U(blk, rest) ← U(blk, rest) − L1(blk, done) · U(done, rest), of the columns of which this thread solves U(blk, rest) next.
    fn eliminate_u(&mut self, blk: &Range<usize>, done: &Range<usize>, rest: &Range<usize>) {
        let rest = &self.own_cols(blk, rest);
        if rest.is_empty() {
            return;
        }
        let (left, right) = self.l1.reborrow().split_cols(rest.start);
        let l = left.as_ref().sub(blk.start, done.start, blk.len(), done.len());
        let (above, below) = right.sub(done.start, 0, blk.end - done.start, rest.len()).split_rows(done.len());
        stored::gemm_within(self.shared.kernels, l, above.as_ref(), below);
    }
}
