//! A barrier for some threads of one fork, used many times at intervals of microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::SPIN;

/// A barrier for a fixed number of threads that breaks for all when one of them ends with an error or a panic.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    spin: bool,
    arrived: AtomicUsize,
    /// Number of completed barriers.
    rounds: AtomicUsize,
    broken: AtomicBool,
}

/// Another thread of the barrier ended with an error or a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BarrierBroken;

impl Barrier {
    /// A barrier for `threads` ≥ 1 threads. `spin`: whether they may spin while they wait, if each has a core of its own.
    pub(crate) fn new(threads: usize, spin: bool) -> Self {
        Self {
            threads,
            spin,
            arrived: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Waits until all threads have called this equally often; their earlier writes are visible afterwards.
    ///
    /// # Errors
    /// [`BarrierBroken`].
    pub(crate) fn wait(&self) -> Result<(), BarrierBroken> {
        if self.threads == 1 {
            return Ok(());
        }
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round + 1, Ordering::Release);
            return Ok(());
        }
        let start = Instant::now();
        let mut polls = 0_u32;
        let mut spins = self.spin;
        loop {
            // In this order: a thread that fails after the round must not break it.
            let broken = self.broken.load(Ordering::Acquire);
            if self.rounds.load(Ordering::Acquire) != round {
                return Ok(());
            }
            if broken {
                return Err(BarrierBroken);
            }
            polls = polls.wrapping_add(1);
            if spins {
                std::hint::spin_loop();
                spins = !polls.is_multiple_of(64) || start.elapsed() < SPIN;
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
                    barrier.broken.store(true, Ordering::Release);
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

    #[test]
    fn no_thread_is_a_round_ahead() {
        for (threads, spin) in [(1, true), (2, true), (3, false)] {
            let (barrier, sum) = (Barrier::new(threads, spin), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..=200 {
                            sum.fetch_add(1, Ordering::Relaxed);
                            barrier.wait().unwrap();
                            assert_eq!(sum.load(Ordering::Relaxed), round * threads);
                            barrier.wait().unwrap();
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn an_error_or_a_panic_breaks_the_barrier_for_all() {
        for panics in [false, true] {
            let barrier = Barrier::new(2, false);
            thread::scope(|scope| {
                let other = scope.spawn(|| {
                    barrier.guard(|| {
                        assert!(!panics, "on purpose");
                        Err(())
                    })
                });
                assert_eq!(barrier.guard(|| barrier.wait()), Err(BarrierBroken));
                assert_eq!(other.join().is_err(), panics);
            });
        }
    }
}
