//! Runs whose messages progress only when polled, as those of MPI do.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::comm::grid::tag;
use crate::comm::{Buffers, PeerGone, Request, Tag};
use crate::mat::Buffer;

/// A rank that has to poll. It counts the tests of its sends of the back substitution, which complete in a wait only.
struct Polled {
    inner: ThreadComm,
    tests: Arc<AtomicUsize>,
}

/// A send of [`Polled`].
struct PolledSend {
    inner: <ThreadComm as Comm>::Send,
    /// Its tests are counted.
    tests: Option<Arc<AtomicUsize>>,
}

impl Request for PolledSend {
    type Done = ();

    fn ready(&mut self) -> bool {
        let Some(tests) = &self.tests else { return true };
        tests.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn wait(self) -> Result<(), PeerGone> {
        self.inner.wait()
    }
}

impl Comm for Polled {
    type Send = PolledSend;
    type Recv = <ThreadComm as Comm>::Recv;
    const ASYNC_PROGRESS: bool = false;
    const IN_PROCESS: bool = false;

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn buffers(&self) -> &Buffers {
        self.inner.buffers()
    }

    fn isend(&self, to: usize, tag: Tag, buf: crate::sync::Arc<Buffer>, range: Range<usize>) -> PolledSend {
        let tests = (tag == tag::TRSV_Y).then(|| Arc::clone(&self.tests));
        PolledSend { inner: self.inner.isend(to, tag, buf, range), tests }
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> Self::Recv {
        self.inner.irecv(from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        Ok(Self { inner: self.inner.split(color, key)?, tests: Arc::clone(&self.tests) })
    }

    fn poison(&self, reason: &str) {
        self.inner.poison(reason);
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        self.inner.barrier()
    }
}

/// The rows between two tests are few here; their number has no effect on x.
#[test]
fn the_back_substitution_tests_its_sends_while_it_computes() {
    for (p, q) in [(1, 2), (2, 3)] {
        let candidate = &candidate(200, 16, p, q, 1);
        let expected = passes(candidate).x;
        let found: Vec<(usize, Vec<f64>)> = thread::scope(|scope| {
            let rank = |inner: ThreadComm| {
                let comm = Polled { inner, tests: Arc::default() };
                let report = solve(candidate, &comm, &[], &Builtin::best(), &()).unwrap();
                (comm.tests.load(Ordering::Relaxed), report.x)
            };
            let ranks = threads::world(p * q, false).into_iter();
            let ranks: Vec<_> = ranks.map(|comm| scope.spawn(move || rank(comm))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for (tests, x) in found {
            assert!(tests > 1 && x == expected, "{tests} tests on {p}×{q}");
        }
    }
}
