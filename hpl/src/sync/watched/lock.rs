//! Locks, with parking_lot's signatures, and what is set once.

use std::ops::{Deref, DerefMut};

use loom::sync as watched;
use loom::sync::atomic::{AtomicBool, Ordering};

use super::faults;

/// A lock without poisoning.
#[derive(Debug)]
pub struct Mutex<T>(watched::Mutex<T>);

/// The lock of a thread. `None` only while it waits.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<watched::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(watched::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("loom does not poison it")))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().expect("loom does not poison it")
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("not waiting")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("not waiting")
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(watched::Condvar);

impl Condvar {
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let lock = guard.0.take().expect("not waiting");
        guard.0 = Some(self.0.wait(lock).expect("loom does not poison it"));
    }

    #[track_caller]
    pub(crate) fn notify_all(&self) {
        if faults::wakes() {
            self.0.notify_all();
        }
    }
}

/// A value that is set once; loom has no type of this kind. Who finds it set sees what was written before.
#[derive(Debug)]
pub struct OnceLock<T> {
    set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        if self.set.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.set.store(true, Ordering::Release);
        Ok(())
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let once = Self::new();
        let _ = once.set(value);
        once
    }
}
