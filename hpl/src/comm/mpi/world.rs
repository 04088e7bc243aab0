//! The state of this process that all its groups share, and a group of ranks.

use std::ffi::c_int;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::calls::{Calls, Raw};
use super::operation::Operation;
use crate::comm::Tag;
use crate::comm::buffers::{Buffers, MessagePool};
use crate::sync;

/// Spin time of a wait before it yields.
const SPIN: Duration = Duration::from_micros(20);
/// Yield time of a wait before it sleeps.
const YIELD: Duration = Duration::from_micros(200);
/// Shortest and longest sleep between two tests.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// A sleep is 1/64 of the time waited so far: the wait is longer than needed by at most this fraction.
const SLEEP_SHARE: u32 = 64;
/// Timeout at the end of the job: for messages whose requests were dropped, and for the other ranks.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the launcher to forward the last line on stderr before a rank aborts: MPICH's launcher discards output that is
/// still in the pipe (5 of 40 times without this).
const MESSAGE_DELAY: Duration = Duration::from_millis(250);
/// Largest tag that every MPI library takes.
pub(super) const LAST_TAG: Tag = 32_767;

/// State shared by all groups of this process.
pub(super) struct World {
    pub(super) calls: &'static Calls,
    pub(super) rank: usize,
    /// The thread that may call MPI.
    pub(super) thread: ThreadId,
    /// Whether a wait may spin and yield before it sleeps.
    pub(super) spin: AtomicBool,
    /// Memory for sent messages and matrices.
    pub(super) buffers: Buffers,
    /// Memory for received messages.
    pub(super) received: MessagePool,
    /// Unfinished operations whose requests were dropped.
    pub(super) dropped: Mutex<Vec<Operation>>,
}

/// A set of ranks with their own message space.
pub(super) struct Group {
    pub(super) handle: Raw,
    pub(super) rank: usize,
    /// World rank of each rank of the group.
    pub(super) members: Vec<usize>,
    pub(super) world: Arc<World>,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.world.assert_thread();
        // SAFETY: MPI is initialized.
        if self.handle != unsafe { (self.world.calls.world)() } {
            // SAFETY: created by a split and freed once; operations in flight keep it alive inside the library.
            self.world.check(unsafe { (self.world.calls.free_comm)(self.handle) }, "MPI_Comm_free");
        }
    }
}

impl World {
    pub(super) fn assert_thread(&self) {
        assert!(thread::current().id() == self.thread, "MPI is called by the thread that started it");
    }

    /// Rank of this process in a communicator, and its size.
    pub(super) fn rank_and_size(&self, handle: Raw) -> (usize, usize) {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a valid communicator and valid results.
        self.check(unsafe { (self.calls.rank)(handle, &mut rank) }, "MPI_Comm_rank");
        // SAFETY: as above.
        self.check(unsafe { (self.calls.size)(handle, &mut size) }, "MPI_Comm_size");
        (rank as usize, size as usize)
    }

    /// `MPI_Allgather` of `mine` to `all`, which has one entry per rank of the communicator.
    pub(super) fn gather<const K: usize>(&self, handle: Raw, mine: [u64; K], all: &mut [[u64; K]]) {
        self.assert_thread();
        let count = K as c_int;
        // SAFETY: K numbers are sent and K received from each rank, for which `all` has room; the call blocks.
        let code = unsafe { (self.calls.allgather)(mine.as_ptr(), count, all.as_mut_ptr().cast(), handle) };
        self.check(code, "MPI_Allgather");
    }

    /// Waits until `done` holds.
    pub(super) fn wait(&self, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            let waited = start.elapsed();
            let spin = self.spin.load(Ordering::Relaxed);
            if spin && waited < SPIN {
                std::hint::spin_loop();
            } else if spin && waited < YIELD {
                thread::yield_now();
            } else {
                thread::sleep((waited / SLEEP_SHARE).clamp(SLEEPS.0, SLEEPS.1));
            }
        }
    }

    /// Keeps an operation whose request was dropped, and drops those that are complete.
    pub(super) fn keep(&self, operation: Operation) {
        let mut dropped = self.dropped.lock();
        dropped.push(operation);
        self.sweep(&mut dropped);
    }

    fn sweep(&self, dropped: &mut Vec<Operation>) {
        // Failed ones too.
        dropped.retain_mut(|operation| !operation.completed(self.calls).unwrap_or(true));
    }

    /// Aborts the job when an MPI call has failed.
    pub(super) fn check(&self, code: c_int, call: &str) {
        if code != 0 {
            self.refuse(code, call);
        }
    }

    pub(super) fn refuse(&self, code: c_int, call: &str) -> ! {
        // SAFETY: room for the longest text.
        let text = self.calls.text(|text, len| unsafe { (self.calls.error_string)(code, text, len) });
        self.end_job(&format!("{call} failed: {text}"))
    }

    /// Aborts all processes of the job, with the reason on stderr.
    pub(super) fn end_job(&self, reason: &str) -> ! {
        let _ = writeln!(std::io::stderr(), "rank {} ends the job: {reason}", self.rank);
        thread::sleep(MESSAGE_DELAY);
        // SAFETY: MPI is initialized: it is finalized when the world is dropped.
        unsafe { (self.calls.abort_job)(1) };
        std::process::exit(1)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.assert_thread();
        let mut dropped = std::mem::take(&mut *self.dropped.lock());
        let start = Instant::now();
        self.wait(|| {
            self.sweep(&mut dropped);
            dropped.is_empty() || start.elapsed() > END_TIMEOUT
        });
        if !dropped.is_empty() {
            self.end_job(&format!("{} dropped sends or receives were never matched", dropped.len()));
        }
        // A barrier with a timeout: MPI_Finalize could wait forever for ranks that still wait for messages of this one.
        let (start, mut barrier) = (Instant::now(), Operation::new(sync::Arc::default()));
        // SAFETY: the request is tested below until it is complete, or the job ends; no buffer is involved.
        let begun = unsafe { (self.calls.ibarrier)((self.calls.world)(), barrier.request()) };
        self.check(begun, "MPI_Ibarrier");
        let mut all_here = || barrier.completed(self.calls).unwrap_or_else(|code| self.refuse(code, "MPI_Ibarrier"));
        self.wait(|| all_here() || start.elapsed() > END_TIMEOUT);
        if !all_here() {
            self.end_job("it leaves while other ranks stay, which may wait for it");
        }
        // SAFETY: no operation is in flight.
        self.check(unsafe { (self.calls.finalize)() }, "MPI_Finalize");
    }
}
