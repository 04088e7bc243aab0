//! A [`Comm`] whose ranks are values of one thread: a test chooses the order in which their messages arrive.
//!
//! Nothing moves by itself. A message is in flight from its send until [`Network::deliver`] takes it; only messages from one
//! rank to another with the same tag keep their order. A wait for what has not arrived would last forever, and panics.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Buffers, Comm, Msg, PeerGone, Request, Tag};
use crate::mat::Buffer;

/// Messages from one rank to another with one tag.
type Channel = (usize, usize, Tag);

/// The messages of a group.
#[derive(Default)]
pub struct Network {
    state: Mutex<ShuffledState>,
    buffers: Buffers,
}

/// Messages that no receive has taken, and receives without a message, in the order of their posting.
type Matching = (VecDeque<Msg>, VecDeque<(usize, Slot)>);

#[derive(Default)]
struct ShuffledState {
    /// The channels with messages in flight.
    in_flight: Vec<(Channel, VecDeque<(Msg, Slot)>)>,
    /// The messages that have arrived, by channel, and the number of receives posted before.
    arrived: HashMap<Channel, Matching>,
}

/// What a request waits for; [`None`] until it is there.
type Slot = Arc<Mutex<Option<Msg>>>;

impl Network {
    /// The ranks of a group of `size`.
    pub fn ranks(self: &Arc<Self>, size: usize) -> Vec<Shuffled> {
        (0..size).map(|rank| Shuffled { network: Arc::clone(self), rank, size }).collect()
    }

    /// Lets one message arrive, of the channel that `choose` takes among those with messages in flight; false where there are
    /// none.
    ///
    /// # Panics
    /// When its receive expects another length.
    pub fn deliver(&self, choose: impl FnOnce(usize) -> usize) -> bool {
        let state = &mut *self.state.lock();
        if state.in_flight.is_empty() {
            return false;
        }
        let at = choose(state.in_flight.len());
        let (channel, queue) = &mut state.in_flight[at];
        let channel = *channel;
        let (msg, sent) = queue.pop_front().expect("channels without messages are removed");
        if queue.is_empty() {
            state.in_flight.swap_remove(at);
        }
        *sent.lock() = Some(msg.clone());
        let (messages, receives) = state.arrived.entry(channel).or_default();
        match receives.pop_front() {
            Some((len, slot)) => receive(channel, msg, len, &slot),
            None => messages.push_back(msg),
        }
        true
    }

    /// Whether nothing is in flight, and every message was received.
    pub fn is_quiet(&self) -> bool {
        let state = self.state.lock();
        let quiet = |(messages, receives): &(VecDeque<_>, VecDeque<_>)| messages.is_empty() && receives.is_empty();
        state.in_flight.is_empty() && state.arrived.values().all(quiet)
    }
}

fn receive(channel: Channel, msg: Msg, len: usize, slot: &Slot) {
    assert_eq!(msg.len(), len, "length of a message of (from, to, tag) {channel:?}");
    *slot.lock() = Some(msg);
}

/// A rank of a group.
pub struct Shuffled {
    network: Arc<Network>,
    rank: usize,
    size: usize,
}

/// A send or receive of [`Shuffled`].
pub struct Pending(Slot);

impl Request for Pending {
    type Done = Msg;

    fn ready(&mut self) -> bool {
        self.0.lock().is_some()
    }

    fn wait(self) -> Result<Msg, PeerGone> {
        Ok(self.0.lock().take().expect("a wait for a message that has not arrived"))
    }
}

/// A send: it is complete when its message has arrived.
pub struct PendingSend(Pending);

impl Request for PendingSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        self.0.ready()
    }

    fn wait(self) -> Result<(), PeerGone> {
        self.0.wait().map(drop)
    }
}

impl Comm for Shuffled {
    type Send = PendingSend;
    type Recv = Pending;
    const ASYNC_PROGRESS: bool = true;
    const IN_PROCESS: bool = true;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn buffers(&self) -> &Buffers {
        &self.network.buffers
    }

    fn isend(&self, to: usize, tag: Tag, buf: Arc<Buffer>, range: Range<usize>) -> PendingSend {
        assert!(to < self.size);
        let (channel, slot) = ((self.rank, to, tag), Slot::default());
        let message = (Msg::new(buf, range), Arc::clone(&slot));
        let in_flight = &mut self.network.state.lock().in_flight;
        match in_flight.iter_mut().find(|(known, _)| *known == channel) {
            Some((_, queue)) => queue.push_back(message),
            None => in_flight.push((channel, VecDeque::from([message]))),
        }
        PendingSend(Pending(slot))
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> Pending {
        assert!(from < self.size);
        let (channel, slot) = ((from, self.rank, tag), Slot::default());
        let state = &mut *self.network.state.lock();
        let (messages, receives) = state.arrived.entry(channel).or_default();
        match messages.pop_front() {
            Some(msg) => receive(channel, msg, len, &slot),
            None => receives.push_back((len, Arc::clone(&slot))),
        }
        Pending(slot)
    }

    fn split(&self, _: usize, _: usize) -> Result<Self, PeerGone> {
        unreachable!("a group is made by its network")
    }

    fn poison(&self, reason: &str) {
        panic!("{reason}");
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        unreachable!("one thread cannot wait for itself")
    }
}
