//! The operations of the reference device, with the kernels of the host.

use std::cell::Cell;
use std::ops::DerefMut;
use std::rc::Rc;

use space::Form;

use super::Reference;
use super::memory::{Memory, QueuedBlock};
use super::queue::{Event, StreamOp};
use crate::Error;
use crate::backend::device::{Block, Device, DeviceError, HostBlock, Stream, Wait};
use crate::backend::host::kernels::{rows, vector};
use crate::backend::host::storage::solve_upper;
use crate::lu::matgen;
use crate::lu::sums::{MatrixSums, RowSums};
use crate::mat::{Mat, MatMut, transpose};
use crate::plan::layout::Layout;

/// Copies all columns.
fn copy(from: Mat<'_>, mut to: MatMut<'_>) {
    (0..to.cols()).for_each(|j| to.col_mut(j).copy_from_slice(from.col(j)));
}

impl Device for Reference<'_> {
    type Memory = Memory;
    type Staging = Memory;
    type Event = Event;

    fn label(&self) -> String {
        "reference device on the host".to_owned()
    }

    fn allocate(&self, len: usize) -> Result<Memory, Error> {
        Ok(Memory::new(len)?)
    }

    fn staging(&self, len: usize) -> Result<Memory, Error> {
        Ok(Memory::new(len)?)
    }

    fn staged<'s>(&self, staging: &'s mut Memory) -> impl DerefMut<Target = [f64]> + 's {
        staging.elements()
    }

    fn record(&self, stream: Stream) -> Event {
        let event = Rc::new(Cell::new(false));
        self.queues.borrow_mut().push(stream, StreamOp::Record(Rc::clone(&event)));
        event
    }

    fn stream_wait(&self, stream: Stream, event: &Event, wait: Wait) {
        if self.without != Some(wait) {
            self.queues.borrow_mut().push(stream, StreamOp::Wait(Rc::clone(event)));
        }
    }

    fn host_wait(&self, event: &Event, wait: Wait) -> Result<(), DeviceError> {
        self.execute_until(|_| event.get(), wait)
    }

    fn synchronize(&self, wait: Wait) -> Result<(), DeviceError> {
        self.execute_until(|queues| queues.idle(), wait)
    }

    fn upload(&self, stream: Stream, from: HostBlock, to: Block<'_, Memory>) {
        let to = QueuedBlock::new(to);
        self.queue(stream, move || {
            let elements = if to.is_empty() { &[][..] } else { &from.msg[from.at..] };
            to.write(|to| copy(Mat::new(elements, to.rows(), to.cols(), from.ld), to));
        });
    }

    fn download(&self, stream: Stream, from: Block<'_, Memory>, to: &Memory, at: usize, ld: usize) {
        let to = QueuedBlock::new(Block { memory: to, at, ld, ..from });
        to.poison();
        self.queue_on(stream, QueuedBlock::new(from), to, copy);
    }

    fn copy(&self, stream: Stream, from: Block<'_, Memory>, to: Block<'_, Memory>) {
        self.queue_on(stream, QueuedBlock::new(from), QueuedBlock::new(to), copy);
    }

    fn transpose(&self, stream: Stream, from: Block<'_, Memory>, to: Block<'_, Memory>) {
        self.queue_on(stream, QueuedBlock::new(from), QueuedBlock::new(to), transpose);
    }

    fn gather(&self, stream: Stream, form: Form, from_rows: &[usize], from: Block<'_, Memory>, to: Block<'_, Memory>) {
        let pairs: Vec<(usize, usize)> = from_rows.iter().copied().zip(0..).collect();
        self.queue_on(stream, QueuedBlock::new(from), QueuedBlock::new(to), move |from, mut to| match form {
            Form::NotTransposed => rows::copy(&mut to, from, pairs.iter().copied()),
            Form::Transposed => rows::copy_to_columns(&mut to, from, &pairs),
        });
    }

    fn scatter(
        &self,
        stream: Stream,
        form: Form,
        pairs: &[(usize, usize)],
        from: Block<'_, Memory>,
        to: Block<'_, Memory>,
    ) {
        let pairs = pairs.to_vec();
        self.queue_on(stream, QueuedBlock::new(from), QueuedBlock::new(to), move |from, mut to| match form {
            Form::NotTransposed => rows::copy(&mut to, from, pairs.iter().copied()),
            Form::Transposed => rows::copy_from_columns(&mut to, from, &pairs),
        });
    }

    fn trsm(&self, stream: Stream, l: Block<'_, Memory>, b: Block<'_, Memory>) {
        let kernels = self.kernels;
        self.queue_on(stream, QueuedBlock::new(l), QueuedBlock::new(b), |l, b| kernels.trsm(l, b));
    }

    fn gemm(&self, stream: Stream, a: Block<'_, Memory>, b: Block<'_, Memory>, c: Block<'_, Memory>) {
        let (a, b, c, kernels) = (QueuedBlock::new(a), QueuedBlock::new(b), QueuedBlock::new(c), self.kernels);
        self.queue(stream, move || {
            // A copy, as U and C may be rows of the same matrix.
            let u = b.to_vec();
            a.read(|a| c.write(|c| kernels.gemm(a, Mat::new(&u, a.cols(), c.cols(), a.cols()), c)));
        });
    }

    fn trsv(&self, stream: Stream, u: Block<'_, Memory>, x: Block<'_, Memory>) {
        self.queue_on(stream, QueuedBlock::new(u), QueuedBlock::new(x), |u, mut x| solve_upper(u, x.col_mut(0)));
    }

    fn gemv(&self, stream: Stream, a: Block<'_, Memory>, x: Block<'_, Memory>, y: Block<'_, Memory>) {
        let (a, x, y, isa) = (QueuedBlock::new(a), QueuedBlock::new(x), QueuedBlock::new(y), self.kernels.isa());
        self.queue(stream, move || {
            let x = x.to_vec();
            a.read(|a| y.write(|mut y| vector::gemv(isa, a, &x, y.col_mut(0))));
        });
    }

    fn generate(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        first: Option<usize>,
        a: Block<'_, Memory>,
    ) {
        let (layout, a) = (layout.clone(), QueuedBlock::new(a));
        self.queue(stream, move || {
            a.write(|a| match first {
                None => matgen::generate(&layout, place, 0..a.cols(), a),
                Some(first) => {
                    let mut sums = vec![0.0; a.rows() - layout.rows.local_from(place.0, first)];
                    matgen::generate_trailing(&layout, place, first, 0..a.cols(), a, &mut sums);
                }
            });
        });
    }

    fn row_sums(&self, stream: Stream, a: Block<'_, Memory>, to: Block<'_, Memory>) {
        self.queue_on(stream, QueuedBlock::new(a), QueuedBlock::new(to), |a, mut to| {
            let RowSums { r, row_sums } = RowSums::of(a);
            to.col_mut(0).copy_from_slice(&r);
            to.col_mut(1).copy_from_slice(&row_sums);
        });
    }

    fn matrix_sums(
        &self,
        stream: Stream,
        layout: &Layout,
        place: (usize, usize),
        x: Block<'_, Memory>,
        to: Block<'_, Memory>,
    ) {
        let (layout, x, to) = (layout.clone(), QueuedBlock::new(x), QueuedBlock::new(to));
        self.queue(stream, move || {
            let cols = 0..layout.cols.local_len(place.1);
            let sums = MatrixSums::of(&layout, place, cols, &x.to_vec());
            let all: Vec<f64> = [sums.r, sums.row_sums, sums.col_sums, vec![sums.b_norminf]].concat();
            to.write(|mut to| to.col_mut(0).copy_from_slice(&all));
        });
    }
}
