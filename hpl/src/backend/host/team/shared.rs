//! State that the threads of a team share: the work of a fork, and who has done it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::tree;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::thread::{self, Thread};
use crate::sync::{OnceLock, UnsafeCell};

/// Spin time of a wait before it parks.
pub(super) const SPIN: Duration = Duration::from_micros(20);

/// Work of one fork, called by each helper with its index.
pub(super) type ForkedWork<'a> = dyn Fn(usize) + Sync + 'a;

/// State shared by all threads of a team.
pub(super) struct TeamState {
    /// Number of forks so far; helpers wait for it to change.
    forks: AtomicUsize,
    job: JobCell,
    /// Helpers that have not finished the current fork.
    busy: AtomicUsize,
    panicked: AtomicBool,
    owner: Thread,
    /// The threads 1, 2, …; set before the first fork.
    helpers: OnceLock<Box<[Thread]>>,
    /// Whether a waiting thread may spin.
    pub(super) spin: bool,
}

/// The work of the current fork; `None` ends the helpers.
struct JobCell(UnsafeCell<Option<&'static ForkedWork<'static>>>);

// SAFETY: the owner writes it before it counts a fork, and helpers read it after they have seen that count; the owner counts the
// next fork only after all helpers have finished this one (`TeamState::finished`). The work itself is `Sync`.
unsafe impl Sync for JobCell {}

impl TeamState {
    /// State of a team with the calling thread as its first thread.
    pub(super) fn new(spin: bool) -> Self {
        Self {
            forks: AtomicUsize::new(0),
            job: JobCell(UnsafeCell::new(None)),
            busy: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            owner: thread::current(),
            helpers: OnceLock::new(),
            spin,
        }
    }

    /// Tells which threads the helpers are, once, before the first fork.
    pub(super) fn set_helpers(&self, helpers: impl IntoIterator<Item = Thread>) {
        self.helpers.set(helpers.into_iter().collect()).expect("set once");
    }

    /// The threads 1, 2, ….
    pub(super) fn helpers(&self) -> &[Thread] {
        self.helpers.get().map_or(&[], |helpers| helpers)
    }

    /// Starts a fork with the work `job`; `None` ends the helpers.
    ///
    /// # Safety
    /// The helpers have finished the fork before. `job` lives until they have finished this one.
    pub(super) unsafe fn start(&self, job: Option<&'static ForkedWork<'static>>) {
        // SAFETY: no helper reads it: all have finished, and wait for the count.
        self.job.0.with_mut(|cell| unsafe { *cell = job });
        self.busy.store(self.helpers().len(), Ordering::Relaxed);
        self.forks.fetch_add(1, Ordering::Release);
        self.wake(0);
    }

    /// Wakes the children of thread `index`, those first that have most threads to wake.
    fn wake(&self, index: usize) {
        let helpers = self.helpers();
        tree::children(index, helpers.len() + 1).rev().for_each(|child| helpers[child - 1].unpark());
    }

    /// Waits until all helpers have finished the fork.
    pub(super) fn finished(&self) {
        self.wait(|| self.busy.load(Ordering::Acquire) == 0);
    }

    /// Whether a helper has panicked.
    pub(super) fn panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Waits until `done` holds; the thread that makes it hold unparks this thread.
    fn wait(&self, done: impl Fn() -> bool) {
        if self.spin {
            let start = Instant::now();
            while !done() && start.elapsed() < SPIN {
                std::hint::spin_loop();
            }
        }
        while !done() {
            thread::park();
        }
    }

    /// Main loop of helper `index`: waits for forks and does their work until the team ends.
    pub(super) fn help(&self, index: usize) {
        let mut forks = 0;
        loop {
            self.wait(|| self.forks.load(Ordering::Acquire) != forks);
            forks += 1;
            self.wake(index);
            // SAFETY: the owner has written it before it counted this fork, and writes again after `busy` is 0.
            let Some(job) = self.job.0.with(|cell| unsafe { *cell }) else { return };
            if catch_unwind(AssertUnwindSafe(|| job(index))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.busy.fetch_sub(1, Ordering::Release) == 1 {
                self.owner.unpark();
            }
        }
    }
}
