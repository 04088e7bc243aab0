//! Memory of matrices, kept from one run to the next.
//!
//! The runs of one HPL.dat need the same memory again and again. To map it anew costs as much as to fill it, and much
//! more where a hypervisor has to supply the pages.

use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Buffer, NoMemory};

/// The matrices that the ranks of one process have given back.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Buffer>>);

impl Kept {
    /// Before a run whose ranks here need matrices of these lengths: unless each finds one that is kept, all go back to
    /// the system, so that no run takes more than its own or an earlier one's memory.
    pub(crate) fn settle(&self, mut lens: Vec<usize>, huge_pages: bool) {
        let mut kept = self.lock();
        lens.sort_unstable_by_key(|&len| Reverse(len));
        kept.sort_unstable_by_key(|buffer| Reverse(buffer.len()));
        let fits = |(buffer, &len): (&Buffer, &usize)| buffer.len() >= len && buffer.huge_pages() == huge_pages;
        let all_fit = kept.len() >= lens.len() && kept.iter().zip(&lens).all(fits);
        kept.truncate(if all_fit { lens.len() } else { 0 });
    }

    /// At least `len` elements of arbitrary content: the smallest that is kept and long enough, which leaves one for
    /// every other rank, or a new one.
    ///
    /// # Errors
    /// As of [`Buffer::zeroed`].
    pub(crate) fn take(&self, len: usize, huge_pages: bool) -> Result<Buffer, NoMemory> {
        let mut kept = self.lock();
        let fitting = (0..kept.len()).filter(|&at| kept[at].len() >= len && kept[at].huge_pages() == huge_pages);
        match fitting.min_by_key(|&at| kept[at].len()) {
            Some(at) => Ok(kept.swap_remove(at)),
            None => Buffer::zeroed(len, huge_pages),
        }
    }

    /// Keeps a matrix that nobody needs any more.
    pub(crate) fn give(&self, buffer: Buffer) {
        self.lock().push(buffer);
    }

    /// Memory that a run could have beside what the system has free.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().iter().map(|buffer| size_of_val::<[f64]>(buffer) as u64).sum()
    }

    /// What the lock guards is sound whoever panicked.
    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_finds_its_memory_or_none_is_kept() {
        let kept = Kept::default();
        // What each run needs, and what it finds kept: what the one before has left.
        let runs: [(&[usize], u64); 6] =
            [(&[30, 20], 0), (&[20, 30], 50), (&[10, 20], 50), (&[31, 1], 0), (&[5], 31), (&[5, 5], 0)];
        for (lens, found) in runs {
            kept.settle(lens.to_vec(), false);
            assert_eq!(kept.bytes(), 8 * found, "{lens:?}");
            let taken: Vec<Buffer> = lens.iter().map(|&len| kept.take(len, false).unwrap()).collect();
            assert!(taken.iter().zip(lens).all(|(buffer, &len)| buffer.len() >= len));
            assert_eq!(kept.bytes(), 0);
            taken.into_iter().for_each(|buffer| kept.give(buffer));
        }
        kept.settle(vec![5], true);
        assert_eq!(kept.bytes(), 0, "pages of another size");
    }
}
