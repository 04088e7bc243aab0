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
    /// The parts of one block, one of each rank; `None` for those that the ranks hold. Empty without a block.
    parts: Vec<Option<Buffer>>,
    /// Ranks of the run that it was last prepared for, those of other processes included.
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

    /// Prepares a run of `ranks` ranks, of which those in this process need matrices of these lengths: divides the kept block among
    /// them. A block that is too small or incomplete is first returned to the system, so that a run uses at most its own or an
    /// earlier run's memory. The same is done if the number of ranks has changed and nothing was [reserved](Self::reserve): a
    /// page stays in the NUMA domain of the thread that filled it first, and of a run on other processes of the node a process has
    /// another part. A process without a rank in the run keeps nothing.
    pub(crate) fn prepare(&self, lens: &[usize], ranks: usize, huge_pages: bool) {
        let mut block = self.0.lock();
        let alike = block.ranks == ranks || block.at_least > 0;
        let one = block.parts.drain(..).flatten().next();
        let one = one.filter(|part| alike && part.huge_pages() == huge_pages);
        block.ranks = ranks;
        if lens.is_empty() {
            return;
        }
        let parts = |buffer: Buffer| buffer.divide(lens).map(|parts| parts.into_iter().map(Some).collect());
        block.parts = one.and_then(parts).unwrap_or_default();
        if block.parts.is_empty() {
            let len = Buffer::shared_len(lens).max(block.at_least);
            // If the system refuses it, each rank gets the error from `take`.
            let new = Buffer::mapped(len, huge_pages).ok();
            block.parts = new.and_then(parts).unwrap_or_default();
        }
    }

    /// At least `len` elements of arbitrary content for rank `rank`: its part, if it is long enough, or new memory. A rank has the
    /// same part in each run, so that the pages stay in the NUMA domain of its threads. A process with one part has one rank.
    ///
    /// # Errors
    /// Those of [`Buffer::zeroed`].
    pub(crate) fn take(&self, rank: usize, len: usize, huge_pages: bool) -> Result<Buffer, NoMemory> {
        let parts = &mut self.0.lock().parts;
        let count = parts.len().max(1);
        let kept = parts
            .get_mut(rank % count)
            .and_then(|part| part.take_if(|part| part.len() >= len && part.huge_pages() == huge_pages));
        kept.map_or_else(|| Buffer::zeroed(len, huge_pages), Ok)
    }

    /// Keeps the matrix of rank `rank` for a later run.
    pub(crate) fn give(&self, rank: usize, buffer: Buffer) {
        let parts = &mut self.0.lock().parts;
        if parts.is_empty() {
            parts.push(None);
        }
        let count = parts.len();
        parts[rank % count] = Some(buffer);
    }

    /// Size of the kept block, which is available to a run in addition to the free memory of the system.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().parts.iter().flatten().next().map_or(0, |part| (part.mapped_len() * size_of::<f64>()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run: the first element of each rank's matrix. The last rank takes its matrix first.
    fn run(pool: &MatrixPool, lens: &[usize], huge_pages: bool) -> Vec<usize> {
        pool.prepare(lens, lens.len(), huge_pages);
        let take = |(rank, &len): (usize, &usize)| (rank, pool.take(rank, len, huge_pages).unwrap());
        let mut taken: Vec<(usize, Buffer)> = lens.iter().enumerate().rev().map(take).collect();
        assert!(taken.iter().all(|(rank, buffer)| buffer.len() >= lens[*rank]));
        assert!(pool.0.lock().parts.iter().all(Option::is_none), "the ranks have all parts");
        taken.sort_by_key(|(rank, _)| *rank);
        let starts = taken.iter().map(|(_, buffer)| buffer.as_ptr() as usize).collect();
        taken.into_iter().for_each(|(rank, buffer)| pool.give(rank, buffer));
        starts
    }

    #[test]
    fn the_next_run_gets_the_same_memory_or_none_is_kept() {
        const PAGE: usize = 512;
        let pool = MatrixPool::default();
        let first = run(&pool, &[3 * PAGE, 2 * PAGE], false);
        assert_eq!(pool.bytes(), 5 * 8 * PAGE as u64);
        assert_eq!(run(&pool, &[3 * PAGE, 2 * PAGE], false), first, "each rank has its own part again");
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

    #[test]
    fn a_process_keeps_no_more_than_its_part_of_a_run_on_other_ranks() {
        const PAGE: usize = 512;
        let pool = MatrixPool::default();
        let pages_after = |len: Option<usize>, ranks: usize| {
            let lens: Vec<usize> = len.into_iter().collect();
            pool.prepare(&lens, ranks, false);
            if let Some(len) = len {
                pool.give(0, pool.take(0, len, false).unwrap());
            }
            pool.bytes() / (8 * PAGE as u64)
        };
        assert_eq!(pages_after(Some(4 * PAGE), 2), 4);
        assert_eq!(pages_after(Some(3 * PAGE), 2), 4, "of a smaller N on the same ranks");
        assert_eq!(pages_after(Some(2 * PAGE), 4), 2, "of more ranks");
        assert_eq!(pages_after(None, 1), 0, "outside of the grid");
        assert_eq!(pages_after(None, 1), 0);
        assert_eq!(pages_after(Some(2 * PAGE), 4), 2);
    }
}
