//! The matrix of variants under mpirun: a covering sample on 1, 2, 4 and 6 ranks, each with the x of in-process ranks.
//!
//! Minutes: `tests/run`, which builds what it needs, and then
//! `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture matrix_mpi`.

#[path = "../hpl/src/lu/solve/tests/cover.rs"]
mod cover;

use std::process::{Command, Output};
use std::time::Instant;

use space::dat::HplDat;
use space::{Candidate, RunResult};

use crate::mpi::Mpi;
use crate::program::{err, out};

/// N, P, Q: whole blocks on all grids, ragged ones on the largest.
const SHAPES: [(usize, usize, usize); 10] = [
    (300, 1, 1),
    (300, 1, 2),
    (300, 2, 1),
    (300, 1, 4),
    (300, 4, 1),
    (300, 2, 2),
    (300, 2, 3),
    (300, 3, 2),
    (317, 2, 3),
    (317, 3, 2),
];
const NB: usize = 16;

#[test]
#[ignore = "needs MPI, and minutes"]
fn covering_sample_under_open_mpi() {
    all_pass(Mpi::Open);
}

#[test]
#[ignore = "needs MPI, and minutes"]
fn covering_sample_under_mpich() {
    all_pass(Mpi::Mpich);
}

fn all_pass(mpi: Mpi) {
    let (start, mut count) = (Instant::now(), 0);
    for (n, p, q) in SHAPES {
        for candidate in cover::covering(n, NB, p, q) {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("HPL.dat"), HplDat::single(&candidate.hpl).write().unwrap()).unwrap();
            let run = |mut command: Command| {
                let engine = &candidate.engine;
                command.args(["--json", "--threads", &engine.threads.to_string()]);
                command.args(["--split", &engine.split.get().to_string()]);
                result(&candidate, &command.current_dir(&folder).output().unwrap())
            };
            let alone = run(Command::new(mpi.built("xhpl")));
            let together = run(mpi.run(candidate.hpl.ranks(), &mpi.built("xhpl")));
            assert!(alone.passed && together.passed, "{candidate:?}");
            assert!(together.x_hash.is_some() && together.x_hash == alone.x_hash, "{candidate:?}");
            count += 1;
        }
        println!("{mpi:?}, N {n}, {p}×{q}: {count} runs passed after {:.0} s", start.elapsed().as_secs_f64());
    }
    assert!((200..500).contains(&count), "{count}");
}

fn result(candidate: &Candidate, output: &Output) -> RunResult {
    assert!(output.status.success(), "{candidate:?}: {}", err(output));
    serde_json::from_str(&out(output)).unwrap()
}
