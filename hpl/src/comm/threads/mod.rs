//! Ranks as threads of one process.
//!
//! A message is never copied: the receiver gets the sender's `Arc`. Each rank of the world has one inbox for
//! all its groups; a receive is *posted* there, or takes a message that has already arrived. A waiting rank
//! spins for at most half a millisecond if it has a core of its own, and then parks.
//!
//! When a wait fails:
//! - **Poison** ([`Comm::poison`], a message of the wrong length, a panic while a [`ThreadComm`] is alive on
//!   the panicking thread) applies to the whole world with all its groups. Every present and later wait
//!   fails, also for messages that have arrived.
//! - **Leaving** (dropping a [`ThreadComm`] without a panic) removes the rank from that one group. Messages
//!   it has sent can still be received. Only a wait for a message that it has not sent fails, and then poisons
//!   the world. A message to a rank that has left is kept until the world ends.

mod inbox;
#[cfg(loom)]
pub mod models;
#[cfg(test)]
mod tests;

use crate::mat::Buffer;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::inbox::{Inbox, Key, Slot};
use super::{Buffers, Comm, Msg, PeerGone, Request, Tag};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{self, Mutex, OnceLock};

/// Spin time of a wait before it parks: longer than the time by which ranks of equal speed differ within a step, because
/// waking a thread takes longer than most of these waits.
const SPIN: Duration = Duration::from_micros(500);

/// Tag of the messages of a barrier.
const BARRIER: Tag = Tag::MAX;

/// One rank of a group whose ranks are threads of this process.
pub struct ThreadComm {
    member: Arc<Member>,
}

/// A rank of a group. Its requests share this value, so that each reference count is used by one rank only.
struct Member {
    world: Arc<World>,
    group: Arc<Group>,
    rank: usize,
}

/// A world of `size` ranks; element r is to be moved to the thread of rank r.
///
/// `spin`: whether a wait may spin before it parks; false when the threads of all ranks exceed the cores.
///
/// # Panics
/// When `size` is 0.
pub fn world(size: usize, spin: bool) -> Vec<ThreadComm> {
    world_with(Arc::default(), size, spin)
}

/// As [`world`], with message buffers and matrices that outlive it.
pub(crate) fn world_with(buffers: Arc<Buffers>, size: usize, spin: bool) -> Vec<ThreadComm> {
    assert!(size > 0, "a world has at least one rank");
    let world = Arc::new(World {
        inboxes: (0..size).map(|_| Inbox::default()).collect(),
        buffers,
        next_group: AtomicU32::new(1),
        poisoned: AtomicBool::new(false),
        cause: OnceLock::new(),
        spin,
    });
    let group = Arc::new(Group::new(0, (0..size).collect()));
    (0..size).map(|rank| ThreadComm::new(Arc::clone(&world), Arc::clone(&group), rank)).collect()
}

/// State shared by all groups of all ranks.
struct World {
    /// One per rank.
    inboxes: Vec<Inbox>,
    buffers: Arc<Buffers>,
    next_group: AtomicU32,
    poisoned: AtomicBool,
    cause: OnceLock<PeerGone>,
    spin: bool,
}

impl World {
    fn poison(&self, cause: PeerGone) {
        // The first cause is kept. The flag is set before any thread is woken.
        let _ = self.cause.set(cause);
        self.poisoned.store(true, Ordering::Release);
        for inbox in &self.inboxes {
            inbox.wake_all();
        }
    }

    fn poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<(), PeerGone> {
        if !self.poisoned() {
            return Ok(());
        }
        Err(self.cause.get().expect("set before the flag").clone())
    }
}

/// A set of ranks with their own message space.
struct Group {
    id: u32,
    /// World rank of each rank of the group.
    members: Vec<usize>,
    /// For each rank of the group, whether it has dropped its [`ThreadComm`].
    left: Vec<AtomicBool>,
    /// Colour and key of each rank in the current split.
    split_keys: Mutex<Vec<(usize, usize)>>,
    /// New groups of the current split, each at the index of its first rank.
    split_groups: Mutex<Vec<Option<Arc<Group>>>>,
    /// The message of a barrier.
    empty: sync::Arc<Buffer>,
}

impl Group {
    fn new(id: u32, members: Vec<usize>) -> Self {
        let size = members.len();
        Self {
            id,
            members,
            left: (0..size).map(|_| AtomicBool::new(false)).collect(),
            split_keys: Mutex::new(vec![(0, 0); size]),
            split_groups: Mutex::new(vec![None; size]),
            empty: sync::Arc::default(),
        }
    }
}

/// A send of [`ThreadComm`]; complete from the start.
pub struct ThreadSend {
    member: Arc<Member>,
}

impl Request for ThreadSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        true
    }

    fn wait(self) -> Result<(), PeerGone> {
        self.member.world.check()
    }
}

/// A receive of [`ThreadComm`]. If it is dropped before its message has arrived, it still consumes that message.
pub struct ThreadRecv {
    member: Arc<Member>,
    from: usize,
    tag: Tag,
    slot: Slot,
}

impl ThreadRecv {
    fn done(&self) -> bool {
        self.slot.get().is_some() || self.member.world.poisoned()
    }

    fn spin(&self) -> bool {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            // Reading the clock costs as much as ten tests.
            for _ in 0..10 {
                if self.done() {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }
}

impl Request for ThreadRecv {
    type Done = Msg;

    fn ready(&mut self) -> bool {
        self.done()
    }

    fn wait(self) -> Result<Msg, PeerGone> {
        let Member { world, group, rank: waiting } = &*self.member;
        let done = self.done() || world.spin && self.spin();
        if !done {
            self.member.inbox().park(|| self.done());
        }
        world.check()?;
        match self.slot.get().expect("done and not poisoned") {
            Some(msg) => Ok(msg.clone()),
            None => {
                let (rank, waiting) = (group.members[self.from], group.members[*waiting]);
                let reason = format!("it left while rank {waiting} waits for its message with tag {}", self.tag);
                world.poison(PeerGone { rank, reason });
                Err(world.check().expect_err("just poisoned"))
            }
        }
    }
}

impl Member {
    fn inbox(&self) -> &Inbox {
        &self.world.inboxes[self.group.members[self.rank]]
    }

    fn send(&self, to: usize, tag: Tag, msg: Msg) {
        let key = Key { group: self.group.id, from: self.rank, tag };
        let got = msg.len();
        if let Err(len) = self.world.inboxes[self.group.members[to]].deliver(key, msg) {
            self.wrong_length(self.rank, to, tag, got, len);
        }
    }

    fn receive(self: &Arc<Self>, from: usize, tag: Tag, len: usize) -> ThreadRecv {
        let key = Key { group: self.group.id, from, tag };
        let slot = self.inbox().post(key, len, &self.group.left[from]).unwrap_or_else(|got| {
            self.wrong_length(from, self.rank, tag, got, len);
            Slot::default()
        });
        ThreadRecv { member: Arc::clone(self), from, tag, slot }
    }

    fn wrong_length(&self, from: usize, to: usize, tag: Tag, got: usize, expected: usize) {
        let (from, to) = (self.group.members[from], self.group.members[to]);
        let reason = format!("it sent {got} doubles with tag {tag} where rank {to} expects {expected}");
        self.world.poison(PeerGone { rank: from, reason });
    }
}

impl ThreadComm {
    fn new(world: Arc<World>, group: Arc<Group>, rank: usize) -> Self {
        Self { member: Arc::new(Member { world, group, rank }) }
    }
}

impl Comm for ThreadComm {
    type Send = ThreadSend;
    type Recv = ThreadRecv;
    const ASYNC_PROGRESS: bool = true;
    const IN_PROCESS: bool = true;

    fn rank(&self) -> usize {
        self.member.rank
    }

    fn size(&self) -> usize {
        self.member.group.members.len()
    }

    fn world_rank(&self) -> usize {
        self.member.group.members[self.member.rank]
    }

    fn buffers(&self) -> &Buffers {
        &self.member.world.buffers
    }

    fn isend(&self, to: usize, tag: Tag, buf: sync::Arc<Buffer>, range: Range<usize>) -> ThreadSend {
        assert!(tag != BARRIER, "tag {BARRIER} is reserved");
        self.member.send(to, tag, Msg::new(buf, range));
        ThreadSend { member: Arc::clone(&self.member) }
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> ThreadRecv {
        assert!(tag != BARRIER, "tag {BARRIER} is reserved");
        self.member.receive(from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        let Member { world, group, rank } = &*self.member;
        group.split_keys.lock()[*rank] = (color, key);
        self.barrier()?;
        let ranks = same_color(&group.split_keys.lock(), color);
        if ranks[0] == *rank {
            let id = world.next_group.fetch_add(1, Ordering::Relaxed);
            let members = ranks.iter().map(|&r| group.members[r]).collect();
            group.split_groups.lock()[*rank] = Some(Arc::new(Group::new(id, members)));
        }
        // All keys are read and all groups created; the first barrier of the next split protects `split_groups`.
        self.barrier()?;
        let child = group.split_groups.lock()[ranks[0]].clone().expect("created before the barrier");
        let new_rank = ranks.iter().position(|r| r == rank).expect("this rank has its own colour");
        Ok(Self::new(Arc::clone(world), child, new_rank))
    }

    fn poison(&self, reason: &str) {
        self.member.world.poison(PeerGone { rank: self.world_rank(), reason: reason.to_owned() });
    }

    /// Dissemination barrier: in round k each rank sends to rank + 2^k and receives from rank − 2^k.
    fn barrier(&self) -> Result<(), PeerGone> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            self.member.send(
                (rank + distance) % size,
                BARRIER,
                Msg::new(sync::Arc::clone(&self.member.group.empty), 0..0),
            );
            self.member.receive((rank + size - distance) % size, BARRIER, 0).wait()?;
            distance *= 2;
        }
        self.member.world.check()
    }
}

/// The ranks with this colour in `keys`, by key, then by rank.
fn same_color(keys: &[(usize, usize)], color: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..keys.len()).filter(|&r| keys[r].0 == color).collect();
    ranks.sort_by_key(|&r| (keys[r].1, r));
    ranks
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.poison("it panicked");
        }
        let Member { world, group, rank } = &*self.member;
        // First the flag, then the inboxes: `sender_left` fails receives posted before it, later ones find the flag set,
        // as the lock of the inbox is taken in between.
        group.left[*rank].store(true, Ordering::Relaxed);
        for &receiver in &group.members {
            world.inboxes[receiver].sender_left(group.id, *rank);
        }
    }
}
