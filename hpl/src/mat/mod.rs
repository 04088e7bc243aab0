//! Strided column-major views of f64 matrices.
//!
//! Element (i, j) of a view is at `ptr + i + j·ld`. Two mutable slices of a view never overlap: mutable views are split
//! by rows or columns, and slices are parts of single columns.

mod buffer;
mod matrix_pool;
mod stored;

pub use buffer::{Buffer, NoMemory};
pub(crate) use matrix_pool::MatrixPool;
pub(crate) use stored::{Stored, StoredMut, in_memory, transpose};

use std::marker::PhantomData;

/// Shared view of `rows × cols` elements with leading dimension `ld ≥ rows`.
#[derive(Clone, Copy)]
pub struct Mat<'a> {
    ptr: *const f64,
    rows: usize,
    cols: usize,
    ld: usize,
    life: PhantomData<&'a f64>,
}

/// Exclusive view of `rows × cols` elements with leading dimension `ld ≥ rows`.
pub struct MatMut<'a> {
    ptr: *mut f64,
    rows: usize,
    cols: usize,
    ld: usize,
    life: PhantomData<&'a mut f64>,
}

// SAFETY: a view is a borrow of plain numbers; `Mat` only reads, `MatMut` is exclusive.
unsafe impl Send for Mat<'_> {}
// SAFETY: as above.
unsafe impl Sync for Mat<'_> {}
// SAFETY: as above.
unsafe impl Send for MatMut<'_> {}
// SAFETY: `&MatMut` only reads.
unsafe impl Sync for MatMut<'_> {}

/// Whether `len` elements hold a view of this shape.
fn holds(len: usize, rows: usize, cols: usize, ld: usize) -> bool {
    let span = || (cols - 1).checked_mul(ld).and_then(|before| before.checked_add(rows));
    ld >= rows && (rows == 0 || cols == 0 || span().is_some_and(|span| span <= len))
}

/// Whether `count` of `all` rows or columns can start at `first`.
fn contains(all: usize, first: usize, count: usize) -> bool {
    count <= all && first <= all - count
}

impl<'a> Mat<'a> {
    /// View of the first `rows × cols` elements of `data`.
    ///
    /// # Panics
    /// When `ld < rows` or `data` is too short.
    pub fn new(data: &'a [f64], rows: usize, cols: usize, ld: usize) -> Self {
        assert!(holds(data.len(), rows, cols, ld), "view exceeds its data");
        Self { ptr: data.as_ptr(), rows, cols, ld, life: PhantomData }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Distance between the starts of two columns.
    pub fn ld(&self) -> usize {
        self.ld
    }

    /// Pointer to element (0, 0); valid for all elements of the view.
    pub fn as_ptr(&self) -> *const f64 {
        self.ptr
    }

    /// Element (i, j).
    pub fn at(&self, i: usize, j: usize) -> f64 {
        assert!(i < self.rows && j < self.cols);
        // SAFETY: inside the view, checked above.
        unsafe { *self.ptr.add(i + j * self.ld) }
    }

    /// Column `j` as a slice of `rows` elements.
    pub fn col(&self, j: usize) -> &'a [f64] {
        assert!(j < self.cols);
        let offset = if self.rows == 0 { 0 } else { j * self.ld };
        // SAFETY: one column inside the view; shared for 'a. An empty one is at the view's pointer.
        unsafe { std::slice::from_raw_parts(self.ptr.add(offset), self.rows) }
    }

    /// The block of `rows × cols` elements that starts at (i, j).
    pub fn sub(&self, i: usize, j: usize, rows: usize, cols: usize) -> Mat<'a> {
        assert!(contains(self.rows, i, rows) && contains(self.cols, j, cols), "block exceeds the view");
        let offset = if rows == 0 || cols == 0 { 0 } else { i + j * self.ld };
        // SAFETY: the block lies inside the view; an empty block keeps the old pointer.
        Mat { ptr: unsafe { self.ptr.add(offset) }, rows, cols, ld: self.ld, life: PhantomData }
    }
}

impl<'a> MatMut<'a> {
    /// View of the first `rows × cols` elements of `data`.
    ///
    /// # Panics
    /// When `ld < rows` or `data` is too short.
    pub fn new(data: &'a mut [f64], rows: usize, cols: usize, ld: usize) -> Self {
        assert!(holds(data.len(), rows, cols, ld), "view exceeds its data");
        Self { ptr: data.as_mut_ptr(), rows, cols, ld, life: PhantomData }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Distance between the starts of two columns.
    pub fn ld(&self) -> usize {
        self.ld
    }

    /// Pointer to element (0, 0); valid for all elements of the view.
    pub fn as_mut_ptr(&mut self) -> *mut f64 {
        self.ptr
    }

    /// Shared view of the same elements.
    pub fn as_ref(&self) -> Mat<'_> {
        Mat { ptr: self.ptr, rows: self.rows, cols: self.cols, ld: self.ld, life: PhantomData }
    }

    /// A view of the same elements that borrows this one.
    pub fn reborrow(&mut self) -> MatMut<'_> {
        MatMut { ptr: self.ptr, rows: self.rows, cols: self.cols, ld: self.ld, life: PhantomData }
    }

    /// Element (i, j).
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.as_ref().at(i, j)
    }

    /// Sets element (i, j).
    pub fn set(&mut self, i: usize, j: usize, value: f64) {
        assert!(i < self.rows && j < self.cols);
        // SAFETY: inside the view, checked above; the view is exclusive.
        unsafe { *self.ptr.add(i + j * self.ld) = value }
    }

    /// Column `j` as a slice of `rows` elements.
    pub fn col(&self, j: usize) -> &[f64] {
        self.as_ref().col(j)
    }

    /// Column `j` as a mutable slice of `rows` elements.
    pub fn col_mut(&mut self, j: usize) -> &mut [f64] {
        assert!(j < self.cols);
        let offset = if self.rows == 0 { 0 } else { j * self.ld };
        // SAFETY: one column inside the view, borrowed exclusively through `&mut self`. An empty one is at the view's pointer.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(offset), self.rows) }
    }

    /// The block of `rows × cols` elements that starts at (i, j).
    pub fn sub(self, i: usize, j: usize, rows: usize, cols: usize) -> MatMut<'a> {
        assert!(contains(self.rows, i, rows) && contains(self.cols, j, cols), "block exceeds the view");
        let offset = if rows == 0 || cols == 0 { 0 } else { i + j * self.ld };
        // SAFETY: the block lies inside the view; an empty block keeps the old pointer.
        MatMut { ptr: unsafe { self.ptr.add(offset) }, rows, cols, ld: self.ld, life: PhantomData }
    }

    /// Splits into the columns before `at` and the columns from `at` on.
    pub fn split_cols(self, at: usize) -> (MatMut<'a>, MatMut<'a>) {
        let (rows, cols) = (self.rows, self.cols);
        assert!(at <= cols);
        // The two blocks share no element, so two exclusive views are sound.
        let left = MatMut { ptr: self.ptr, rows, cols: at, ld: self.ld, life: PhantomData };
        (left, self.sub(0, at, rows, cols - at))
    }

    /// Groups of `width` ≥ 1 columns; the last group has the remaining columns.
    pub fn chunks_cols(self, width: usize) -> Vec<MatMut<'a>> {
        assert!(width > 0);
        let (mut chunks, mut left) = (Vec::new(), self);
        while left.cols > width {
            let (chunk, rest) = left.split_cols(width);
            chunks.push(chunk);
            left = rest;
        }
        chunks.push(left);
        chunks
    }

    /// Splits into the rows before `at` and the rows from `at` on.
    pub fn split_rows(self, at: usize) -> (MatMut<'a>, MatMut<'a>) {
        let (rows, cols) = (self.rows, self.cols);
        assert!(at <= rows);
        // The two blocks share no element, so two exclusive views are sound.
        let top = MatMut { ptr: self.ptr, rows: at, cols, ld: self.ld, life: PhantomData };
        (top, self.sub(at, 0, rows - at, cols))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (3 − 1)·2^63 + 1 elements would be 1 of 64 bits.
    #[test]
    #[should_panic(expected = "view exceeds its data")]
    fn more_elements_than_a_number_counts_are_refused() {
        let _ = Mat::new(&[0.0], 1, 3, 1 << 63);
    }

    #[test]
    #[should_panic(expected = "view exceeds its data")]
    fn more_elements_than_a_number_counts_are_refused_exclusively() {
        let _ = MatMut::new(&mut [0.0], 1, 3, 1 << 63);
    }

    #[test]
    #[should_panic(expected = "block exceeds the view")]
    fn a_block_that_ends_beyond_all_numbers_is_refused() {
        let _ = Mat::new(&[0.0; 4], 2, 2, 2).sub(usize::MAX, 0, 2, 1);
    }

    #[test]
    #[should_panic(expected = "block exceeds the view")]
    fn an_exclusive_block_that_ends_beyond_all_numbers_is_refused() {
        let _ = MatMut::new(&mut [0.0; 4], 2, 2, 2).sub(0, usize::MAX, 1, 2);
    }

    #[test]
    fn columns_without_rows_are_in_the_data() {
        let mut data = [0.0; 2];
        let start = data.as_ptr();
        assert_eq!(Mat::new(&data, 0, 3, 5).col(2).as_ptr(), start);
        assert_eq!(MatMut::new(&mut data, 0, 3, 5).col_mut(2).as_ptr(), start);
    }
}
