//! Messages between ranks.
//!
//! A message is a range of a shared buffer, which the requests in flight own. Messages between two ranks
//! with the same tag match receives in the order in which both were posted. A rank that panics, fails or
//! ends while others wait for it poisons its world: every wait of the other ranks returns [`PeerGone`], or
//! the whole job ends, so that no rank hangs. A wait for a send may last until its receive is posted.

pub(crate) mod buffers;
#[doc(hidden)]
pub mod conformance;
pub mod grid;
pub mod mpi;
#[cfg(test)]
pub mod recording;
pub(crate) mod reduce;
#[cfg(test)]
pub mod shuffled;
pub mod threads;

use crate::mat::Buffer;
use crate::sync::Arc;
use std::ops::{Deref, Range};

pub use self::buffers::Buffers;

/// Tag of a message, below [`Tag::MAX`]; the engine has one for each purpose.
pub type Tag = u32;

/// Another rank has failed or ended; all groups of its world are unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} is gone: {reason}")]
pub struct PeerGone {
    /// World rank that caused the failure.
    pub rank: usize,
    /// The cause.
    pub reason: String,
}

/// A received message: a range of a shared buffer.
#[derive(Debug, Clone)]
pub struct Msg {
    buf: Arc<Buffer>,
    range: Range<usize>,
}

impl Msg {
    /// The message that consists of `range` of `buf`.
    pub fn new(buf: Arc<Buffer>, range: Range<usize>) -> Self {
        assert!(range.end <= buf.len());
        Self { buf, range }
    }

    /// Buffer and range, to forward the message without a copy.
    pub fn parts(&self) -> (Arc<Buffer>, Range<usize>) {
        (Arc::clone(&self.buf), self.range.clone())
    }
}

impl Deref for Msg {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.buf[self.range.clone()]
    }
}

/// Whether to wait for messages that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Goes on without them.
    Test,
    /// Waits.
    Wait,
}

/// A send or receive in flight.
pub trait Request: Sized {
    /// Result of completion.
    type Done;

    /// Test: whether [`wait`](Self::wait) would return without waiting.
    fn ready(&mut self) -> bool;

    /// Waits for completion.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned before completion.
    fn wait(self) -> Result<Self::Done, PeerGone>;
}

/// A group of ranks that exchange messages. Used by one thread of each rank.
pub trait Comm: Sized + Send {
    /// A send in flight.
    type Send: Request<Done = ()>;
    /// A receive in flight.
    type Recv: Request<Done = Msg>;

    /// Whether messages progress while their ranks make no call. If not, a rank with messages in flight should poll
    /// often.
    const ASYNC_PROGRESS: bool;

    /// Whether all ranks are threads of this process.
    const IN_PROCESS: bool;

    /// This rank, 0 ≤ rank < size.
    fn rank(&self) -> usize;

    /// Number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Rank in the world, the same in all groups of this rank; by default that in this group, where there is no group but the
    /// world.
    fn world_rank(&self) -> usize {
        self.rank()
    }

    /// Number of ranks of this group on the same node with a smaller rank. Called by every rank.
    fn place_on_node(&self) -> usize {
        self.rank()
    }

    /// Memory for messages, shared by the ranks of this process.
    fn buffers(&self) -> &Buffers;

    /// Starts sending `range` of `buf` to rank `to` (self allowed).
    ///
    /// # Panics
    /// When `to`, `tag` or `range` is out of bounds.
    fn isend(&self, to: usize, tag: Tag, buf: Arc<Buffer>, range: Range<usize>) -> Self::Send;

    /// Posts a receive of `len` doubles from rank `from` (self allowed). A message of another length
    /// poisons the world.
    ///
    /// # Panics
    /// When `from` or `tag` is out of bounds.
    fn irecv(&self, from: usize, tag: Tag, len: usize) -> Self::Recv;

    /// The group of the ranks that pass the same `color`, ordered by `key`. Called by every rank.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned.
    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone>;

    /// Poisons the world: every present and future wait in all groups of the world fails. The first cause is
    /// reported.
    fn poison(&self, reason: &str);

    /// Barrier of all ranks of the group.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned.
    fn barrier(&self) -> Result<(), PeerGone>;
}
