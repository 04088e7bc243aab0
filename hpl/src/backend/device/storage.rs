//! Generation, back substitution and check on the device.

use std::ops::Range;

use space::HplParams;

use super::{Block, Device, HostBlock, OnDevice, Stream, Wait};
use crate::Error;
use crate::backend::Storage;
use crate::comm::Msg;
use crate::lu::sums::{MatrixSums, RowSums};
use crate::mat::Buffer;
use crate::plan::PanelShape;
use crate::plan::layout::Layout;
use crate::sync::Arc;

impl<D: Device> OnDevice<'_, '_, D> {
    /// `len` elements of the memory for vectors, from `at` on.
    fn vector(&self, at: usize, len: usize) -> Block<'_, D::Memory> {
        Block::dense(&self.vectors, at, len, 1)
    }

    /// Copies `from` to a vector on the device.
    fn upload_vector(&self, from: &[f64], to: Block<'_, D::Memory>) {
        let msg = Msg::new(Arc::new(Buffer::from(from)), 0..from.len());
        self.device.upload(Stream::Main, HostBlock { msg, at: 0, ld: from.len() }, to);
    }

    /// Copies `len` elements of the memory for vectors, from `at` on, to the host.
    fn download_vector(&mut self, at: usize, len: usize, wait: Wait) -> Result<Vec<f64>, Error> {
        let from = Block::dense(&self.vectors, at, len, 1);
        self.device.download(Stream::Main, from, &self.staged_vectors, 0, len);
        self.device.host_wait(&self.device.record(Stream::Main), wait)?;
        Ok(self.device.staged(&mut self.staged_vectors)[..len].to_vec())
    }
}

/// Outside a factorization only `Main` has operations, most of which end with the copy of a result to the host.
impl<D: Device> Storage for OnDevice<'_, '_, D> {
    fn threads(&self) -> usize {
        self.team.threads()
    }

    fn panels_unchanged(&self) -> bool {
        self.fact.is_none()
    }

    fn device(&self) -> Option<String> {
        Some(self.device.label())
    }

    fn generate(&mut self, layout: &Layout, place: (usize, usize)) -> Result<(), Error> {
        self.device.generate(Stream::Main, layout, place, None, self.block(0, 0, self.rows, self.cols));
        Ok(self.device.synchronize(Wait::Generated)?)
    }

    fn generate_trailing(&mut self, layout: &Layout, place: (usize, usize), first: usize) -> Result<Vec<f64>, Error> {
        self.device.generate(Stream::Main, layout, place, Some(first), self.block(0, 0, self.rows, self.cols));
        let cols = layout.cols.local_from(place.1, first)..layout.cols.local_from(place.1, layout.n());
        let sums = self.row_sums(layout.rows.local_from(place.0, first), cols)?;
        Ok(sums.r.into_iter().map(|sum| -sum).collect())
    }

    fn column(&mut self, rows: Range<usize>, col: usize) -> Result<Vec<f64>, Error> {
        let len = rows.len();
        self.device.copy(Stream::Main, self.block(rows.start, col, len, 1), self.vector(0, len));
        self.download_vector(0, len, Wait::VectorOnHost)
    }

    fn set_column(&mut self, row: usize, col: usize, values: &[f64]) -> Result<(), Error> {
        self.upload_vector(values, self.block(row, col, values.len(), 1));
        self.wrote(Stream::Main, col..col + 1);
        Ok(())
    }

    /// All memory was allocated with the matrix.
    fn warm_up(&mut self, _panel: &PanelShape, _col: usize) -> Result<(), Error> {
        Ok(())
    }

    fn load_kernels(&mut self, params: &HplParams) -> Result<(), Error> {
        self.first_step_untimed(params)
    }

    fn trsv(&mut self, (row, col): (usize, usize), x: &mut [f64]) -> Result<(), Error> {
        let n = x.len();
        self.upload_vector(x, self.vector(0, n));
        self.device.trsv(Stream::Main, self.block(row, col, n, n), self.vector(0, n));
        x.copy_from_slice(&self.download_vector(0, n, Wait::VectorOnHost)?);
        Ok(())
    }

    fn gemv(&mut self, (row, col): (usize, usize), x: &[f64], y: &mut [f64]) -> Result<(), Error> {
        let (m, n) = (y.len(), x.len());
        self.upload_vector(y, self.vector(0, m));
        self.upload_vector(x, self.vector(m, n));
        self.device.gemv(Stream::Main, self.block(row, col, m, n), self.vector(m, n), self.vector(0, m));
        y.copy_from_slice(&self.download_vector(0, m, Wait::VectorOnHost)?);
        Ok(())
    }

    fn row_sums(&mut self, row: usize, cols: Range<usize>) -> Result<RowSums, Error> {
        let rows = self.rows - row;
        let to = Block::dense(&self.vectors, 0, rows, 2);
        self.device.row_sums(Stream::Main, self.block(row, cols.start, rows, cols.len()), to);
        let mut r = self.download_vector(0, 2 * rows, Wait::SumsOnHost)?;
        let row_sums = r.split_off(rows);
        Ok(RowSums { r, row_sums })
    }

    fn matrix_sums(&mut self, layout: &Layout, place: (usize, usize), x: &[f64]) -> Result<MatrixSums, Error> {
        let len = 2 * self.rows + self.cols + 1;
        self.upload_vector(x, self.vector(len, x.len()));
        self.device.matrix_sums(Stream::Main, layout, place, self.vector(len, x.len()), self.vector(0, len));
        let mut r = self.download_vector(0, len, Wait::SumsOnHost)?;
        let mut row_sums = r.split_off(self.rows);
        let mut col_sums = row_sums.split_off(self.rows);
        let b_norminf = col_sums.pop().expect("the last sum is that of b");
        Ok(MatrixSums { r, row_sums, col_sums, b_norminf })
    }
}
