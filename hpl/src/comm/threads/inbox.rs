//! The messages of one rank: what has arrived and what is awaited.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use crate::comm::{Msg, Tag};

/// What a message is found by. `from` is a rank of the group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) group: u32,
    pub(super) from: usize,
    pub(super) tag: Tag,
}

/// Where a posted receive gets its message; `None` when the sender has left without sending it.
pub(super) type Slot = Arc<OnceLock<Option<Msg>>>;

/// The messages of one rank, in all its groups.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    arrival: Condvar,
}

#[derive(Default)]
struct InboxState {
    /// Arrived before their receive was posted, oldest first.
    unexpected: VecDeque<(Key, Msg)>,
    /// Receives whose message has not arrived, with the expected length, oldest first.
    posted: VecDeque<(Key, usize, Slot)>,
    /// Threads parked on `arrival`; nobody is notified in vain, which would cost a system call.
    parked: usize,
}

impl Inbox {
    /// Takes a message that has arrived, or posts a receive for it; fails it when its sender has left.
    /// `Err`: the length of the message, which is not `len`.
    pub(super) fn post(&self, key: Key, len: usize, sender_left: &AtomicBool) -> Result<Slot, usize> {
        let mut state = self.state.lock();
        if let Some(at) = state.unexpected.iter().position(|(arrived, _)| *arrived == key) {
            let (_, msg) = state.unexpected.remove(at).expect("position found above");
            let got = msg.len();
            return if got == len { Ok(Slot::new(Some(msg).into())) } else { Err(got) };
        }
        if sender_left.load(Ordering::Acquire) {
            return Ok(Slot::new(None.into()));
        }
        let slot = Slot::default();
        state.posted.push_back((key, len, Arc::clone(&slot)));
        Ok(slot)
    }

    /// Hands a message to the first receive posted for it, or keeps it. `Err`: the length expected there.
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
        // Filled under the lock: a receiver about to park looks at its slot under the same lock.
        let _ = slot.set(Some(msg));
        drop(state);
        if parked {
            self.arrival.notify_all();
        }
        Ok(())
    }

    /// Fails the receives that wait for messages of rank `from` of `group`, which has left.
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

    /// Sleeps until `settled`, which is looked at after each arrival.
    pub(super) fn park(&self, settled: impl Fn() -> bool) {
        let mut state = self.state.lock();
        while !settled() {
            state.parked += 1;
            self.arrival.wait(&mut state);
            state.parked -= 1;
        }
    }

    /// Lets every parked thread look again.
    pub(super) fn wake_all(&self) {
        // Through the lock, so that a thread between its last look and its sleep is not missed.
        drop(self.state.lock());
        self.arrival.notify_all();
    }
}
