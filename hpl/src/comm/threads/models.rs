//! Models of messages between ranks, which loom runs in all orders (`tests/loom`).

use super::{Comm, Msg, Request, ThreadComm, world};
use crate::mat::Buffer;
use crate::sync::Arc;
use crate::sync::thread;

/// `rank` on each of two ranks.
fn on_ranks(rank: impl Fn(ThreadComm) + Sync) {
    let rank = &rank;
    let mut ranks = world(2, false);
    let second = ranks.pop().expect("two ranks");
    thread::scope(|scope| {
        scope.spawn(move || rank(second));
        ranks.into_iter().for_each(rank);
    });
}

fn send(comm: &ThreadComm, to: usize, value: f64) {
    comm.isend(to, 1, Arc::new(Buffer::from(&[value][..])), 0..1).wait().expect("no rank fails");
}

fn receive(comm: &ThreadComm, from: usize) -> Msg {
    comm.irecv(from, 1, 1).wait().expect("no rank fails")
}

/// A message arrives before or after it is waited for; its sender ends meanwhile.
pub fn a_message_arrives() {
    on_ranks(|comm| match comm.rank() {
        0 => send(&comm, 1, 3.0),
        _ => assert_eq!(receive(&comm, 0)[..], [3.0]),
    });
}

/// Two messages of one tag arrive in the order in which they were sent.
pub fn messages_keep_their_order() {
    on_ranks(|comm| match comm.rank() {
        0 => [1.0, 2.0].into_iter().for_each(|value| send(&comm, 1, value)),
        _ => {
            let requests = [comm.irecv(0, 1, 1), comm.irecv(0, 1, 1)];
            let [first, second] = requests.map(|request| request.wait().expect("no rank fails"));
            assert_eq!((first[0], second[0]), (1.0, 2.0));
        }
    });
}

/// A wait ends when the sender leaves without sending.
pub fn the_sender_leaves() {
    on_ranks(|comm| {
        if comm.rank() == 1 {
            let gone = comm.irecv(0, 1, 1).wait().expect_err("nothing is sent");
            assert_eq!(gone.rank, 0);
        }
    });
}

/// A wait ends when another rank poisons the world, with the cause.
pub fn the_world_is_poisoned() {
    let ranks = world(2, false);
    let [first, second] = &ranks[..] else { unreachable!("two ranks") };
    // Neither leaves before both threads have ended.
    thread::scope(|scope| {
        scope.spawn(|| {
            let gone = second.irecv(0, 1, 1).wait().expect_err("nothing is sent");
            assert_eq!((gone.rank, gone.reason.as_str()), (0, "it failed"));
        });
        first.poison("it failed");
    });
}

/// Two ranks make a group of their own and meet there.
pub fn ranks_are_split() {
    on_ranks(|comm| {
        let group = comm.split(0, 1 - comm.rank()).expect("no rank fails");
        assert_eq!((group.size(), group.rank()), (2, 1 - comm.rank()));
    });
}

/// The memory of a message is written anew only when its receiver has dropped it.
pub fn buffers_are_used_again() {
    on_ranks(|comm| {
        for value in [1.0, 2.0] {
            if comm.rank() == 0 {
                let fill = |data: &mut [f64]| {
                    data.fill(value);
                    Ok::<_, ()>(())
                };
                let (buf, range) = comm.buffers().rows.message(2, fill).expect("it does not fail").parts();
                comm.isend(1, 1, buf, range).wait().expect("no rank fails");
            } else {
                let msg = comm.irecv(0, 1, 2).wait().expect("no rank fails");
                assert_eq!(msg[..], [value, value]);
            }
        }
    });
}
