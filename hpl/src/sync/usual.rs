//! The types of a usual build.

pub(crate) use std::sync::{Arc, OnceLock, atomic};
pub(crate) use std::thread;

pub(crate) use parking_lot::{Condvar, Mutex};

/// A cell that threads hand to each other, by other variables.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with the place of the value, which nobody writes meanwhile.
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Calls `write` with the place of the value, which nobody else reads or writes meanwhile.
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Tells the model checker of accesses to memory behind a pointer, which it does not see.
#[derive(Default)]
pub(crate) struct Accesses(());

impl Accesses {
    /// The memory is read.
    #[inline(always)]
    pub(crate) fn read(&self) {}

    /// The memory is written.
    #[inline(always)]
    pub(crate) fn write(&self) {}
}
