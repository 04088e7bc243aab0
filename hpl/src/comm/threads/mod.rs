//! Ranks as threads of one process.
//!
//! A message is handed over, never copied: the receiver gets the sender's `Arc`. Each rank of the world has
//! one inbox for all its groups; a receive is *posted* there, or takes what has already arrived. A waiting
//! rank spins for at most half a millisecond when it has a core to itself, then parks.
//!
//! When a wait fails:
//! - **Poison** ([`Comm::poison`], a message of the wrong length, a panic while a [`ThreadComm`] is alive on
//!   the panicking thread) reaches the whole world: the groups above, below and beside. Every wait under way
//!   or begun later fails, for messages that have arrived too.
//! - **Leaving** (dropping a [`ThreadComm`] in normal course) takes the rank out of that one group. Messages
//!   it has sent stay receivable. Only a wait for a message that now can never come fails, and then poisons
//!   the world. A message to a rank that has left is lost in silence.

mod inbox;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::inbox::{Inbox, Key, Slot};
use super::{Buffers, Comm, Msg, PeerGone, Request, Tag};

/// How long a wait spins before it parks: longer than ranks of equal speed differ within a step, for to be woken takes
/// longer than most of these waits.
const SPIN: Duration = Duration::from_micros(500);

/// Tag of the messages of a barrier.
const BARRIER: Tag = Tag::MAX;

/// One rank of a group whose ranks are threads of this process.
pub struct ThreadComm {
    place: Arc<Place>,
}

/// A rank's place in a group. Its requests share it, so that no reference count is touched by two ranks.
struct Place {
    world: Arc<World>,
    group: Arc<Group>,
    rank: usize,
}

/// The world of `size` ranks; element r is to be moved to the thread of rank r.
///
/// `spin`: whether a wait may spin before it parks; false when the threads of all ranks exceed the cores.
///
/// # Panics
/// When `size` is 0.
pub fn world(size: usize, spin: bool) -> Vec<ThreadComm> {
    world_with(Arc::default(), size, spin)
}

/// As [`world`], with memory that outlives it.
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

/// What all groups of all ranks share.
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
        // The first cause stays. The flag is set before anybody is woken.
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
    /// Which ranks of the group have dropped their [`ThreadComm`].
    left: Vec<AtomicBool>,
    /// Colour and key that each rank passes to the split under way.
    bids: Mutex<Vec<(usize, usize)>>,
    /// New groups of the split under way, each at the place of its first rank.
    born: Mutex<Vec<Option<Arc<Group>>>>,
    /// The message of a barrier.
    empty: Arc<[f64]>,
}

impl Group {
    fn new(id: u32, members: Vec<usize>) -> Self {
        let size = members.len();
        Self {
            id,
            members,
            left: (0..size).map(|_| AtomicBool::new(false)).collect(),
            bids: Mutex::new(vec![(0, 0); size]),
            born: Mutex::new(vec![None; size]),
            empty: Arc::new([]),
        }
    }
}

/// A send of [`ThreadComm`]; complete from the start.
pub struct ThreadSend {
    place: Arc<Place>,
}

impl Request for ThreadSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        true
    }

    fn wait(self) -> Result<(), PeerGone> {
        self.place.world.check()
    }
}

/// A receive of [`ThreadComm`]. Dropped before its message has come, it still consumes that message.
pub struct ThreadRecv {
    place: Arc<Place>,
    from: usize,
    tag: Tag,
    slot: Slot,
}

impl ThreadRecv {
    fn settled(&self) -> bool {
        self.slot.get().is_some() || self.place.world.poisoned()
    }

    fn spin(&self) -> bool {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            // The clock costs as much as ten looks.
            for _ in 0..10 {
                if self.settled() {
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
        self.settled()
    }

    fn wait(self) -> Result<Msg, PeerGone> {
        let Place { world, group, rank: waiting } = &*self.place;
        let settled = self.settled() || world.spin && self.spin();
        if !settled {
            self.place.inbox().park(|| self.settled());
        }
        world.check()?;
        match self.slot.get().expect("settled and not poisoned") {
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

impl Place {
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
        ThreadRecv { place: Arc::clone(self), from, tag, slot }
    }

    fn wrong_length(&self, from: usize, to: usize, tag: Tag, got: usize, expected: usize) {
        let (from, to) = (self.group.members[from], self.group.members[to]);
        let reason = format!("it sent {got} doubles with tag {tag} where rank {to} expects {expected}");
        self.world.poison(PeerGone { rank: from, reason });
    }
}

impl ThreadComm {
    fn new(world: Arc<World>, group: Arc<Group>, rank: usize) -> Self {
        Self { place: Arc::new(Place { world, group, rank }) }
    }
}

impl Comm for ThreadComm {
    type Send = ThreadSend;
    type Recv = ThreadRecv;
    const ASYNC_PROGRESS: bool = true;

    fn rank(&self) -> usize {
        self.place.rank
    }

    fn size(&self) -> usize {
        self.place.group.members.len()
    }

    fn buffers(&self) -> &Buffers {
        &self.place.world.buffers
    }

    fn isend(&self, to: usize, tag: Tag, buf: Arc<[f64]>, range: Range<usize>) -> ThreadSend {
        assert!(tag != BARRIER, "tag {BARRIER} is reserved");
        self.place.send(to, tag, Msg::new(buf, range));
        ThreadSend { place: Arc::clone(&self.place) }
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> ThreadRecv {
        assert!(tag != BARRIER, "tag {BARRIER} is reserved");
        self.place.receive(from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        let Place { world, group, rank } = &*self.place;
        group.bids.lock()[*rank] = (color, key);
        self.barrier()?;
        let ranks = same_color(&group.bids.lock(), color);
        if ranks[0] == *rank {
            let id = world.next_group.fetch_add(1, Ordering::Relaxed);
            let members = ranks.iter().map(|&r| group.members[r]).collect();
            group.born.lock()[*rank] = Some(Arc::new(Group::new(id, members)));
        }
        // All bids are read and all groups born; the next split's first barrier protects `born`.
        self.barrier()?;
        let child = group.born.lock()[ranks[0]].clone().expect("born before the barrier");
        let new_rank = ranks.iter().position(|r| r == rank).expect("this rank has its own colour");
        Ok(Self::new(Arc::clone(world), child, new_rank))
    }

    fn poison(&self, reason: &str) {
        let rank = self.place.group.members[self.place.rank];
        self.place.world.poison(PeerGone { rank, reason: reason.to_owned() });
    }

    /// By dissemination: in round k each rank tells the one 2^k ahead and hears from the one 2^k behind.
    fn barrier(&self) -> Result<(), PeerGone> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            self.place.send((rank + distance) % size, BARRIER, Msg::new(Arc::clone(&self.place.group.empty), 0..0));
            self.place.receive((rank + size - distance) % size, BARRIER, 0).wait()?;
            distance *= 2;
        }
        self.place.world.check()
    }
}

/// The ranks whose bid has this colour, by key, then by rank.
fn same_color(bids: &[(usize, usize)], color: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..bids.len()).filter(|&r| bids[r].0 == color).collect();
    ranks.sort_by_key(|&r| (bids[r].1, r));
    ranks
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.poison("it panicked");
        }
        let Place { world, group, rank } = &*self.place;
        // First the flag, then the sweep: a receive posted in between is swept, a later one sees the flag.
        group.left[*rank].store(true, Ordering::Release);
        for &member in &group.members {
            world.inboxes[member].sender_left(group.id, *rank);
        }
    }
}
