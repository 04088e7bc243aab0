//! Some rows of a section as a message, in one of the two forms of U.
//!
//! Not transposed, each column is contiguous; transposed, each row is contiguous, so that consecutive rows of a buffer
//! are a message without a copy.

use std::ops::Range;

use space::Form;

use crate::backend::host::kernels::rows;
use crate::comm::Msg;
use crate::comm::buffers::MessagePool;
use crate::mat::{Buffer, Mat, MatMut, in_memory};
use crate::sync::Arc;

/// Rows in a message; clones share the memory.
#[derive(Clone)]
pub(crate) struct RowBuffer {
    msg: Msg,
    rows: usize,
    cols: usize,
    form: Form,
}

/// A buffer that is being written, not yet shared.
pub(crate) struct RowBufferMut {
    data: Arc<Buffer>,
    rows: usize,
    cols: usize,
    form: Form,
}

/// Source of copied rows.
#[derive(Clone, Copy)]
pub(crate) enum RowSource<'a> {
    /// All local rows of these local columns.
    Matrix(&'a Range<usize>),
    /// A buffer of the same columns.
    Buffer(&'a RowBuffer),
}

impl RowSource<'_> {
    /// For each pair (from, to): row `to` of a buffer ← row `from` of this source, restricted to `part`: the [elements] of a
    /// buffer of the form `form` from column `first` of its storage on. `a` is the local matrix.
    ///
    /// [elements]: RowBufferMut::elements
    pub(crate) fn copy_to(
        &self,
        a: Mat<'_>,
        pairs: &[(usize, usize)],
        form: Form,
        first: usize,
        part: &mut MatMut<'_>,
    ) {
        match self {
            Self::Buffer(buffer) => copy_stored(form, buffer.elements(), pairs, first, part),
            Self::Matrix(cols) => match form {
                Form::NotTransposed => {
                    let a = a.sub(0, cols.start + first, a.rows(), part.cols());
                    rows::copy(part, a, pairs.iter().copied());
                }
                Form::Transposed => {
                    let a = a.sub(0, cols.start, a.rows(), cols.len());
                    rows::copy_to_columns(part, a, &inside(pairs, first, part.cols()));
                }
            },
        }
    }
}

/// For each pair (from, to): row `to` of a buffer ← row `from` of the rows with the elements `all`, both in the form `form`,
/// restricted to `part`: the [elements](RowBufferMut::elements) of the buffer from column `first` of its storage on.
pub(crate) fn copy_stored(form: Form, all: Mat<'_>, pairs: &[(usize, usize)], first: usize, part: &mut MatMut<'_>) {
    match form {
        Form::NotTransposed => {
            rows::copy(part, all.sub(0, first, all.rows(), part.cols()), pairs.iter().copied());
        }
        Form::Transposed => {
            for (from, to) in inside(pairs, first, part.cols()) {
                part.col_mut(to).copy_from_slice(all.col(from));
            }
        }
    }
}

/// The pairs whose second row is one of the `rows` rows from `first` on, which counts as row 0.
fn inside(pairs: &[(usize, usize)], first: usize, rows: usize) -> Vec<(usize, usize)> {
    let inside = pairs.iter().filter(|(_, row)| (first..first + rows).contains(row));
    inside.map(|&(from, row)| (from, row - first)).collect()
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

    /// Number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Whether rows (transposed) or columns (not transposed) are contiguous.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The elements: rows × columns, or columns × rows where it is transposed.
    fn elements(&self) -> Mat<'_> {
        let (rows, cols) = in_memory(self.form, self.rows, self.cols);
        Mat::new(&self.msg, rows, cols, rows)
    }

    /// For each pair (i, k): row k of `to` ← row i of this buffer; `to` has the columns from `col` on.
    pub(crate) fn put(&self, col: usize, pairs: &[(usize, usize)], to: &mut MatMut<'_>) {
        let all = self.elements();
        match self.form {
            Form::NotTransposed => rows::copy(to, all.sub(0, col, self.rows, to.cols()), pairs.iter().copied()),
            Form::Transposed => rows::copy_from_columns(to, all.sub(col, 0, to.cols(), self.rows), pairs),
        }
    }

    /// Rows `range` as a separate buffer in the same memory; `None` where they are not contiguous.
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
    /// A buffer of arbitrary content in `data`, which is large enough and not shared.
    pub(crate) fn new(data: Arc<Buffer>, rows: usize, cols: usize, form: Form) -> Self {
        Self { data, rows, cols, form }
    }

    /// Whether rows (transposed) or columns (not transposed) are contiguous.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The elements: rows × columns, or columns × rows where it is transposed.
    pub(crate) fn elements(&mut self) -> MatMut<'_> {
        let (rows, cols) = (self.rows, self.cols);
        let data = &mut Arc::get_mut(&mut self.data).expect("a buffer of the pool is not shared")[..rows * cols];
        match self.form {
            Form::NotTransposed => MatMut::new(data, rows, cols, rows),
            Form::Transposed => MatMut::new(data, cols, rows, cols),
        }
    }

    /// The finished buffer, after all its rows are written.
    pub(crate) fn done(self, pool: &MessagePool) -> RowBuffer {
        let Self { data, rows, cols, form } = self;
        pool.give(Arc::clone(&data));
        RowBuffer::new(Msg::new(data, 0..rows * cols), rows, cols, form)
    }
}
