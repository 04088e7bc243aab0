//! Rows: gathered for exchanges, swapped by pivots, and exchanged rows copied to their places.

use std::ops::Range;

use space::Form;

use super::api::PERMUTED_ROWS;
use super::{Block, Device, HostBlock, OnDevice, Stream, Wait};
use crate::Error;
use crate::backend::Update;
use crate::lu::laswp::{LaswpResult, RowBuffer, RowBufferMut, copy_stored};
use crate::mat::{Mat, MatMut, in_memory};

/// `rows` rows of `cols` columns in the form `form`, in `memory` from `at` on.
fn rows_in<M>(memory: &M, at: usize, form: Form, rows: usize, cols: usize) -> Block<'_, M> {
    let (rows, cols) = in_memory(form, rows, cols);
    Block::dense(memory, at, rows, cols)
}

impl<D: Device> OnDevice<'_, '_, D> {
    /// For each pair (i, k): row k of `to` ← local row i of the matrix, restricted to the local columns `cols`.
    pub(super) fn gather_rows(
        &mut self,
        cols: &Range<usize>,
        pairs: &[(usize, usize)],
        to: &mut RowBufferMut,
    ) -> Result<(), Error> {
        let (form, len) = (to.form(), pairs.len() * cols.len());
        let from: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
        self.stream_waits_for(Stream::Copy, cols, Wait::SectionUpdated);
        let gathered = rows_in(&self.exchange.gathered, 0, form, pairs.len(), cols.len());
        self.device.gather(Stream::Copy, form, &from, self.block(0, cols.start, self.rows, cols.len()), gathered);
        let flat = Block::dense(&self.exchange.gathered, 0, len, 1);
        self.device.download(Stream::Copy, flat, &self.exchange.staged, 0, len);
        self.device.host_wait(&self.device.record(Stream::Copy), Wait::RowsOnHost)?;
        let staged = self.device.staged(&mut self.exchange.staged);
        let (rows, cols) = in_memory(form, pairs.len(), cols.len());
        let rows = Mat::new(&staged, rows, cols, rows.max(1));
        let pairs: Vec<(usize, usize)> = (0..).zip(pairs.iter().map(|pair| pair.1)).collect();
        let place = |first, [mut part]: [MatMut<'_>; 1]| copy_stored(form, rows, &pairs, first, &mut part);
        Ok(self.team.columns([to.elements()], place)?)
    }

    /// For each pair (i, k): row k of `a` ← row i, all rows being read first.
    pub(super) fn permute_rows(&self, pairs: &[(usize, usize)], a: Block<'_, D::Memory>) {
        if pairs.len() <= PERMUTED_ROWS {
            self.device.permute(Stream::Copy, pairs, a);
        } else {
            self.move_rows(Stream::Copy, pairs, a, a);
        }
    }

    /// For each pair (i, k): row k of `to` ← row i of `from`, all rows being read first.
    fn move_rows(
        &self,
        stream: Stream,
        pairs: &[(usize, usize)],
        from: Block<'_, D::Memory>,
        to: Block<'_, D::Memory>,
    ) {
        let sources: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
        let targets: Vec<(usize, usize)> = (0..).zip(pairs.iter().map(|pair| pair.1)).collect();
        let moved = rows_in(&self.exchange.moved, 0, Form::NotTransposed, pairs.len(), from.cols);
        self.device.gather(stream, Form::NotTransposed, &sources, from, moved);
        self.device.scatter(stream, Form::NotTransposed, &targets, moved, to);
    }

    /// Copies exchanged rows to U and to the rows below the diagonal block; `first` is the index of the section's first column
    /// among the exchanged ones.
    pub(super) fn place_exchanged(&mut self, update: &Update<'_>, result: &LaswpResult, first: usize) {
        let (shape, cols) = (update.panel, &update.cols);
        let top = self.block(shape.ii, cols.start, shape.diag_rows, cols.len());
        let below_rows = shape.mp - shape.diag_rows;
        let below = self.block(shape.ii + shape.diag_rows, cols.start, below_rows, cols.len());
        let u = self.exchange.u(shape.jb, cols.len());
        let upper = result.upper.iter().map(|rows| (rows, u));
        let mut left = upper.chain(result.displaced.iter().map(|rows| (rows, below))).peekable();
        let mut placed = None;
        // As many messages at once as there is memory for.
        while left.peek().is_some() {
            if let Some(placed) = placed.as_ref().or(self.exchange.placed.as_ref()) {
                self.device.stream_wait(Stream::Copy, placed, Wait::RowsFree);
            }
            let (mut at, mut batch) = (0, Vec::new());
            while let Some(((rows, pairs), to)) =
                left.next_if(|((rows, _), _)| at == 0 || at + rows.rows() * cols.len() <= self.exchange.len)
            {
                let block = self.upload_rows(rows, first..first + cols.len(), at);
                batch.push((rows.form(), pairs, block, to));
                at += rows.rows() * cols.len();
            }
            self.device.stream_wait(Stream::Main, &self.device.record(Stream::Copy), Wait::RowsUploaded);
            for (form, pairs, block, to) in batch {
                self.device.scatter(Stream::Main, form, pairs, block, to);
            }
            placed = Some(self.device.record(Stream::Main));
        }
        if !result.local.is_empty() {
            self.move_rows(Stream::Main, &result.local, top, below);
        }
        self.exchange.placed = placed.or(self.exchange.placed.take());
    }

    /// Copies the columns `cols` of `rows` to the device, to `received` from `at` on.
    fn upload_rows(&self, rows: &RowBuffer, cols: Range<usize>, at: usize) -> Block<'_, D::Memory> {
        let to = rows_in(&self.exchange.received, at, rows.form(), rows.rows(), cols.len());
        let (first, ld) = match rows.form() {
            Form::NotTransposed => (cols.start * rows.rows(), rows.rows()),
            Form::Transposed => (cols.start, rows.cols()),
        };
        self.device.upload(Stream::Copy, HostBlock { msg: rows.msg().clone(), at: first, ld }, to);
        to
    }
}
