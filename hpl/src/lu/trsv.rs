//! Backward substitution: U x = y, from the last block to the first.
//!
//! Each process column subtracts the contributions of its own blocks of x from its own copy of y, which is a
//! partial sum. After block k, it sends the partial sums of the rows between its previous block and block k to
//! the process column of block k − 1, which adds its own: forwarded along the ring, the sums are complete when
//! their block is solved. Look-ahead: the rows to be sent are updated first, the others while the message is in
//! flight.

use std::ops::Range;

use crate::Error;
use crate::backend::Storage;
use crate::comm::grid::{Grid, tag};
use crate::comm::reduce;
use crate::comm::{Comm, PeerGone, Request};
use crate::mat::Buffer;
use crate::plan::Plan;
use crate::sync::Arc;

/// Rows that are updated between two polls where messages progress only when polled: a fraction of a millisecond. Fewer in tests,
/// whose matrices are small.
const POLL_ROWS: usize = if cfg!(test) { 8 } else { 4096 };

/// One rank's part in the substitution.
struct Trsv<'a, C, S> {
    plan: &'a Plan,
    /// The first block of the matrix, which is solved last.
    first: usize,
    grid: &'a Grid<C>,
    /// The factored local matrix.
    a: &'a mut S,
    /// Local rows of this process column's partial sum of y.
    y: Vec<f64>,
}

/// Solves for x from block `first` on, after the factorization of the local matrix `a`, whose last column is now y.
/// Returns all N elements of x, with zeros before block `first` and in the blocks of other process columns.
///
/// # Errors
/// When a rank or thread fails.
pub(crate) fn solve<C: Comm>(
    plan: &Plan,
    first: usize,
    grid: &Grid<C>,
    a: &mut impl Storage,
) -> Result<Vec<f64>, Error> {
    let cols = &plan.layout.cols;
    let n = plan.layout.n();
    let rows = plan.layout.rows.local_len(grid.row);
    let y = if cols.owner(n) == grid.col { a.column(0..rows, cols.local(n))? } else { vec![0.0; rows] };
    let mut trsv = Trsv { plan, first, grid, a, y };
    let mut x = vec![0.0; n];
    let mut sends = Vec::new();
    // The process column of b is the first, as if it owned a block after the last.
    sends.extend(trsv.send_sums(plan.steps(), cols.owner(n)));
    for k in (first..plan.steps()).rev().filter(|&k| cols.block_owner(k) == grid.col) {
        trsv.receive_sums(k)?;
        let xk = trsv.block(k)?;
        let sent_next = trsv.rows_before(k, grid.col);
        trsv.subtract(k, &xk, sent_next.clone())?;
        sends.extend(trsv.send_sums(k, grid.col));
        trsv.subtract_during(&mut sends, k, &xk, trsv.start()..sent_next.start)?;
        x[plan.layout.rows.block(k)].copy_from_slice(&xk);
    }
    sends.into_iter().try_for_each(Request::wait)?;
    Ok(x)
}

impl<C: Comm, S: Storage> Trsv<'_, C, S> {
    /// First local row.
    fn start(&self) -> usize {
        let rows = &self.plan.layout.rows;
        rows.local_from(self.grid.row, self.first * rows.nb())
    }

    /// Local rows of the blocks before `k` and after the last one of process column `col` before it.
    fn rows_before(&self, k: usize, col: usize) -> Range<usize> {
        let rows = &self.plan.layout.rows;
        let previous = self.plan.layout.cols.block_before(col, k).filter(|&block| block >= self.first);
        let from = previous.map_or(self.first * rows.nb(), |block| rows.block(block).end);
        let to = if k < rows.blocks() { rows.block(k).start } else { rows.len() };
        rows.local_from(self.grid.row, from)..rows.local_from(self.grid.row, to)
    }

    /// Process column that owns block `k`; that of b after the last block.
    fn column_of(&self, k: usize) -> usize {
        let cols = &self.plan.layout.cols;
        if k < self.plan.steps() { cols.block_owner(k) } else { cols.owner(self.plan.layout.n()) }
    }

    /// Sends the partial sums of process column `from` after block `k` to the process column of block k − 1.
    fn send_sums(&self, k: usize, from: usize) -> Option<C::Send> {
        let to = self.column_of((k > self.first).then(|| k - 1)?);
        let rows = self.rows_before(k, from);
        (from == self.grid.col && to != from && !rows.is_empty()).then(|| {
            let len = rows.len();
            self.grid.row_comm.isend(to, tag::TRSV_Y, Arc::new(Buffer::from(&self.y[rows])), 0..len)
        })
    }

    /// Receives the partial sums of the process column of block k + 1 and adds them.
    fn receive_sums(&mut self, k: usize) -> Result<(), PeerGone> {
        let from = self.column_of(k + 1);
        let rows = self.rows_before(k + 1, from);
        if from == self.grid.col || rows.is_empty() {
            return Ok(());
        }
        let msg = self.grid.row_comm.irecv(from, tag::TRSV_Y, rows.len()).wait()?;
        self.y[rows].iter_mut().zip(msg.iter()).for_each(|(y, sum)| *y += sum);
        Ok(())
    }

    /// x(k) ← U(k, k)⁻¹ · y(k) on the owner of the diagonal block, then broadcast along the process column.
    fn block(&mut self, k: usize) -> Result<Vec<f64>, Error> {
        let (shape, layout) = (self.plan.panel(k, self.grid.row), &self.plan.layout);
        let mut x = vec![0.0; shape.jb];
        if shape.diag_rows > 0 {
            x.copy_from_slice(&self.y[shape.ii..shape.ii + shape.jb]);
            self.a.trsv((shape.ii, layout.cols.local(shape.ia)), &mut x)?;
        }
        reduce::broadcast(&self.grid.col_comm, shape.row, &mut x, tag::TRSV_X)?;
        Ok(x)
    }

    /// The same as [`subtract`](Self::subtract), while `sends` are in flight.
    fn subtract_during(
        &mut self,
        sends: &mut Vec<C::Send>,
        k: usize,
        x: &[f64],
        rows: Range<usize>,
    ) -> Result<(), Error> {
        if C::ASYNC_PROGRESS {
            return self.subtract(k, x, rows);
        }
        let Range { mut start, end } = rows;
        while start < end {
            sends.retain_mut(|send| !send.ready());
            let count = if sends.is_empty() { end - start } else { POLL_ROWS.min(end - start) };
            self.subtract(k, x, start..start + count)?;
            start += count;
        }
        Ok(())
    }

    /// y(rows) ← y(rows) − U(rows, k) · x(k)
    fn subtract(&mut self, k: usize, x: &[f64], rows: Range<usize>) -> Result<(), Error> {
        let jj = self.plan.layout.cols.local(self.plan.layout.rows.block(k).start);
        self.a.gemv((rows.start, jj), x, &mut self.y[rows])
    }
}
