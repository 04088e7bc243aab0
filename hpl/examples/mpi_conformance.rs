//! Conformance tests of `Comm` on ranks that are MPI processes: `mpirun -np N mpi_conformance`.
//!
//! With the name of a failure as argument, the last rank fails in this way while the others wait for a message that
//! is never sent: the job must end, with a line that names the rank and exit code 1.

use std::sync::Arc;

use hpl::comm::conformance::cases;
use hpl::comm::{Comm, Request, mpi};
use hpl::mat::Buffer;

fn main() {
    let calls = mpi::Calls::here()
        .unwrap_or_else(|error| panic!("{error}"))
        .expect("MPI, built in or in the folder of this program");
    let world = mpi::init(calls);
    match std::env::args().nth(1) {
        None => conform(&world),
        Some(failure) => fail(&world, &failure),
    }
}

fn conform(world: &mpi::MpiComm) {
    for spin in [false, true] {
        world.set_spin(spin);
        for case in cases().iter().filter(|case| case.sizes.contains(&world.size())) {
            (case.run)(world.split(0, world.rank()).expect("a failing rank ends the job"));
            if world.rank() == 0 {
                println!("{}: {} ranks, spin {spin}", case.name, world.size());
            }
        }
    }
}

fn fail(world: &mpi::MpiComm, failure: &str) {
    let last = world.size() - 1;
    let half = world.split(usize::from(world.rank() == last), 0).expect("a failing rank ends the job");
    let send = |len| world.isend(last, 2, Arc::new(Buffer::from(&vec![0.0; len][..])), 0..len);
    if world.rank() != last {
        let _sent = match failure {
            "too long" if world.rank() == 0 => Some(send(5)),
            "too short" if world.rank() == 0 => Some(send(3)),
            _ => None,
        };
        let _ = half.irecv(0, 1, 8).wait();
        return;
    }
    match failure {
        "panic" => panic!("on purpose"),
        "poison" => half.poison("boom"),
        "too long" | "too short" => drop(world.irecv(0, 2, 4).wait()),
        "never received" => drop(send(1_000_000)),
        "thread" => {
            let refused = std::thread::scope(|scope| scope.spawn(|| drop(send(1))).join().is_err());
            assert!(!refused, "another thread may not call MPI");
        }
        "leaves" => {}
        "killed" => std::process::abort(),
        _ => panic!("no failure is called {failure}"),
    }
}
