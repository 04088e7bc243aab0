//! Memory for the columns of U that a thread works on, kept from slab to slab and from step to step.

use parking_lot::Mutex;

use crate::mat::MatMut;

/// Doubles in a cache line, where columns of U had better start.
const LINE: usize = 8;

/// Buffers that no thread works on; there are never more than threads.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Vec<f64>>>);

/// A buffer for a slab of U; it goes back when it is dropped.
pub(crate) struct ScratchBuffer<'a> {
    from: &'a ScratchPool,
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

impl ScratchPool {
    /// A buffer for `rows × cols` elements of arbitrary content.
    pub(crate) fn lend(&self, rows: usize, cols: usize) -> ScratchBuffer<'_> {
        let mut data = self.0.lock().pop().unwrap_or_default();
        if data.len() < rows * cols + LINE {
            data = vec![0.0; rows * cols + LINE];
        }
        ScratchBuffer { from: self, data, rows, cols }
    }
}

impl ScratchBuffer<'_> {
    /// The slab of U.
    pub(crate) fn mat(&mut self) -> MatMut<'_> {
        let shift = self.data.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        MatMut::new(&mut self.data[shift..], self.rows, self.cols, self.rows.max(1))
    }
}

impl Drop for ScratchBuffer<'_> {
    fn drop(&mut self) {
        self.from.0.lock().push(std::mem::take(&mut self.data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let scratch = ScratchPool::default();
        let address = |rows, cols| {
            let mut lent = scratch.lend(rows, cols);
            let address = lent.mat().as_mut_ptr();
            assert_eq!(address as usize % 64, 0);
            address
        };
        let first = address(4, 5);
        assert_eq!(first, address(2, 3));
        let (mut one, mut other) = (scratch.lend(1, 1), scratch.lend(1, 1));
        assert_ne!(one.mat().as_mut_ptr(), other.mat().as_mut_ptr());
    }
}
