//! Operations on the local matrix before and after its factorization.

use std::ops::Range;

use space::HplParams;

use crate::Error;
use crate::lu::sums::{MatrixSums, RowSums};
use crate::plan::PanelShape;
use crate::plan::layout::Layout;

/// The local part of [A | b]: generation, back substitution, check. `place` is the rank's process row and column.
pub(crate) trait Storage {
    /// Threads of the rank.
    fn threads(&self) -> usize;

    /// Whether the columns of a factored panel are in the matrix as they were below its diagonal block, on all ranks.
    fn panels_unchanged(&self) -> bool {
        true
    }

    /// The device with its libraries; `None` in main memory.
    fn device(&self) -> Option<String>;

    /// [A | b] ← HPL's random matrix.
    ///
    /// # Errors
    /// When an operation fails.
    fn generate(&mut self, layout: &Layout, place: (usize, usize)) -> Result<(), Error>;

    /// The elements of A from global row and column `first` on ← HPL's random matrix. Returns the sums of their local rows.
    ///
    /// # Errors
    /// When an operation fails.
    fn generate_trailing(&mut self, layout: &Layout, place: (usize, usize), first: usize) -> Result<Vec<f64>, Error>;

    /// Copies the local rows `rows` of local column `col`.
    ///
    /// # Errors
    /// When an operation fails.
    fn column(&mut self, rows: Range<usize>, col: usize) -> Result<Vec<f64>, Error>;

    /// Local column `col` from row `row` on ← `values`.
    ///
    /// # Errors
    /// When an operation fails.
    fn set_column(&mut self, row: usize, col: usize, values: &[f64]) -> Result<(), Error>;

    /// Touches the workspace for updates by `panel`, whose first local column is `col`, so that the first update runs as later
    /// ones do.
    ///
    /// # Errors
    /// When an operation fails.
    fn warm_up(&mut self, panel: &PanelShape, col: usize) -> Result<(), Error>;

    /// Before the matrix is generated: executes what the first step will but the row swap, so that libraries load what they need for it.
    ///
    /// # Errors
    /// When the device fails.
    fn load_kernels(&mut self, _params: &HplParams) -> Result<(), Error> {
        Ok(())
    }

    /// x ← U⁻¹·x, with U the upper triangle whose first element is (row, column) `at` of the local matrix.
    ///
    /// # Errors
    /// When an operation fails.
    fn trsv(&mut self, at: (usize, usize), x: &mut [f64]) -> Result<(), Error>;

    /// y ← y − B·x, with B the block whose first element is (row, column) `at` of the local matrix.
    ///
    /// # Errors
    /// When an operation fails.
    fn gemv(&mut self, at: (usize, usize), x: &[f64], y: &mut [f64]) -> Result<(), Error>;

    /// Sums of the local columns `cols` along the local rows from `row` on.
    ///
    /// # Errors
    /// When an operation fails.
    fn row_sums(&mut self, row: usize, cols: Range<usize>) -> Result<RowSums, Error>;

    /// Sums of HPL's random matrix, generated a second time, and of its product with `x`.
    ///
    /// # Errors
    /// When an operation fails.
    fn matrix_sums(&mut self, layout: &Layout, place: (usize, usize), x: &[f64]) -> Result<MatrixSums, Error>;
}
