//! Ranks as processes of an MPI job: a thin wrapper over the C interface, by [`Calls`].
//!
//! Only the thread that called [`init`] may use MPI (`MPI_THREAD_FUNNELED`); another one panics. What is in
//! flight is owned: a request holds its buffer until MPI is done with it, and one dropped before that leaves
//! both to the world, which keeps them. Waiting ranks test, spin for at most 20 µs, yield, and then sleep, so
//! that ranks which share cores do not take them from each other.
//!
//! Nobody gets a [`PeerGone`] here: a rank that fails ends the whole job, with a line on stderr that names it
//! and the cause, and exit code 1.

mod calls;
mod flight;
#[cfg(feature = "mpi")]
mod rsmpi;

use std::ffi::c_int;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::calls::Raw;
pub use self::calls::{Calls, LIBRARY, LibraryError, SOURCE};
use self::flight::Flight;
pub use self::flight::{MpiRecv, MpiSend};
use super::buffers::Pool;
use super::{Buffers, Comm, PeerGone, Tag};

/// How long a wait spins before it yields.
const SPIN: Duration = Duration::from_micros(20);
/// How long a wait yields before it sleeps.
const YIELD: Duration = Duration::from_micros(200);
/// Shortest and longest sleep between two tests.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// A sleep is this part of the time waited so far: what it may come late by.
const NAP_SHARE: u32 = 64;
/// How long the end of the job waits for messages whose requests were dropped, and for the other ranks.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the launcher gets to pass on a rank's last words: MPICH's drops what is still in the pipe when a rank aborts
/// (5 of 40 times without this).
const LAST_WORDS: Duration = Duration::from_millis(250);
/// Largest tag that every MPI library takes.
const LAST_TAG: Tag = 32_767;

/// One rank of a group whose ranks are processes of an MPI job.
pub struct MpiComm {
    group: Arc<Group>,
}

/// What all groups of this process share.
struct World {
    calls: &'static Calls,
    rank: usize,
    /// The thread that may call MPI.
    thread: ThreadId,
    /// Whether a wait may spin and yield before it sleeps.
    spin: AtomicBool,
    /// What this rank makes messages and matrices in.
    buffers: Buffers,
    /// What it receives messages into.
    received: Pool,
    /// Unfinished operations whose requests were dropped.
    strays: Mutex<Vec<Flight>>,
}

/// A set of ranks with their own message space.
struct Group {
    handle: Raw,
    rank: usize,
    /// World rank of each rank of the group.
    members: Vec<usize>,
    world: Arc<World>,
}

/// Starts MPI by `calls`; the world of this job. The job ends well when the last part of it is dropped by this thread.
///
/// # Panics
/// When MPI has been started before in this process.
pub fn init(calls: &'static Calls) -> MpiComm {
    // A nap must not be rounded up to 50 µs; refused, naps are longer.
    let _ = nix::sys::prctl::set_timerslack(1);
    let (mut started, mut funneled) = (0, 0);
    // SAFETY: may be called at any time; `started` is valid.
    unsafe { (calls.initialized)(&mut started) };
    assert!(started == 0, "MPI is started once");
    // SAFETY: the first call. Errors end the process here.
    let code = unsafe { (calls.init)(&mut funneled) };
    let mut world = World {
        calls,
        rank: 0,
        thread: thread::current().id(),
        spin: AtomicBool::new(false),
        buffers: Buffers::default(),
        received: Pool::default(),
        strays: Mutex::new(Vec::new()),
    };
    world.check(code, "MPI_Init_thread");
    // SAFETY: MPI runs.
    let handle = unsafe { (calls.world)() };
    // SAFETY: as above. From here on calls return their errors.
    world.check(unsafe { (calls.errors_return)(handle) }, "MPI_Comm_set_errhandler");
    let (rank, size) = world.place(handle);
    world.rank = rank;
    if funneled == 0 {
        world.end_job("this MPI library does not allow threads beside the one that calls it (MPI_THREAD_FUNNELED)");
    }
    let group = Group { handle, rank, members: (0..size).collect(), world: Arc::new(world) };
    MpiComm { group: Arc::new(group) }
}

impl MpiComm {
    /// The ranks of this group that run on the same node, in order.
    pub fn node(&self) -> Self {
        let Group { handle, world, .. } = &*self.group;
        self.gather_up();
        let mut new = 0;
        // SAFETY: every rank of the communicator makes this call; `new` is valid.
        let code = unsafe { (world.calls.split_node)(*handle, &mut new) };
        world.check(code, "MPI_Comm_split_type");
        self.child(new)
    }

    /// What the MPI library calls itself.
    pub fn library(&self) -> String {
        self.group.world.calls.library()
    }

    /// Whether waits may spin and yield before they sleep; false when the threads of all ranks of a node exceed
    /// its cores, and at first. Holds for all groups of this process.
    pub fn set_spin(&self, spin: bool) {
        self.group.world.spin.store(spin, Ordering::Relaxed);
    }

    /// After a run: the next one's messages have other lengths.
    pub(crate) fn forget_messages(&self) {
        self.group.world.buffers.forget_messages();
        self.group.world.received.clear();
    }

    /// World rank of each rank of this group.
    pub fn members(&self) -> &[usize] {
        &self.group.members
    }

    /// Everybody comes here sleeping: collective calls of MPI libraries wait by spinning.
    fn gather_up(&self) {
        self.barrier().expect("a failing rank ends the job");
    }

    /// The group of a new communicator, made of ranks of this one.
    fn child(&self, handle: Raw) -> Self {
        let world = &self.group.world;
        let (rank, size) = world.place(handle);
        let mut members = vec![[0]; size];
        world.gather(handle, [world.rank as u64], &mut members);
        let members = members.into_iter().map(|[member]| member as usize).collect();
        Self { group: Arc::new(Group { handle, rank, members, world: Arc::clone(world) }) }
    }
}

impl Comm for MpiComm {
    type Send = MpiSend;
    type Recv = MpiRecv;
    const ASYNC_PROGRESS: bool = false;

    fn rank(&self) -> usize {
        self.group.rank
    }

    fn size(&self) -> usize {
        self.group.members.len()
    }

    fn buffers(&self) -> &Buffers {
        &self.group.world.buffers
    }

    fn isend(&self, to: usize, tag: Tag, buf: Arc<[f64]>, range: Range<usize>) -> MpiSend {
        MpiSend::start(&self.group, to, tag, buf, range)
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> MpiRecv {
        MpiRecv::start(&self.group, from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        let Group { handle, rank, world, .. } = &*self.group;
        self.gather_up();
        let mut bids = vec![[0; 2]; self.size()];
        world.gather(*handle, [color as u64, key as u64], &mut bids);
        // MPI wants small colours and keys: the first rank of the colour, and the place in the new group.
        let same = |bid: &[u64; 2]| bid[0] == color as u64;
        let first = bids.iter().position(same).expect("this rank has its own colour");
        let before = |(r, bid): &(usize, &[u64; 2])| same(bid) && (bid[1], *r) < (key as u64, *rank);
        let place = bids.iter().enumerate().filter(before).count();
        let mut new = 0;
        // SAFETY: every rank of the communicator makes this call; `new` is valid.
        let code = unsafe { (world.calls.split)(*handle, first as c_int, place as c_int, &mut new) };
        world.check(code, "MPI_Comm_split");
        Ok(self.child(new))
    }

    /// Ends the job.
    fn poison(&self, reason: &str) {
        self.group.world.end_job(reason);
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        let Group { handle, world, .. } = &*self.group;
        world.assert_thread();
        let mut flight = Flight::new(Arc::default());
        // SAFETY: the request is tested below until it is complete; no buffer is involved.
        world.check(unsafe { (world.calls.ibarrier)(*handle, flight.request()) }, "MPI_Ibarrier");
        world.wait(|| flight.landed(world).unwrap_or_else(|code| world.refuse(code, "MPI_Ibarrier")));
        Ok(())
    }
}

impl Drop for MpiComm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.poison("it panicked");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.world.assert_thread();
        // SAFETY: MPI runs.
        if self.handle != unsafe { (self.world.calls.world)() } {
            // SAFETY: made by a split and freed once; operations under way keep it alive inside the library.
            self.world.check(unsafe { (self.world.calls.free_comm)(self.handle) }, "MPI_Comm_free");
        }
    }
}

impl World {
    fn assert_thread(&self) {
        assert!(thread::current().id() == self.thread, "MPI is called by the thread that started it");
    }

    /// Rank of this process in a communicator, and its size.
    fn place(&self, handle: Raw) -> (usize, usize) {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a valid communicator and valid results.
        self.check(unsafe { (self.calls.rank)(handle, &mut rank) }, "MPI_Comm_rank");
        // SAFETY: as above.
        self.check(unsafe { (self.calls.size)(handle, &mut size) }, "MPI_Comm_size");
        (rank as usize, size as usize)
    }

    /// What each rank of the communicator has to say, in `all`, which has an entry for each.
    fn gather<const K: usize>(&self, handle: Raw, mine: [u64; K], all: &mut [[u64; K]]) {
        self.assert_thread();
        let count = K as c_int;
        // SAFETY: K numbers are sent and K received from each rank, for which `all` has room; the call blocks.
        let code = unsafe { (self.calls.allgather)(mine.as_ptr(), count, all.as_mut_ptr().cast(), handle) };
        self.check(code, "MPI_Allgather");
    }

    /// Waits until `done` holds.
    fn wait(&self, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            let waited = start.elapsed();
            let spin = self.spin.load(Ordering::Relaxed);
            if spin && waited < SPIN {
                std::hint::spin_loop();
            } else if spin && waited < YIELD {
                thread::yield_now();
            } else {
                thread::sleep((waited / NAP_SHARE).clamp(NAPS.0, NAPS.1));
            }
        }
    }

    /// Takes over an operation that nobody waits for any more, and drops those that have ended.
    fn adopt(&self, stray: Flight) {
        let mut strays = self.strays.lock();
        strays.push(stray);
        self.sweep(&mut strays);
    }

    fn sweep(&self, strays: &mut Vec<Flight>) {
        // Whatever became of them.
        strays.retain_mut(|stray| !stray.landed(self).unwrap_or(true));
    }

    /// Ends the job when an MPI call has failed.
    fn check(&self, code: c_int, call: &str) {
        if code != 0 {
            self.refuse(code, call);
        }
    }

    fn refuse(&self, code: c_int, call: &str) -> ! {
        // SAFETY: room for the longest text.
        let text = self.calls.text(|text, len| unsafe { (self.calls.error_string)(code, text, len) });
        self.end_job(&format!("{call} failed: {text}"))
    }

    /// Ends all processes of the job; says why on stderr.
    fn end_job(&self, reason: &str) -> ! {
        let _ = writeln!(std::io::stderr(), "rank {} ends the job: {reason}", self.rank);
        thread::sleep(LAST_WORDS);
        // SAFETY: called while MPI runs: its end is the drop of the world.
        unsafe { (self.calls.abort_job)(1) };
        std::process::exit(1)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.assert_thread();
        let mut strays = std::mem::take(&mut *self.strays.lock());
        let start = Instant::now();
        self.wait(|| {
            self.sweep(&mut strays);
            strays.is_empty() || start.elapsed() > PATIENCE
        });
        if !strays.is_empty() {
            self.end_job(&format!("{} dropped sends or receives found no partner until the end", strays.len()));
        }
        // All ranks leave together: one for whose messages others wait would wait for them in MPI_Finalize for ever.
        let (start, mut together) = (Instant::now(), Flight::new(Arc::default()));
        // SAFETY: the request is tested below until it is complete, or the job ends; no buffer is involved.
        let begun = unsafe { (self.calls.ibarrier)((self.calls.world)(), together.request()) };
        self.check(begun, "MPI_Ibarrier");
        let mut here = || together.landed(self).unwrap_or_else(|code| self.refuse(code, "MPI_Ibarrier"));
        self.wait(|| here() || start.elapsed() > PATIENCE);
        if !here() {
            self.end_job("it leaves while other ranks stay, which may wait for it");
        }
        // SAFETY: no operation is under way.
        self.check(unsafe { (self.calls.finalize)() }, "MPI_Finalize");
    }
}
