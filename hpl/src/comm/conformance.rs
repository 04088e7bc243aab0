//! What every [`Comm`] must do; each case is run by all ranks of a fresh world.

use std::ops::Range;
use std::sync::Arc;

use super::{Comm, Msg, PeerGone, Request, Tag};

/// A case by its name: the world sizes it runs on, and what each rank does.
pub(super) struct Case<C> {
    pub(super) name: &'static str,
    pub(super) sizes: &'static [usize],
    pub(super) run: fn(C),
}

/// The cases in which every rank ends well or by [`PeerGone`].
pub(super) fn cases<C: Comm>() -> Vec<Case<C>> {
    let any: &[usize] = &[1, 2, 3, 5, 6];
    let many: &[usize] = &[2, 3, 6];
    let case = |name, sizes, run| Case { name, sizes, run };
    vec![
        case("messages of one tag keep their order", any, order::<C>),
        case("receives get messages in the order they were posted", any, posted_order::<C>),
        case("tags are independent", any, tags::<C>),
        case("ragged sizes, sub-ranges and empty messages", any, ragged::<C>),
        case("a received message is passed on", any, ring::<C>),
        case("ready becomes true without a wait", any, polling::<C>),
        case("split by colour and key", any, split::<C>),
        case("nested splits have their own message space", &[6], nested::<C>),
        case("a barrier holds everybody", any, barriers::<C>),
        case("who leaves after its last message harms nobody", many, leave_well::<C>),
        case("waiting for one who has left fails for all", many, leave_early::<C>),
        case("poison ends waits and barriers of all groups", &[6], poison::<C>),
        case("a message of the wrong length is an error for all", many, wrong_length::<C>),
    ]
}

/// A message that names its sender, tag and number.
fn mark(from: usize, tag: Tag, number: usize, len: usize) -> Vec<f64> {
    (0..len).map(|i| (from * 1_000_000 + tag as usize * 10_000 + number * 100 + i) as f64).collect()
}

fn send<C: Comm>(comm: &C, to: usize, tag: Tag, data: Vec<f64>) {
    let len = data.len();
    comm.isend(to, tag, data.into(), 0..len).wait().unwrap();
}

fn recv<C: Comm>(comm: &C, from: usize, tag: Tag, len: usize) -> Msg {
    comm.irecv(from, tag, len).wait().unwrap()
}

fn everybody<C: Comm>(comm: &C) -> Range<usize> {
    0..comm.size()
}

fn order<C: Comm>(comm: C) {
    for to in everybody(&comm) {
        for number in 0..50 {
            send(&comm, to, 7, mark(comm.rank(), 7, number, 3));
        }
    }
    for number in 0..50 {
        for from in everybody(&comm) {
            assert_eq!(*recv(&comm, from, 7, 3), mark(from, 7, number, 3));
        }
    }
    comm.barrier().unwrap();
}

fn posted_order<C: Comm>(comm: C) {
    let posted: Vec<_> = (0..20).map(|_| comm.irecv((comm.rank() + 1) % comm.size(), 1, 1)).collect();
    comm.barrier().unwrap();
    for number in 0..20 {
        send(&comm, (comm.rank() + comm.size() - 1) % comm.size(), 1, vec![number as f64]);
    }
    for (number, recv) in posted.into_iter().enumerate().rev() {
        assert_eq!(*recv.wait().unwrap(), [number as f64]);
    }
    comm.barrier().unwrap();
}

fn tags<C: Comm>(comm: C) {
    for to in everybody(&comm) {
        for tag in 0..200 {
            send(&comm, to, tag, mark(comm.rank(), tag, 0, 2));
        }
    }
    for tag in (0..200).rev() {
        for from in everybody(&comm).rev() {
            assert_eq!(*recv(&comm, from, tag, 2), mark(from, tag, 0, 2));
        }
    }
    comm.barrier().unwrap();
}

fn ragged<C: Comm>(comm: C) {
    let lens = [0, 1, 2, 63, 64, 0, 4096, 100_003, 5];
    let buf: Arc<[f64]> = (0..200_000).map(f64::from).collect();
    for to in everybody(&comm) {
        for (offset, len) in lens.into_iter().enumerate() {
            comm.isend(to, 3, Arc::clone(&buf), offset..offset + len).wait().unwrap();
        }
    }
    for from in everybody(&comm) {
        for (offset, len) in lens.into_iter().enumerate() {
            assert_eq!(*recv(&comm, from, 3, len), buf[offset..offset + len]);
        }
    }
    comm.barrier().unwrap();
}

fn ring<C: Comm>(comm: C) {
    let next = (comm.rank() + 1) % comm.size();
    let previous = (comm.rank() + comm.size() - 1) % comm.size();
    if comm.rank() == 0 {
        send(&comm, next, 2, mark(0, 2, 0, 10));
    }
    let msg = recv(&comm, previous, 2, 10);
    if comm.rank() != 0 {
        let (buf, range) = msg.parts();
        comm.isend(next, 2, buf, range).wait().unwrap();
    }
    assert_eq!(*msg, mark(0, 2, 0, 10));
    comm.barrier().unwrap();
}

fn polling<C: Comm>(comm: C) {
    let mut receives: Vec<_> = everybody(&comm).map(|from| comm.irecv(from, 4, 1)).collect();
    comm.barrier().unwrap();
    assert!(receives.iter_mut().all(|recv| !recv.ready()), "nothing has been sent yet");
    comm.barrier().unwrap();
    for to in everybody(&comm) {
        send(&comm, to, 4, vec![comm.rank() as f64]);
    }
    for recv in &mut receives {
        while !recv.ready() {
            std::thread::yield_now();
        }
    }
    for (from, recv) in receives.into_iter().enumerate() {
        assert_eq!(*recv.wait().unwrap(), [from as f64]);
    }
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
        for to in everybody(&half) {
            send(&half, to, 0, vec![rank as f64]);
        }
        let got: Vec<f64> = everybody(&half).map(|from| recv(&half, from, 0, 1)[0]).collect();
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
    for (level, group) in groups.into_iter().enumerate() {
        for to in everybody(group) {
            send(group, to, 9, vec![level as f64, rank as f64]);
        }
    }
    let expected: [Vec<usize>; 4] = [
        (0..6).collect(),
        (0..3).map(|c| rank / 3 * 3 + c).collect(),
        vec![rank % 3, rank % 3 + 3],
        if rank % 3 == 2 { vec![rank] } else { vec![rank / 3 * 3 + 1, rank / 3 * 3] },
    ];
    for (level, group) in groups.into_iter().enumerate().rev() {
        let got: Vec<_> = everybody(group).map(|from| recv(group, from, 9, 2).to_vec()).collect();
        let want: Vec<_> = expected[level].iter().map(|&r| vec![level as f64, r as f64]).collect();
        assert_eq!(got, want, "level {level}");
    }
    comm.barrier().unwrap();
}

fn barriers<C: Comm>(comm: C) {
    for round in 0..30 {
        // Message of one round is there after the barrier of that round, and not before the previous one.
        let mut receives: Vec<_> = everybody(&comm).map(|from| comm.irecv(from, round, 0)).collect();
        comm.barrier().unwrap();
        for to in everybody(&comm) {
            send(&comm, to, round, vec![]);
        }
        comm.barrier().unwrap();
        assert!(receives.iter_mut().all(Request::ready), "round {round}");
    }
}

fn leave_well<C: Comm>(comm: C) {
    if comm.rank() == 0 {
        for to in 1..comm.size() {
            for tag in 0..10 {
                send(&comm, to, tag, vec![f64::from(tag)]);
            }
        }
        return;
    }
    std::thread::sleep(std::time::Duration::from_millis(5));
    for tag in (0..10).rev() {
        assert_eq!(*recv(&comm, 0, tag, 1), [f64::from(tag)]);
    }
    // Writing to one who has left is no error.
    send(&comm, 0, 0, vec![1.0]);
}

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

fn poison<C: Comm>(comm: C) {
    let rank = comm.rank();
    let row = comm.split(rank / 3, rank).unwrap();
    let column = comm.split(rank % 3, rank).unwrap();
    // Not waited for: the poison may come before the wait.
    let _through = comm.isend(4, 1, Arc::new([]), 0..0);
    let expected = PeerGone { rank: 4, reason: "boom".into() };
    let gone = match rank {
        4 => {
            everybody(&comm).for_each(|from| drop(recv(&comm, from, 1, 0)));
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
    assert_eq!(comm.isend(0, 0, Arc::new([1.0]), 0..1).wait().unwrap_err(), expected);
    assert_eq!(column.barrier().unwrap_err(), expected);
}

fn wrong_length<C: Comm>(comm: C) {
    let gone = match comm.rank() {
        0 => {
            let _sent = comm.isend(1, 6, Arc::new([1.0, 2.0, 3.0]), 0..2);
            comm.barrier().unwrap_err()
        }
        1 => comm.irecv(0, 6, 3).wait().unwrap_err(),
        _ => comm.barrier().unwrap_err(),
    };
    assert_eq!(gone.rank, 0);
    assert!(gone.reason.contains("2 doubles") && gone.reason.contains("expects 3"), "{gone}");
}
