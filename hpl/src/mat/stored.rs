//! Views of a matrix that is stored transposed or not.

use std::borrow::Cow;

use space::Form;

use super::{Mat, MatMut};

/// Shared view of a matrix in one of the two forms. Rows, columns and indices are those of the matrix.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    memory: Mat<'a>,
    form: Form,
}

/// Exclusive view of a matrix in one of the two forms. Rows, columns and indices are those of the matrix.
pub(crate) struct StoredMut<'a> {
    memory: MatMut<'a>,
    form: Form,
}

/// Converts (row, column) values of the matrix to those of the memory, or back.
pub(crate) fn in_memory<T>(form: Form, rows: T, cols: T) -> (T, T) {
    match form {
        Form::NotTransposed => (rows, cols),
        Form::Transposed => (cols, rows),
    }
}

impl<'a> Stored<'a> {
    /// The matrix that is `memory` or its transpose.
    pub(crate) fn new(memory: Mat<'a>, form: Form) -> Self {
        Self { memory, form }
    }

    /// The stored matrix: the matrix or its transpose.
    pub(crate) fn memory(&self) -> Mat<'a> {
        self.memory
    }

    /// The form in which it is stored.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        in_memory(self.form, self.memory.rows(), self.memory.cols()).0
    }

    /// Number of columns.
    pub(crate) fn cols(&self) -> usize {
        in_memory(self.form, self.memory.rows(), self.memory.cols()).1
    }

    /// Element (i, j).
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        let (i, j) = in_memory(self.form, i, j);
        self.memory.at(i, j)
    }

    /// The block of `rows × cols` elements that starts at (i, j).
    pub(crate) fn sub(&self, i: usize, j: usize, rows: usize, cols: usize) -> Stored<'a> {
        let ((i, j), (rows, cols)) = (in_memory(self.form, i, j), in_memory(self.form, rows, cols));
        Stored { memory: self.memory.sub(i, j, rows, cols), form: self.form }
    }

    /// `to` ← the matrix.
    ///
    /// # Panics
    /// When the shapes differ.
    pub(crate) fn copy_to(&self, mut to: MatMut<'_>) {
        match self.form {
            Form::NotTransposed => {
                (0..self.cols()).for_each(|j| to.col_mut(j).copy_from_slice(self.memory.col(j)));
            }
            Form::Transposed => transpose(self.memory, to),
        }
    }

    /// Column `j`; a copy if it is not contiguous.
    pub(crate) fn col(&self, j: usize) -> Cow<'a, [f64]> {
        match self.form {
            Form::NotTransposed => Cow::Borrowed(self.memory.col(j)),
            Form::Transposed => (0..self.rows()).map(|i| self.at(i, j)).collect(),
        }
    }
}

impl<'a> StoredMut<'a> {
    /// The matrix that is `memory` or its transpose.
    pub(crate) fn new(memory: MatMut<'a>, form: Form) -> Self {
        Self { memory, form }
    }

    /// The stored matrix: the matrix or its transpose.
    pub(crate) fn into_memory(self) -> MatMut<'a> {
        self.memory
    }

    /// Shared view of the same elements.
    pub(crate) fn as_ref(&self) -> Stored<'_> {
        Stored { memory: self.memory.as_ref(), form: self.form }
    }

    /// A view of the same elements that borrows this one.
    pub(crate) fn reborrow(&mut self) -> StoredMut<'_> {
        StoredMut { memory: self.memory.reborrow(), form: self.form }
    }

    /// Element (i, j).
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.as_ref().at(i, j)
    }

    /// Sets element (i, j).
    pub(crate) fn set(&mut self, i: usize, j: usize, value: f64) {
        let (i, j) = in_memory(self.form, i, j);
        self.memory.set(i, j, value);
    }

    /// The block of `rows × cols` elements that starts at (i, j).
    pub(crate) fn sub(self, i: usize, j: usize, rows: usize, cols: usize) -> StoredMut<'a> {
        let ((i, j), (rows, cols)) = (in_memory(self.form, i, j), in_memory(self.form, rows, cols));
        StoredMut { memory: self.memory.sub(i, j, rows, cols), form: self.form }
    }

    /// Columns before `at`, and the others.
    pub(crate) fn split_cols(self, at: usize) -> (StoredMut<'a>, StoredMut<'a>) {
        let (left, right) = match self.form {
            Form::NotTransposed => self.memory.split_cols(at),
            Form::Transposed => self.memory.split_rows(at),
        };
        (Self { memory: left, form: self.form }, Self { memory: right, form: self.form })
    }

    /// Rows before `at`, and the others.
    pub(crate) fn split_rows(self, at: usize) -> (StoredMut<'a>, StoredMut<'a>) {
        let (top, bottom) = match self.form {
            Form::NotTransposed => self.memory.split_rows(at),
            Form::Transposed => self.memory.split_cols(at),
        };
        (Self { memory: top, form: self.form }, Self { memory: bottom, form: self.form })
    }
}

/// `to` ← the transpose of `from`, square by square, so that both sides use whole cache lines.
///
/// # Panics
/// When the shapes differ.
pub(crate) fn transpose(from: Mat<'_>, mut to: MatMut<'_>) {
    const SQUARE: usize = 16;
    assert!(to.rows() == from.cols() && to.cols() == from.rows(), "shapes agree");
    for first_row in (0..from.rows()).step_by(SQUARE) {
        let rows = SQUARE.min(from.rows() - first_row);
        for first_col in (0..from.cols()).step_by(SQUARE) {
            let cols = SQUARE.min(from.cols() - first_col);
            let source = from.sub(first_row, first_col, rows, cols);
            let mut target = to.reborrow().sub(first_col, first_row, cols, rows);
            for i in 0..rows {
                for (j, value) in target.col_mut(i).iter_mut().enumerate() {
                    *value = source.at(i, j);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_the_same_matrix() {
        let numbers: Vec<f64> = (0..21 * 37).map(f64::from).collect();
        let mut turned = vec![0.0; 37 * 21];
        let plain = Mat::new(&numbers, 21, 37, 21);
        transpose(plain, MatMut::new(&mut turned, 37, 21, 37));
        let mut again = turned.clone();
        let mut exclusive = StoredMut::new(MatMut::new(&mut again, 37, 21, 37), Form::Transposed);
        let mut copy = vec![0.0; 21 * 37];
        exclusive.as_ref().copy_to(MatMut::new(&mut copy, 21, 37, 21));
        assert_eq!(copy, numbers);
        let views = [
            Stored::new(plain, Form::NotTransposed),
            Stored::new(Mat::new(&turned, 37, 21, 37), Form::Transposed),
            exclusive.as_ref(),
        ];
        for view in views {
            assert_eq!((view.rows(), view.cols()), (21, 37));
            let block = view.sub(2, 30, 19, 7);
            for j in 0..7 {
                assert!(block.col(j).iter().eq(plain.sub(2, 30, 19, 7).col(j)));
                assert!((0..19).all(|i| block.at(i, j) == plain.at(2 + i, 30 + j)));
            }
        }
        exclusive.set(20, 3, -1.0);
        let (top, bottom) = exclusive.split_rows(20);
        assert_eq!((top.as_ref().rows(), bottom.at(0, 3)), (20, -1.0));
        let (left, right) = bottom.split_cols(3);
        assert_eq!((left.as_ref().cols(), right.at(0, 0)), (3, -1.0));
        assert_eq!(right.sub(0, 1, 1, 2).at(0, 1), plain.at(20, 5));
    }
}
