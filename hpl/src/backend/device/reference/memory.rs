//! Memory of the reference device.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use crate::backend::device::Block;
use crate::mat::{Buffer, Mat, MatMut, NoMemory};

/// Content of memory that was not written: a NaN, which arithmetic passes on.
pub(super) const POISON: f64 = f64::from_bits(0x7ff8_dead_dead_dead);

/// Memory of the device, or of the host for copies. Queued operations hold it, too: they read poison once it is freed.
pub(crate) struct Memory(Rc<RefCell<Buffer>>);

impl Memory {
    /// `len` poisoned elements.
    pub(super) fn new(len: usize) -> Result<Self, NoMemory> {
        let mut data = Buffer::zeroed(len, false)?;
        data.fill(POISON);
        Ok(Self(Rc::new(RefCell::new(data))))
    }

    /// The elements.
    pub(super) fn elements(&mut self) -> RefMut<'_, [f64]> {
        RefMut::map(self.0.borrow_mut(), |data| &mut data[..])
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.borrow_mut().fill(POISON);
    }
}

/// A block of memory for a queued operation.
pub(super) struct QueuedBlock {
    data: Rc<RefCell<Buffer>>,
    at: usize,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl QueuedBlock {
    /// The elements of `block`.
    pub(super) fn new(block: Block<'_, Memory>) -> Self {
        let Block { memory, at, rows, cols, ld } = block;
        Self { data: Rc::clone(&memory.0), at, rows, cols, ld }
    }

    /// Calls `work` with the elements, which it may change. Only one operation is executed at a time; the blocks that it uses are in
    /// different memory.
    pub(super) fn write(&self, work: impl FnOnce(MatMut<'_>)) {
        let mut data = self.data.borrow_mut();
        let data = if self.is_empty() { &mut [][..] } else { &mut data[self.at..] };
        work(MatMut::new(data, self.rows, self.cols, self.ld));
    }

    /// Calls `work` with the elements.
    pub(super) fn read(&self, work: impl FnOnce(Mat<'_>)) {
        let data = self.data.borrow();
        let data = if self.is_empty() { &[][..] } else { &data[self.at..] };
        work(Mat::new(data, self.rows, self.cols, self.ld));
    }

    /// Its rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the block has no element.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// Elements ← poison.
    pub(super) fn poison(&self) {
        self.write(|mut to| (0..to.cols()).for_each(|j| to.col_mut(j).fill(POISON)));
    }

    /// A copy of the elements, column after column.
    pub(super) fn to_vec(&self) -> Vec<f64> {
        let mut copy = Vec::with_capacity(self.rows * self.cols);
        self.read(|from| (0..from.cols()).for_each(|j| copy.extend_from_slice(from.col(j))));
        copy
    }
}
