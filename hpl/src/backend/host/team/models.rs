//! Models of what the threads of a rank do together, which loom runs in all orders (`tests/loom`). A tree of four threads has two levels
//! there.

use super::{Barrier, BarrierBroken, HelperPanicked, Team, TeamParams, with_team};
use crate::sync::Mutex;
use crate::sync::thread;
use crate::sync::watched::Handed;

fn in_team<R>(threads: usize, body: impl FnOnce(&mut Team<'_>) -> R) -> R {
    with_team(TeamParams { threads, cores: &[], spin: false }, body).expect("loom starts threads")
}

/// `work(index)` on each of some threads; the caller is the first.
fn on_threads(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        (1..threads).for_each(|index| scope.spawn(move || work(index)));
        work(0);
    });
}

/// Each thread reads after the barrier what each wrote before it, and learns who has the largest value. Two threads: of more than one
/// that polls, loom would let each poll for ever beside the other.
pub fn two_threads_meet() {
    let (threads, rounds) = (2, 2);
    let (barrier, written) = (Barrier::new(threads, false), Handed::zeros(threads));
    on_threads(threads, |thread| {
        for round in 1..=rounds {
            let value = |thread: usize| ((thread * 5 + round * 3) % 4) as f64;
            let first = (0..threads).rev().max_by(|&a, &b| value(a).total_cmp(&value(b)));
            written[thread].set(round);
            assert_eq!(barrier.largest(thread, value(thread)), Ok(first.expect("one thread")));
            assert!(written.iter().all(|by| by.get() == round));
            if round < rounds {
                barrier.wait(thread).expect("no thread fails");
            }
        }
    });
}

/// The barrier breaks for a thread that waits for another one.
pub fn barrier_breaks() {
    let barrier = Barrier::new(2, false);
    on_threads(2, |thread| match thread {
        1 => assert_eq!(barrier.guard(|| Err(())), Err(())),
        _ => assert_eq!(barrier.guard(|| barrier.wait(thread)), Err(BarrierBroken)),
    });
}

/// Some forks, each thread of which reads what the first thread wrote before and writes what it reads afterwards.
fn fork(threads: usize, forks: usize) {
    in_team(threads, |team| {
        let (given, done) = (Handed::default(), Handed::zeros(threads));
        for round in 1..=forks {
            given.set(round);
            let work = |index: usize| done[index].set(given.get());
            team.fork(&work, || work(0)).expect("no thread fails");
            assert!(done.iter().all(|by| by.get() == round));
        }
    });
}

/// Two threads, two forks.
pub fn two_threads_fork() {
    fork(2, 2);
}

/// Three threads, one fork.
pub fn three_threads_fork() {
    fork(3, 1);
}

/// Four threads, one of which is woken by another helper.
pub fn four_threads_fork() {
    fork(4, 1);
}

/// The first thread learns that a helper panicked.
pub fn a_helper_panics() {
    in_team(3, |team| {
        let outcome = team.fork(&|index| assert!(index != 2, "on purpose"), || ());
        assert_eq!(outcome, Err(HelperPanicked));
    });
}

/// Each item is taken once.
pub fn items_are_dealt() {
    in_team(2, |team| {
        let done = Handed::zeros(3);
        let work = |_: usize, item: usize| {
            assert_eq!(done[item].get(), 0);
            done[item].set(1);
        };
        team.deal((0..3).collect(), work, || Ok::<_, HelperPanicked>(())).expect("no thread fails");
        assert!(done.iter().all(|item| item.get() == 1));
    });
}

/// Parts and results pass through locks.
pub fn parts_are_mapped() {
    in_team(2, |team| {
        let (first, second) = (Mutex::new(1), Mutex::new(2));
        let double = |part: &Mutex<usize>| 2 * *part.lock();
        assert_eq!(team.map(vec![&first, &second], double), Ok(vec![2, 4]));
    });
}

/// The first two of three threads work as a team of their own, then all do.
pub fn a_sub_team_joins() {
    in_team(3, |team| {
        let (given, in_sub_team, in_team) = (Handed::default(), Handed::zeros(2), Handed::zeros(3));
        let sub_team = team.sub_team(2);
        let first_team = sub_team.as_team();
        let first = || {
            let mut first_team = first_team;
            given.set(1);
            let work = |index: usize| in_sub_team[index].set(given.get());
            first_team.fork(&work, || work(0)).expect("no thread fails");
            assert!(in_sub_team.iter().all(|by| by.get() == 1));
            drop(first_team);
            in_team[0].set(1);
        };
        let helper = |index: usize| {
            sub_team.help(index);
            in_team[index].set(1);
        };
        team.fork(&helper, first).expect("no thread fails");
        assert!(in_team.iter().all(|by| by.get() == 1));
    });
}
