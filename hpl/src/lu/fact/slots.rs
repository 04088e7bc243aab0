//! Shared memory through which the threads of a panel factorization exchange rows, between two barriers.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Slots with two row buffers each, used alternately: a row stays valid until the second next row is posted in its slot.
pub(super) struct PivotSlots(Vec<[Box<[AtomicU64]>; 2]>);

impl PivotSlots {
    /// `slots` slots for rows of `len` words.
    pub(super) fn new(slots: usize, len: usize) -> Self {
        let row = || (0..len).map(|_| AtomicU64::new(0)).collect();
        Self((0..slots).map(|_| [row(), row()]).collect())
    }

    /// Posts `words` from word `first` on. Only one thread writes a slot at a time, and the others read it after a barrier.
    pub(super) fn post(&self, (slot, column): (usize, usize), first: usize, words: &[f64]) {
        for (to, word) in self.0[slot][column % 2][first..].iter().zip(words) {
            to.store(word.to_bits(), Ordering::Relaxed);
        }
    }

    /// Reads words from word `first` on.
    pub(super) fn read(&self, (slot, column): (usize, usize), first: usize, words: &mut [f64]) {
        for (from, word) in self.0[slot][column % 2][first..].iter().zip(words) {
            *word = f64::from_bits(from.load(Ordering::Relaxed));
        }
    }
}
