//! Some rows of a section as a message, in one of the two forms of U.
//!
//! Not transposed, each column has its rows one after the other; transposed, each row has its columns one after
//! the other, so that some rows of a piece are a message without being copied.

use std::ops::Range;
use std::sync::Arc;

use space::Form;

use crate::backend::host::kernels::rows;
use crate::comm::Msg;
use crate::comm::buffers::Pool;
use crate::mat::{Mat, MatMut};

/// Rows in a message; whoever holds one shares it.
#[derive(Clone)]
pub(crate) struct RowBuffer {
    msg: Msg,
    rows: usize,
    cols: usize,
    form: Form,
}

/// A piece that is being written; nobody else has it yet.
pub(crate) struct RowBufferMut {
    data: Arc<[f64]>,
    rows: usize,
    cols: usize,
    form: Form,
}

/// Where rows are copied from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// All local rows of the section's columns.
    Local(Mat<'a>),
    /// A buffer of the same columns.
    Buffer(&'a RowBuffer),
}

impl Source<'_> {
    /// Row `second` of a buffer ← row `first` of this for each pair, as far as they lie in `part`: the [memory] of a buffer
    /// of the form `form` from its column `first` on.
    ///
    /// [memory]: RowBufferMut::memory
    pub(crate) fn copy_to(&self, pairs: &[(usize, usize)], form: Form, first: usize, part: &mut MatMut<'_>) {
        match form {
            Form::NotTransposed => match self {
                Self::Local(a) => {
                    let a = a.sub(0, first, a.rows(), part.cols());
                    rows::copy(part, a, pairs.iter().copied());
                }
                Self::Buffer(buffer) => buffer.put(first, pairs, part),
            },
            Form::Transposed => {
                let here = pairs.iter().filter(|(_, row)| (first..first + part.cols()).contains(row));
                let here: Vec<(usize, usize)> = here.map(|&(from, row)| (from, row - first)).collect();
                match self {
                    Self::Local(a) => rows::copy_to_columns(part, *a, &here),
                    Self::Buffer(buffer) => {
                        let all = Mat::new(&buffer.msg, buffer.cols, buffer.rows, buffer.cols);
                        here.iter().for_each(|&(from, to)| part.col_mut(to).copy_from_slice(all.col(from)));
                    }
                }
            }
        }
    }
}

impl RowBuffer {
    /// The rows in a message of `rows`·`cols` doubles.
    pub(crate) fn new(msg: Msg, rows: usize, cols: usize, form: Form) -> Self {
        debug_assert!(msg.len() == rows * cols);
        Self { msg, rows, cols, form }
    }

    /// The message.
    pub(crate) fn msg(&self) -> &Msg {
        &self.msg
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// to(second) ← row `first` of this piece for each pair; `to` has the columns from `col` on.
    pub(crate) fn put(&self, col: usize, pairs: &[(usize, usize)], to: &mut MatMut<'_>) {
        match self.form {
            Form::NotTransposed => {
                let all = Mat::new(&self.msg, self.rows, self.cols, self.rows);
                let here = all.sub(0, col, self.rows, to.cols());
                rows::copy(to, here, pairs.iter().copied());
            }
            Form::Transposed => {
                let all = Mat::new(&self.msg, self.cols, self.rows, self.cols);
                let here = all.sub(col, 0, to.cols(), self.rows);
                rows::copy_from_columns(to, here, pairs);
            }
        }
    }

    /// Rows `range` as a buffer of their own, in the same memory; `None` where they are not contiguous.
    pub(crate) fn shared_part(&self, range: &Range<usize>) -> Option<Self> {
        if range.len() == self.rows {
            return Some(self.clone());
        }
        match self.form {
            Form::NotTransposed => None,
            Form::Transposed => {
                let (buf, whole) = self.msg.parts();
                let start = whole.start + range.start * self.cols;
                let msg = Msg::new(buf, start..start + range.len() * self.cols);
                Some(Self { msg, rows: range.len(), ..self.clone() })
            }
        }
    }
}

impl RowBufferMut {
    /// A buffer in `data`, which has room for it and one holder; its content is arbitrary.
    pub(crate) fn new(data: Arc<[f64]>, rows: usize, cols: usize, form: Form) -> Self {
        Self { data, rows, cols, form }
    }

    /// Whether each row, or each column, has its elements one after the other.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The elements: rows × columns, or columns × rows where it is transposed.
    pub(crate) fn memory(&mut self) -> MatMut<'_> {
        let (rows, cols) = (self.rows, self.cols);
        let data = &mut Arc::get_mut(&mut self.data).expect("taken buffers have one holder")[..rows * cols];
        match self.form {
            Form::NotTransposed => MatMut::new(data, rows, cols, rows),
            Form::Transposed => MatMut::new(data, cols, rows, cols),
        }
    }

    /// The piece, once all its rows are written.
    pub(crate) fn done(self, pool: &Pool) -> RowBuffer {
        let Self { data, rows, cols, form } = self;
        pool.give(Arc::clone(&data));
        RowBuffer::new(Msg::new(data, 0..rows * cols), rows, cols, form)
    }
}
