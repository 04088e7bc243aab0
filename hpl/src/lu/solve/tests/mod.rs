mod cover;
mod device;
mod matrix;
mod polled;

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use space::{Bcast, EngineParams, Form, HplParams, Looking, Pmap, Share, Swap, Weights};

use super::*;
use crate::backend::host::kernels::Builtin;
use crate::comm::Buffers;
use crate::comm::threads::{self, ThreadComm};
use crate::mat::Mat;

/// Runs a candidate on in-process ranks; returns the reports by rank.
fn run(candidate: &Candidate) -> Vec<Result<Report, Error>> {
    thread::scope(|scope| {
        let ranks = threads::world(candidate.hpl.ranks(), false).into_iter();
        let ranks: Vec<_> =
            ranks.map(|comm| scope.spawn(move || solve(candidate, &comm, &[], &Builtin::best(), &()))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn candidate(n: usize, nb: usize, p: usize, q: usize, threads: usize) -> Candidate {
    let hpl = HplParams { nb, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
}

fn passes(candidate: &Candidate) -> Report {
    let mut reports: Vec<Report> = run(candidate).into_iter().map(|report| report.unwrap()).collect();
    for report in &reports {
        let residual = report.residual.unwrap();
        assert!(residual.scaled < 16.0, "{residual:?} of {candidate:?}");
        assert_eq!((report.x.len(), report.info), (candidate.hpl.n, 0));
        assert_eq!(report.x, reports[0].x, "x is the same on all ranks");
        assert_eq!(report.residual, reports[0].residual);
    }
    reports.swap_remove(0)
}

const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];
const BCASTS: [Bcast; 6] =
    [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];
const SWAPS: [Swap; 3] = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 20 }];
const SIZES: [usize; 8] = [1, 2, 7, 63, 64, 65, 500, 1000];
const BLOCKS: [usize; 3] = [1, 8, 64];
const GRIDS: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 5)];

/// A small random number generator.
struct Random(usize);

impl Random {
    fn from<T: Copy>(&mut self, values: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values[(self.0 >> 33) % values.len()]
    }
}

/// A sample that takes every value of every parameter many times.
#[test]
fn a_sample_of_all_shapes_passes() {
    let mut random = Random(12345);
    for round in 0..300 {
        let (p, q) = GRIDS[round % GRIDS.len()];
        // The largest size is slow with small blocks.
        let (n, nb) = if round % 10 == 0 { (1000, 64) } else { (random.from(&SIZES[..7]), random.from(&BLOCKS)) };
        let mut candidate = candidate(n, nb, p, q, random.from(&[1, 2, 3]));
        let hpl = &mut candidate.hpl;
        (hpl.pfact, hpl.rfact) = (random.from(&LOOKING), random.from(&LOOKING));
        (hpl.nbmin, hpl.ndiv) = (random.from(&[1, 2, 3, 4, 5, 8, 64]), random.from(&[2, 3, 4]));
        (hpl.bcast, hpl.swap, hpl.depth) = (random.from(&BCASTS), random.from(&SWAPS), random.from(&[0, 1, 1, 2, 5]));
        (hpl.pmap, hpl.align) = (random.from(&[Pmap::Row, Pmap::Column]), random.from(&[1, 4, 8, 512]));
        hpl.l1 = random.from(&[Form::Transposed, Form::NotTransposed]);
        candidate.engine.split = space::Share::new(random.from(&[0.0, 0.3, 0.6])).unwrap();
        passes(&candidate);
    }
}

/// All shapes: `cargo test --release -p hpl --lib -- --ignored --nocapture all_shapes_pass`.
#[test]
#[ignore = "ten thousand runs"]
fn all_shapes_pass() {
    let (start, mut count, mut random) = (Instant::now(), 0, Random(1));
    for (n, nb) in SIZES.into_iter().flat_map(|n| BLOCKS.map(|nb| (n, nb))) {
        for ((p, q), pfact) in GRIDS.into_iter().flat_map(|grid| LOOKING.map(|pfact| (grid, pfact))) {
            for (rfact, bcast) in LOOKING.into_iter().flat_map(|rfact| BCASTS.map(|bcast| (rfact, bcast))) {
                for depth in [0, 1] {
                    let mut candidate = candidate(n, nb, p, q, random.from(&[1, 2, 3]));
                    let hpl = &mut candidate.hpl;
                    (hpl.pfact, hpl.rfact, hpl.bcast, hpl.depth) = (pfact, rfact, bcast, depth);
                    (hpl.nbmin, hpl.ndiv) = (random.from(&[1, 2, 3, 4, 5, 8, 64]), random.from(&[2, 3, 4]));
                    (hpl.swap, hpl.pmap) = (random.from(&SWAPS), random.from(&[Pmap::Row, Pmap::Column]));
                    passes(&candidate);
                    count += 1;
                }
            }
        }
        println!("N {n} NB {nb}: {count} runs passed after {:.0} s", start.elapsed().as_secs_f64());
    }
}

/// Unequal process rows and columns: some own one block, some have no part of many panels, some own no block.
#[test]
fn any_owner_table_passes() {
    let lists: [&[f64]; 6] =
        [&[0.99, 0.01, 0.0], &[0.0, 1.0, 0.0], &[1.0, 2.0, 3.0], &[0.5, 0.25, 0.25], &[3.0, 3.0, 3.0], &[]];
    let speeds = |list: &[f64], procs: usize| -> Vec<Share> {
        let list: Vec<Share> = list.iter().take(procs).map(|&speed| Share::new(speed).unwrap()).collect();
        if list.contains(&Share::new(0.0).unwrap()) && list.len() == 1 { Vec::new() } else { list }
    };
    let mut random = Random(99);
    for (p, q) in [(1, 2), (2, 1), (2, 2), (2, 3), (3, 2)] {
        for (rows, columns) in lists.into_iter().flat_map(|rows| lists.map(|columns| (rows, columns))) {
            for n in [1, 15, 16, 300, 317] {
                let mut candidate = candidate(n, 16, p, q, random.from(&[1, 2]));
                candidate.engine.weights = Weights { rows: speeds(rows, p), columns: speeds(columns, q) };
                candidate.engine.split = Share::new(random.from(&[0.0, 0.3, 0.7])).unwrap();
                let hpl = &mut candidate.hpl;
                (hpl.bcast, hpl.swap, hpl.depth) = (random.from(&BCASTS), random.from(&SWAPS), random.from(&[0, 1, 2]));
                (hpl.pfact, hpl.rfact, hpl.pmap) =
                    (random.from(&LOOKING), random.from(&LOOKING), random.from(&[Pmap::Row, Pmap::Column]));
                passes(&candidate);
            }
        }
    }
}

#[test]
fn the_same_run_gives_the_same_x() {
    for (p, q, threads, depth) in [(1, 1, 1, 1), (1, 1, 3, 1), (2, 2, 2, 1), (3, 2, 1, 0), (1, 5, 2, 1)] {
        let mut candidate = candidate(200, 16, p, q, threads);
        candidate.hpl.depth = depth;
        assert_eq!(passes(&candidate).x, passes(&candidate).x);
    }
}

/// Of every grid and with a team of threads, so small that an interpreter gets through (`tests/miri`).
#[test]
fn tiny_runs_pass() {
    for (n, nb, p, q, threads) in
        [(9, 4, 1, 1, 1), (13, 4, 1, 1, 2), (11, 4, 2, 2, 1), (13, 4, 2, 1, 2), (10, 4, 1, 2, 1)]
    {
        passes(&candidate(n, nb, p, q, threads));
    }
}

#[test]
fn an_empty_system_has_residual_zero() {
    assert_eq!(passes(&candidate(0, 8, 2, 2, 2)).residual.unwrap().scaled, 0.0);
}

#[test]
fn a_grid_needs_its_ranks() {
    let comm = threads::world(1, false).pop().unwrap();
    let error = solve(&candidate(10, 4, 2, 3, 1), &comm, &[], &Builtin::best(), &()).unwrap_err();
    assert_eq!(error.to_string(), "P=2 Q=3 needs 6 ranks, the group has 1; start as many ranks as the grid has");
}

#[test]
fn too_large_a_matrix_is_an_error_on_all_ranks() {
    // More bytes than the address space has.
    for outcome in run(&candidate(1 << 31, 1 << 20, 2, 1, 1)) {
        assert!(matches!(outcome, Err(Error::Memory(_) | Error::Peer(_))));
    }
}

/// Kernels with a fault on one rank.
struct Faulty {
    fails: bool,
}

impl Kernels for Faulty {
    fn name(&self) -> String {
        "faulty".to_owned()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        assert!(!self.fails || thread::current().name() != Some("hpl-1"), "on purpose");
        Builtin::best().gemm(a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        Builtin::best().trsm(l, b);
    }
}

#[test]
fn a_panicking_thread_ends_all_ranks() {
    let candidate = &candidate(400, 16, 2, 2, 2);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let solve = |comm: ThreadComm| {
            let kernels = Faulty { fails: comm.rank() == 1 };
            solve(candidate, &comm, &[], &kernels, &()).unwrap_err()
        };
        let comms = threads::world(4, false).into_iter();
        let ranks: Vec<_> = comms.map(|comm| scope.spawn(move || solve(comm))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    assert!(matches!(outcomes[1], Error::Panicked(_)), "{:?}", outcomes[1]);
    for outcome in [&outcomes[0], &outcomes[2], &outcomes[3]] {
        assert!(outcome.to_string().contains("a thread of this rank panicked"), "{outcome}");
    }
}

/// Slabs of kernels that copy L2 and of others differ in width.
#[test]
fn ranks_with_different_kernels_exchange_rows_of_the_same_columns() {
    let candidate = &candidate(600, 32, 2, 1, 1);
    let (copying, other) = (Builtin::best(), Faulty { fails: false });
    assert!(copying.widest_slab() < 500 && copying.widest_slab() < other.widest_slab());
    thread::scope(|scope| {
        let solve = |comm: ThreadComm| {
            let kernels: &dyn Kernels = if comm.rank() == 0 { &copying } else { &other };
            solve(candidate, &comm, &[], kernels, &())
        };
        let comms = threads::world(2, false).into_iter();
        let ranks: Vec<_> = comms.map(|comm| scope.spawn(move || solve(comm))).collect();
        for rank in ranks {
            assert!(rank.join().unwrap().unwrap().residual.unwrap().scaled < 16.0);
        }
    });
}

/// Records the reported columns.
struct ColumnLog(Mutex<Vec<usize>>);

impl Watch for ColumnLog {
    fn column(&self, done: usize, n: usize, rate_gflops: f64) {
        assert!(done <= n && rate_gflops > 0.0);
        self.0.lock().push(done);
    }
}

#[test]
fn progress_rises() {
    let log = ColumnLog(Mutex::default());
    let comm = threads::world(1, false).pop().unwrap();
    solve(&candidate(2500, 32, 1, 1, 1), &comm, &[], &Builtin::best(), &log).unwrap();
    let columns = log.0.into_inner();
    assert!(!columns.is_empty() && columns.is_sorted());
}

/// As in a survey. The pages of a matrix are near the threads of the rank that has filled it.
#[test]
fn ranks_that_solve_alone_keep_a_matrix_each() {
    let candidate = &candidate(400, 64, 1, 1, 1);
    let (len, huge_pages) = (matrix_len(candidate, 0), candidate.engine.huge_pages);
    let buffers = Arc::new(Buffers::default());
    buffers.matrices.prepare(&[len; 2], 2, huge_pages);
    thread::scope(|scope| {
        for comm in threads::world_with(Arc::clone(&buffers), 2, false) {
            scope.spawn(move || {
                let alone = comm.split(comm.rank(), 0).unwrap();
                solve(candidate, &alone, &[], &Builtin::best(), &()).unwrap();
            });
        }
    });
    for rank in 0..2 {
        let kept = buffers.matrices.take(rank, len, huge_pages).unwrap();
        assert!(kept[0] != 0.0, "memory that nobody has used is 0: {rank}");
    }
}
