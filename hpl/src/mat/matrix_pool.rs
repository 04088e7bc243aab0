//! Memory of matrices, kept from one run to the next.
//!
//! The runs of one HPL.dat need the same memory repeatedly. Mapping it costs as much as filling it, and much more where a
//! hypervisor has to supply the pages. It is one block, divided among the ranks of each run, so that grids of different
//! shapes can use the same pages.

use parking_lot::Mutex;

use super::{Buffer, NoMemory};

/// The matrices that the ranks of one process have returned.
#[derive(Default)]
pub(crate) struct MatrixPool(Mutex<PooledBlock>);

#[derive(Default)]
struct PooledBlock {
    /// The parts of one block; empty without a block.
    parts: Vec<Buffer>,
    /// Number of ranks among which it was last divided.
    ranks: usize,
    /// Minimum elements of a block; 0 without [`MatrixPool::reserve`].
    at_least: usize,
}

impl MatrixPool {
    /// Reserves memory for a later run whose ranks need matrices of these lengths: new blocks are at least this large.
    pub(crate) fn reserve(&self, lens: &[usize]) {
        let mut block = self.0.lock();
        block.at_least = block.at_least.max(Buffer::shared_len(lens));
    }

    /// Prepares a run whose ranks in this process need matrices of these lengths: divides the kept block among them. A block
    /// that is too small or incomplete is first returned to the system, so that a run uses at most its own or an earlier
    /// run's memory. The same is done if the number of ranks has changed and nothing was [reserved](Self::reserve), as a
    /// page stays on the NUMA node of the thread that filled it first.
    pub(crate) fn prepare(&self, lens: &[usize], huge_pages: bool) {
        let mut block = self.0.lock();
        let alike = block.ranks == lens.len() || block.at_least > 0;
        let one = block.parts.pop().filter(|part| alike && part.huge_pages() == huge_pages);
        block.ranks = lens.len();
        block.parts.clear();
        block.parts = one.and_then(|part| part.divide(lens)).unwrap_or_default();
        if block.parts.is_empty() {
            let len = Buffer::shared_len(lens).max(block.at_least);
            // If the system refuses it, each rank gets the error from `take`.
            let new = Buffer::mapped(len, huge_pages).ok();
            block.parts = new.and_then(|new| new.divide(lens)).unwrap_or_default();
        }
    }

    /// At least `len` elements of arbitrary content: the smallest kept part that is long enough, so that one is left for
    /// every other rank, or new memory.
    ///
    /// # Errors
    /// Those of [`Buffer::zeroed`].
    pub(crate) fn take(&self, len: usize, huge_pages: bool) -> Result<Buffer, NoMemory> {
        let parts = &mut self.0.lock().parts;
        let fitting = (0..parts.len()).filter(|&at| parts[at].len() >= len && parts[at].huge_pages() == huge_pages);
        match fitting.min_by_key(|&at| parts[at].len()) {
            Some(at) => Ok(parts.swap_remove(at)),
            None => Buffer::zeroed(len, huge_pages),
        }
    }

    /// Keeps a matrix for a later run.
    pub(crate) fn give(&self, buffer: Buffer) {
        self.0.lock().parts.push(buffer);
    }

    /// Size of the kept block, which is available to a run in addition to the free memory of the system.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().parts.first().map_or(0, |part| (part.mapped_len() * size_of::<f64>()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run: the first element of each rank's matrix, in the order in which they were taken.
    fn run(pool: &MatrixPool, lens: &[usize], huge_pages: bool) -> Vec<usize> {
        pool.prepare(lens, huge_pages);
        let taken: Vec<Buffer> = lens.iter().map(|&len| pool.take(len, huge_pages).unwrap()).collect();
        assert!(taken.iter().zip(lens).all(|(buffer, &len)| buffer.len() >= len));
        assert!(pool.0.lock().parts.is_empty(), "the ranks have all parts");
        let starts = taken.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        taken.into_iter().for_each(|buffer| pool.give(buffer));
        starts
    }

    #[test]
    fn the_next_run_gets_the_same_memory_or_none_is_kept() {
        const PAGE: usize = 512;
        let pool = MatrixPool::default();
        let first = run(&pool, &[3 * PAGE, 2 * PAGE], false);
        assert_eq!(pool.bytes(), 5 * 8 * PAGE as u64);
        assert_eq!(run(&pool, &[2 * PAGE - 1, 3 * PAGE], false).iter().min(), first.iter().min());
        run(&pool, &[5 * PAGE, 1], false);
        assert_eq!(pool.bytes(), 6 * 8 * PAGE as u64, "too small: replaced by a new one");
        run(&pool, &[4 * PAGE], false);
        assert_eq!(pool.bytes(), 4 * 8 * PAGE as u64, "of another number of ranks");
        run(&pool, &[PAGE], true);
        assert_eq!(pool.bytes(), 8 * PAGE as u64, "pages of another size");
        pool.reserve(&[4 * PAGE, 4 * PAGE]);
        pool.reserve(&[9 * PAGE]);
        let one = run(&pool, &[9 * PAGE], true);
        assert_eq!(pool.bytes(), 9 * 8 * PAGE as u64, "as much as was reserved");
        assert_eq!(run(&pool, &[4 * PAGE, 4 * PAGE], true).iter().min(), one.first(), "of another grid");
        assert_eq!(run(&pool, &[9 * PAGE], true), one);
    }
}
