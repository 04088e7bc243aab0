//! A barrier for some threads of one fork, used many times at intervals of microseconds.
//!
//! The threads meet along a [tree](super::tree): each has a place of its own that its parent and its children read, so that no
//! cache line is written by more than one thread, and they agree on the largest value on the way.

use std::time::Instant;

use super::shared::SPIN;
use super::tree;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread;

/// A barrier for a fixed number of threads that breaks for all when one of them ends with an error or a panic.
#[derive(Debug)]
pub(crate) struct Barrier {
    spin: bool,
    places: Box<[Place]>,
    /// Orders nothing: who finds it set reads nothing of the other threads.
    broken: AtomicBool,
}

/// What one thread has reached; only that thread writes it. Aligned to two cache lines, which processors fetch together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// Barriers at which the threads of its subtree have arrived.
    arrived: AtomicUsize,
    /// The largest value of its subtree, and its thread.
    value: AtomicU64,
    thread: AtomicUsize,
    /// Barriers that it has left.
    left: AtomicUsize,
    /// The thread with the largest value of all.
    largest: AtomicUsize,
}

/// Another thread of the barrier ended with an error or a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BarrierBroken;

impl Barrier {
    /// A barrier for `threads` ≥ 1 threads. `spin`: whether they may spin while they wait, if each has a core of its own.
    pub(crate) fn new(threads: usize, spin: bool) -> Self {
        Self { spin, places: (0..threads).map(|_| Place::default()).collect(), broken: AtomicBool::new(false) }
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.places.len()
    }

    /// Waits until all threads have called this or [`largest`](Self::largest) equally often; their earlier writes are visible
    /// afterwards. `thread`: the calling thread.
    ///
    /// # Errors
    /// [`BarrierBroken`].
    pub(crate) fn wait(&self, thread: usize) -> Result<(), BarrierBroken> {
        self.largest(thread, 0.0).map(drop)
    }

    /// The same, with a value of each thread: returns the thread with the largest one, NaN above all numbers, the first of equal
    /// ones.
    ///
    /// # Errors
    /// [`BarrierBroken`].
    pub(crate) fn largest(&self, thread: usize, value: f64) -> Result<usize, BarrierBroken> {
        let place = &self.places[thread];
        let round = place.arrived.load(Ordering::Relaxed) + 1;
        let (mut value, mut largest) = (value, thread);
        for child in tree::children(thread, self.threads()) {
            let child = &self.places[child];
            self.until(|| child.arrived.load(Ordering::Acquire) == round)?;
            let of_child = f64::from_bits(child.value.load(Ordering::Relaxed));
            if of_child.total_cmp(&value).is_gt() {
                (value, largest) = (of_child, child.thread.load(Ordering::Relaxed));
            }
        }
        place.value.store(value.to_bits(), Ordering::Relaxed);
        place.thread.store(largest, Ordering::Relaxed);
        place.arrived.store(round, Ordering::Release);
        if thread > 0 {
            let parent = &self.places[tree::parent(thread)];
            self.until(|| parent.left.load(Ordering::Acquire) == round)?;
            largest = parent.largest.load(Ordering::Relaxed);
        }
        // No thread writes what others may still read: they arrive at the next barrier after reading it.
        place.largest.store(largest, Ordering::Relaxed);
        place.left.store(round, Ordering::Release);
        Ok(largest)
    }

    /// Waits until `done` holds.
    fn until(&self, done: impl Fn() -> bool) -> Result<(), BarrierBroken> {
        let mut start = None;
        let mut polls = 0_u32;
        let mut spins = self.spin;
        loop {
            if done() {
                return Ok(());
            }
            if self.broken.load(Ordering::Relaxed) {
                return Err(BarrierBroken);
            }
            polls = polls.wrapping_add(1);
            if spins {
                std::hint::spin_loop();
                spins = !polls.is_multiple_of(64) || start.get_or_insert_with(Instant::now).elapsed() < SPIN;
            } else {
                thread::yield_now();
            }
        }
    }

    /// Calls one thread's `work` and breaks the barrier for the others if it returns an error or panics.
    pub(crate) fn guard<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        struct BreakOnDrop<'a>(Option<&'a Barrier>);
        impl Drop for BreakOnDrop<'_> {
            fn drop(&mut self) {
                if let Some(barrier) = self.0 {
                    barrier.broken.store(true, Ordering::Relaxed);
                }
            }
        }
        let mut guard = BreakOnDrop(Some(self));
        let outcome = work();
        if outcome.is_ok() {
            guard.0 = None;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri interprets: fewer threads and rounds.
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 100 };
    const MANY: usize = if cfg!(miri) { 5 } else { 64 };

    #[test]
    fn no_thread_is_a_round_ahead() {
        for (threads, spin) in [(1, true), (2, true), (3, false), (19.min(MANY), false), (MANY, false)] {
            let (barrier, sum) = (Barrier::new(threads, spin), AtomicUsize::new(0));
            thread::scope(|scope| {
                for thread in 0..threads {
                    let (barrier, sum) = (&barrier, &sum);
                    scope.spawn(move || {
                        for round in 1..=ROUNDS {
                            sum.fetch_add(1, Ordering::Relaxed);
                            barrier.wait(thread).unwrap();
                            assert_eq!(sum.load(Ordering::Relaxed), round * threads);
                            barrier.wait(thread).unwrap();
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn all_threads_learn_who_has_the_largest_value() {
        for threads in [1, 2, 5, 17.min(MANY), 30.min(MANY)] {
            let barrier = Barrier::new(threads, false);
            let value = |thread: usize, round: usize| ((thread * 7 + round * 5) % 11) as f64;
            thread::scope(|scope| {
                for thread in 0..threads {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        for round in 0..ROUNDS / 2 {
                            let first = (0..threads).rev().max_by(|&a, &b| value(a, round).total_cmp(&value(b, round)));
                            assert_eq!(Ok(first.unwrap()), barrier.largest(thread, value(thread, round)));
                        }
                        let with_nan = if thread == threads / 2 { f64::NAN } else { f64::INFINITY };
                        assert_eq!(barrier.largest(thread, with_nan), Ok(threads / 2));
                    });
                }
            });
        }
    }

    #[test]
    fn an_error_or_a_panic_breaks_the_barrier_for_all() {
        for panics in [false, true] {
            for failing in 0..6 {
                let barrier = Barrier::new(6, false);
                let barrier = &barrier;
                thread::scope(|scope| {
                    let others = (0..6).filter(|&thread| thread != failing);
                    let waiting: Vec<_> =
                        others.map(|thread| scope.spawn(move || barrier.guard(|| barrier.wait(thread)))).collect();
                    let failed = scope.spawn(|| {
                        barrier.guard(|| {
                            assert!(!panics, "on purpose");
                            Err(())
                        })
                    });
                    for other in waiting {
                        assert_eq!(other.join().unwrap(), Err(BarrierBroken));
                    }
                    assert_eq!(failed.join().is_err(), panics);
                });
            }
        }
    }
}
