//! The messages of one rank: those that have arrived and those that receives wait for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::comm::{Msg, Tag};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, OnceLock};

/// Group, sender and tag, by which messages and receives match. `from` is a rank of the group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) group: u32,
    pub(super) from: usize,
    pub(super) tag: Tag,
}

/// The result of a posted receive: its message, or `None` when the sender has ended without sending it.
pub(super) type Slot = Arc<OnceLock<Option<Msg>>>;

/// The messages of one rank, in all its groups.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    arrival: Condvar,
}

#[derive(Default)]
struct InboxState {
    /// Messages that arrived before their receive was posted, oldest first.
    unexpected: VecDeque<(Key, Msg)>,
    /// Receives whose message has not arrived, with the expected length, oldest first.
    posted: VecDeque<(Key, usize, Slot)>,
    /// Number of threads parked on `arrival`; with none, notifying, a system call, is skipped.
    parked: usize,
}

impl Inbox {
    /// Takes a message that has arrived, or posts a receive for it, which fails when the sender has left the group.
    /// `Err`: the length of the message, when it differs from `len`.
    pub(super) fn post(&self, key: Key, len: usize, sender_left: &AtomicBool) -> Result<Slot, usize> {
        let mut state = self.state.lock();
        if let Some(at) = state.unexpected.iter().position(|(arrived, _)| *arrived == key) {
            let (_, msg) = state.unexpected.remove(at).expect("position found above");
            let got = msg.len();
            return if got == len { Ok(Slot::new(Some(msg).into())) } else { Err(got) };
        }
        // The lock orders it: messages are delivered before their sender leaves.
        if sender_left.load(Ordering::Relaxed) {
            return Ok(Slot::new(None.into()));
        }
        let slot = Slot::default();
        state.posted.push_back((key, len, Arc::clone(&slot)));
        Ok(slot)
    }

    /// Completes the first receive posted for the message, or stores the message. `Err`: the expected length.
    pub(super) fn deliver(&self, key: Key, msg: Msg) -> Result<(), usize> {
        let mut state = self.state.lock();
        let Some(at) = state.posted.iter().position(|(posted, ..)| *posted == key) else {
            state.unexpected.push_back((key, msg));
            return Ok(());
        };
        let (_, len, slot) = state.posted.remove(at).expect("position found above");
        if msg.len() != len {
            return Err(len);
        }
        let parked = state.parked > 0;
        // Set under the lock: a receiver tests its slot under the same lock before it parks.
        let _ = slot.set(Some(msg));
        drop(state);
        if parked {
            self.arrival.notify_all();
        }
        Ok(())
    }

    /// Fails the receives from rank `from` of `group`, which has left the group.
    pub(super) fn sender_left(&self, group: u32, from: usize) {
        let mut state = self.state.lock();
        state.posted.retain(|(key, _, slot)| {
            let lost = key.group == group && key.from == from;
            if lost {
                let _ = slot.set(None);
            }
            !lost
        });
        drop(state);
        self.arrival.notify_all();
    }

    /// Sleeps until `done`, which is tested after each arrival.
    pub(super) fn park(&self, done: impl Fn() -> bool) {
        let mut state = self.state.lock();
        while !done() {
            state.parked += 1;
            self.arrival.wait(&mut state);
            state.parked -= 1;
        }
    }

    /// Wakes every parked thread.
    pub(super) fn wake_all(&self) {
        // The lock is taken so that a thread between its last test and its sleep is not missed.
        drop(self.state.lock());
        self.arrival.notify_all();
    }
}
