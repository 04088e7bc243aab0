//! Panels from the start of their broadcast until the end of their update.

use std::collections::VecDeque;

use space::{Bcast, Form, HplParams};

use crate::Error;
use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::lu::bcast::Broadcast;
use crate::lu::panel::Panel;
use crate::plan::PanelShape;

/// The panels of one rank.
pub(super) struct Panels<'a, C: Comm> {
    /// The process row.
    row: &'a C,
    bcast: Bcast,
    l1: Form,
    /// Broadcasts in flight, oldest first.
    bcasts: VecDeque<(PanelShape, Broadcast<C>)>,
    /// Panels that have arrived and are still needed for an update, oldest first.
    arrived: VecDeque<Panel>,
    /// Sends in flight of broadcasts that are complete on this rank.
    sends: Vec<C::Send>,
    info: usize,
}

impl<'a, C: Comm> Panels<'a, C> {
    /// No panel yet.
    pub(super) fn new(row: &'a C, params: &HplParams) -> Self {
        Self {
            row,
            bcast: params.bcast,
            l1: params.l1,
            bcasts: VecDeque::new(),
            arrived: VecDeque::new(),
            sends: Vec::new(),
            info: 0,
        }
    }

    /// Column + 1 of the first zero pivot of all panels that have arrived, else 0.
    pub(super) fn info(&self) -> usize {
        self.info
    }

    /// Starts the broadcast of a panel: as its root, which has `factored` it, or as a receiver.
    pub(super) fn start_bcast(&mut self, shape: &PanelShape, factored: Option<Msg>) {
        let broadcast = match factored {
            Some(msg) => Broadcast::send(self.row, self.bcast, shape.k, msg),
            None => Broadcast::receive(self.row, self.bcast, shape.k, shape.col, shape.words()),
        };
        self.bcasts.push_back((*shape, broadcast));
    }

    /// Whether panel `k` has arrived.
    pub(super) fn has(&self, k: usize) -> bool {
        self.arrived.back().is_some_and(|last| last.shape().k >= k)
    }

    /// Panel `k`, which [has arrived](Self::has) and is not yet released.
    pub(super) fn get(&self, k: usize) -> &Panel {
        &self.arrived[k - self.arrived[0].shape().k]
    }

    /// As [`get`](Self::get).
    pub(super) fn get_mut(&mut self, k: usize) -> &mut Panel {
        let first = self.arrived[0].shape().k;
        &mut self.arrived[k - first]
    }

    /// Releases the oldest panel, whose update is complete.
    pub(super) fn release_oldest(&mut self) {
        self.arrived.pop_front();
        self.sends.retain_mut(|send| !send.ready());
    }

    /// Waits for the oldest broadcast in flight.
    pub(super) fn wait_for_next(&mut self) -> Result<(), PeerGone> {
        let (shape, broadcast) =
            self.bcasts.pop_front().expect("the plan broadcasts a panel before the tasks that need it");
        let (msg, sends) = broadcast.finish(self.row)?;
        self.sends.extend(sends);
        let panel = Panel::new(shape, self.l1, msg);
        if self.info == 0 {
            self.info = panel.info();
        }
        self.arrived.push_back(panel);
        Ok(())
    }

    /// Waits for all broadcasts in flight.
    pub(super) fn wait_for_all(&mut self) -> Result<(), PeerGone> {
        while !self.bcasts.is_empty() {
            self.wait_for_next()?;
        }
        Ok(())
    }

    /// Forwards the messages that have arrived.
    pub(super) fn poll(&mut self) -> Result<(), PeerGone> {
        for (shape, broadcast) in std::mem::take(&mut self.bcasts) {
            self.bcasts.push_back((shape, broadcast.poll(self.row)?));
        }
        while self.bcasts.front_mut().is_some_and(|(_, broadcast)| broadcast.ready()) {
            self.wait_for_next()?;
        }
        self.sends.retain_mut(|send| !send.ready());
        Ok(())
    }

    /// Whether messages are in flight.
    pub(super) fn in_flight(&self) -> bool {
        !(self.bcasts.is_empty() && self.sends.is_empty())
    }

    /// Drops the panels that have arrived.
    pub(super) fn clear(&mut self) {
        self.arrived.clear();
    }

    /// Waits for the sends in flight.
    pub(super) fn finish_sends(&mut self) -> Result<(), Error> {
        Ok(self.sends.drain(..).try_for_each(Request::wait)?)
    }
}
