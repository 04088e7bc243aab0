use crate::mat::Buffer;
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};

use super::*;
use crate::comm::conformance::{Case, cases, failures};
use crate::comm::recording::{Recording, Sent};

/// Runs `rank` on one thread per rank; panics when one of them panics.
fn run<T: Send>(size: usize, spin: bool, rank: impl Fn(ThreadComm) -> T + Sync) -> Vec<T> {
    let rank = &rank;
    thread::scope(|scope| {
        let threads: Vec<_> = world(size, spin).into_iter().map(|comm| scope.spawn(move || rank(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Both kinds of cases.
fn all_cases<C: Comm>() -> impl Iterator<Item = Case<C>> {
    cases().into_iter().chain(failures())
}

#[test]
fn conforms() {
    for spin in [true, false] {
        for case in all_cases::<ThreadComm>() {
            for &size in case.sizes {
                eprintln!("{}: {size} ranks, spin {spin}", case.name);
                run(size, spin, case.run);
            }
        }
    }
}

#[test]
fn recording_conforms_and_records() {
    for case in all_cases::<Recording<ThreadComm>>() {
        for &size in case.sizes {
            run(size, false, |comm| (case.run)(Recording::new(comm)));
        }
    }
    let sent = run(2, false, |comm| {
        let comm = Recording::new(comm);
        comm.isend(1 - comm.rank(), 3, Arc::new(Buffer::from(&[0.0; 5][..])), 1..4).wait().unwrap();
        comm.barrier().unwrap();
        comm.sent()
    });
    assert_eq!(sent[1], [Sent { from: 1, to: 0, tag: 3, len: 3 }]);
}

#[test]
fn a_panic_reaches_the_waiting_ranks() {
    for spin in [true, false] {
        let results: Vec<Result<(), PeerGone>> = thread::scope(|scope| {
            let rank = |comm: ThreadComm| {
                let half = comm.split(comm.rank() / 2, 0)?;
                assert!(comm.rank() != 2, "on purpose");
                match comm.rank() {
                    0 => comm.irecv(1, 0, 1).wait().map(drop),
                    1 => comm.barrier(),
                    _ => half.irecv(0, 0, 1).wait().map(drop),
                }
            };
            let threads: Vec<_> = world(4, spin).into_iter().map(|comm| scope.spawn(move || rank(comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))).collect()
        });
        let gone = PeerGone { rank: 2, reason: "it panicked".into() };
        assert_eq!(results, [Err(gone.clone()), Err(gone.clone()), Ok(()), Err(gone)]);
    }
}

/// Five of six ranks wait half a second for the sixth, parked.
#[test]
fn waits_without_spin_use_no_cpu() {
    let cpu_s = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    };
    let used_s: Vec<f64> = run(6, false, |comm| {
        for _ in 0..10 {
            if comm.rank() == 0 {
                thread::sleep(Duration::from_millis(50));
            }
            comm.barrier().unwrap();
        }
        cpu_s()
    });
    assert!(used_s.iter().sum::<f64>() < 0.05, "{used_s:?}");
}

/// Half the round trip of 8 doubles between two ranks: `cargo test --release -p hpl -- --ignored latency --nocapture`.
#[test]
#[ignore = "a measurement"]
fn latency() {
    for spin in [true, false] {
        let half_trip_s = run(2, spin, |comm| {
            let peer = 1 - comm.rank();
            let buf: Arc<Buffer> = Arc::new(Buffer::from(&[0.0; 8][..]));
            let mut times_s: Vec<f64> = (0..31)
                .map(|_| {
                    let start = Instant::now();
                    for _ in 0..10_000 {
                        if comm.rank() == 0 {
                            comm.isend(peer, 0, Arc::clone(&buf), 0..8).wait().unwrap();
                            comm.irecv(peer, 0, 8).wait().unwrap();
                        } else {
                            let (buf, range) = comm.irecv(peer, 0, 8).wait().unwrap().parts();
                            comm.isend(peer, 0, buf, range).wait().unwrap();
                        }
                    }
                    start.elapsed().as_secs_f64() / 20_000.0
                })
                .collect();
            times_s.sort_by(f64::total_cmp);
            times_s[15]
        });
        println!("spin {spin}: {:.0} ns", half_trip_s[0] * 1e9);
    }
}
