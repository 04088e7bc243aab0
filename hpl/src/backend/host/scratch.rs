//! Memory for slabs of U, reused for later slabs and steps.

use crate::mat::{Buffer, Mat, MatMut};
use crate::sync::Mutex;

/// The buffers not in use.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Buffer>>);

/// A buffer for a slab of U, returned to its pool when dropped.
pub(crate) struct ScratchBuffer<'a> {
    pool: &'a ScratchPool,
    data: Buffer,
    rows: usize,
    cols: usize,
}

impl ScratchPool {
    /// A buffer for `rows × cols` elements of arbitrary content.
    pub(crate) fn take(&self, rows: usize, cols: usize) -> ScratchBuffer<'_> {
        let mut data = self.0.lock().pop().unwrap_or_default();
        data.at_least(rows * cols);
        ScratchBuffer { pool: self, data, rows, cols }
    }
}

impl ScratchBuffer<'_> {
    /// The elements as a matrix.
    pub(crate) fn mat(&mut self) -> MatMut<'_> {
        MatMut::new(&mut self.data, self.rows, self.cols, self.rows.max(1))
    }

    /// The elements as a matrix, to be read.
    pub(crate) fn view(&self) -> Mat<'_> {
        Mat::new(&self.data, self.rows, self.cols, self.rows.max(1))
    }

    /// All elements.
    pub(crate) fn elements(&mut self) -> &mut [f64] {
        &mut self.data[..self.rows * self.cols]
    }

    /// All elements, to be read.
    pub(crate) fn view_elements(&self) -> &[f64] {
        &self.data[..self.rows * self.cols]
    }
}

impl Drop for ScratchBuffer<'_> {
    fn drop(&mut self) {
        self.pool.0.lock().push(std::mem::take(&mut self.data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let scratch = ScratchPool::default();
        let address = |rows, cols| {
            let mut buffer = scratch.take(rows, cols);
            let address = buffer.mat().as_mut_ptr();
            assert_eq!(address as usize % 64, 0);
            address
        };
        let first = address(4, 5);
        assert_eq!(first, address(2, 3));
        let (mut one, mut other) = (scratch.take(1, 1), scratch.take(1, 1));
        assert_ne!(one.mat().as_mut_ptr(), other.mat().as_mut_ptr());
    }
}
