//! What can be taken away from the code in a model: one half of an ordering, a store or a wake-up at one place of the sources.
//!
//! A process runs with at most one fault, the one that its variable [`VARIABLE`] names. Each place that is passed is noted, so that a run
//! without fault says which faults there are.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Variable of the environment with the fault of this process, as [`Fault`] is displayed.
pub const VARIABLE: &str = "HPL_MODEL_FAULT";

/// What is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// The ordering after a read.
    Acquire,
    /// The ordering before a write.
    Release,
    /// The store itself.
    Store,
    /// The wake-up of another thread.
    WakeUp,
}

/// A part of the code that can be taken away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    file: &'static str,
    line: u32,
    column: u32,
    part: Taken,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.file.find("hpl/src/").unwrap_or(0);
        write!(f, "{}:{}:{} {:?}", &self.file[from..], self.line, self.column, self.part)
    }
}

static TAKEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(VARIABLE).ok());
static SEEN: Mutex<BTreeSet<Fault>> = Mutex::new(BTreeSet::new());

/// Whether `part` of the operation at `at` is taken away in this process.
fn taken(at: &Location<'static>, part: Taken) -> bool {
    let fault = Fault { file: at.file(), line: at.line(), column: at.column(), part };
    if let Some(taken) = &*TAKEN {
        return fault.to_string() == *taken;
    }
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(fault);
    false
}

/// What could be taken away, of all that was passed so far.
pub fn seen() -> Vec<Fault> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The ordering that is left of `order`.
#[track_caller]
pub(super) fn order(order: Ordering) -> Ordering {
    let at = Location::caller();
    let acquires = matches!(order, Ordering::Acquire | Ordering::AcqRel) && !taken(at, Taken::Acquire);
    let releases = matches!(order, Ordering::Release | Ordering::AcqRel) && !taken(at, Taken::Release);
    match (acquires, releases) {
        _ if order == Ordering::SeqCst => order,
        (false, false) => Ordering::Relaxed,
        (true, false) => Ordering::Acquire,
        (false, true) => Ordering::Release,
        (true, true) => Ordering::AcqRel,
    }
}

/// Whether a store is done.
#[track_caller]
pub(super) fn stores() -> bool {
    !taken(Location::caller(), Taken::Store)
}

/// Whether a thread is woken.
#[track_caller]
pub(super) fn wakes() -> bool {
    !taken(Location::caller(), Taken::WakeUp)
}
