//! The operations of a GPU: by its BLAS, by the kernels of `kernels.c`, and by its copy engines.

use std::ops::{DerefMut, Range};

use space::Form;

use super::blas::GpuBlas;
use super::device::GpuDevice;
use super::kernels::GpuKernel;
use super::memory::{GpuEvent, GpuMemory, PinnedMemory};
use crate::Error;
use crate::backend::device::{Block, Device, DeviceError, HostBlock, Stream, Wait};
use crate::lu::matgen::LocalRows;
use crate::plan::layout::Layout;

/// Sizes as arguments of kernels.
fn words<const N: usize>(sizes: [usize; N]) -> [u64; N] {
    sizes.map(|size| size as u64)
}

/// Elements from one row to the next and from one column to the next, of rows in the form `form` in a block with leading
/// dimension `ld`.
fn steps(form: Form, ld: usize) -> (usize, usize) {
    match form {
        Form::NotTransposed => (1, ld),
        Form::Transposed => (ld, 1),
    }
}

/// What the kernels need to generate elements of a local matrix.
struct GeneratorTables {
    /// For each row a step of the generator: factor and summand; for each column the state at its top; for each column its
    /// global index.
    words: Vec<u64>,
    rows: usize,
    cols: usize,
}

impl GeneratorTables {
    /// For the local rows from global index `first_row` on and the local columns `cols` of process `place`.
    fn new(layout: &Layout, place: (usize, usize), first_row: usize, cols: Range<usize>) -> Self {
        let rows = LocalRows::from(layout, place.0, first_row);
        let globals: Vec<usize> = cols.map(|col| layout.cols.global(place.1, col)).collect();
        let mut words: Vec<u64> = rows.jumps().flat_map(|jump| jump.parts()).collect();
        let row_count = words.len() / 2;
        words.extend(globals.iter().map(|&col| rows.top(col)));
        words.extend(globals.iter().map(|&col| col as u64));
        Self { words, rows: row_count, cols: globals.len() }
    }

    /// Addresses of the tables of rows, of columns, and of global indices, if the words are at `start`.
    fn addresses(rows: usize, cols: usize, start: u64) -> [u64; 3] {
        let tops = start + 16 * rows as u64;
        [start, tops, tops + 8 * cols as u64]
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
            unsafe { self.launch(stream, kernel, (from.rows, from.cols), &arguments) };
        }
    }

    /// Queues a call of the BLAS on `stream`.
    fn queue_blas(&self, stream: Stream, call: impl FnOnce(&GpuBlas) -> Result<(), DeviceError>) {
        self.queue(|| {
            self.blas.on(self.handle(stream))?;
            call(&self.blas)
        });
    }
}

impl Device for GpuDevice {
    type Memory = GpuMemory;
    type Staging = PinnedMemory;
    type Event = Option<GpuEvent>;

    fn label(&self) -> String {
        format!("{}, {}, {}", self.gpu.label, self.gpu.driver.library, self.blas.library)
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
        let mut event = None;
        self.queue(|| {
            event = Some(GpuEvent::record(&self.gpu, self.handle(stream))?);
            Ok(())
        });
        event
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
            unsafe { self.launch_with(stream, &list, GpuKernel::Gather, (rows.len(), from.cols), arguments) };
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
            unsafe { self.launch_with(stream, &list, GpuKernel::Scatter, (pairs.len(), to.cols), arguments) };
        }
    }

    fn trsm(&self, stream: Stream, l: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>) {
        if !b.is_empty() {
            self.queue_blas(stream, |blas| blas.trsm(l, b));
        }
    }

    fn gemm(&self, stream: Stream, a: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>, c: Block<'_, GpuMemory>) {
        if !c.is_empty() && a.cols > 0 {
            self.queue_blas(stream, |blas| blas.gemm(a, b, c));
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
            unsafe { self.launch_with(stream, &tables.words, GpuKernel::Generate, (to.rows, to.cols), arguments) };
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
            unsafe { self.launch(stream, GpuKernel::RowSums, (a.rows, 1), &[from, ld, r, s, rows, cols]) };
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
            self.launch_with(stream, &tables.words, GpuKernel::CheckRows, (rows, 1), by_rows);
            // One thread at least, for the norm of b.
            self.launch_with(stream, &tables.words, GpuKernel::CheckCols, (cols.max(1), 1), by_cols);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lu::matgen;
    use crate::mat::MatMut;

    /// The element of `kernels.c`.
    fn element(words: &[u64], row: usize, top: u64) -> f64 {
        0.5 - words[2 * row].wrapping_mul(top).wrapping_add(words[2 * row + 1]) as f64 * 2.0_f64.powi(-64)
    }

    /// By the tables the device has the elements of the host, bit for bit, on any process and from any row and column on.
    #[test]
    fn tables_give_the_matrix_of_the_host() {
        for (n, nb, p, q) in [(1, 1, 1, 1), (40, 7, 2, 3), (41, 8, 3, 2), (64, 64, 1, 2)] {
            let layout = Layout::block_cyclic(n, nb, p, q);
            for place in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                let (rows, cols) = (layout.rows.local_len(place.0), layout.cols.local_len(place.1));
                let mut host = vec![0.0; rows * cols];
                matgen::generate(&layout, place, 0..cols, MatMut::new(&mut host, rows, cols, rows.max(1)));
                for first in [0, 1, nb, n / 2, n] {
                    let from = layout.cols.local_from(place.1, first)..cols;
                    let tables = GeneratorTables::new(&layout, place, first, from.clone());
                    let above = rows - tables.rows;
                    assert_eq!((above, tables.cols), (layout.rows.local_from(place.0, first), from.len()));
                    let [row_table, tops, globals] = GeneratorTables::addresses(tables.rows, tables.cols, 0);
                    assert_eq!((row_table, globals - tops), (0, 8 * tables.cols as u64));
                    for (j, local) in from.enumerate() {
                        let at = |start: u64| tables.words[start as usize / 8 + j];
                        assert_eq!(at(globals), layout.cols.global(place.1, local) as u64);
                        for i in 0..tables.rows {
                            assert_eq!(element(&tables.words, i, at(tops)), host[above + i + local * rows]);
                        }
                    }
                }
            }
        }
    }
}
