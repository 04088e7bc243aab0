//! Conformance tests of every [`Comm`]; each case is run by all ranks of a new group.

use crate::mat::Buffer;
use crate::sync::Arc;
use std::ops::Range;

#[cfg(test)]
use super::PeerGone;
use super::{Comm, Msg, Request, Tag};

/// Group sizes of most cases.
const ANY: &[usize] = &[1, 2, 3, 5, 6];
/// Group sizes of the cases that need more than one rank.
#[cfg(test)]
const MANY: &[usize] = &[2, 3, 6];

/// A test case.
pub struct Case<C> {
    /// The requirement.
    pub name: &'static str,
    /// Sizes of the groups it runs on.
    pub sizes: &'static [usize],
    /// The code of each rank; it panics when the requirement does not hold.
    pub run: fn(C),
}

fn case<C>(name: &'static str, sizes: &'static [usize], run: fn(C)) -> Case<C> {
    Case { name, sizes, run }
}

/// The cases in which every rank succeeds.
pub fn cases<C: Comm>() -> Vec<Case<C>> {
    let any = ANY;
    vec![
        case("messages of one tag keep their order", any, order::<C>),
        case("receives get messages in the order they were posted", any, posted_order::<C>),
        case("tags are independent", any, tags::<C>),
        case("ragged sizes, sub-ranges and empty messages", any, ragged::<C>),
        case("a received message is forwarded", any, ring::<C>),
        case("ready becomes true without a wait", any, polling::<C>),
        case("split by colour and key", any, split::<C>),
        case("nested splits have their own message space", &[6], nested::<C>),
        case("a barrier holds all ranks", any, barriers::<C>),
        case("requests dropped early are completed", any, dropped::<C>),
    ]
}

/// The cases of a [`Comm`] whose failures reach its ranks as [`PeerGone`].
#[cfg(test)]
pub fn failures<C: Comm>() -> Vec<Case<C>> {
    let many = MANY;
    vec![
        case("a rank may leave after its last message", many, leave_well::<C>),
        case("waiting for a rank that has left fails for all", many, leave_early::<C>),
        case("poison ends waits and barriers of all groups", &[6], poison::<C>),
        case("a message of the wrong length is an error for all", many, wrong_length::<C>),
    ]
}

/// A message with elements that are unique for sender, tag and number.
fn mark(from: usize, tag: Tag, number: usize, len: usize) -> Vec<f64> {
    (0..len).map(|i| (from * 1_000_000 + tag as usize * 10_000 + number * 100 + i) as f64).collect()
}

fn send<C: Comm>(comm: &C, to: usize, tag: Tag, data: Vec<f64>) -> C::Send {
    let len = data.len();
    comm.isend(to, tag, Arc::new(Buffer::from(&data[..])), 0..len)
}

fn wait(sends: impl IntoIterator<Item: Request<Done = ()>>) {
    sends.into_iter().for_each(|send| send.wait().unwrap());
}

fn recv<C: Comm>(comm: &C, from: usize, tag: Tag, len: usize) -> Msg {
    comm.irecv(from, tag, len).wait().unwrap()
}

fn all_ranks<C: Comm>(comm: &C) -> Range<usize> {
    0..comm.size()
}

fn order<C: Comm>(comm: C) {
    let mut sends = Vec::new();
    for to in all_ranks(&comm) {
        sends.extend((0..50).map(|number| send(&comm, to, 7, mark(comm.rank(), 7, number, 3))));
    }
    for number in 0..50 {
        for from in all_ranks(&comm) {
            assert_eq!(*recv(&comm, from, 7, 3), mark(from, 7, number, 3));
        }
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn posted_order<C: Comm>(comm: C) {
    let posted: Vec<_> = (0..20).map(|_| comm.irecv((comm.rank() + 1) % comm.size(), 1, 1)).collect();
    comm.barrier().unwrap();
    let previous = (comm.rank() + comm.size() - 1) % comm.size();
    let sends: Vec<_> = (0..20).map(|number| send(&comm, previous, 1, vec![f64::from(number)])).collect();
    for (number, recv) in posted.into_iter().enumerate().rev() {
        assert_eq!(*recv.wait().unwrap(), [number as f64]);
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn tags<C: Comm>(comm: C) {
    let mut sends = Vec::new();
    for to in all_ranks(&comm) {
        sends.extend((0..200).map(|tag| send(&comm, to, tag, mark(comm.rank(), tag, 0, 2))));
    }
    for tag in (0..200).rev() {
        for from in all_ranks(&comm).rev() {
            assert_eq!(*recv(&comm, from, tag, 2), mark(from, tag, 0, 2));
        }
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn ragged<C: Comm>(comm: C) {
    let lens = [0, 1, 2, 63, 64, 0, 4096, 100_003, 5];
    let data: Vec<f64> = (0..200_000).map(f64::from).collect();
    let buf = Arc::new(Buffer::from(&data[..]));
    let mut sends = Vec::new();
    for to in all_ranks(&comm) {
        let ranges = lens.into_iter().enumerate().map(|(offset, len)| offset..offset + len);
        sends.extend(ranges.map(|range| comm.isend(to, 3, Arc::clone(&buf), range)));
    }
    for from in all_ranks(&comm) {
        for (offset, len) in lens.into_iter().enumerate() {
            assert_eq!(*recv(&comm, from, 3, len), buf[offset..offset + len]);
        }
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn ring<C: Comm>(comm: C) {
    let next = (comm.rank() + 1) % comm.size();
    let previous = (comm.rank() + comm.size() - 1) % comm.size();
    let first = (comm.rank() == 0).then(|| send(&comm, next, 2, mark(0, 2, 0, 10)));
    let msg = recv(&comm, previous, 2, 10);
    let (buf, range) = msg.parts();
    wait(first.or_else(|| Some(comm.isend(next, 2, buf, range))));
    assert_eq!(*msg, mark(0, 2, 0, 10));
    comm.barrier().unwrap();
}

fn polling<C: Comm>(comm: C) {
    let mut receives: Vec<_> = all_ranks(&comm).map(|from| comm.irecv(from, 4, 1)).collect();
    comm.barrier().unwrap();
    assert!(receives.iter_mut().all(|recv| !recv.ready()), "nothing has been sent yet");
    comm.barrier().unwrap();
    let sends: Vec<_> = all_ranks(&comm).map(|to| send(&comm, to, 4, vec![comm.rank() as f64])).collect();
    for recv in &mut receives {
        while !recv.ready() {
            std::thread::yield_now();
        }
    }
    for (from, recv) in receives.into_iter().enumerate() {
        assert_eq!(*recv.wait().unwrap(), [from as f64]);
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn split<C: Comm>(comm: C) {
    let (rank, size) = (comm.rank(), comm.size());
    // Colours are any numbers; equal keys fall back to the old order.
    let backwards = comm.split(usize::MAX - rank % 2, size - rank).unwrap();
    let peers = (0..size).filter(|r| r % 2 == rank % 2).count();
    assert_eq!((backwards.rank(), backwards.size()), (peers - 1 - rank / 2, peers));
    let same = comm.split(0, 3).unwrap();
    assert_eq!((same.rank(), same.size()), (rank, size));
    let alone = comm.split(rank, 0).unwrap();
    assert_eq!((alone.rank(), alone.size()), (0, 1));
    alone.barrier().unwrap();

    // Repeated splits are not confused with each other.
    for round in 0..20 {
        let half = comm.split((rank + round) % 2, rank).unwrap();
        let sends: Vec<_> = all_ranks(&half).map(|to| send(&half, to, 0, vec![rank as f64])).collect();
        let got: Vec<f64> = all_ranks(&half).map(|from| recv(&half, from, 0, 1)[0]).collect();
        wait(sends);
        let expected: Vec<f64> =
            (0..size).filter(|r| (r + round) % 2 == (rank + round) % 2).map(|r| r as f64).collect();
        assert_eq!(got, expected);
        half.barrier().unwrap();
    }
    comm.barrier().unwrap();
}

fn nested<C: Comm>(comm: C) {
    let rank = comm.rank();
    let row = comm.split(rank / 3, rank).unwrap();
    let column = comm.split(rank % 3, rank).unwrap();
    assert_eq!((row.size(), row.rank(), column.size(), column.rank()), (3, rank % 3, 2, rank / 3));
    let pair = row.split(usize::from(row.rank() == 2), 10 - row.rank()).unwrap();
    // The same tag and, where they coincide, the same two ranks in four groups at once.
    let groups = [&comm, &row, &column, &pair];
    let mut sends = Vec::new();
    for (level, group) in groups.into_iter().enumerate() {
        sends.extend(all_ranks(group).map(|to| send(group, to, 9, vec![level as f64, rank as f64])));
    }
    let expected: [Vec<usize>; 4] = [
        (0..6).collect(),
        (0..3).map(|c| rank / 3 * 3 + c).collect(),
        vec![rank % 3, rank % 3 + 3],
        if rank % 3 == 2 { vec![rank] } else { vec![rank / 3 * 3 + 1, rank / 3 * 3] },
    ];
    for (level, group) in groups.into_iter().enumerate().rev() {
        let got: Vec<_> = all_ranks(group).map(|from| recv(group, from, 9, 2).to_vec()).collect();
        let want: Vec<_> = expected[level].iter().map(|&r| vec![level as f64, r as f64]).collect();
        assert_eq!(got, want, "level {level}");
    }
    wait(sends);
    comm.barrier().unwrap();
}

fn barriers<C: Comm>(comm: C) {
    for round in 0..30 {
        // No rank sends before all have tested their receives: the second barrier is between.
        let mut receives: Vec<_> = all_ranks(&comm).map(|from| comm.irecv(from, round, 0)).collect();
        comm.barrier().unwrap();
        assert!(receives.iter_mut().all(|recv| !recv.ready()), "round {round}");
        comm.barrier().unwrap();
        let sends: Vec<_> = all_ranks(&comm).map(|to| send(&comm, to, round, vec![])).collect();
        for recv in receives {
            recv.wait().unwrap();
        }
        wait(sends);
    }
}

fn dropped<C: Comm>(comm: C) {
    let long = 30_000;
    for round in 0..3 {
        // A dropped receive still consumes its message.
        all_ranks(&comm).for_each(|from| drop(comm.irecv(from, 0, long)));
        comm.barrier().unwrap();
        for to in all_ranks(&comm) {
            drop(send(&comm, to, 0, mark(comm.rank(), 0, round, long)));
            drop(send(&comm, to, 0, mark(comm.rank(), 1, round, long)));
        }
        for from in all_ranks(&comm) {
            assert_eq!(*recv(&comm, from, 0, long), mark(from, 1, round, long));
        }
        comm.barrier().unwrap();
    }
}

#[cfg(test)]
fn leave_well<C: Comm>(comm: C) {
    if comm.rank() == 0 {
        for to in 1..comm.size() {
            wait((0..10).map(|tag| send(&comm, to, tag, vec![f64::from(tag)])));
        }
        return;
    }
    std::thread::sleep(std::time::Duration::from_millis(5));
    for tag in (0..10).rev() {
        assert_eq!(*recv(&comm, 0, tag, 1), [f64::from(tag)]);
    }
    // A send to a rank that has left is no error.
    wait([send(&comm, 0, 0, vec![1.0])]);
}

#[cfg(test)]
fn leave_early<C: Comm>(comm: C) {
    match comm.rank() {
        0 => (),
        1 => {
            let gone = comm.irecv(0, 5, 8).wait().unwrap_err();
            assert_eq!(gone.rank, 0);
        }
        // Waits on rank 1, which never sends: the poison must reach this one.
        _ => {
            let gone = comm.irecv(1, 5, 8).wait().unwrap_err();
            assert_eq!(gone.rank, 0);
        }
    }
}

#[cfg(test)]
fn poison<C: Comm>(comm: C) {
    let rank = comm.rank();
    let row = comm.split(rank / 3, rank).unwrap();
    let column = comm.split(rank % 3, rank).unwrap();
    // Not waited for: the world may be poisoned before the wait.
    let _through = comm.isend(4, 1, Arc::default(), 0..0);
    let expected = PeerGone { rank: 4, reason: "boom".into() };
    let gone = match rank {
        4 => {
            all_ranks(&comm).for_each(|from| drop(recv(&comm, from, 1, 0)));
            std::thread::sleep(std::time::Duration::from_millis(5));
            row.poison("boom");
            row.poison("later causes do not replace the first");
            row.barrier().unwrap_err()
        }
        0 => comm.barrier().unwrap_err(),
        1 => row.irecv(1, 0, 1).wait().unwrap_err(),
        2 => column.irecv(1, 0, 1).wait().unwrap_err(),
        3 => comm.split(0, 0).err().unwrap(),
        _ => {
            let mut recv = row.irecv(0, 0, 1);
            while !recv.ready() {
                std::thread::yield_now();
            }
            recv.wait().unwrap_err()
        }
    };
    assert_eq!(gone, expected);
    assert_eq!(comm.isend(0, 0, Arc::new(Buffer::from(&[1.0][..])), 0..1).wait().unwrap_err(), expected);
    assert_eq!(column.barrier().unwrap_err(), expected);
}

#[cfg(test)]
fn wrong_length<C: Comm>(comm: C) {
    let gone = match comm.rank() {
        0 => {
            let _sent = comm.isend(1, 6, Arc::new(Buffer::from(&[1.0, 2.0, 3.0][..])), 0..2);
            comm.barrier().unwrap_err()
        }
        1 => comm.irecv(0, 6, 3).wait().unwrap_err(),
        _ => comm.barrier().unwrap_err(),
    };
    assert_eq!(gone.rank, 0);
    assert!(gone.reason.contains("2 doubles") && gone.reason.contains("expects 3"), "{gone}");
}
