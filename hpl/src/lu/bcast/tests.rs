use std::collections::VecDeque;
use std::thread;

use super::*;
use crate::comm::Buffers;
use crate::comm::recording::{Recording, Sent};
use crate::comm::threads::{self, ThreadComm};
use crate::mat::Buffer;

const VARIANTS: [Bcast; 6] =
    [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];

/// A group whose messages are copied, as between processes.
struct Remote(ThreadComm);

impl Comm for Remote {
    type Send = <ThreadComm as Comm>::Send;
    type Recv = <ThreadComm as Comm>::Recv;
    const ASYNC_PROGRESS: bool = true;
    const IN_PROCESS: bool = true;

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn buffers(&self) -> &Buffers {
        self.0.buffers()
    }

    fn isend(&self, to: usize, tag: Tag, buf: Arc<Buffer>, range: Range<usize>) -> Self::Send {
        let len = range.len();
        self.0.isend(to, tag, Arc::new(Buffer::from(&buf[range])), 0..len)
    }

    fn irecv(&self, from: usize, tag: Tag, len: usize) -> Self::Recv {
        self.0.irecv(from, tag, len)
    }

    fn split(&self, color: usize, key: usize) -> Result<Self, PeerGone> {
        self.0.split(color, key).map(Self)
    }

    fn poison(&self, reason: &str) {
        self.0.poison(reason);
    }

    fn barrier(&self) -> Result<(), PeerGone> {
        self.0.barrier()
    }
}

/// Results of `body` on each rank of a new group of `q` ranks.
fn on_each<C: Comm, T: Send>(q: usize, wrap: fn(ThreadComm) -> C, body: impl Fn(&C) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let body = &body;
        let ranks: Vec<_> = threads::world(q, false)
            .into_iter()
            .map(|comm| {
                scope.spawn(move || {
                    let row = wrap(comm);
                    let result = body(&row);
                    row.barrier().unwrap();
                    result
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// A small random number generator.
struct Random(usize);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The panel of broadcast `number`; panels of different broadcasts have no element in common.
fn panel(number: usize, len: usize) -> Arc<Buffer> {
    let data: Vec<f64> = (0..len).map(|i| (number * 1000 + i) as f64).collect();
    Arc::new(Buffer::from(&data[..]))
}

fn start<C: Comm>(row: &C, variant: Bcast, number: usize, root: usize, len: usize) -> Broadcast<C> {
    if row.rank() == root {
        Broadcast::send(row, variant, number, Msg::new(panel(number, len + 20), 10..10 + len))
    } else {
        Broadcast::receive(row, variant, number, root, len)
    }
}

fn finish<C: Comm>(row: &C, broadcast: Broadcast<C>, number: usize, len: usize) -> Msg {
    let (msg, sends) = broadcast.finish(row).unwrap();
    assert_eq!(*msg, panel(number, len + 20)[10..10 + len], "broadcast {number} on rank {}", row.rank());
    sends.into_iter().for_each(|send| send.wait().unwrap());
    msg
}

/// The messages that each position sends in one broadcast from `root`, in order: (receiver, doubles).
fn sent_messages(variant: Bcast, q: usize, root: usize, len: usize) -> Vec<Vec<(usize, usize)>> {
    let sent: Vec<Vec<Sent>> = on_each(q, Recording::new, |row| {
        finish(row, start(row, variant, 3, root, len), 3, len);
        row.sent()
    });
    let of = |at| sent[rank_at(at, root, q)].iter().map(|sent| (position(sent.to, root, q), sent.len)).collect();
    (0..q).map(of).collect()
}

/// The published trees: the parent of position 1, 2, …, for Q = 2 to 8.
#[test]
fn rings_send_the_published_messages() {
    let published: [(Bcast, [&[usize]; 7]); 4] = [
        (
            Bcast::OneRing,
            [&[0], &[0, 1], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 5, 6]],
        ),
        (
            Bcast::OneRingM,
            [&[0], &[0, 0], &[0, 0, 2], &[0, 0, 2, 3], &[0, 0, 2, 3, 4], &[0, 0, 2, 3, 4, 5], &[0, 0, 2, 3, 4, 5, 6]],
        ),
        (
            Bcast::TwoRing,
            [&[0], &[0, 0], &[0, 0, 2], &[0, 1, 0, 3], &[0, 1, 0, 3, 4], &[0, 1, 2, 0, 4, 5], &[0, 1, 2, 0, 4, 5, 6]],
        ),
        (
            Bcast::TwoRingM,
            [&[0], &[0, 0], &[0, 0, 2], &[0, 0, 0, 3], &[0, 0, 0, 3, 4], &[0, 0, 2, 0, 4, 5], &[0, 0, 2, 0, 4, 5, 6]],
        ),
    ];
    for (variant, trees) in published {
        for (q, parents) in (2..).zip(trees) {
            let children =
                |at: usize| (1..q).filter(|child| parents[child - 1] == at).map(|child| (child, 11)).collect();
            let expected: Vec<Vec<(usize, usize)>> = (0..q).map(children).collect();
            assert_eq!(sent_messages(variant, q, q / 3, 11), expected, "{variant:?} Q = {q}");
        }
    }
}

/// The published tree of the spread among n = 2 to 8: sender, receiver, first piece, last piece + 1.
const SPREAD: [&[(usize, usize, usize, usize)]; 7] = [
    &[(0, 1, 1, 2)],
    &[(0, 2, 2, 3), (0, 1, 1, 2)],
    &[(0, 2, 2, 4), (0, 1, 1, 2), (2, 3, 3, 4)],
    &[(0, 4, 4, 5), (0, 2, 2, 4), (0, 1, 1, 2), (2, 3, 3, 4)],
    &[(0, 4, 4, 6), (0, 2, 2, 4), (0, 1, 1, 2), (2, 3, 3, 4), (4, 5, 5, 6)],
    &[(0, 4, 4, 7), (0, 2, 2, 4), (4, 6, 6, 7), (0, 1, 1, 2), (2, 3, 3, 4), (4, 5, 5, 6)],
    &[(0, 4, 4, 8), (0, 2, 2, 4), (4, 6, 6, 8), (0, 1, 1, 2), (2, 3, 3, 4), (4, 5, 5, 6), (6, 7, 7, 8)],
];

/// The pieces that position `from` sends to `to` among `n` ≥ 2, in the published spread and roll. In the roll a position
/// forwards to its neighbour on one side the pieces received from the other side, its own piece first. The neighbour that it
/// sends to first (the next one for an even position) gets one message more if n − 1 is odd.
fn published_pieces(from: usize, to: usize, n: usize) -> Vec<Range<usize>> {
    let spread = SPREAD[n - 2].iter().filter(|edge| (edge.0, edge.1) == (from, to)).map(|edge| edge.2..edge.3);
    let (first, second) = (n / 2, (n - 1) / 2);
    let (to_next, to_previous) = if from.is_multiple_of(2) { (first, second) } else { (second, first) };
    let mut pieces: Vec<usize> = Vec::new();
    if to == (from + 1) % n {
        pieces.extend((0..to_next).map(|back| (from + n - back) % n));
    }
    if from == (to + 1) % n {
        pieces.extend((0..to_previous).map(|ahead| (from + ahead) % n));
    }
    spread.chain(pieces.into_iter().map(|piece| piece..piece + 1)).collect()
}

#[test]
fn long_variants_send_the_published_pieces() {
    for (q, len) in (3..=8).flat_map(|q| [1, 2, q - 1, q, 5 * q + 2, 1000].map(|len| (q, len))) {
        for root in [0, 1, q - 1] {
            // In longM position 1 receives the whole panel first and takes no part in spread and roll.
            let position = |member: usize| if member == 0 { 0 } else { member + 1 };
            for (variant, n) in [(Bcast::Long, q), (Bcast::LongM, q - 1)] {
                let each = (len / n).max(1);
                let end = |piece: usize| if piece == n { len } else { (piece * each).min(len) };
                let mut expected = vec![vec![Vec::new(); q]; q];
                if variant == Bcast::LongM {
                    expected[0][1].push(len);
                }
                for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
                    let (a, b) = if variant == Bcast::LongM { (position(from), position(to)) } else { (from, to) };
                    let lens = published_pieces(from, to, n).into_iter();
                    expected[a][b].extend(lens.map(|pieces| end(pieces.end) - end(pieces.start)));
                }
                let sent = sent_messages(variant, q, root, len);
                let between = |from: usize, to| sent[from].iter().filter(move |sent| sent.0 == to).map(|sent| sent.1);
                for (from, to) in (0..q).flat_map(|from| (0..q).map(move |to| (from, to))) {
                    let (found, expected) = (between(from, to), &expected[from][to]);
                    assert!(found.eq(expected.iter().copied()), "{variant:?} Q = {q} {from} → {to}: {expected:?}");
                }
                let extra = usize::from(variant == Bcast::LongM);
                assert_eq!(sent.iter().flatten().count(), (n - 1) + n * (n - 1) + extra);
                if variant == Bcast::LongM {
                    assert_eq!(sent[0][0], (1, len), "the root's neighbour comes first");
                    assert_eq!(sent[1], [], "and forwards nothing");
                }
            }
        }
    }
}

#[test]
fn two_ranks_need_one_message() {
    for variant in VARIANTS {
        assert_eq!(sent_messages(variant, 2, 1, 9), [vec![(1, 9)], vec![]], "{variant:?}");
    }
}

/// The receiver expects the messages of the sender in the same order; every position gets every piece.
#[test]
fn sends_match_receives() {
    for (variant, q) in VARIANTS.into_iter().flat_map(|variant| (1..=33).map(move |q| (variant, q))) {
        let all: Vec<Steps> = (0..q).map(|at| steps(variant, at, q)).collect();
        let with = |list: &[Transfer], peer| -> Vec<Range<usize>> {
            list.iter().filter(|transfer| transfer.peer == peer).map(|transfer| transfer.pieces.clone()).collect()
        };
        for (from, to) in (0..q).flat_map(|from| (0..q).map(move |to| (from, to))) {
            assert_eq!(with(&all[from].sends, to), with(&all[to].receives, from), "{variant:?} {from} → {to} of {q}");
        }
        for steps in &all[1..] {
            let mut here = vec![0; steps.pieces];
            steps.receives.iter().flat_map(|transfer| transfer.pieces.clone()).for_each(|piece| here[piece] += 1);
            // In the roll, positions that forwarded pieces in the spread receive these a second time.
            assert!(here.iter().all(|&copies| copies == 1 || copies == 2 && steps.pieces > 3), "{variant:?} of {q}");
        }
    }
}

/// Polls until the broadcast is complete, or a few times, or never: chosen at random.
fn poll_at_random<C: Comm>(row: &C, mut broadcast: Broadcast<C>, random: &mut Random) -> Broadcast<C> {
    match random.below(3) {
        0 => {
            while !broadcast.ready() {
                broadcast = broadcast.poll(row).unwrap();
                thread::yield_now();
            }
        }
        1 => {
            for _ in 0..random.below(4) {
                broadcast = broadcast.poll(row).unwrap();
            }
        }
        _ => {}
    }
    broadcast
}

fn equal_copies<C: Comm>(wrap: fn(ThreadComm) -> C, check: fn(&Msg, &C)) {
    for q in 1..=9 {
        on_each(q, wrap, |row| {
            let (mut number, mut random) = (0, Random(row.rank()));
            for (variant, root) in VARIANTS.into_iter().flat_map(|variant| (0..q).map(move |root| (variant, root))) {
                for len in [1, 2, q - 1, q, q + 1, 100] {
                    let broadcast = poll_at_random(row, start(row, variant, number, root, len), &mut random);
                    check(&finish(row, broadcast, number, len), row);
                    number += 1;
                }
            }
        });
    }
}

#[test]
fn all_ranks_get_an_equal_copy() {
    equal_copies(Remote, |_, _| ());
}

/// Between threads of one process nothing is copied: all ranks use the root's buffer.
#[test]
fn in_process_the_panel_is_shared() {
    equal_copies(
        |comm| comm,
        |msg, _| {
            // The root's buffer begins 10 elements before the panel.
            assert!(msg.is_empty() || msg.parts().1.start == 10);
        },
    );
}

/// Between processes the pieces of the long variants are copied to a buffer that later panels use again.
#[test]
fn a_joined_panel_is_in_a_buffer_of_the_pool() {
    let holders = on_each(3, Remote, |row| {
        let len = 10_000;
        let (msg, sends) = start(row, Bcast::Long, 0, 0, len).finish(row).unwrap();
        sends.into_iter().for_each(|send| send.wait().unwrap());
        Arc::strong_count(&msg.parts().0)
    });
    // The message, what is counted here, and the pool.
    assert_eq!(holders[1..], [3, 3]);
}

/// Several broadcasts in flight, polled in random order, so that later ones may complete before earlier ones.
fn in_flight<C: Comm>(wrap: fn(ThreadComm) -> C, seed: usize) {
    for (q, depth) in (2..=7).flat_map(|q| [2, 3].map(|depth| (q, depth))) {
        on_each(q, wrap, |row| {
            let mut random = Random(seed + 100 * q + row.rank());
            let mut broadcasts: VecDeque<(usize, Option<Broadcast<C>>)> = VecDeque::new();
            let only_waits = random.below(4) == 0;
            for number in 0..60 {
                // Lengths repeat, so that a mix-up would not show as a wrong length.
                let variant = VARIANTS[(number / 10 + seed) % 6];
                broadcasts.push_back((number, Some(start(row, variant, number, number * (1 + q / 4) % q, 30))));
                for _ in 0..if only_waits { 0 } else { random.below(12) } {
                    let at = random.below(broadcasts.len());
                    let broadcast = broadcasts[at].1.take().map(|broadcast| broadcast.poll(row).unwrap());
                    broadcasts[at].1 = broadcast;
                    if random.below(3) == 0 {
                        thread::yield_now();
                    }
                }
                if broadcasts.len() == depth {
                    let (oldest, broadcast) = broadcasts.pop_front().unwrap();
                    finish(row, broadcast.unwrap(), oldest, 30);
                }
            }
            for (number, broadcast) in broadcasts {
                finish(row, broadcast.unwrap(), number, 30);
            }
        });
    }
}

#[test]
fn panels_in_flight_at_once_are_not_mixed_up() {
    for seed in 0..8 {
        in_flight(|comm| comm, seed);
        in_flight(Remote, seed);
    }
}
