//! Memory of matrices, kept from one run to the next.
//!
//! The runs of one HPL.dat need the same memory again and again. To map it anew costs as much as to fill it, and much
//! more where a hypervisor has to supply the pages. It is one block, dealt anew to the ranks of each run: so grids of
//! different shapes find the same pages where that is wanted.

use parking_lot::Mutex;

use super::{Buffer, NoMemory};

/// The matrices that the ranks of one process have given back.
#[derive(Default)]
pub(crate) struct MatrixPool(Mutex<Block>);

#[derive(Default)]
struct Block {
    /// All of one block, or none.
    parts: Vec<Buffer>,
    /// Ranks that it was last dealt to.
    ranks: usize,
    /// Elements that a block has at least; 0 where nothing was announced.
    at_least: usize,
}

impl MatrixPool {
    /// Runs of which one needs matrices of these lengths are to follow: a block is large enough for each of them.
    pub(crate) fn reserve(&self, lens: &[usize]) {
        let mut block = self.0.lock();
        block.at_least = block.at_least.max(Buffer::together(lens));
    }

    /// Before a run whose ranks here need matrices of these lengths: they get the block that is kept. Where it is too small
    /// or not whole it goes back to the system first, so that no run takes more than its own or an earlier one's memory; also
    /// where there are more or fewer ranks than before and [`reserve`](Self::reserve) has announced nothing, as a page
    /// stays near the thread that was the first to fill it.
    pub(crate) fn settle(&self, lens: &[usize], huge_pages: bool) {
        let mut block = self.0.lock();
        let alike = block.ranks == lens.len() || block.at_least > 0;
        let one = block.parts.pop().filter(|part| alike && part.huge_pages() == huge_pages);
        block.ranks = lens.len();
        block.parts.clear();
        block.parts = one.and_then(|part| part.dealt(lens)).unwrap_or_default();
        if block.parts.is_empty() {
            let len = Buffer::together(lens).max(block.at_least);
            // Where the system refuses it, so it will each rank, which says so.
            let new = Buffer::zeroed(len, huge_pages).ok();
            block.parts = new.and_then(|new| new.dealt(lens)).unwrap_or_default();
        }
    }

    /// At least `len` elements of arbitrary content: the smallest that is kept and long enough, which leaves one for
    /// every other rank, or a new one.
    ///
    /// # Errors
    /// As of [`Buffer::zeroed`].
    pub(crate) fn take(&self, len: usize, huge_pages: bool) -> Result<Buffer, NoMemory> {
        let kept = &mut self.0.lock().parts;
        let fitting = (0..kept.len()).filter(|&at| kept[at].len() >= len && kept[at].huge_pages() == huge_pages);
        match fitting.min_by_key(|&at| kept[at].len()) {
            Some(at) => Ok(kept.swap_remove(at)),
            None => Buffer::zeroed(len, huge_pages),
        }
    }

    /// Keeps a matrix that nobody needs any more.
    pub(crate) fn give(&self, buffer: Buffer) {
        self.0.lock().parts.push(buffer);
    }

    /// Memory that a run could have beside what the system has free.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().parts.first().map_or(0, |part| (part.mapped_len() * size_of::<f64>()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run: the first element of each rank's matrix, in the order in which they were taken.
    fn run(kept: &MatrixPool, lens: &[usize], huge_pages: bool) -> Vec<usize> {
        kept.settle(lens, huge_pages);
        let taken: Vec<Buffer> = lens.iter().map(|&len| kept.take(len, huge_pages).unwrap()).collect();
        assert!(taken.iter().zip(lens).all(|(buffer, &len)| buffer.len() >= len));
        assert!(kept.0.lock().parts.is_empty(), "nothing beside what the ranks have");
        let starts = taken.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        taken.into_iter().for_each(|buffer| kept.give(buffer));
        starts
    }

    #[test]
    fn the_next_run_has_the_same_memory_or_none_is_kept() {
        const PAGE: usize = 512;
        let kept = MatrixPool::default();
        let first = run(&kept, &[3 * PAGE, 2 * PAGE], false);
        assert_eq!(kept.bytes(), 5 * 8 * PAGE as u64);
        assert_eq!(run(&kept, &[2 * PAGE - 1, 3 * PAGE], false).iter().min(), first.iter().min());
        run(&kept, &[5 * PAGE, 1], false);
        assert_eq!(kept.bytes(), 6 * 8 * PAGE as u64, "too small: a new one in its place");
        run(&kept, &[4 * PAGE], false);
        assert_eq!(kept.bytes(), 4 * 8 * PAGE as u64, "of another number of ranks");
        run(&kept, &[PAGE], true);
        assert_eq!(kept.bytes(), 8 * PAGE as u64, "pages of another size");
        kept.reserve(&[4 * PAGE, 4 * PAGE]);
        kept.reserve(&[9 * PAGE]);
        let one = run(&kept, &[9 * PAGE], true);
        assert_eq!(kept.bytes(), 9 * 8 * PAGE as u64, "as much as was announced");
        assert_eq!(run(&kept, &[4 * PAGE, 4 * PAGE], true).iter().min(), one.first(), "of another grid");
        assert_eq!(run(&kept, &[9 * PAGE], true), one);
    }
}
