//! Panel broadcast along a process row, forwarded without blocking.
//!
//! Positions count from the root around the ring of Q process columns. What a position receives and sends is a
//! pure function of the variant, the position and Q ([`steps`]); one driver (`Broadcast`) makes the transfers:
//! all receives are posted at the start, and a piece of the panel is passed on as soon as it is seen to have
//! arrived.
//!
//! Several broadcasts may be in flight on a row, and a rank may see the later panel first: they come from
//! different sides. So each has a tag of its own (`tag::lbcast`); one tag would let a later panel take an
//! earlier one's receive. Within one broadcast all messages from one rank to another are sent in the order in
//! which they are listed, which is that of the other's receives.

mod long;
mod ring;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use space::Bcast;

pub use self::ring::Ring;
use crate::comm::grid::{position, rank_at, tag};
use crate::comm::{Comm, Msg, PeerGone, Request, Tag};

/// A message of a broadcast as one of its two ends sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Position of the other end.
    pub peer: usize,
    /// Which pieces of the panel.
    pub pieces: Range<usize>,
}

/// What one position does in a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// In how many pieces the panel is cut, at least 1.
    pub pieces: usize,
    /// Messages that it receives, in order.
    pub receives: Vec<Transfer>,
    /// Messages that it sends, in order; each waits for its pieces only.
    pub sends: Vec<Transfer>,
}

/// Steps of `position` among `q`. Two ranks send the panel whole in every variant, where Netlib's long would
/// exchange its halves.
pub fn steps(variant: Bcast, position: usize, q: usize) -> Steps {
    match variant {
        Bcast::OneRing => Ring::One.steps(position, q),
        Bcast::OneRingM => Ring::OneM.steps(position, q),
        Bcast::TwoRing => Ring::Two.steps(position, q),
        Bcast::TwoRingM => Ring::TwoM.steps(position, q),
        Bcast::Long | Bcast::LongM if q <= 2 => Ring::One.steps(position, q),
        Bcast::Long => long::long(position, q),
        Bcast::LongM => long::long_m(position, q),
    }
}

/// Elements of piece `index` of a panel of `len` doubles: ⌊len/pieces⌋ or 1, the rest goes to the last. With fewer
/// elements than pieces some are empty; they travel like the others.
fn bounds(index: usize, pieces: usize, len: usize) -> Range<usize> {
    let size = (len / pieces).max(1);
    let end = if index + 1 == pieces { len } else { ((index + 1) * size).min(len) };
    (index * size).min(len)..end
}

/// Elements of some pieces, at least one.
fn span(pieces: &Range<usize>, count: usize, len: usize) -> Range<usize> {
    bounds(pieces.start, count, len).start..bounds(pieces.end - 1, count, len).end
}

/// One panel on its way through a process row, as one rank sees it.
pub(crate) struct Broadcast<C: Comm> {
    root: usize,
    tag: Tag,
    len: usize,
    /// The pieces that are here.
    pieces: Vec<Option<Msg>>,
    receives: Vec<(Transfer, C::Recv)>,
    /// What is still to be sent.
    pending: Vec<Transfer>,
    /// Sends under way; completed by the caller, who has better things to do than to wait for them.
    sends: Vec<C::Send>,
}

impl<C: Comm> Broadcast<C> {
    /// The root's side of broadcast number `turn` of this row: sends `msg` on its way.
    pub(crate) fn send(row: &C, variant: Bcast, turn: usize, msg: Msg) -> Self {
        let mut broadcast = Self::start(row, variant, turn, row.rank(), msg.len());
        let whole = Transfer { peer: 0, pieces: 0..broadcast.pieces.len() };
        broadcast.arrived(whole, &msg);
        broadcast.forward(row);
        broadcast
    }

    /// The others' side: expects a panel of `len` doubles that starts at rank `root`.
    pub(crate) fn receive(row: &C, variant: Bcast, turn: usize, root: usize, len: usize) -> Self {
        Self::start(row, variant, turn, root, len)
    }

    fn start(row: &C, variant: Bcast, turn: usize, root: usize, len: usize) -> Self {
        let (q, tag) = (row.size(), tag::lbcast(turn));
        let Steps { pieces, receives, sends } = steps(variant, position(row.rank(), root, q), q);
        let post = |transfer: Transfer| {
            let from = rank_at(transfer.peer, root, q);
            let recv = row.irecv(from, tag, span(&transfer.pieces, pieces, len).len());
            (transfer, recv)
        };
        let receives = receives.into_iter().map(post).collect();
        Self { root, tag, len, pieces: vec![None; pieces], receives, pending: sends, sends: Vec::new() }
    }

    /// Takes what has arrived and passes it on. To be called on the root, too, which in the long variants has
    /// steps left.
    pub(crate) fn poll(mut self, row: &C) -> Result<Self, PeerGone> {
        if !self.receives.iter_mut().any(|(_, recv)| recv.ready()) {
            return Ok(self);
        }
        for (transfer, mut recv) in std::mem::take(&mut self.receives) {
            if recv.ready() {
                self.arrived(transfer, &recv.wait()?);
            } else {
                self.receives.push((transfer, recv));
            }
        }
        self.forward(row);
        Ok(self)
    }

    /// Whether [`finish`](Self::finish) would return at once.
    pub(crate) fn ready(&mut self) -> bool {
        self.receives.iter_mut().all(|(_, recv)| recv.ready())
    }

    /// Waits for the panel, passes it on, and returns it with the sends under way.
    pub(crate) fn finish(mut self, row: &C) -> Result<(Msg, Vec<C::Send>), PeerGone> {
        loop {
            self = self.poll(row)?;
            if self.receives.is_empty() {
                break;
            }
            // The oldest: all that comes before it in the order of the steps is done, as where steps block.
            let (transfer, recv) = self.receives.remove(0);
            self.arrived(transfer, &recv.wait()?);
            self.forward(row);
        }
        debug_assert!(self.pending.is_empty(), "every piece is here");
        let pieces = self.pieces.iter().map(|piece| piece.as_ref().expect("every piece is here"));
        Ok((join(pieces), self.sends))
    }

    /// Keeps the pieces of a message; those that were here stay as they are.
    fn arrived(&mut self, transfer: Transfer, msg: &Msg) {
        let count = self.pieces.len();
        let first = span(&transfer.pieces, count, self.len).start;
        let (buf, range) = msg.parts();
        for index in transfer.pieces {
            let Range { start, end } = bounds(index, count, self.len);
            let part = range.start + start - first..range.start + end - first;
            self.pieces[index].get_or_insert_with(|| Msg::new(Arc::clone(&buf), part));
        }
    }

    /// Starts the sends whose pieces are here, to each peer in order.
    fn forward(&mut self, row: &C) {
        let mut held_back: Vec<Transfer> = Vec::new();
        for transfer in std::mem::take(&mut self.pending) {
            let here = self.pieces[transfer.pieces.clone()].iter().all(Option::is_some);
            if !here || held_back.iter().any(|earlier| earlier.peer == transfer.peer) {
                held_back.push(transfer);
                continue;
            }
            let (buf, range) = join(self.pieces[transfer.pieces].iter().flatten()).parts();
            self.sends.push(row.isend(rank_at(transfer.peer, self.root, row.size()), self.tag, buf, range));
        }
        self.pending = held_back;
    }
}

/// The message that `parts` are in order. They are copied only if they do not follow each other in one buffer: parts
/// of what came as one message do, and so do all parts between in-process ranks.
fn join<'a>(parts: impl Iterator<Item = &'a Msg> + Clone) -> Msg {
    let filled = || parts.clone().filter(|part| !part.is_empty()).map(Msg::parts);
    let Some((buf, mut range)) = filled().next() else { return Msg::new(Arc::new([]), 0..0) };
    for (other, next) in filled().skip(1) {
        if !Arc::ptr_eq(&buf, &other) || range.end != next.start {
            return copied(parts);
        }
        range.end = next.end;
    }
    Msg::new(buf, range)
}

/// The message that `parts` are in order, in a buffer of its own.
fn copied<'a>(parts: impl Iterator<Item = &'a Msg> + Clone) -> Msg {
    let len = parts.clone().map(|part| part.len()).sum();
    let mut buf: Arc<[f64]> = std::iter::repeat_n(0.0, len).collect();
    let mut left = Arc::get_mut(&mut buf).expect("new, with one holder");
    for part in parts {
        let (place, rest) = left.split_at_mut(part.len());
        place.copy_from_slice(part);
        left = rest;
    }
    Msg::new(buf, 0..len)
}
