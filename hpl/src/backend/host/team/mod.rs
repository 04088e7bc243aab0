//! The threads of one rank: started once per solve, forked and joined for each operation.
//!
//! A waiting thread first spins for at most 20 µs, if each thread has a core of its own, and then parks.

mod barrier;
#[cfg(loom)]
pub mod models;
mod shared;
mod sub_team;
mod tree;

use std::ops::Range;

pub(crate) use self::barrier::{Barrier, BarrierBroken};
use self::shared::{ForkedWork, TeamState};
use crate::machine::affinity;
use crate::mat::MatMut;
use crate::sync::Mutex;
use crate::sync::thread::{self, Scope};

/// Work on fewer matrix elements is done by the calling thread alone.
const FORK_FROM: usize = 1 << 16;

/// The threads of a rank. Thread 0 owns the team; it does its own part of the work and is the only one that
/// sends and receives messages. The other threads are called helpers.
pub struct Team<'scope> {
    shared: &'scope TeamState,
    /// The same first thread with further helpers on borrowed cores.
    borrowed: Option<Box<Team<'scope>>>,
}

/// Parameters of a team.
#[derive(Debug, Clone, Copy)]
pub struct TeamParams<'a> {
    /// Number of threads, at least 1; the caller is the first.
    pub threads: usize,
    /// Core of each thread, in order; a thread without a core is not pinned. Further cores are borrowed: additional helpers
    /// wait there for work during which the ranks that own these cores are idle.
    pub cores: &'a [usize],
    /// Whether a waiting thread may spin before it parks: false with more threads than cores.
    pub spin: bool,
}

/// A thread of the team panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a thread of this rank panicked")]
pub struct HelperPanicked;

/// The system refused to start a thread.
#[derive(Debug)]
pub struct NotStarted {
    /// Index of the thread.
    pub index: usize,
    /// Error of the system.
    pub error: std::io::Error,
}

/// Calls `body` with a team, whose helpers end when `body` returns.
///
/// If the system refuses a core, the thread stays unpinned.
///
/// # Errors
/// [`NotStarted`] when a thread cannot be started.
pub fn with_team<R>(params: TeamParams<'_>, body: impl FnOnce(&mut Team<'_>) -> R) -> Result<R, NotStarted> {
    let (own, borrowed) = (&TeamState::new(params.spin), &TeamState::new(params.spin));
    thread::scope(|scope| {
        let mut team = Team::of(own, scope, 1..params.threads, params.cores)?;
        if params.cores.len() > params.threads {
            team.borrowed = Some(Box::new(Team::of(borrowed, scope, 1..params.cores.len(), params.cores)?));
        }
        pin(0, params.cores);
        Ok(body(&mut team))
    })
}

/// Pins the calling thread to its core; errors are ignored, as they cost only speed.
fn pin(index: usize, cores: &[usize]) {
    let _ = cores.get(index).map(|&core| affinity::pin_current_thread(core));
}

impl<'scope> Team<'scope> {
    /// Starts the helpers.
    fn of<'env>(
        shared: &'scope TeamState,
        scope: &'scope Scope<'scope, 'env>,
        helpers: Range<usize>,
        cores: &'env [usize],
    ) -> Result<Self, NotStarted> {
        let start = |index| {
            let body = move || {
                pin(index, cores);
                shared.help(index);
            };
            let handle = thread::Builder::new().name(format!("hpl-{index}")).spawn_scoped(scope, body);
            handle.map(|handle| handle.thread().clone()).map_err(|error| NotStarted { index, error })
        };
        let mut failed = None;
        shared.set_helpers(helpers.map_while(|index| start(index).map_err(|error| failed = Some(error)).ok()));
        // Dropped after a failure, it ends the helpers that have been started.
        let team = Self { shared, borrowed: None };
        failed.map_or(Ok(team), Err)
    }

    /// The team with helpers on borrowed cores, for work during which the owners of these cores wait for this rank; without
    /// borrowed cores, this team.
    pub(crate) fn borrowed_team(&mut self) -> &mut Self {
        // A match would borrow `self` in both branches.
        if self.borrowed.is_none() {
            return self;
        }
        self.borrowed.as_mut().expect("checked above")
    }

    /// Number of threads, the owner included.
    pub fn threads(&self) -> usize {
        self.shared.helpers().len() + 1
    }

    /// Runs `helper(1)`, `helper(2)`, … on the helpers and `main` on the calling thread, and waits for all of them.
    ///
    /// # Errors
    /// [`HelperPanicked`], after all have ended.
    pub fn fork<R>(&mut self, helper: &ForkedWork<'_>, main: impl FnOnce() -> R) -> Result<R, HelperPanicked> {
        if self.shared.helpers().is_empty() {
            return Ok(main());
        }
        // SAFETY: only the lifetime changes. The helpers call the job between here and the end of `join`'s
        // wait, which happens before this function returns or unwinds, while `helper` is still borrowed.
        let job = unsafe { std::mem::transmute::<&ForkedWork<'_>, &'static ForkedWork<'static>>(helper) };
        // SAFETY: the fork before has been joined, as this one will be, whether `main` returns or panics.
        unsafe { self.shared.start(Some(job)) };
        let join = Join(self.shared);
        let result = main();
        drop(join);
        if self.shared.panicked() { Err(HelperPanicked) } else { Ok(result) }
    }

    /// Runs `work` once on each part, part i by thread i, and returns the results in order; there are at most
    /// as many parts as threads.
    ///
    /// # Errors
    /// [`HelperPanicked`], after all have ended.
    pub fn map<T: Send, R: Send>(
        &mut self,
        parts: Vec<T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Result<Vec<R>, HelperPanicked> {
        assert!(parts.len() <= self.threads(), "one part per thread");
        if parts.len() <= 1 {
            return Ok(parts.into_iter().map(work).collect());
        }
        let slots: Vec<_> = parts.into_iter().map(|part| Mutex::new((Some(part), None))).collect();
        let mine = |index: usize| {
            if let Some(slot) = slots.get(index) {
                let mut slot = slot.lock();
                let part = slot.0.take();
                slot.1 = part.map(&work);
            }
        };
        self.fork(&mine, || mine(0))?;
        let result = |slot: Mutex<(_, Option<R>)>| slot.into_inner().1;
        Ok(slots.into_iter().filter_map(result).collect())
    }

    /// Calls `work` once for each of `items`, which the threads take in order, with the index of the thread. The first thread calls
    /// `between` after each of its items and takes no more when that fails.
    ///
    /// # Errors
    /// That of `between`, or [`HelperPanicked`], after all have ended.
    pub(crate) fn deal<T: Send, E: From<HelperPanicked>>(
        &mut self,
        items: Vec<T>,
        work: impl Fn(usize, T) + Sync,
        mut between: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let items = Mutex::new(items.into_iter());
        let next = || items.lock().next();
        let helper = |index: usize| std::iter::from_fn(next).for_each(|item| work(index, item));
        let first_thread = || {
            std::iter::from_fn(next).try_for_each(|item| {
                work(0, item);
                between()
            })
        };
        self.fork(&helper, first_thread)?
    }

    /// A barrier for the first `threads` threads.
    pub(crate) fn barrier(&self, threads: usize) -> Barrier {
        assert!(threads <= self.threads(), "the team has as many threads");
        Barrier::new(threads, self.shared.spin)
    }

    /// Lines per thread when `lines` lines with `elements` elements each are divided: all of them when they are too few
    /// for a fork; at least 1.
    pub fn share(&self, lines: usize, elements: usize) -> usize {
        if lines * elements < FORK_FROM { lines.max(1) } else { lines.div_ceil(self.threads()) }
    }

    /// Divides the columns of matrices with equal numbers of columns among the threads: `work(first, parts)` gets the
    /// same columns of each, from `first` on. Too few elements for a fork are all done by the calling thread.
    ///
    /// # Errors
    /// [`HelperPanicked`], after all have ended.
    pub fn columns<const K: usize>(
        &mut self,
        mats: [MatMut<'_>; K],
        work: impl Fn(usize, [MatMut<'_>; K]) + Sync,
    ) -> Result<(), HelperPanicked> {
        let cols = mats.first().map_or(0, MatMut::cols);
        let share = self.share(cols, mats.iter().map(MatMut::rows).sum());
        let mut shares = mats.map(|mat| mat.chunks_cols(share).into_iter());
        let parts = (0..cols).step_by(share).map(|first| {
            let part = std::array::from_fn(|k| shares[k].next().expect("the matrices have the same number of columns"));
            (first, part)
        });
        let parts = parts.collect();
        self.map(parts, |(first, part)| work(first, part)).map(drop)
    }
}

impl Drop for Team<'_> {
    fn drop(&mut self) {
        // SAFETY: all forks have been joined.
        unsafe { self.shared.start(None) };
    }
}

/// Waits for the helpers when it is dropped, also by a panic.
struct Join<'a>(&'a TeamState);

impl Drop for Join<'_> {
    fn drop(&mut self) {
        self.0.finished();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn params(threads: usize) -> TeamParams<'static> {
        TeamParams { threads, cores: &[], spin: false }
    }

    #[test]
    fn every_thread_works_once_per_fork() {
        for threads in 1..=4 {
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            with_team(params(threads), |team| {
                for round in 1..=if cfg!(miri) { 5 } else { 100 } {
                    let helper = |index: usize| {
                        counts[index].fetch_add(1, Ordering::Relaxed);
                    };
                    team.fork(&helper, || counts[0].fetch_add(1, Ordering::Relaxed)).unwrap();
                    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
                }
            })
            .unwrap();
        }
    }

    /// The system refuses cores that do not exist as it refuses cores outside the allowed set.
    #[test]
    fn threads_that_cannot_be_pinned_work_unpinned() {
        let team = TeamParams { threads: 3, cores: &[100_000, 100_001], spin: false };
        let done = AtomicUsize::new(0);
        let count = |_| {
            done.fetch_add(1, Ordering::Relaxed);
        };
        with_team(team, |team| team.fork(&count, || count(0))).unwrap().unwrap();
        assert_eq!(done.into_inner(), 3);
    }

    #[test]
    fn a_panic_of_a_helper_is_reported() {
        let outcome = with_team(params(3), |team| team.fork(&|index| assert!(index != 2, "on purpose"), || 7));
        assert_eq!(outcome.unwrap(), Err(HelperPanicked));
    }

    #[test]
    fn a_panic_of_the_owner_waits_for_the_helpers() {
        let finished = AtomicBool::new(false);
        let slow = |_| {
            thread::sleep(Duration::from_millis(20));
            finished.store(true, Ordering::Relaxed);
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _ = with_team(params(2), |team| team.fork(&slow, || panic!("on purpose")));
        }));
        assert!(outcome.is_err() && finished.load(Ordering::Relaxed));
    }
}
