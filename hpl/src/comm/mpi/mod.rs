//! Ranks as processes of an MPI job: a thin wrapper over the C interface, by [`Calls`].
//!
//! Only the thread that called [`init`] may use MPI (`MPI_THREAD_FUNNELED`); calls by other threads panic. A send or
//! receive holds its buffer until it is complete; if it is dropped earlier, the world keeps request and buffer until
//! completion. Waiting ranks test, spin for at most 20 µs, yield, and then sleep, so that ranks which share cores leave
//! them to each other.
//!
//! No call returns [`PeerGone`] here: a rank that fails aborts the whole job, with a line on stderr that names the rank
//! and the cause, and exit code 1.

mod calls;
mod operation;
mod requests;
#[cfg(feature = "mpi")]
mod rsmpi;
mod world;

use crate::mat::Buffer;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;

use self::calls::Raw;
pub use self::calls::{Calls, LIBRARY, LibraryError, SOURCE};
use self::operation::Operation;
pub use self::requests::{MpiRecv, MpiSend};
use self::world::{Group, World};
use super::buffers::MessagePool;
use super::{Buffers, Comm, PeerGone, Tag};
use crate::sync;

/// One rank of a group whose ranks are processes of an MPI job.
pub struct MpiComm {
    group: Arc<Group>,
}

impl Calls {
    /// The calls of this program: by rsmpi if it was built with it, else of the library in its folder; `None` without both.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn here() -> Result<Option<&'static Self>, LibraryError> {
        #[cfg(feature = "mpi")]
        return Ok(Some(&rsmpi::CALLS));
        #[cfg(not(feature = "mpi"))]
        match calls::installed() {
            Some(path) => Self::load(&path).map(Some),
            None => Ok(None),
        }
    }
}

/// Starts MPI by `calls` and returns the world of this job. `MPI_Finalize` is called when this thread drops the last value
/// made from it.
///
/// # Panics
/// When MPI has been started before in this process.
pub fn init(calls: &'static Calls) -> MpiComm {
    // Without this, the system rounds short sleeps up to 50 µs. An error is ignored: sleeps are longer then.
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
        received: MessagePool::default(),
        dropped: Mutex::new(Vec::new()),
    };
    world.check(code, "MPI_Init_thread");
    // SAFETY: MPI runs.
    let handle = unsafe { (calls.world)() };
    // SAFETY: as above. From here on calls return their errors.
    world.check(unsafe { (calls.errors_return)(handle) }, "MPI_Comm_set_errhandler");
    let (rank, size) = world.rank_and_size(handle);
    world.rank = rank;
    if funneled == 0 {
        world.end_job("this MPI library does not allow threads besides the one that calls it (MPI_THREAD_FUNNELED)");
    }
    let group = Group { handle, rank, members: (0..size).collect(), world: Arc::new(world) };
    MpiComm { group: Arc::new(group) }
}

impl MpiComm {
    /// The ranks of this group that run on the same node, in order.
    pub fn node(&self) -> Self {
        let Group { handle, world, .. } = &*self.group;
        self.sleeping_barrier();
        let mut new = 0;
        // SAFETY: every rank of the communicator makes this call; `new` is valid.
        let code = unsafe { (world.calls.split_node)(*handle, &mut new) };
        world.check(code, "MPI_Comm_split_type");
        self.child(new)
    }

    /// Name and version of the MPI library.
    pub fn library(&self) -> String {
        self.group.world.calls.library()
    }

    /// Sets whether waits may spin and yield before they sleep, for all groups of this process. It is false at first, and
    /// should be false when the threads of all ranks of a node exceed its cores.
    pub fn set_spin(&self, spin: bool) {
        self.group.world.spin.store(spin, Ordering::Relaxed);
    }

    /// Frees the message buffers after a run, as the messages of the next run have other lengths.
    pub(crate) fn clear_messages(&self) {
        self.group.world.buffers.clear_messages();
        self.group.world.received.clear();
    }

    /// World rank of each rank of this group.
    pub fn members(&self) -> &[usize] {
        &self.group.members
    }

    /// A barrier before a collective call: here ranks wait sleeping, while the calls of MPI libraries wait by spinning.
    fn sleeping_barrier(&self) {
        self.barrier().expect("a failing rank ends the job");
    }

    /// The group of a new communicator, a subset of this one.
    fn child(&self, handle: Raw) -> Self {
        let world = &self.group.world;
        let (rank, size) = world.rank_and_size(handle);
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
    const IN_PROCESS: bool = false;

    fn rank(&self) -> usize {
        self.group.rank
    }

    fn size(&self) -> usize {
        self.group.members.len()
    }

    fn world_rank(&self) -> usize {
        self.group.world.rank
    }

    fn place_on_node(&self) -> usize {
        self.node().rank()
    }

    fn buffers(&self) -> &Buffers {
        &self.group.world.buffers
    }

    fn isend(&self, to: usize, tag: Tag, buf: sync::Arc<Buffer>, range: Range<usize>) -> MpiSend {
        MpiSend::start(&self.group, to, tag, buf, range)
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> MpiRecv {
        MpiRecv::start(&self.group, from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        let Group { handle, rank, world, .. } = &*self.group;
        self.sleeping_barrier();
        let mut keys = vec![[0; 2]; self.size()];
        world.gather(*handle, [color as u64, key as u64], &mut keys);
        // MPI needs colours and keys in the range of an int: the first rank of the colour, and the new rank.
        let same = |entry: &[u64; 2]| entry[0] == color as u64;
        let first = keys.iter().position(same).expect("this rank has its own colour");
        let before = |(r, entry): &(usize, &[u64; 2])| same(entry) && (entry[1], *r) < (key as u64, *rank);
        let new_rank = keys.iter().enumerate().filter(before).count();
        let mut new = 0;
        // SAFETY: every rank of the communicator makes this call; `new` is valid.
        let code = unsafe { (world.calls.split)(*handle, first as c_int, new_rank as c_int, &mut new) };
        world.check(code, "MPI_Comm_split");
        Ok(self.child(new))
    }

    /// Aborts the job.
    fn poison(&self, reason: &str) {
        self.group.world.end_job(reason);
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        let Group { handle, world, .. } = &*self.group;
        world.assert_thread();
        let mut operation = Operation::new(sync::Arc::default());
        // SAFETY: the request is tested below until it is complete; no buffer is involved.
        world.check(unsafe { (world.calls.ibarrier)(*handle, operation.request()) }, "MPI_Ibarrier");
        world.wait(|| operation.completed(world.calls).unwrap_or_else(|code| world.refuse(code, "MPI_Ibarrier")));
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
