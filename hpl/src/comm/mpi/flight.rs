//! Sends and receives under way, with the buffers they use.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use super::{Group, LAST_TAG, Raw, World};
use crate::comm::{Msg, PeerGone, Request, Tag};

/// An operation of MPI and the buffer it reads or writes.
pub(super) struct Flight {
    request: Raw,
    /// Doubles received; `None` while under way.
    landed: Option<c_int>,
    buf: Arc<[f64]>,
}

impl Flight {
    /// A flight not yet begun, with the buffer that it will use.
    pub(super) fn new(buf: Arc<[f64]>) -> Self {
        Self { request: 0, landed: None, buf }
    }

    /// Where MPI puts the request that begins the flight.
    pub(super) fn request(&mut self) -> &mut Raw {
        &mut self.request
    }

    /// Whether it has ended; `Err` is the code of its failure.
    pub(super) fn landed(&mut self, world: &World) -> Result<bool, c_int> {
        if self.landed.is_some() {
            return Ok(true);
        }
        world.assert_thread();
        let (mut flag, mut count) = (0, 0);
        // SAFETY: a request begun on this thread and not yet ended.
        let code = unsafe { (world.calls.test)(&mut self.request, &mut flag, &mut count) };
        if code != 0 {
            return Err(code);
        }
        if flag == 0 {
            return Ok(false);
        }
        self.landed = Some(count);
        Ok(true)
    }
}

/// A [`Flight`] that its world adopts when it is dropped too early.
struct Owned {
    group: Arc<Group>,
    flight: Option<Flight>,
}

impl Owned {
    fn flight(&mut self) -> &mut Flight {
        self.flight.as_mut().expect("taken by drop or the end of a wait only")
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take().filter(|flight| flight.landed.is_none()) {
            self.group.world.adopt(flight);
        }
    }
}

/// A count and a tag as MPI takes them.
fn envelope(world: &World, len: usize, tag: Tag) -> (c_int, c_int) {
    assert!(tag <= LAST_TAG, "tag {tag} exceeds {LAST_TAG}, the largest that every MPI library takes");
    let count = c_int::try_from(len).unwrap_or_else(|_| {
        world.end_job(&format!("a message of {len} doubles exceeds MPI's limit of 2^31 - 1; lower NB or raise P"))
    });
    (count, tag as c_int)
}

/// A send of [`super::MpiComm`].
pub struct MpiSend {
    owned: Owned,
}

impl MpiSend {
    pub(super) fn start(group: &Arc<Group>, to: usize, tag: Tag, buf: Arc<[f64]>, range: Range<usize>) -> Self {
        let world = &group.world;
        world.assert_thread();
        assert!(to < group.members.len(), "rank {to} of {}", group.members.len());
        let (count, tag) = envelope(world, range.len(), tag);
        let mut flight = Flight::new(buf);
        let data = flight.buf[range].as_ptr();
        // SAFETY: `count` doubles from `data` lie in the buffer, which is held and not written until MPI is done.
        let code = unsafe { (world.calls.isend)(data, count, to as c_int, tag, group.handle, flight.request()) };
        world.check(code, "MPI_Isend");
        Self { owned: Owned { group: Arc::clone(group), flight: Some(flight) } }
    }

    fn poll(&mut self) -> bool {
        let group = Arc::clone(&self.owned.group);
        let world = &*group.world;
        self.owned.flight().landed(world).unwrap_or_else(|code| world.refuse(code, "MPI_Isend"))
    }
}

impl Request for MpiSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        self.poll()
    }

    fn wait(mut self) -> Result<(), PeerGone> {
        let group = Arc::clone(&self.owned.group);
        group.world.wait(|| self.poll());
        Ok(())
    }
}

/// A receive of [`super::MpiComm`]. Dropped before its message has come, it still consumes that message.
pub struct MpiRecv {
    owned: Owned,
    from: usize,
    tag: Tag,
    len: usize,
}

impl MpiRecv {
    pub(super) fn start(group: &Arc<Group>, from: usize, tag: Tag, len: usize) -> Self {
        let world = &group.world;
        world.assert_thread();
        assert!(from < group.members.len(), "rank {from} of {}", group.members.len());
        let (count, mpi_tag) = envelope(world, len, tag);
        let mut flight = Flight::new(world.received.take(len));
        let data = Arc::get_mut(&mut flight.buf).expect("new, or taken from the pool: one holder").as_mut_ptr();
        // SAFETY: `count` ≤ the length of the buffer, which nobody else holds until MPI is done.
        let code = unsafe { (world.calls.irecv)(data, count, from as c_int, mpi_tag, group.handle, flight.request()) };
        world.check(code, "MPI_Irecv");
        Self { owned: Owned { group: Arc::clone(group), flight: Some(flight) }, from, tag, len }
    }

    fn poll(&mut self) -> bool {
        let group = Arc::clone(&self.owned.group);
        match self.owned.flight().landed(&group.world) {
            Ok(landed) => landed,
            Err(code) => self.refuse(code),
        }
    }

    /// Ends the job for a message that does not fit or does not come.
    fn refuse(&self, code: c_int) -> ! {
        let world = &*self.owned.group.world;
        // SAFETY: `code` came from MPI.
        if unsafe { (world.calls.is_truncation)(code) } != 0 {
            self.wrong_length(format_args!("more than {}", self.len));
        }
        world.refuse(code, "MPI_Irecv")
    }

    fn wrong_length(&self, got: std::fmt::Arguments<'_>) -> ! {
        let (group, tag, len) = (&self.owned.group, self.tag, self.len);
        let (from, to) = (group.members[self.from], group.members[group.rank]);
        group.world.end_job(&format!("rank {from} sent {got} doubles with tag {tag} where rank {to} expects {len}"))
    }
}

impl Request for MpiRecv {
    type Done = Msg;

    fn ready(&mut self) -> bool {
        self.poll()
    }

    fn wait(mut self) -> Result<Msg, PeerGone> {
        let group = Arc::clone(&self.owned.group);
        group.world.wait(|| self.poll());
        let Flight { landed, buf, .. } = self.owned.flight.take().expect("not taken before");
        let got = landed.expect("waited for");
        if got as usize != self.len {
            self.wrong_length(format_args!("{got}"));
        }
        group.world.received.give(Arc::clone(&buf));
        Ok(Msg::new(buf, 0..self.len))
    }
}
