//! What a device does.

use std::ops::DerefMut;

use space::Form;

use super::error::DeviceError;
use super::waits::Wait;
use crate::Error;
use crate::comm::Msg;
use crate::plan::layout::Layout;

/// A queue of the device, whose operations are executed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Products of updates; with several process rows all of them.
    Main,
    /// Panels.
    Fact,
    /// Rows of exchanges; with one process row the row swaps and solves of updates.
    Copy,
}

impl Stream {
    /// All streams.
    pub(crate) const ALL: [Self; 3] = [Self::Main, Self::Fact, Self::Copy];
}

/// `rows × cols` elements in device memory, column by column with leading dimension `ld`.
pub(crate) struct Block<'a, M> {
    pub(crate) memory: &'a M,
    /// Offset of the first element.
    pub(crate) at: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
}

impl<M> Clone for Block<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Block<'_, M> {}

impl<'a, M> Block<'a, M> {
    /// The elements of `memory` from `at` on, column after column without gaps.
    pub(crate) fn dense(memory: &'a M, at: usize, rows: usize, cols: usize) -> Self {
        Self { memory, at, rows, cols, ld: rows.max(1) }
    }

    /// Its first `rows` rows.
    pub(crate) fn top(self, rows: usize) -> Self {
        self.sub(0, 0, rows, self.cols)
    }

    /// The block of `rows × cols` elements that starts at (i, j).
    pub(crate) fn sub(self, i: usize, j: usize, rows: usize, cols: usize) -> Self {
        assert!(i + rows <= self.rows && j + cols <= self.cols, "block exceeds the block around it");
        Self { at: self.at + i + j * self.ld, rows, cols, ..self }
    }
}

/// Elements of a message from `at` on, with leading dimension `ld`: the source of a copy to the device, which keeps the message
/// until it is copied.
#[derive(Clone)]
pub(crate) struct HostBlock {
    pub(crate) msg: Msg,
    pub(crate) at: usize,
    pub(crate) ld: usize,
}

/// Where the factorization of some columns on a device leaves what it finds, and what it needs beside them.
pub(crate) struct FactorMemory<'a, M> {
    /// For each column the row of the panel that was exchanged with its row.
    pub(crate) pivots: Block<'a, M>,
    /// For each column the pivot.
    pub(crate) values: Block<'a, M>,
    /// At least [`factor_work`] elements: what blocks of threads send each other.
    pub(crate) work: Block<'a, M>,
    /// Tag of what they send first; no two leaves have the same, and zeros have none of them.
    pub(crate) round: u64,
}

/// Most columns that a device factors at once.
pub(crate) const FACTOR_COLS: usize = 32;

/// Rows of a panel that a block of threads has at most.
pub(crate) const MOST_ROWS_OF_BLOCK: usize = 4096;

/// Most rows that a device moves at once.
pub(crate) const PERMUTED_ROWS: usize = space::workspace::DEVICE_PERMUTED_ROWS;

/// Elements of [`FactorMemory::work`] for panels of at most `rows` rows by `blocks` blocks of threads, or as many as these rows need.
pub(crate) fn factor_work(rows: usize, blocks: usize) -> usize {
    4 * blocks.max(rows.div_ceil(MOST_ROWS_OF_BLOCK)) * (2 + FACTOR_COLS)
}

/// A device, used by the first thread of one rank. Operations are queued; an error of one is returned by the next wait of the host.
pub(crate) trait Device {
    /// Device memory, freed when dropped; its content is arbitrary at first.
    type Memory;
    /// Host memory for copies from the device.
    type Staging;
    /// A point in a stream.
    type Event;
    /// A point in a stream whose time is known once it has happened.
    type Mark;

    /// What it is, with its libraries.
    fn label(&self) -> String;

    /// Memory for `len` elements.
    ///
    /// # Errors
    /// When the device has not enough.
    fn allocate(&self, len: usize) -> Result<Self::Memory, Error>;

    /// Host memory for `len` elements.
    ///
    /// # Errors
    /// When the host has not enough.
    fn staging(&self, len: usize) -> Result<Self::Staging, Error>;

    /// The elements of `staging`: arbitrary until the host has waited for the copies to them.
    fn staged<'s>(&self, staging: &'s mut Self::Staging) -> impl DerefMut<Target = [f64]> + 's;

    /// The event that all operations queued on `stream` so far are complete.
    fn record(&self, stream: Stream) -> Self::Event;

    /// The point at which all operations queued on `stream` so far are complete.
    fn mark(&self, stream: Stream) -> Self::Mark;

    /// Seconds from one point to another, both of which have happened; `None` after a failure.
    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> Option<f64>;

    /// Later operations of `stream` wait for `event`.
    fn stream_wait(&self, stream: Stream, event: &Self::Event, wait: Wait);

    /// The host waits for `event`.
    ///
    /// # Errors
    /// When an operation failed.
    fn host_wait(&self, event: &Self::Event, wait: Wait) -> Result<(), DeviceError>;

    /// The host waits for all operations.
    ///
    /// # Errors
    /// When an operation failed.
    fn synchronize(&self, wait: Wait) -> Result<(), DeviceError>;

    /// `to` ← `from`, host to device.
    fn upload(&self, stream: Stream, from: HostBlock, to: Block<'_, Self::Memory>);

    /// The elements of `to` from `at` on, with leading dimension `ld`, ← `from`, device to host.
    fn download(&self, stream: Stream, from: Block<'_, Self::Memory>, to: &Self::Staging, at: usize, ld: usize);

    /// `to` ← `from`
    fn copy(&self, stream: Stream, from: Block<'_, Self::Memory>, to: Block<'_, Self::Memory>);

    /// `to` ← `from`ᵀ
    fn transpose(&self, stream: Stream, from: Block<'_, Self::Memory>, to: Block<'_, Self::Memory>);

    /// Row k of the rows `to` ← row `rows[k]` of `from`. In the form `Transposed`, row k of `to` is its column k.
    fn gather(
        &self,
        stream: Stream,
        form: Form,
        rows: &[usize],
        from: Block<'_, Self::Memory>,
        to: Block<'_, Self::Memory>,
    );

    /// For each pair (i, k): row k of `to` ← row i of the rows `from`. In the form `Transposed`, row i of `from` is its column i.
    fn scatter(
        &self,
        stream: Stream,
        form: Form,
        pairs: &[(usize, usize)],
        from: Block<'_, Self::Memory>,
        to: Block<'_, Self::Memory>,
    );

    /// How many columns of a panel of `rows` rows are factored at once: at most `most`.
    fn leaf_cols(&self, rows: usize, blocks: usize, most: usize) -> usize {
        let _ = (rows, blocks);
        most
    }

    /// The at most [`FACTOR_COLS`] columns of `a`, whose first row is row `first` of the panel, ← L\U with partial pivoting within
    /// these columns.
    fn factor(&self, stream: Stream, a: Block<'_, Self::Memory>, first: usize, to: &FactorMemory<'_, Self::Memory>);

    /// Row j ↔ row `pivots[j]` − `first`, for all j in order.
    fn interchange(&self, stream: Stream, pivots: Block<'_, Self::Memory>, first: usize, a: Block<'_, Self::Memory>);

    /// Of `a`, whose columns from `left` on are L\U of as many columns as there are pivots: the exchange of rows of all other
    /// columns, then U ← L1⁻¹ U of those to the right.
    fn interchange_and_solve(
        &self,
        stream: Stream,
        pivots: Block<'_, Self::Memory>,
        first: usize,
        a: Block<'_, Self::Memory>,
        left: usize,
    ) {
        let (factored, right) = (pivots.rows, left + pivots.rows);
        let cols = |start: usize, end: usize| a.sub(0, start, a.rows, end - start);
        self.interchange(stream, pivots, first, cols(0, left));
        self.interchange(stream, pivots, first, cols(right, a.cols));
        self.trsm(stream, cols(left, right).top(factored), cols(right, a.cols).top(factored));
    }

    /// For each of at most [`PERMUTED_ROWS`] pairs (i, k): row k of `a` ← row i, all rows being read first.
    fn permute(&self, stream: Stream, pairs: &[(usize, usize)], a: Block<'_, Self::Memory>);

    /// B ← L⁻¹·B with L unit lower triangular.
    fn trsm(&self, stream: Stream, l: Block<'_, Self::Memory>, b: Block<'_, Self::Memory>);

    /// C ← A·B
    fn product(
        &self,
        stream: Stream,
        a: Block<'_, Self::Memory>,
        b: Block<'_, Self::Memory>,
        c: Block<'_, Self::Memory>,
    );

    /// C ← C − A·B
    fn gemm(&self, stream: Stream, a: Block<'_, Self::Memory>, b: Block<'_, Self::Memory>, c: Block<'_, Self::Memory>);

    /// x ← U⁻¹·x with U upper triangular.
    fn trsv(&self, stream: Stream, u: Block<'_, Self::Memory>, x: Block<'_, Self::Memory>);

    /// y ← y − A·x
    fn gemv(&self, stream: Stream, a: Block<'_, Self::Memory>, x: Block<'_, Self::Memory>, y: Block<'_, Self::Memory>);

    /// The local matrix `a` of process (row, column) `place` ← HPL's random matrix [A | b]; only the elements of A from
    /// global row and column `first` on, unless that is `None`.
    fn generate(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        first: Option<usize>,
        a: Block<'_, Self::Memory>,
    );

    /// The two columns of `to` ← the sums −Σ a and Σ |a| along the rows of `a`.
    fn row_sums(&self, stream: Stream, a: Block<'_, Self::Memory>, to: Block<'_, Self::Memory>);

    /// `to` ← the [sums](crate::lu::sums::MatrixSums) of the local matrix of process `place`, generated a second time, and of
    /// its product with `x`: r, sums along rows, sums along columns, ‖b‖∞.
    fn matrix_sums(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        x: Block<'_, Self::Memory>,
        to: Block<'_, Self::Memory>,
    );
}
