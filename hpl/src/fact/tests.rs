use std::thread;

use super::*;
use crate::comm::threads::{self, ThreadComm};
use crate::kernels::Builtin;
use crate::mat::{Mat, MatMut};
use crate::panel::parts_mut;

/// What one process row is left with.
struct Factored {
    shape: PanelShape,
    data: Vec<f64>,
}

const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];

fn recipes() -> impl Iterator<Item = Recipe> {
    let sizes = [(1, 2), (2, 2), (4, 2), (3, 3), (8, 4), (64, 2)];
    let variants = LOOKING.into_iter().flat_map(|pfact| LOOKING.map(|rfact| (pfact, rfact)));
    variants.flat_map(move |(pfact, rfact)| sizes.map(|(nbmin, ndiv)| Recipe { pfact, rfact, nbmin, ndiv }))
}

fn random(rows: usize, cols: usize) -> Vec<f64> {
    let mut state = 42_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    (0..rows * cols).map(|_| next()).collect()
}

/// Factors the first panel of an m-row matrix whose columns are `a`, on `p` process rows.
fn factor(a: &[f64], m: usize, jb: usize, nb: usize, p: usize, recipe: Recipe) -> Vec<Factored> {
    let rows = Axis::block_cyclic(m, nb, p);
    let one_rank = |comm: ThreadComm| {
        let row = comm.rank();
        let mp = rows.local_len(row);
        let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp, top: if row == 0 { jb } else { 0 } };
        let mut data = vec![0.0; shape.words()];
        let panel = parts_mut(&shape, &mut data);
        let mut local = panel.a;
        for (i, j) in (0..jb).flat_map(|j| (0..mp).map(move |i| (i, j))) {
            local.set(i, j, a[rows.global(row, i) + j * m]);
        }
        let panel = PanelMut { a: local, ..panel };
        Fact { recipe, kernels: &Builtin, column: &comm, rows: &rows, shape, panel }.run().unwrap();
        Factored { shape, data }
    };
    thread::scope(|scope| {
        let ranks: Vec<_> = threads::world(p, false).into_iter().map(|comm| scope.spawn(|| one_rank(comm))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Applies the pivots to `a` and compares with L·U, gathered from all process rows.
fn check(a: &[f64], m: usize, jb: usize, nb: usize, factored: &mut [Factored]) -> Vec<f64> {
    let rows = Axis::block_cyclic(m, nb, factored.len());
    let mut permuted = a.to_vec();
    let first = parts_mut(&factored[0].shape.clone(), &mut factored[0].data);
    let (pivots, l1) = (first.pivots.to_vec(), first.l1.as_ref());
    let mut l = vec![0.0; m * jb];
    let mut u = vec![0.0; jb * jb];
    for (i, j) in (0..jb).flat_map(|j| (0..jb).map(move |i| (i, j))) {
        let value = l1.at(i, j);
        if i <= j { u[i + j * jb] = value } else { l[i + j * m] = value }
    }
    for j in 0..jb {
        l[j + j * m] = 1.0;
        for col in 0..jb {
            permuted.swap(j + col * m, pivots[j] as usize + col * m);
        }
    }
    for (row, part) in factored.iter_mut().enumerate() {
        let (shape, top) = (part.shape, part.shape.top);
        let panel = parts_mut(&shape, &mut part.data);
        assert_eq!(panel.pivots, pivots, "the same pivots in all process rows");
        for (i, j) in (0..jb).flat_map(|j| (top..shape.mp).map(move |i| (i, j))) {
            l[rows.global(row, i) + j * m] = panel.a.at(i, j);
        }
    }
    Builtin.gemm(Mat::new(&l, m, jb, m), Mat::new(&u, jb, jb, jb), MatMut::new(&mut permuted, m, jb, m));
    let error = permuted.iter().fold(0.0_f64, |max, value| max.max(value.abs()));
    assert!(error < 1e-14 * m as f64, "‖PA − LU‖ = {error}");
    assert!(l.iter().all(|value| value.abs() <= 1.0), "multipliers are at most 1");
    pivots
}

/// Random rows are well separated as pivots: all variants find the same.
#[test]
fn all_variants_factor_and_agree_on_pivots() {
    for (m, jb, nb, p) in [(1, 1, 1, 1), (7, 7, 7, 1), (64, 64, 64, 1), (65, 13, 13, 1), (50, 8, 8, 2), (65, 16, 16, 3)]
    {
        let a = random(m, jb);
        let mut expected = None;
        for recipe in recipes() {
            let pivots = check(&a, m, jb, nb, &mut factor(&a, m, jb, nb, p, recipe));
            assert_eq!(*expected.get_or_insert(pivots.clone()), pivots, "{recipe:?} on {p} process rows");
        }
    }
}

#[test]
fn process_rows_without_rows_take_part() {
    let recipe = Recipe { pfact: Looking::Crout, rfact: Looking::Left, nbmin: 2, ndiv: 2 };
    for p in 1..=7 {
        let a = random(9, 4);
        let pivots = check(&a, 9, 4, 4, &mut factor(&a, 9, 4, 4, p, recipe));
        assert_eq!(pivots, check(&a, 9, 4, 4, &mut factor(&a, 9, 4, 4, 1, recipe)));
    }
}

#[test]
fn ties_go_to_the_smaller_process_row() {
    let recipe = Recipe { pfact: Looking::Right, rfact: Looking::Right, nbmin: 1, ndiv: 2 };
    // Blocks of one row: global rows 1 and 2 live on process rows 1 and 2.
    let a = [0.5, 1.0, -1.0];
    for part in factor(&a, 3, 1, 1, 3, recipe) {
        let (shape, mut data) = (part.shape, part.data);
        assert_eq!(parts_mut(&shape, &mut data).pivots, [1.0]);
    }
}

#[test]
fn zero_column_sets_info_everywhere() {
    for (p, recipe) in (1..=3).flat_map(|p| recipes().map(move |recipe| (p, recipe))) {
        let mut a = random(12, 4);
        a[2 * 12..3 * 12].fill(0.0);
        for part in factor(&a, 12, 4, 4, p, recipe) {
            let (shape, mut data) = (part.shape, part.data);
            assert_eq!(*parts_mut(&shape, &mut data).info, 3.0);
        }
    }
}

#[test]
fn not_a_number_ends_with_equal_pivots() {
    for (p, at) in (1..=4).flat_map(|p| (0..16).map(move |at| (p, at))) {
        let recipe = Recipe { pfact: Looking::Left, rfact: Looking::Crout, nbmin: 2, ndiv: 2 };
        let mut a = random(16, 4);
        a[at + 16] = f64::NAN;
        let mut parts = factor(&a, 16, 4, 4, p, recipe);
        let mut pivots = parts.iter_mut().map(|part| {
            let shape = part.shape;
            parts_mut(&shape, &mut part.data).pivots.to_vec()
        });
        let first = pivots.next().unwrap();
        assert!(pivots.all(|other| other == first));
    }
}

/// Rate of one core: `cargo test --release -p hpl --lib -- --ignored --nocapture rate_of_panels`.
#[test]
#[ignore = "a measurement"]
fn rate_of_panels() {
    for (m, jb) in [(8000, 128), (8000, 192), (8000, 256), (2000, 128), (500, 128)] {
        let a = random(m, jb);
        let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: m, top: jb };
        let (rows, comm) = (Axis::block_cyclic(m, jb, 1), threads::world(1, false).pop().unwrap());
        for (pfact, rfact, nbmin, ndiv) in [
            (Looking::Right, Looking::Crout, 4, 2),
            (Looking::Right, Looking::Right, 8, 2),
            (Looking::Left, Looking::Left, 8, 2),
            (Looking::Crout, Looking::Crout, 8, 2),
            (Looking::Left, Looking::Right, 16, 2),
            (Looking::Right, Looking::Right, 16, 2),
        ] {
            let recipe = Recipe { pfact, rfact, nbmin, ndiv };
            let mut times = Vec::new();
            for _ in 0..7 {
                let mut data = vec![0.0; shape.words()];
                data[..m * jb].copy_from_slice(&a);
                let clock = std::time::Instant::now();
                let panel = parts_mut(&shape, &mut data);
                Fact { recipe, kernels: &Builtin, column: &comm, rows: &rows, shape, panel }.run().unwrap();
                times.push(clock.elapsed().as_secs_f64());
            }
            times.sort_by(f64::total_cmp);
            let flops = (m * jb * jb) as f64 - (jb * jb * jb) as f64 / 3.0;
            println!("{m}×{jb} {pfact:?} {rfact:?} NBMIN {nbmin}: {:.1} GFLOP/s", flops / times[3] * 1e-9);
        }
    }
}
