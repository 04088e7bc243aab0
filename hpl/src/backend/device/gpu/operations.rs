//! The operations of a GPU: by its BLAS, by the kernels of `kernels.c`, and by its copy engines.

use std::ops::DerefMut;
use std::sync::Arc;

use space::Form;

use super::blas::{GpuBlas, MINUS_ONE, ONE, ZERO};
use super::device::GpuDevice;
use super::driver::Gpu;
use super::generator::GeneratorTables;
use super::kernels::{GpuKernel, LaunchSize, words};
use super::leaves::{FACTOR_THREADS, MOST_SOLVED, leaf_cols};
use super::library::Handle;
use super::memory::{GpuEvent, GpuMemory, PinnedMemory};
use crate::Error;
use crate::backend::device::{Block, Device, DeviceError, FactorMemory, HostBlock, Stream, Wait};
use crate::plan::layout::Layout;

/// Most blocks of `hpl_permute`: so few that the product beside it has room; two for each multiprocessor of an H100.
const PERMUTE_BLOCKS: usize = 264;

/// Elements from one row to the next and from one column to the next, of rows in the form `form` in a block with leading
/// dimension `ld`.
fn steps(form: Form, ld: usize) -> (usize, usize) {
    match form {
        Form::NotTransposed => (1, ld),
        Form::Transposed => (ld, 1),
    }
}

impl GpuDevice {
    /// Queues a kernel with two blocks, for the elements of `from`.
    ///
    /// # Safety
    /// The kernel must be one of two blocks, and `to` must have a place for each element of `from`.
    unsafe fn launch_on_two(
        &self,
        stream: Stream,
        kernel: GpuKernel,
        from: Block<'_, GpuMemory>,
        to: Block<'_, GpuMemory>,
    ) {
        if !from.is_empty() {
            let [from_ld, to_ld, rows, cols] = words([from.ld, to.ld, from.rows, from.cols]);
            let arguments = [from.address(), from_ld, to.address(), to_ld, rows, cols];
            // SAFETY: as the caller says.
            unsafe { self.launch(stream, kernel, LaunchSize::Elements(from.rows, from.cols), &arguments) };
        }
    }

    /// Queues a call of the BLAS on `stream`.
    fn queue_blas(&self, stream: Stream, call: impl FnOnce(&GpuBlas) -> Result<(), DeviceError>) {
        self.queue(|| {
            let blas = self.blas_of(stream);
            blas.on(self.handle(stream))?;
            call(blas)
        });
    }
}

impl GpuDevice {
    /// An event that `make` records on `stream`; `None` after a failure.
    fn event(
        &self,
        stream: Stream,
        make: impl FnOnce(&Arc<Gpu>, Handle) -> Result<GpuEvent, DeviceError>,
    ) -> Option<GpuEvent> {
        let mut event = None;
        self.queue(|| {
            event = Some(make(&self.gpu, self.handle(stream))?);
            Ok(())
        });
        event
    }
}

impl Device for GpuDevice {
    type Memory = GpuMemory;
    type Staging = PinnedMemory;
    type Event = Option<GpuEvent>;
    type Mark = Option<GpuEvent>;

    fn label(&self) -> String {
        format!("{}, {}, {}", self.gpu.label, self.gpu.driver.library, self.blas_of(Stream::Main).library)
    }

    fn allocate(&self, len: usize) -> Result<GpuMemory, Error> {
        Ok(GpuMemory::new(&self.gpu, len)?)
    }

    fn staging(&self, len: usize) -> Result<PinnedMemory, Error> {
        Ok(PinnedMemory::new(&self.gpu, len)?)
    }

    fn staged<'s>(&self, staging: &'s mut PinnedMemory) -> impl DerefMut<Target = [f64]> + 's {
        staging.elements()
    }

    fn record(&self, stream: Stream) -> Option<GpuEvent> {
        self.event(stream, GpuEvent::record)
    }

    fn mark(&self, stream: Stream) -> Option<GpuEvent> {
        self.event(stream, GpuEvent::mark)
    }

    fn seconds(&self, from: &Option<GpuEvent>, to: &Option<GpuEvent>) -> Option<f64> {
        self.gpu.seconds_between(from.as_ref()?.handle, to.as_ref()?.handle).ok()
    }

    fn stream_wait(&self, stream: Stream, event: &Option<GpuEvent>, _wait: Wait) {
        let wait = &self.gpu.driver.calls.stream_wait;
        // Without an event an operation has failed, and nothing is queued.
        if let Some(event) = event {
            // SAFETY: stream and event exist.
            self.queue(|| self.gpu.check(wait.name, unsafe { (wait.call)(self.handle(stream), event.handle, 0) }));
        }
    }

    fn host_wait(&self, event: &Option<GpuEvent>, _wait: Wait) -> Result<(), DeviceError> {
        let (wait, no_event) = (&self.gpu.driver.calls.wait_for_event, Ok(()));
        let outcome = event.as_ref().map_or(no_event, |event| {
            // SAFETY: the event exists.
            self.gpu.check(wait.name, unsafe { (wait.call)(event.handle) })
        });
        self.outcome(outcome)
    }

    fn synchronize(&self, _wait: Wait) -> Result<(), DeviceError> {
        self.outcome(self.wait_for_all())
    }

    fn upload(&self, stream: Stream, from: HostBlock, to: Block<'_, GpuMemory>) {
        if !to.is_empty() {
            self.queue(|| self.send(stream, from, to));
        }
    }

    fn download(&self, stream: Stream, from: Block<'_, GpuMemory>, to: &PinnedMemory, at: usize, ld: usize) {
        if !from.is_empty() {
            self.queue(|| self.receive(stream, from, to, at, ld));
        }
    }

    fn copy(&self, stream: Stream, from: Block<'_, GpuMemory>, to: Block<'_, GpuMemory>) {
        assert!((from.rows, from.cols) == (to.rows, to.cols), "blocks of the same shape");
        // SAFETY: hpl_copy, and blocks of the same shape.
        unsafe { self.launch_on_two(stream, GpuKernel::Copy, from, to) };
    }

    fn transpose(&self, stream: Stream, from: Block<'_, GpuMemory>, to: Block<'_, GpuMemory>) {
        assert!((from.rows, from.cols) == (to.cols, to.rows), "a block of the transposed shape");
        // SAFETY: hpl_transpose, and a block of the transposed shape.
        unsafe { self.launch_on_two(stream, GpuKernel::Transpose, from, to) };
    }

    fn gather(&self, stream: Stream, form: Form, rows: &[usize], from: Block<'_, GpuMemory>, to: Block<'_, GpuMemory>) {
        assert!(rows.iter().all(|&row| row < from.rows), "rows of the source");
        let shape = crate::mat::in_memory(form, rows.len(), from.cols);
        assert!(shape == (to.rows, to.cols), "a place for each row");
        if !to.is_empty() {
            let list: Vec<u64> = rows.iter().map(|&row| row as u64).collect();
            let (to_row, to_col) = steps(form, to.ld);
            let [count, from_ld, to_row, to_col, cols] = words([rows.len(), from.ld, to_row, to_col, from.cols]);
            let (from_address, to_address) = (from.address(), to.address());
            let arguments = |list| vec![list, count, from_address, from_ld, to_address, to_row, to_col, cols];
            // SAFETY: the arguments of hpl_gather; all rows are in `from`, and `to` has one place for each.
            unsafe {
                self.launch_with(
                    stream,
                    &list,
                    GpuKernel::Gather,
                    LaunchSize::Elements(rows.len(), from.cols),
                    arguments,
                )
            };
        }
    }

    fn scatter(
        &self,
        stream: Stream,
        form: Form,
        pairs: &[(usize, usize)],
        from: Block<'_, GpuMemory>,
        to: Block<'_, GpuMemory>,
    ) {
        let (from_rows, _) = crate::mat::in_memory(form, from.rows, from.cols);
        assert!(pairs.iter().all(|&(source, row)| source < from_rows && row < to.rows), "rows of both");
        if !pairs.is_empty() && !to.is_empty() {
            let list: Vec<u64> = pairs.iter().flat_map(|&(source, row)| words([source, row])).collect();
            let (from_row, from_col) = steps(form, from.ld);
            let [count, from_row, from_col, to_ld, cols] = words([pairs.len(), from_row, from_col, to.ld, to.cols]);
            let (from_address, to_address) = (from.address(), to.address());
            let arguments = |list| vec![list, count, from_address, from_row, from_col, to_address, to_ld, cols];
            // SAFETY: the arguments of hpl_scatter; all rows are in `from` and in `to`.
            unsafe {
                self.launch_with(
                    stream,
                    &list,
                    GpuKernel::Scatter,
                    LaunchSize::Elements(pairs.len(), to.cols),
                    arguments,
                )
            };
        }
    }

    fn leaf_cols(&self, rows: usize, blocks: usize, most: usize) -> usize {
        leaf_cols(rows, blocks.min(self.most_blocks), most)
    }

    fn factor(&self, stream: Stream, a: Block<'_, GpuMemory>, first: usize, to: &FactorMemory<'_, GpuMemory>) {
        self.launch_factor(stream, a, first, to);
    }

    fn interchange(&self, stream: Stream, pivots: Block<'_, GpuMemory>, first: usize, a: Block<'_, GpuMemory>) {
        self.launch_interchange(stream, pivots, first, a, (a.cols, 0, false));
    }

    fn interchange_and_solve(
        &self,
        stream: Stream,
        pivots: Block<'_, GpuMemory>,
        first: usize,
        a: Block<'_, GpuMemory>,
        left: usize,
    ) {
        let (factored, right) = (pivots.rows, left + pivots.rows);
        let solves = factored <= MOST_SOLVED;
        self.launch_interchange(stream, pivots, first, a, (left, factored, solves));
        if !solves {
            let [l1, u] = [left..right, right..a.cols].map(|cols| a.sub(0, cols.start, factored, cols.len()));
            self.trsm(stream, l1, u);
        }
    }

    fn permute(&self, stream: Stream, pairs: &[(usize, usize)], a: Block<'_, GpuMemory>) {
        assert!(pairs.iter().all(|&(from, to)| from < a.rows && to < a.rows), "rows of the block");
        if pairs.is_empty() || a.is_empty() {
            return;
        }
        let list: Vec<u64> = pairs.iter().flat_map(|&(from, to)| words([from, to])).collect();
        let [count, ld, cols] = words([pairs.len(), a.ld, a.cols]);
        let arguments = |list| vec![list, count, a.address(), ld, cols];
        // SAFETY: the arguments of hpl_permute; all rows are in `a`, and there are at most as many as it has memory for.
        unsafe {
            self.launch_with(
                stream,
                &list,
                GpuKernel::Permute,
                LaunchSize::Blocks(a.cols.min(PERMUTE_BLOCKS), FACTOR_THREADS),
                arguments,
            )
        };
    }

    fn trsm(&self, stream: Stream, l: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>) {
        if !b.is_empty() {
            self.queue_blas(stream, |blas| blas.trsm(l, b));
        }
    }

    fn product(&self, stream: Stream, a: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>, c: Block<'_, GpuMemory>) {
        if !c.is_empty() {
            self.queue_blas(stream, |blas| blas.gemm((&ONE, &ZERO), a, b, c));
        }
    }

    fn gemm(&self, stream: Stream, a: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>, c: Block<'_, GpuMemory>) {
        if !c.is_empty() && a.cols > 0 {
            self.queue_blas(stream, |blas| blas.gemm((&MINUS_ONE, &ONE), a, b, c));
        }
    }

    fn trsv(&self, stream: Stream, u: Block<'_, GpuMemory>, x: Block<'_, GpuMemory>) {
        if !u.is_empty() {
            self.queue_blas(stream, |blas| blas.trsv(u, x));
        }
    }

    fn gemv(&self, stream: Stream, a: Block<'_, GpuMemory>, x: Block<'_, GpuMemory>, y: Block<'_, GpuMemory>) {
        if !a.is_empty() {
            self.queue_blas(stream, |blas| blas.gemv(a, x, y));
        }
    }

    fn generate(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        first: Option<usize>,
        a: Block<'_, GpuMemory>,
    ) {
        let (first_row, cols) = match first {
            None => (0, 0..a.cols),
            // Without b, which is the last column.
            Some(first) => (first, layout.cols.local_from(place.1, first)..layout.cols.local_from(place.1, layout.n())),
        };
        let tables = GeneratorTables::new(layout, place, first_row, cols.clone());
        let above = a.rows - tables.rows;
        let to = a.sub(above, cols.start, tables.rows, cols.len());
        if !to.is_empty() {
            let (address, [ld, rows, cols]) = (to.address(), words([to.ld, to.rows, to.cols]));
            let arguments = |start| {
                let [row_table, tops, _] = GeneratorTables::addresses(to.rows, to.cols, start);
                vec![row_table, tops, address, ld, rows, cols]
            };
            // SAFETY: the arguments of hpl_generate, and a block of `rows × cols` elements.
            unsafe {
                self.launch_with(
                    stream,
                    &tables.words,
                    GpuKernel::Generate,
                    LaunchSize::Elements(to.rows, to.cols),
                    arguments,
                )
            };
        }
    }

    fn row_sums(&self, stream: Stream, a: Block<'_, GpuMemory>, to: Block<'_, GpuMemory>) {
        assert!(to.rows == a.rows && to.cols == 2, "two sums for each row");
        if !to.is_empty() {
            // Without columns nothing of the matrix is read.
            let from = if a.is_empty() { a.memory.address(0) } else { a.address() };
            let [ld, rows, cols] = words([a.ld, a.rows, a.cols]);
            let (r, s) = (to.sub(0, 0, to.rows, 1).address(), to.sub(0, 1, to.rows, 1).address());
            // SAFETY: the arguments of hpl_row_sums, a block of `rows × cols` elements, and two vectors of `rows`.
            unsafe {
                self.launch(stream, GpuKernel::RowSums, LaunchSize::Elements(a.rows, 1), &[from, ld, r, s, rows, cols])
            };
        }
    }

    fn matrix_sums(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        x: Block<'_, GpuMemory>,
        to: Block<'_, GpuMemory>,
    ) {
        let tables = GeneratorTables::new(layout, place, 0, 0..layout.cols.local_len(place.1));
        let (rows, cols) = (tables.rows, tables.cols);
        assert!(to.rows == 2 * rows + cols + 1 && x.rows >= layout.n(), "a place for each sum, and all of x");
        let of = |at: usize| to.memory.address(to.at + at);
        let (r, s, sums, b_norm) = (of(0), of(rows), of(2 * rows), of(2 * rows + cols));
        let x = if x.is_empty() { to.memory.address(0) } else { x.address() };
        let [n, row_count, col_count] = words([layout.n(), rows, cols]);
        let tables_at = |start| GeneratorTables::addresses(rows, cols, start);
        let by_rows = |start| {
            let [row_table, tops, globals] = tables_at(start);
            vec![row_table, tops, globals, x, n, r, s, row_count, col_count]
        };
        let by_cols = |start| {
            let [row_table, tops, globals] = tables_at(start);
            vec![row_table, tops, globals, n, sums, b_norm, row_count, col_count]
        };
        // SAFETY: the arguments of hpl_check_rows and hpl_check_cols: tables of `rows` and `cols`, n elements of x, and vectors of
        // `rows`, `rows`, `cols` and one element.
        unsafe {
            self.launch_with(stream, &tables.words, GpuKernel::CheckRows, LaunchSize::Elements(rows, 1), by_rows);
            // One thread at least, for the norm of b.
            self.launch_with(
                stream,
                &tables.words,
                GpuKernel::CheckCols,
                LaunchSize::Elements(cols.max(1), 1),
                by_cols,
            );
        }
    }
}
