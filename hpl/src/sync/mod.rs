//! What threads share memory by, from one place: types of the standard library and of parking_lot.
//!
//! Where the sources are built for the model checker loom (`cfg(loom)`, only in `tests/loom`), these are types of the same names
//! that it watches.

#[cfg(not(loom))]
mod usual;
#[cfg(loom)]
pub mod watched;

#[cfg(not(loom))]
pub(crate) use self::usual::{Accesses, Arc, Condvar, Mutex, OnceLock, UnsafeCell, atomic, thread};
#[cfg(loom)]
pub(crate) use self::watched::{Accesses, Arc, Condvar, Mutex, OnceLock, UnsafeCell, atomic, thread};
