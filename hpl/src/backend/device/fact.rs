//! Panels factored by the device, in the matrix. One process row: all of a panel is on one device.
//!
//! The recursion is right-looking: NDIV parts of whole leaves of NBMIN columns. A leaf is one operation of the device, and so are, for
//! the other columns, the interchange of rows with the triangular solve, and the product. PFACT and RFACT do not act.

use std::ops::Range;

use super::api::FACTOR_COLS;
use super::fact_memory::DeviceFact;
use super::{Block, Device, OnDevice, Stream, Wait};
use crate::Error;
use crate::comm::Comm;
use crate::lu::fact::Fact;
use crate::lu::panel::PanelMut;
use crate::mat::{Mat, MatMut};
use crate::observe::phases::Phase;
use crate::plan::PanelShape;
use crate::plan::recursion::Recipe;

/// A panel in the matrix while the device factors it.
struct PanelOnDevice<'d, D: Device> {
    device: &'d D,
    memory: &'d DeviceFact<D>,
    /// All its rows and columns.
    a: Block<'d, D::Memory>,
    /// Columns of a leaf.
    leaf: usize,
    ndiv: usize,
}

impl<D: Device> PanelOnDevice<'_, D> {
    /// Queues the factorization of some columns, whose rows above the first column are done.
    fn factor(&self, cols: Range<usize>) {
        if cols.len() <= self.leaf {
            let a = self.block(cols.start, &cols);
            return self.device.factor(Stream::Fact, a, cols.start, &self.memory.of_leaf(&cols));
        }
        let width = cols.len().div_ceil(self.ndiv).next_multiple_of(self.leaf);
        for start in cols.clone().step_by(width) {
            let part = start..cols.end.min(start + width);
            let (pivots, left) = (self.memory.pivots(&part), start - cols.start);
            self.factor(part.clone());
            self.device.interchange_and_solve(Stream::Fact, pivots, start, self.block(start, &cols), left);
            let rest = part.end..cols.end;
            let u = self.block(start, &rest).top(part.len());
            self.device.gemm(Stream::Fact, self.block(part.end, &part), u, self.block(part.end, &rest));
        }
    }

    /// The rows from `row` on of some columns.
    fn block(&self, row: usize, cols: &Range<usize>) -> Block<'_, D::Memory> {
        self.a.sub(row, cols.start, self.a.rows - row, cols.len())
    }
}

impl<D: Device> OnDevice<'_, '_, D> {
    /// Queues the factorization of panel `k`, which is `a`, and where L stays in the matrix the inversion of its L1.
    pub(super) fn queue_fact(&self, a: Block<'_, D::Memory>, k: usize, recipe: &Recipe) {
        let (device, memory) = (&self.device, self.fact.as_ref().expect("the device factors panels"));
        let leaf = device.leaf_cols(a.rows, memory.blocks, recipe.nbmin.min(FACTOR_COLS));
        PanelOnDevice { device, memory, a, leaf, ndiv: recipe.ndiv }.factor(0..a.cols);
        if let Some(inverses) = memory.inverses() {
            inverses.invert(device, k, a.top(a.cols));
        }
    }

    /// The device factors a panel in the matrix; the host gets the pivots, and all of the panel where other processes need L.
    pub(super) fn factor_on_device<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        let PanelShape { ii, mp, jb, .. } = fact.shape;
        let (cols, rows) = (fact.col..fact.col + jb, self.rows);
        self.stream_waits_for(Stream::Fact, &cols, Wait::PanelUpdated);
        let memory = self.fact.as_ref().expect("the device factors panels");
        let (device, a, sends_l) = (&self.device, self.block(ii, cols.start, mp, jb), memory.inverses().is_none());
        let columns = |part: usize| Block::dense(&memory.columns, part * memory.nb, jb, 1);
        let of_panel = (Stream::Fact, Phase::Fact, fact.shape.k, None);
        self.spans.timed(device, of_panel, || self.queue_fact(a, fact.shape.k, &fact.recipe));
        if sends_l {
            device.download(Stream::Fact, a, &self.panel, ii, rows);
        }
        (0..2).for_each(|part| device.download(Stream::Fact, columns(part), &memory.staged, part * jb, jb));
        device.host_wait(&device.record(Stream::Fact), Wait::PivotsOnHost)?;
        let PanelMut { a: mut l, mut l1, pivots, info } = fact.panel;
        let memory = self.fact.as_mut().expect("the device factors panels");
        {
            let found = self.device.staged(&mut memory.staged);
            for (pivot, &row) in pivots.iter_mut().zip(&found[..jb]) {
                *pivot = fact.rows.global(fact.shape.row, ii + row as usize) as f64;
            }
            let zero = found[jb..2 * jb].iter().position(|&pivot| pivot == 0.0);
            *info = zero.map_or(0.0, |column| (fact.shape.ia + column + 1) as f64);
        }
        if sends_l {
            let staged = self.device.staged(&mut self.panel);
            let from = Mat::new(&staged, rows, jb, rows.max(1)).sub(ii, 0, mp, jb);
            let copy = |first: usize, [mut to]: [MatMut<'_>; 1]| {
                (0..to.cols()).for_each(|j| to.col_mut(j).copy_from_slice(from.col(first + j)));
            };
            self.team.columns([l.reborrow()], copy)?;
            (0..jb).for_each(|j| (0..jb).for_each(|i| l1.set(i, j, from.at(i, j))));
        }
        self.wrote(Stream::Fact, cols);
        Ok(1)
    }
}
