//! Where some threads of one fork wait for each other, many times within microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::SPIN;

/// A barrier for a fixed number of threads that ends for all when one of them leaves with an error or a panic.
#[derive(Debug)]
pub(crate) struct Meeting {
    threads: usize,
    spin: bool,
    arrived: AtomicUsize,
    /// Number of times that all were there.
    rounds: AtomicUsize,
    over: AtomicBool,
}

/// Somebody has left for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Over;

impl Meeting {
    /// For `threads` ≥ 1 threads, which may spin while they wait if each has a core of its own.
    pub(crate) fn new(threads: usize, spin: bool) -> Self {
        Self { threads, spin, arrived: AtomicUsize::new(0), rounds: AtomicUsize::new(0), over: AtomicBool::new(false) }
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Waits until all threads have called this as often; what they did before has happened.
    ///
    /// # Errors
    /// [`Over`].
    pub(crate) fn wait(&self) -> Result<(), Over> {
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
        let mut looks = 0_u32;
        let mut spins = self.spin;
        loop {
            // In this order: who leaves after the round is no reason to break it off.
            let over = self.over.load(Ordering::Acquire);
            if self.rounds.load(Ordering::Acquire) != round {
                return Ok(());
            }
            if over {
                return Err(Over);
            }
            looks = looks.wrapping_add(1);
            if spins {
                std::hint::spin_loop();
                spins = !looks.is_multiple_of(64) || start.elapsed() < SPIN;
            } else {
                thread::yield_now();
            }
        }
    }

    /// One thread's part: unless `work` ends well, it is over for the others, too.
    pub(crate) fn attend<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        struct Leave<'a>(Option<&'a Meeting>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                if let Some(meeting) = self.0 {
                    meeting.over.store(true, Ordering::Release);
                }
            }
        }
        let mut leave = Leave(Some(self));
        let outcome = work();
        if outcome.is_ok() {
            leave.0 = None;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_a_round_ahead() {
        for (threads, spin) in [(1, true), (2, true), (3, false)] {
            let (meeting, sum) = (Meeting::new(threads, spin), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..=200 {
                            sum.fetch_add(1, Ordering::Relaxed);
                            meeting.wait().unwrap();
                            assert_eq!(sum.load(Ordering::Relaxed), round * threads);
                            meeting.wait().unwrap();
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn who_leaves_with_an_error_or_a_panic_ends_it_for_all() {
        for panics in [false, true] {
            let meeting = Meeting::new(2, false);
            thread::scope(|scope| {
                let other = scope.spawn(|| {
                    meeting.attend(|| {
                        assert!(!panics, "on purpose");
                        Err(())
                    })
                });
                assert_eq!(meeting.attend(|| meeting.wait()), Err(Over));
                assert_eq!(other.join().is_err(), panics);
            });
        }
    }
}
