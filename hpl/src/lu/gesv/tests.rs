use std::thread;

use space::{Bcast, Form, Looking, Pmap, Swap};

use super::*;
use crate::backend::host::kernels::Builtin;
use crate::backend::host::kernels::isa::{Isa, used};
use crate::backend::host::team::{Team, TeamParams, with_team};
use crate::backend::host::{HostBackend, Workspace};
use crate::comm::threads::{self, ThreadComm};
use crate::lu::matgen;
use crate::lu::trsv;
use crate::mat::MatMut;
use crate::plan::ColumnStrips;
use crate::plan::layout::Layout;

/// The factored local matrix and info, by rank.
type Outcome = Vec<(Vec<f64>, usize)>;

/// [A | b] of HPL's generator, changed by `change`.
fn matrix(n: usize, change: impl Fn(&mut MatMut<'_>)) -> Vec<f64> {
    let mut data = vec![0.0; n * (n + 1)];
    let mut a = MatMut::new(&mut data, n, n + 1, n);
    matgen::generate_block(n, 0, 0, a.reborrow());
    change(&mut a);
    data
}

/// Factors `whole`, dealt to in-process ranks.
fn factor(whole: &[f64], params: &HplParams, split: f64, threads: usize) -> Outcome {
    let (n, p, q) = (params.n, params.p, params.q);
    let strips = if threads == 1 { ColumnStrips::Each(10) } else { ColumnStrips::Whole };
    let plan = Plan { layout: Layout::block_cyclic(n, params.nb, p, q), depth: params.depth, split, strips };
    let one_rank = |comm: ThreadComm| {
        let grid = Grid::new(&comm, Pmap::Row, p, q).unwrap();
        let (rows, cols) = (&plan.layout.rows, &plan.layout.cols);
        let (mp, nq) = (rows.local_len(grid.row), cols.local_len(grid.col));
        let column = |j| (0..mp).map(move |i| whole[rows.global(grid.row, i) + cols.global(grid.col, j) * n]);
        let mut data: Vec<f64> = (0..nq).flat_map(column).collect();
        let trace = Trace::new(0);
        let mut lu = Lu::new(&plan, &grid, params, comm.rank(), &trace, 0..plan.depth.max(1));
        let team = TeamParams { threads, cores: &[], spin: false };
        let a = MatMut::new(&mut data, mp, nq, mp.max(1));
        let mut workspace = Workspace::default();
        let factor = |team: &mut Team<'_>| {
            lu.factor(0..plan.steps(), &mut HostBackend::new(&Builtin::best(), team, a, &mut workspace), None)
        };
        let info = with_team(team, factor).unwrap().unwrap();
        (data, info)
    };
    thread::scope(|scope| {
        let comms = threads::world(p * q, false).into_iter();
        let ranks: Vec<_> = comms.map(|comm| scope.spawn(|| one_rank(comm))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// U and y of the textbook factorization, in place of A and b.
fn textbook(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i + k * n].abs().total_cmp(&a[j + k * n].abs())).unwrap();
        (0..=n).for_each(|j| a.swap(k + j * n, pivot + j * n));
        for i in k + 1..n {
            let l = a[i + k * n] / a[k + k * n];
            (k..=n).for_each(|j| a[i + j * n] -= l * a[k + j * n]);
        }
    }
    a
}

/// PA = LU and Ly = Pb, for every variant: U and y are those of the textbook, which are unique.
#[test]
fn upper_triangle_and_y_are_the_textbooks() {
    let n = 61;
    let whole = matrix(n, |_| {});
    let reference = textbook(whole.clone(), n);
    let looking = [Looking::Left, Looking::Crout, Looking::Right];
    let swaps = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 20 }];
    for (turn, (p, q)) in [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (5, 1)].into_iter().enumerate() {
        for (nb, depth, split) in [
            (1, 0, 0.0),
            (7, 0, 0.5),
            (8, 1, 0.0),
            (64, 1, 0.5),
            (20, 1, 0.4),
            (5, 1, 0.6),
            (5, 2, 0.0),
            (3, 3, 0.5),
            (7, 30, 0.3),
            (4, 2, 0.8),
        ] {
            let mut params = HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
            (params.pfact, params.rfact) = (looking[(turn + nb) % 3], looking[(turn + depth) % 3]);
            params.l1 = [Form::Transposed, Form::NotTransposed][(turn + nb) % 2];
            (params.swap, params.bcast) = (swaps[(turn + nb + depth) % 3], Bcast::OneRing);
            let layout = Layout::block_cyclic(n, nb, p, q);
            for (rank, (local, info)) in factor(&whole, &params, split, 1 + nb % 3).into_iter().enumerate() {
                assert_eq!(info, 0);
                let (row, col) = crate::comm::grid::coords(Pmap::Row, rank, p, q);
                let mp = layout.rows.local_len(row);
                for (at, value) in local.into_iter().enumerate() {
                    let (i, j) = (layout.rows.global(row, at % mp), layout.cols.global(col, at / mp));
                    let difference = (value - reference[i + j * n]).abs();
                    assert!(i > j || difference < 1e-10, "({i}, {j}) differs by {difference}: {params:?}");
                }
            }
        }
    }
}

#[test]
fn zero_column_gives_the_same_info_everywhere() {
    for (p, q, nb) in [(1, 1, 8), (2, 2, 8), (3, 1, 4), (1, 4, 3)] {
        for (depth, zero) in [0, 1, 3].into_iter().flat_map(|depth| [0, 5, 19, 29].map(|zero| (depth, zero))) {
            let whole = matrix(30, |a| a.col_mut(zero).fill(0.0));
            let params = HplParams { nb, depth, ..HplParams::baseline(30, p, q) };
            assert!(factor(&whole, &params, 0.4, 2).iter().all(|(_, info)| *info == zero + 1));
        }
    }
}

#[test]
fn not_a_number_ends_all_ranks_and_stays_visible() {
    for (p, q) in [(1, 1), (2, 2), (3, 2)] {
        for at in [0, 37, 700, 899] {
            let whole = matrix(30, |a| a.set(at % 30, at / 30, f64::NAN));
            let outcome = factor(&whole, &HplParams { nb: 4, ..HplParams::baseline(30, p, q) }, 0.4, 2);
            // All ranks agree, and the NaN stays visible: such a solution fails the check.
            assert!(outcome.iter().all(|(_, info)| *info == outcome[0].1), "{p}×{q} {at}");
            let finite = |(data, info): &(Vec<f64>, usize)| *info == 0 && data.iter().all(|value| value.is_finite());
            assert!(!outcome.iter().all(finite), "{p}×{q} {at}");
        }
    }
}

/// Factorization and back substitution by one thread: also the engine's own loops use only the given instruction set.
#[test]
fn kernels_use_only_the_given_instruction_set() {
    let (n, whole) = (150, matrix(150, |_| {}));
    let looking = [Looking::Left, Looking::Crout, Looking::Right];
    let variants = looking.into_iter().flat_map(|looking| [1, 4, 40].map(|nbmin| (looking, nbmin)));
    for (isa, (looking, nbmin)) in Isa::available().flat_map(|isa| variants.clone().map(move |variant| (isa, variant)))
    {
        for l1 in [Form::Transposed, Form::NotTransposed] {
            let params =
                HplParams { nb: 40, nbmin, l1, pfact: looking, rfact: looking, ..HplParams::baseline(n, 1, 1) };
            let plan = Plan {
                layout: Layout::block_cyclic(n, params.nb, 1, 1),
                depth: params.depth,
                split: 0.0,
                strips: ColumnStrips::Whole,
            };
            let comm = threads::world(1, false).pop().unwrap();
            let (grid, kernels, trace) = (Grid::new(&comm, Pmap::Row, 1, 1).unwrap(), Builtin(isa), Trace::new(0));
            let (mut data, team) = (whole.clone(), TeamParams { threads: 1, cores: &[], spin: false });
            let solve = |team: &mut Team<'_>| {
                let mut workspace = Workspace::default();
                let mut host = HostBackend::new(&kernels, team, MatMut::new(&mut data, n, n + 1, n), &mut workspace);
                let mut lu = Lu::new(&plan, &grid, &params, 0, &trace, 0..plan.depth.max(1));
                lu.factor(0..plan.steps(), &mut host, None).unwrap();
                trsv::solve(&plan, 0, &grid, &mut host).unwrap();
            };
            assert_eq!(used::during(|| with_team(team, solve).unwrap()), [isa], "{params:?}");
        }
    }
}

/// Factors a matrix of order 1700 in panels of 400 columns by `team`: returns the threads that factored each panel, and the
/// matrix.
fn factors(depth: usize, team: TeamParams<'_>, slots: usize) -> (Vec<Vec<u32>>, Vec<f64>) {
    let n = 1700;
    let params = HplParams { nb: 400, depth, ..HplParams::baseline(n, 1, 1) };
    let plan =
        Plan { layout: Layout::block_cyclic(n, params.nb, 1, 1), depth, split: 0.0, strips: ColumnStrips::Whole };
    let comm = threads::world(1, false).pop().unwrap();
    let (grid, trace, mut data) = (Grid::new(&comm, Pmap::Row, 1, 1).unwrap(), Trace::new(slots), matrix(n, |_| {}));
    let start = Instant::now();
    let a = MatMut::new(&mut data, n, n + 1, n);
    let work = |team: &mut Team<'_>| {
        let mut workspace = Workspace::default();
        let kernels = Builtin::best();
        let mut host = HostBackend::new(&kernels, team, a, &mut workspace);
        Lu::new(&plan, &grid, &params, 0, &trace, 0..plan.depth.max(1)).factor(0..plan.steps(), &mut host, None)
    };
    assert_eq!(with_team(team, work).unwrap().unwrap(), 0);
    let spans = trace.into_spans(0, start);
    let by = |step: usize| {
        let facts = spans.iter().filter(|span| span.phase == Phase::Fact && span.step as usize == step);
        let mut threads: Vec<u32> = facts.map(|span| span.thread).collect();
        threads.sort_unstable();
        threads
    };
    ((0..plan.steps()).map(by).collect(), data)
}

fn differ_by(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |max, (a, b)| max.max((a - b).abs()))
}

/// The first panel is factored by all threads, before any update. For the panels 1300×400 and 900×400, during updates of 901
/// and 501 columns, two and three of four threads are enough; the last two panels have too few rows for more threads.
#[test]
fn part_of_the_threads_factor_beside_the_update() {
    let team = |threads| TeamParams { threads, cores: &[], spin: false };
    let ((alone, expected), (threads_by_panel, found)) = (factors(1, team(1), 1), factors(1, team(4), 4));
    assert_eq!(alone, vec![vec![0]; 5]);
    assert_eq!(threads_by_panel, [vec![0, 1, 2, 3], vec![0, 1], vec![0, 1, 2], vec![0, 1], vec![0]]);
    assert!(differ_by(&expected, &found) < 1e-9);
}

/// The borrowed cores have numbers that do not exist: their threads stay unpinned.
#[test]
fn without_look_ahead_panels_are_factored_on_borrowed_cores_too() {
    let alone = TeamParams { threads: 1, cores: &[], spin: false };
    let borrowing = TeamParams { cores: &[100_000, 100_001, 100_002], ..alone };
    let ((_, expected), (threads_by_panel, found)) = (factors(0, alone, 1), factors(0, borrowing, 4));
    assert_eq!(threads_by_panel, [vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2], vec![0, 1], vec![0]]);
    assert!(differ_by(&expected, &found) < 1e-9);
}
