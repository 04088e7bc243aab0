//! A [`Comm`] that records the messages its rank sends, for tests of message patterns.

use crate::mat::Buffer;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::{Buffers, Comm, PeerGone, Tag};

/// A message that was sent; ranks are those of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Sender.
    pub from: usize,
    /// Receiver.
    pub to: usize,
    /// Tag.
    pub tag: Tag,
    /// Length in doubles.
    pub len: usize,
}

/// A rank whose sends are recorded. A group split from it has its own record.
pub struct Recording<C> {
    inner: C,
    sent: RefCell<Vec<Sent>>,
}

impl<C: Comm> Recording<C> {
    /// Records the messages that `inner` sends from now on.
    pub fn new(inner: C) -> Self {
        Self { inner, sent: RefCell::default() }
    }

    /// The messages sent so far, in order, without those of barriers and splits.
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.borrow().clone()
    }
}

impl<C: Comm> Comm for Recording<C> {
    type Send = C::Send;
    type Recv = C::Recv;
    const ASYNC_PROGRESS: bool = C::ASYNC_PROGRESS;
    const IN_PROCESS: bool = C::IN_PROCESS;

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn world_rank(&self) -> usize {
        self.inner.world_rank()
    }

    fn place_on_node(&self) -> usize {
        self.inner.place_on_node()
    }

    fn buffers(&self) -> &Buffers {
        self.inner.buffers()
    }

    fn isend(&self, to: usize, tag: Tag, buf: Arc<Buffer>, range: Range<usize>) -> C::Send {
        self.sent.borrow_mut().push(Sent { from: self.rank(), to, tag, len: range.len() });
        self.inner.isend(to, tag, buf, range)
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> C::Recv {
        self.inner.irecv(from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        self.inner.split(color, key).map(Self::new)
    }

    fn poison(&self, reason: &str) {
        self.inner.poison(reason);
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        self.inner.barrier()
    }
}
