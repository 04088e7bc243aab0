//! Sends and receives.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use super::operation::Operation;
use super::world::{Group, LAST_TAG, World};
use crate::comm::{Msg, PeerGone, Request, Tag};
use crate::mat::Buffer;
use crate::sync;

/// An [`Operation`]; if it is dropped before completion, the world keeps it.
struct Handle {
    group: Arc<Group>,
    operation: Option<Operation>,
}

impl Handle {
    fn operation(&mut self) -> &mut Operation {
        self.operation.as_mut().expect("taken only by drop or at the end of a wait")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take().filter(|operation| operation.completed.is_none()) {
            self.group.world.keep(operation);
        }
    }
}

/// Count and tag in MPI's types.
fn envelope(world: &World, len: usize, tag: Tag) -> (c_int, c_int) {
    assert!(tag <= LAST_TAG, "tag {tag} exceeds {LAST_TAG}, the largest that every MPI library takes");
    let count = c_int::try_from(len).unwrap_or_else(|_| {
        world.end_job(&format!("a message of {len} doubles exceeds MPI's limit of 2^31 - 1; lower NB or raise P"))
    });
    (count, tag as c_int)
}

/// A send of [`super::MpiComm`].
pub struct MpiSend {
    handle: Handle,
}

impl MpiSend {
    pub(super) fn start(group: &Arc<Group>, to: usize, tag: Tag, buf: sync::Arc<Buffer>, range: Range<usize>) -> Self {
        let world = &group.world;
        world.assert_thread();
        assert!(to < group.members.len(), "rank {to} of {}", group.members.len());
        let (count, tag) = envelope(world, range.len(), tag);
        let mut operation = Operation::new(buf);
        let data = operation.buf[range].as_ptr();
        // SAFETY: `count` doubles from `data` are in the buffer, which is held and not written until completion.
        let code = unsafe { (world.calls.isend)(data, count, to as c_int, tag, group.handle, operation.request()) };
        world.check(code, "MPI_Isend");
        Self { handle: Handle { group: Arc::clone(group), operation: Some(operation) } }
    }

    fn poll(&mut self) -> bool {
        let group = Arc::clone(&self.handle.group);
        let world = &*group.world;
        self.handle.operation().completed(world.calls).unwrap_or_else(|code| world.refuse(code, "MPI_Isend"))
    }
}

impl Request for MpiSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        self.poll()
    }

    fn wait(mut self) -> Result<(), PeerGone> {
        let group = Arc::clone(&self.handle.group);
        group.world.wait(|| self.poll());
        Ok(())
    }
}

/// A receive of [`super::MpiComm`]. If it is dropped before its message has arrived, it still consumes that message.
pub struct MpiRecv {
    handle: Handle,
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
        let mut operation = Operation::new(world.received.take(len));
        let data =
            sync::Arc::get_mut(&mut operation.buf).expect("new, or taken from the pool: not shared").as_mut_ptr();
        // SAFETY: `count` ≤ the length of the buffer, which is not shared until completion.
        let code =
            unsafe { (world.calls.irecv)(data, count, from as c_int, mpi_tag, group.handle, operation.request()) };
        world.check(code, "MPI_Irecv");
        Self { handle: Handle { group: Arc::clone(group), operation: Some(operation) }, from, tag, len }
    }

    fn poll(&mut self) -> bool {
        let group = Arc::clone(&self.handle.group);
        match self.handle.operation().completed(group.world.calls) {
            Ok(completed) => completed,
            Err(code) => self.refuse(code),
        }
    }

    /// Aborts the job after an error: the message is too long, or MPI failed.
    fn refuse(&self, code: c_int) -> ! {
        let world = &*self.handle.group.world;
        // SAFETY: `code` is an error code of MPI.
        if unsafe { (world.calls.is_truncation)(code) } != 0 {
            self.wrong_length(format_args!("more than {}", self.len));
        }
        world.refuse(code, "MPI_Irecv")
    }

    fn wrong_length(&self, got: std::fmt::Arguments<'_>) -> ! {
        let (group, tag, len) = (&self.handle.group, self.tag, self.len);
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
        let group = Arc::clone(&self.handle.group);
        group.world.wait(|| self.poll());
        let Operation { completed, buf, .. } = self.handle.operation.take().expect("not taken before");
        let got = completed.expect("waited for");
        if got as usize != self.len {
            self.wrong_length(format_args!("{got}"));
        }
        group.world.received.give(sync::Arc::clone(&buf));
        Ok(Msg::new(buf, 0..self.len))
    }
}
