//! Panel broadcast along a process row, forwarded without blocking.
//!
//! Positions count from the root around the ring of Q process columns. The messages of a position are a pure function
//! of the variant, the position and Q ([`steps`]); one driver (`Broadcast`) executes the transfers: all receives are
//! posted at the start, and a piece of the panel is forwarded as soon as a test finds that it has arrived.
//!
//! Several broadcasts may be in flight on a row, and a later panel, which comes from another rank, may arrive first.
//! So each has a tag of its own (`tag::lbcast`); with one tag a later panel could match the receive of an earlier one.
//! Within one broadcast, all messages from one rank to another are sent in the order of the list, which is the order
//! of the receiver's receives.

mod long;
mod ring;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::Range;

use space::Bcast;

pub use self::ring::Ring;
use crate::comm::buffers::MessagePool;
use crate::comm::grid::{position, rank_at, tag};
use crate::comm::{Comm, Msg, PeerGone, Request, Tag};
use crate::sync::Arc;

/// A message of a broadcast on its sender or its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Position of the other rank.
    pub peer: usize,
    /// The pieces of the panel in the message.
    pub pieces: Range<usize>,
}

/// The messages of one position in a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Number of pieces of the panel, at least 1.
    pub pieces: usize,
    /// Messages that it receives, in order.
    pub receives: Vec<Transfer>,
    /// Messages that it sends, in order; each starts as soon as its pieces have arrived.
    pub sends: Vec<Transfer>,
}

/// Steps of `position` among `q`. With two ranks, every variant sends the panel as one message; Netlib's long exchanges
/// its halves instead.
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

/// Elements of piece `index` of a panel of `len` doubles: each piece has max(1, ⌊len/pieces⌋), the last also the remainder.
/// With fewer elements than pieces some pieces are empty; they are sent like the others.
fn bounds(index: usize, pieces: usize, len: usize) -> Range<usize> {
    let size = (len / pieces).max(1);
    let end = if index + 1 == pieces { len } else { ((index + 1) * size).min(len) };
    (index * size).min(len)..end
}

/// Elements of consecutive pieces, at least one piece.
fn span(pieces: &Range<usize>, count: usize, len: usize) -> Range<usize> {
    bounds(pieces.start, count, len).start..bounds(pieces.end - 1, count, len).end
}

/// The broadcast of one panel along a process row, on one rank.
pub(crate) struct Broadcast<C: Comm> {
    root: usize,
    tag: Tag,
    len: usize,
    /// The pieces that have arrived.
    pieces: Vec<Option<Msg>>,
    receives: Vec<(Transfer, C::Recv)>,
    /// Sends not started yet.
    pending: Vec<Transfer>,
    /// Sends in flight; the caller completes them later.
    sends: Vec<C::Send>,
}

impl<C: Comm> Broadcast<C> {
    /// Starts the `number`-th broadcast of this row on the root, which sends `msg`.
    pub(crate) fn send(row: &C, variant: Bcast, number: usize, msg: Msg) -> Self {
        let mut broadcast = Self::start(row, variant, number, row.rank(), msg.len());
        let whole = Transfer { peer: 0, pieces: 0..broadcast.pieces.len() };
        broadcast.arrived(whole, &msg);
        broadcast.forward(row);
        broadcast
    }

    /// Starts the broadcast on another rank: posts the receives of a panel of `len` doubles from rank `root`.
    pub(crate) fn receive(row: &C, variant: Bcast, number: usize, root: usize, len: usize) -> Self {
        Self::start(row, variant, number, root, len)
    }

    fn start(row: &C, variant: Bcast, number: usize, root: usize, len: usize) -> Self {
        let (q, tag) = (row.size(), tag::lbcast(number));
        let Steps { pieces, receives, sends } = steps(variant, position(row.rank(), root, q), q);
        let post = |transfer: Transfer| {
            let from = rank_at(transfer.peer, root, q);
            let recv = row.irecv(from, tag, span(&transfer.pieces, pieces, len).len());
            (transfer, recv)
        };
        let receives = receives.into_iter().map(post).collect();
        Self { root, tag, len, pieces: vec![None; pieces], receives, pending: sends, sends: Vec::new() }
    }

    /// Tests the receives and forwards the pieces that have arrived. Also to be called on the root, which receives
    /// messages in the long variants.
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

    /// Whether [`finish`](Self::finish) would return without waiting.
    pub(crate) fn ready(&mut self) -> bool {
        self.receives.iter_mut().all(|(_, recv)| recv.ready())
    }

    /// Waits for the panel, forwards it, and returns it with the sends in flight.
    pub(crate) fn finish(mut self, row: &C) -> Result<(Msg, Vec<C::Send>), PeerGone> {
        loop {
            self = self.poll(row)?;
            if self.receives.is_empty() {
                break;
            }
            // The oldest receive: all earlier steps are done, as with blocking steps.
            let (transfer, recv) = self.receives.remove(0);
            self.arrived(transfer, &recv.wait()?);
            self.forward(row);
        }
        debug_assert!(self.pending.is_empty(), "all pieces have arrived");
        let pieces = self.pieces.iter().map(|piece| piece.as_ref().expect("all pieces have arrived"));
        Ok((join(pieces, &row.buffers().panels), self.sends))
    }

    /// Stores the pieces of a message, except those that have arrived before.
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

    /// Starts the sends whose pieces have arrived, to each peer in order.
    fn forward(&mut self, row: &C) {
        let mut waiting: Vec<Transfer> = Vec::new();
        for transfer in std::mem::take(&mut self.pending) {
            let arrived = self.pieces[transfer.pieces.clone()].iter().all(Option::is_some);
            if !arrived || waiting.iter().any(|earlier| earlier.peer == transfer.peer) {
                waiting.push(transfer);
                continue;
            }
            let parts = self.pieces[transfer.pieces].iter().flatten();
            let (buf, range) = join(parts, &row.buffers().panels).parts();
            self.sends.push(row.isend(rank_at(transfer.peer, self.root, row.size()), self.tag, buf, range));
        }
        self.pending = waiting;
    }
}

/// Joins `parts` in order to one message. No copy is made if they follow each other in one buffer, as do the parts of one
/// received message, and all parts between in-process ranks; a copy is in a buffer of `pool`.
fn join<'a>(parts: impl Iterator<Item = &'a Msg> + Clone, pool: &MessagePool) -> Msg {
    let filled = || parts.clone().filter(|part| !part.is_empty()).map(Msg::parts);
    let Some((buf, mut range)) = filled().next() else { return Msg::new(Arc::default(), 0..0) };
    for (other, next) in filled().skip(1) {
        if !Arc::ptr_eq(&buf, &other) || range.end != next.start {
            return copied(parts, pool);
        }
        range.end = next.end;
    }
    Msg::new(buf, range)
}

/// Copies `parts` in order to one message in a buffer of `pool`.
fn copied<'a>(parts: impl Iterator<Item = &'a Msg> + Clone, pool: &MessagePool) -> Msg {
    let len = parts.clone().map(|part| part.len()).sum();
    let Ok(msg) = pool.message(len, |buffer| -> Result<(), Infallible> {
        let mut left = buffer;
        for part in parts {
            let (to, rest) = left.split_at_mut(part.len());
            to.copy_from_slice(part);
            left = rest;
        }
        Ok(())
    });
    msg
}
