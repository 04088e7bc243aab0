//! Memory for slabs of U and for L1 of threads, reused for later slabs and steps.

use crate::mat::{Buffer, Mat, MatMut};
use crate::sync::Mutex;

/// The buffers not in use.
#[derive(Default)]
pub(crate) struct ScratchPool {
    slabs: Mutex<Vec<Buffer>>,
    /// Apart, as otherwise each buffer of a slab would be as long as an L1 in time.
    l1s: Mutex<Vec<Buffer>>,
}

/// A buffer, returned to its pool when dropped.
pub(crate) struct ScratchBuffer<'a> {
    pool: &'a Mutex<Vec<Buffer>>,
    data: Buffer,
    rows: usize,
    cols: usize,
}

impl ScratchPool {
    /// A buffer for `rows × cols` elements of arbitrary content.
    pub(crate) fn take(&self, rows: usize, cols: usize) -> ScratchBuffer<'_> {
        take_from(&self.slabs, rows, cols)
    }

    /// A buffer for a thread's own L1 of order `jb`, with arbitrary content.
    pub(crate) fn take_l1(&self, jb: usize) -> ScratchBuffer<'_> {
        take_from(&self.l1s, jb, jb)
    }
}

fn take_from(pool: &Mutex<Vec<Buffer>>, rows: usize, cols: usize) -> ScratchBuffer<'_> {
    let mut data = pool.lock().pop().unwrap_or_default();
    data.at_least(rows * cols);
    ScratchBuffer { pool, data, rows, cols }
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
        self.pool.lock().push(std::mem::take(&mut self.data));
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

    /// As many buffers are as long as an L1 as there are threads that have one at the same time.
    #[test]
    fn slabs_leave_the_memory_of_l1_alone() {
        let scratch = ScratchPool::default();
        drop(scratch.take_l1(100));
        drop([scratch.take(100, 2), scratch.take(100, 2)]);
        drop(scratch.take_l1(100));
        let lengths = |pool: &Mutex<Vec<Buffer>>| pool.lock().iter().map(|buffer| buffer.len()).collect::<Vec<_>>();
        assert_eq!((lengths(&scratch.l1s), lengths(&scratch.slabs)), (vec![10_000], vec![200, 200]));
    }
}
