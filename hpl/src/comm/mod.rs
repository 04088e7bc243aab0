//! Messages between ranks.
//!
//! A message is a range of a shared buffer: what is in flight is owned, so nothing dangles. Messages
//! between two ranks with the same tag arrive in the order they were sent, at receives in the order they
//! were posted. A rank that panics, fails or goes away while others wait for it poisons its world: every
//! wait of the others returns [`PeerGone`], or the whole job ends; nobody hangs. Waiting for a send may take
//! until its receive is posted.

pub(crate) mod buffers;
#[doc(hidden)]
pub mod conformance;
pub mod grid;
pub mod mpi;
#[cfg(test)]
pub mod recording;
pub(crate) mod reduce;
pub mod threads;

use std::ops::{Deref, Range};
use std::sync::Arc;

pub use self::buffers::Buffers;

/// Tag of a message, below [`Tag::MAX`]; the engine gives each purpose its own.
pub type Tag = u32;

/// A peer has failed or left; no group of its world can go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} is gone: {reason}")]
pub struct PeerGone {
    /// Rank in the world, not in the group, that caused the failure.
    pub rank: usize,
    /// What is known of the cause.
    pub reason: String,
}

/// A received message: a range of a shared buffer.
#[derive(Debug, Clone)]
pub struct Msg {
    buf: Arc<[f64]>,
    range: Range<usize>,
}

impl Msg {
    /// The message that consists of `range` of `buf`.
    pub fn new(buf: Arc<[f64]>, range: Range<usize>) -> Self {
        assert!(range.end <= buf.len());
        Self { buf, range }
    }

    /// Buffer and range, for passing the message on without a copy.
    pub fn parts(&self) -> (Arc<[f64]>, Range<usize>) {
        (Arc::clone(&self.buf), self.range.clone())
    }
}

impl Deref for Msg {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.buf[self.range.clone()]
    }
}

/// A send or receive under way.
pub trait Request: Sized {
    /// What completion yields.
    type Done;

    /// Whether [`wait`](Self::wait) would return at once.
    fn ready(&mut self) -> bool;

    /// Waits for completion.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned before completion.
    fn wait(self) -> Result<Self::Done, PeerGone>;
}

/// A group of ranks that exchange messages. Used by one thread of each rank.
pub trait Comm: Sized + Send {
    /// A send under way.
    type Send: Request<Done = ()>;
    /// A receive under way.
    type Recv: Request<Done = Msg>;

    /// Whether messages move on while their ranks make no call. Where they do not, a rank with messages under way had
    /// better look often.
    const ASYNC_PROGRESS: bool;

    /// This rank, 0 ≤ rank < size.
    fn rank(&self) -> usize;

    /// Number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Memory for messages, shared by the ranks of this process.
    fn buffers(&self) -> &Buffers;

    /// Starts sending `range` of `buf` to rank `to` (self allowed).
    ///
    /// # Panics
    /// When `to`, `tag` or `range` is out of bounds.
    fn isend(&self, to: usize, tag: Tag, buf: Arc<[f64]>, range: Range<usize>) -> Self::Send;

    /// Starts receiving a message of `len` doubles from rank `from` (self allowed). A message of another
    /// length poisons the world.
    ///
    /// # Panics
    /// When `from` or `tag` is out of bounds.
    fn irecv(&self, from: usize, tag: Tag, len: usize) -> Self::Recv;

    /// The group of the ranks that pass the same `color`, ordered by `key`. Called by every rank.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned.
    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone>;

    /// Poisons the world: every present and future wait in this group and all groups above, below and beside
    /// it fails. The first cause is the one reported.
    fn poison(&self, reason: &str);

    /// Waits until every rank of the group is here.
    ///
    /// # Errors
    /// [`PeerGone`] when the group is poisoned.
    fn barrier(&self) -> Result<(), PeerGone>;
}
