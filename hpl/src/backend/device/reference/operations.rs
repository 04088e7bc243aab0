//! The operations of the reference device, with the kernels of the host.

use std::cell::Cell;
use std::ops::DerefMut;
use std::rc::Rc;
use std::time::Instant;

use space::Form;

use super::Reference;
use super::memory::{Memory, QueuedBlock};
use super::queue::{Event, StreamOp};
use crate::Error;
use crate::backend::device::{Block, Device, DeviceError, FactorMemory, HostBlock, Stream, Wait};
use crate::backend::host::kernels::{rows, vector};
use crate::backend::host::storage::solve_upper;
use crate::lu::matgen;
use crate::lu::sums::{MatrixSums, RowSums};
use crate::mat::{Mat, MatMut, transpose};
use crate::plan::layout::Layout;

/// `a` ← L\U with partial pivoting; for each column the row of its pivot, and the pivot.
fn factor_columns(mut a: MatMut<'_>) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    for j in 0..a.cols() {
        let size = |i: &usize| a.as_ref().at(*i, j).abs();
        let row = (j..a.rows()).rev().max_by(|x, y| size(x).total_cmp(&size(y))).expect("no more columns than rows");
        (0..a.cols()).for_each(|col| a.col_mut(col).swap(j, row));
        let pivot = a.as_ref().at(j, j);
        if pivot != 0.0 {
            a.col_mut(j)[j + 1..].iter_mut().for_each(|l| *l /= pivot);
        }
        for col in j + 1..a.cols() {
            let u = a.as_ref().at(j, col);
            for i in j + 1..a.rows() {
                let product = a.as_ref().at(i, j) * u;
                let element = a.as_ref().at(i, col);
                a.set(i, col, element - product);
            }
        }
        found.push((row, pivot));
    }
    found
}

/// Copies all columns.
fn copy(from: Mat<'_>, mut to: MatMut<'_>) {
    (0..to.cols()).for_each(|j| to.col_mut(j).copy_from_slice(from.col(j)));
}

impl Device for Reference<'_> {
    type Memory = Memory;
    type Staging = Memory;
    type Event = Event;
    type Mark = Rc<Cell<Option<Instant>>>;

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

    fn mark(&self, stream: Stream) -> Self::Mark {
        let mark = Rc::new(Cell::new(None));
        let at = Rc::clone(&mark);
        self.queue(stream, move || at.set(Some(Instant::now())));
        mark
    }

    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> Option<f64> {
        Some(to.get()?.saturating_duration_since(from.get()?).as_secs_f64())
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

    fn factor(&self, stream: Stream, a: Block<'_, Memory>, first: usize, to: &FactorMemory<'_, Memory>) {
        let [a, pivots, values] = [a, to.pivots, to.values].map(QueuedBlock::new);
        self.queue(stream, move || {
            let mut found = Vec::new();
            a.write(|a| found = factor_columns(a));
            pivots
                .write(|mut to| to.col_mut(0).iter_mut().zip(&found).for_each(|(to, of)| *to = (first + of.0) as f64));
            values.write(|mut to| to.col_mut(0).iter_mut().zip(&found).for_each(|(to, of)| *to = of.1));
        });
    }

    fn interchange(&self, stream: Stream, pivots: Block<'_, Memory>, first: usize, a: Block<'_, Memory>) {
        let (pivots, a) = (QueuedBlock::new(pivots), QueuedBlock::new(a));
        self.queue(stream, move || {
            let rows: Vec<usize> = pivots.to_vec().into_iter().map(|row| row as usize - first).collect();
            a.write(|mut a| {
                (0..a.cols()).for_each(|j| rows.iter().enumerate().for_each(|(i, &row)| a.col_mut(j).swap(i, row)))
            });
        });
    }

    fn permute(&self, stream: Stream, pairs: &[(usize, usize)], a: Block<'_, Memory>) {
        let (pairs, a) = (pairs.to_vec(), QueuedBlock::new(a));
        self.queue(stream, move || {
            a.write(|mut a| {
                for j in 0..a.cols() {
                    let moved: Vec<f64> = pairs.iter().map(|&(from, _)| a.col_mut(j)[from]).collect();
                    pairs.iter().zip(moved).for_each(|(&(_, to), element)| a.col_mut(j)[to] = element);
                }
            });
        });
    }

    fn trsm(&self, stream: Stream, l: Block<'_, Memory>, b: Block<'_, Memory>) {
        let (l, b, kernels) = (QueuedBlock::new(l), QueuedBlock::new(b), self.kernels);
        self.queue(stream, move || {
            // A copy, as L1 and U may be in the same matrix.
            let (order, l1) = (l.rows(), l.to_vec());
            b.write(|b| kernels.trsm(Mat::new(&l1, order, order, order.max(1)), b));
        });
    }

    fn product(&self, stream: Stream, a: Block<'_, Memory>, b: Block<'_, Memory>, c: Block<'_, Memory>) {
        let (a, b, c, kernels) = (QueuedBlock::new(a), QueuedBlock::new(b), QueuedBlock::new(c), self.kernels);
        self.queue(stream, move || {
            let (k, minus_a) = (b.rows(), a.to_vec().into_iter().map(|element| -element).collect::<Vec<_>>());
            b.read(|b| {
                c.write(|mut c| {
                    (0..c.cols()).for_each(|j| c.col_mut(j).fill(0.0));
                    kernels.gemm(Mat::new(&minus_a, c.rows(), k, c.rows().max(1)), b, c);
                });
            });
        });
    }

    fn gemm(&self, stream: Stream, a: Block<'_, Memory>, b: Block<'_, Memory>, c: Block<'_, Memory>) {
        let (a, b, c, kernels) = (QueuedBlock::new(a), QueuedBlock::new(b), QueuedBlock::new(c), self.kernels);
        self.queue(stream, move || {
            // Copies, as L2, U and C may be in the same matrix.
            let (k, l2, u) = (b.rows(), a.to_vec(), b.to_vec());
            c.write(|c| {
                let l2 = Mat::new(&l2, c.rows(), k, c.rows().max(1));
                kernels.gemm(l2, Mat::new(&u, k, c.cols(), k.max(1)), c);
            });
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
