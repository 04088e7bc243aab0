//! Panel broadcast along a process row: four trees of rings, forwarded without blocking.
//!
//! Positions count from the root around the ring of Q process columns. Every other position gets the panel
//! from [`Ring::parent`] and passes it on as soon as it has seen it arrive [HPL, `src/comm/HPL_*rin*.c`].

use std::sync::Arc;

use space::Bcast;

use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::grid::{position, rank_at, tag};

/// The broadcasts in which a panel travels as one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// 1ring: each position sends to the next.
    One,
    /// 1ringM: the root serves position 1, which does not forward, and starts the ring at position 2.
    OneM,
    /// 2ring: two half rings, the second starting at position ⌈Q/2⌉.
    Two,
    /// 2ringM: position 1 does not forward; half rings start at positions 2 and ⌈Q/2⌉.
    TwoM,
}

impl Ring {
    /// The ring of a BCAST variant; `None` for the long ones, which cut the panel in pieces.
    pub fn of(bcast: Bcast) -> Option<Self> {
        match bcast {
            Bcast::OneRing => Some(Self::One),
            Bcast::OneRingM => Some(Self::OneM),
            Bcast::TwoRing => Some(Self::Two),
            Bcast::TwoRingM => Some(Self::TwoM),
            Bcast::Long | Bcast::LongM => None,
        }
    }

    /// Position that sends the panel to `position` among `q`; `None` for the root, position 0.
    pub fn parent(self, position: usize, q: usize) -> Option<usize> {
        let half = q.div_ceil(2);
        let from_root = match self {
            Self::One => position == 1,
            Self::OneM => position <= 2,
            Self::Two => position == 1 || position == half,
            Self::TwoM => position <= 2 || position == half,
        };
        match position {
            0 => None,
            _ if from_root => Some(0),
            _ => Some(position - 1),
        }
    }

    /// Positions that `position` sends to, in order.
    pub fn children(self, position: usize, q: usize) -> impl Iterator<Item = usize> {
        (position + 1..q).filter(move |&child| self.parent(child, q) == Some(position))
    }
}

/// One panel on its way through a process row, as one rank sees it.
pub(crate) struct Broadcast<C: Comm> {
    root: usize,
    ring: Ring,
    state: State<C>,
    /// Sends under way; completed by the caller, who has better things to do than to wait for them.
    sends: Vec<C::Send>,
}

enum State<C: Comm> {
    Expected(C::Recv),
    Here(Msg),
}

impl<C: Comm> Broadcast<C> {
    /// The root's side: sends `msg` to its children.
    pub(crate) fn send(row: &C, ring: Ring, msg: Msg) -> Self {
        let mut broadcast = Self { root: row.rank(), ring, state: State::Here(msg), sends: Vec::new() };
        broadcast.forward(row);
        broadcast
    }

    /// The others' side: expects a panel of `len` doubles from the tree that starts at rank `root`.
    pub(crate) fn receive(row: &C, ring: Ring, root: usize, len: usize) -> Self {
        let parent = ring.parent(position(row.rank(), root, row.size()), row.size()).expect("not the root");
        let recv = row.irecv(rank_at(parent, root, row.size()), tag::LBCAST, len);
        Self { root, ring, state: State::Expected(recv), sends: Vec::new() }
    }

    /// Forwards the panel if it has arrived.
    pub(crate) fn poll(self, row: &C) -> Result<Self, PeerGone> {
        match self.state {
            State::Expected(mut recv) => {
                if recv.ready() {
                    let mut here = Self { state: State::Here(recv.wait()?), ..self };
                    here.forward(row);
                    Ok(here)
                } else {
                    Ok(Self { state: State::Expected(recv), ..self })
                }
            }
            State::Here(_) => Ok(self),
        }
    }

    /// Waits for the panel, forwards it, and returns it with the sends under way.
    pub(crate) fn finish(self, row: &C) -> Result<(Msg, Vec<C::Send>), PeerGone> {
        match self.state {
            State::Here(msg) => Ok((msg, self.sends)),
            State::Expected(recv) => {
                let mut here = Self { state: State::Here(recv.wait()?), ..self };
                here.forward(row);
                here.finish(row)
            }
        }
    }

    fn forward(&mut self, row: &C) {
        let State::Here(msg) = &self.state else { return };
        let (buf, range) = msg.parts();
        let q = row.size();
        for child in self.ring.children(position(row.rank(), self.root, q), q) {
            let to = rank_at(child, self.root, q);
            self.sends.push(row.isend(to, tag::LBCAST, Arc::clone(&buf), range.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::comm::threads;

    const RINGS: [Ring; 4] = [Ring::One, Ring::OneM, Ring::Two, Ring::TwoM];

    #[test]
    fn parents_form_a_tree() {
        for (ring, q) in RINGS.into_iter().flat_map(|ring| (1..=17).map(move |q| (ring, q))) {
            for start in 1..q {
                let mut at = start;
                while let Some(parent) = ring.parent(at, q) {
                    assert!(parent < at, "every step leads towards the root");
                    assert!(ring.children(parent, q).any(|child| child == at));
                    at = parent;
                }
                assert_eq!(at, 0);
            }
            assert_eq!((0..q).map(|at| ring.children(at, q).count()).sum::<usize>(), q - 1, "one copy each");
        }
    }

    /// The published patterns: edges (sender, receiver) for Q = 2 and Q = 6.
    #[test]
    fn published_message_patterns() {
        let edges = |ring: Ring, q| -> Vec<(usize, usize)> {
            (0..q).flat_map(|from| ring.children(from, q).map(move |to| (from, to))).collect()
        };
        for ring in RINGS {
            assert_eq!(edges(ring, 2), [(0, 1)]);
        }
        assert_eq!(edges(Ring::One, 6), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
        assert_eq!(edges(Ring::OneM, 6), [(0, 1), (0, 2), (2, 3), (3, 4), (4, 5)]);
        assert_eq!(edges(Ring::Two, 6), [(0, 1), (0, 3), (1, 2), (3, 4), (4, 5)]);
        assert_eq!(edges(Ring::TwoM, 6), [(0, 1), (0, 2), (0, 3), (3, 4), (4, 5)]);
        assert_eq!(edges(Ring::TwoM, 4), [(0, 1), (0, 2), (2, 3)]);
    }

    #[test]
    fn everyone_gets_the_same_copy() {
        for (ring, q) in RINGS.into_iter().flat_map(|ring| (1..=7).map(move |q| (ring, q))) {
            let root = q / 2;
            let original: Arc<[f64]> = (0..100).map(f64::from).collect();
            thread::scope(|scope| {
                for row in threads::world(q, false) {
                    let original = Arc::clone(&original);
                    scope.spawn(move || {
                        let broadcast = if row.rank() == root {
                            Broadcast::send(&row, ring, Msg::new(Arc::clone(&original), 10..20))
                        } else {
                            Broadcast::receive(&row, ring, root, 10)
                        };
                        let (msg, sends) = broadcast.poll(&row).unwrap().finish(&row).unwrap();
                        assert!(Arc::ptr_eq(&msg.parts().0, &original), "shared, not copied");
                        assert_eq!(msg[0], 10.0);
                        sends.into_iter().for_each(|send| send.wait().unwrap());
                        row.barrier().unwrap();
                    });
                }
            });
        }
    }
}
