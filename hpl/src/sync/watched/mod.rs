//! The types of a model: those of loom, with the names and signatures of a [usual](super) build, each of whose orderings and wake-ups
//! can be taken away ([`faults`]).

pub mod atomic;
pub mod faults;
pub mod lock;
pub mod thread;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use loom::sync::Arc;

pub use self::WatchedAccesses as Accesses;
pub use self::lock::{Condvar, Mutex, MutexGuard, OnceLock};

/// A cell whose accesses loom compares: two that are not ordered, one of them a write, are an error.
pub use loom::cell::UnsafeCell;

/// The accesses to memory behind a pointer, compared as those of a cell.
pub struct WatchedAccesses(UnsafeCell<()>);

// SAFETY: the cell holds nothing; loom runs all threads of a model on one thread of the system.
unsafe impl Sync for WatchedAccesses {}

impl Default for WatchedAccesses {
    fn default() -> Self {
        Self(UnsafeCell::new(()))
    }
}

impl WatchedAccesses {
    /// The memory is read.
    #[track_caller]
    pub(crate) fn read(&self) {
        self.0.with(|_| ());
    }

    /// The memory is written.
    #[track_caller]
    pub(crate) fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// A number that the threads of a model hand to each other, without an ordering of its own.
#[derive(Default)]
pub(crate) struct Handed {
    accesses: WatchedAccesses,
    value: AtomicUsize,
}

impl Handed {
    /// Some of them, each 0.
    pub(crate) fn zeros(count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::default()).collect()
    }

    /// Writes it.
    #[track_caller]
    pub(crate) fn set(&self, value: usize) {
        self.accesses.write();
        self.value.store(value, Ordering::Relaxed);
    }

    /// Reads it.
    #[track_caller]
    pub(crate) fn get(&self) -> usize {
        self.accesses.read();
        self.value.load(Ordering::Relaxed)
    }
}
