//! Where the threads of a panel factorization show rows to each other, between meetings.

use std::sync::atomic::{AtomicU64, Ordering};

/// Places of two rows each, which take turns: a row stays until the next but one is posted in its place.
pub(super) struct PivotSlots(Vec<[Box<[AtomicU64]>; 2]>);

impl PivotSlots {
    /// `places` places for rows of `len` words.
    pub(super) fn new(places: usize, len: usize) -> Self {
        let row = || (0..len).map(|_| AtomicU64::new(0)).collect();
        Self((0..places).map(|_| [row(), row()]).collect())
    }

    /// Posts `words` from word `first` on. Only one thread does so at a time, and the others read after they have met it.
    pub(super) fn post(&self, (place, turn): (usize, usize), first: usize, words: &[f64]) {
        for (to, word) in self.0[place][turn % 2][first..].iter().zip(words) {
            to.store(word.to_bits(), Ordering::Relaxed);
        }
    }

    /// Reads words from word `first` on.
    pub(super) fn read(&self, (place, turn): (usize, usize), first: usize, words: &mut [f64]) {
        for (from, word) in self.0[place][turn % 2][first..].iter().zip(words) {
            *word = f64::from_bits(from.load(Ordering::Relaxed));
        }
    }
}
