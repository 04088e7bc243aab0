use std::thread;

use space::{Form, Looking};

use super::*;
use crate::Error;
use crate::backend::host::fact::{self, factor_alone, lengths};
use crate::backend::host::kernels::Builtin;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::scratch::ScratchPool;
use crate::backend::host::team::{TeamParams, with_team};
use crate::comm::Comm;
use crate::comm::threads::{self, ThreadComm};
use crate::lu::panel::parts_mut;
use crate::mat::{Mat, MatMut};

/// The factored panel of one process row.
struct Factored {
    shape: PanelShape,
    form: Form,
    data: Vec<f64>,
}

impl Factored {
    fn parts(&mut self) -> PanelMut<'_> {
        parts_mut(&self.shape, self.form, &mut self.data)
    }
}

const FORMS: [Form; 2] = [Form::Transposed, Form::NotTransposed];
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
fn factor(a: &[f64], m: usize, jb: usize, nb: usize, p: usize, recipe: Recipe, form: Form) -> Vec<Factored> {
    factor_by(1, a, m, jb, nb, p, recipe, form)
}

/// The same by `threads` threads in each process row.
#[expect(clippy::too_many_arguments, reason = "one each")]
fn factor_by(
    threads: usize,
    a: &[f64],
    m: usize,
    jb: usize,
    nb: usize,
    p: usize,
    recipe: Recipe,
    form: Form,
) -> Vec<Factored> {
    let rows = Distribution::block_cyclic(m, nb, p);
    let one_rank = |comm: ThreadComm| {
        let row = comm.rank();
        let mp = rows.local_len(row);
        let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp, diag_rows: if row == 0 { jb } else { 0 } };
        let (rows_here, mut data) = (&rows, vec![0.0; shape.words()]);
        let mine = move |j| (0..mp).map(move |i| a[rows_here.global(row, i) + j * m]);
        let mut local: Vec<f64> = (0..jb).flat_map(mine).collect();
        let (a, panel) = (MatMut::new(&mut local, mp, jb, mp.max(1)), parts_mut(&shape, form, &mut data));
        let fact = Fact { recipe, column: &comm, rows: &rows, shape, col: 0, panel };
        let team = TeamParams { threads, cores: &[], spin: false };
        with_team(team, |team| fact::factor_by(threads, fact, &Builtin::best(), a, team, &ScratchPool::default()))
            .unwrap()
            .unwrap();
        Factored { shape, form, data }
    };
    thread::scope(|scope| {
        let ranks: Vec<_> = threads::world(p, false).into_iter().map(|comm| scope.spawn(|| one_rank(comm))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Applies the pivots to `a` and compares with L·U, gathered from all process rows.
fn check(a: &[f64], m: usize, jb: usize, nb: usize, factored: &mut [Factored]) -> Vec<f64> {
    let rows = Distribution::block_cyclic(m, nb, factored.len());
    let mut permuted = a.to_vec();
    let first = factored[0].parts();
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
        let (mp, top) = (part.shape.mp, part.shape.diag_rows);
        let panel = part.parts();
        assert_eq!(panel.pivots, pivots, "the same pivots in all process rows");
        for (i, j) in (0..jb).flat_map(|j| (top..mp).map(move |i| (i, j))) {
            l[rows.global(row, i) + j * m] = panel.a.at(i, j);
        }
    }
    Builtin::best().gemm(Mat::new(&l, m, jb, m), Mat::new(&u, jb, jb, jb), MatMut::new(&mut permuted, m, jb, m));
    let error = permuted.iter().fold(0.0_f64, |max, value| max.max(value.abs()));
    assert!(error < 1e-14 * m as f64, "‖PA − LU‖ = {error}");
    assert!(l.iter().all(|value| value.abs() <= 1.0), "multipliers are at most 1");
    pivots
}

/// The pivots of a random matrix are well separated: all variants choose the same.
#[test]
fn all_variants_factor_and_agree_on_pivots() {
    for (m, jb, nb, p) in [(1, 1, 1, 1), (7, 7, 7, 1), (64, 64, 64, 1), (65, 13, 13, 1), (50, 8, 8, 2), (65, 16, 16, 3)]
    {
        let a = random(m, jb);
        let mut expected = None;
        for (recipe, form) in recipes().flat_map(|recipe| FORMS.map(|form| (recipe, form))) {
            let pivots = check(&a, m, jb, nb, &mut factor(&a, m, jb, nb, p, recipe, form));
            assert_eq!(*expected.get_or_insert(pivots.clone()), pivots, "{recipe:?} {form:?} on {p} process rows");
        }
    }
}

/// Several threads compute the same as one thread, bit for bit.
#[test]
fn a_team_factors_as_one_thread_does() {
    let panels = [(7, 7, 7, 1), (65, 13, 13, 1), (300, 40, 40, 1), (50, 8, 8, 2), (200, 24, 24, 3), (500, 136, 136, 1)];
    for (m, jb, nb, p) in panels {
        let a = random(m, jb);
        for (turn, recipe) in recipes().enumerate() {
            let (form, threads) = (FORMS[turn % 2], 2 + turn % 3);
            let mut team = factor_by(threads, &a, m, jb, nb, p, recipe, form);
            check(&a, m, jb, nb, &mut team);
            let same = factor(&a, m, jb, nb, p, recipe, form);
            for (part, one) in team.into_iter().zip(same) {
                // Rows of the diagonal block are not read again.
                let (mp, top) = (part.shape.mp, part.shape.diag_rows);
                let read = |&at: &usize| at >= mp * jb || at % mp >= top;
                let mut elements = (0..part.data.len()).filter(read);
                assert!(
                    elements.all(|at| part.data[at].to_bits() == one.data[at].to_bits()),
                    "{recipe:?} {form:?} by {threads} threads on {p} process rows"
                );
            }
        }
    }
}

/// More threads than groups of columns, and than cores.
#[test]
fn many_threads_factor_as_one_does() {
    let recipe = Recipe { pfact: Looking::Right, rfact: Looking::Crout, nbmin: 8, ndiv: 3 };
    let a = random(2000, 160);
    let one = factor(&a, 2000, 160, 160, 1, recipe, FORMS[0]);
    for threads in [64, 192] {
        let many = factor_by(threads, &a, 2000, 160, 160, 1, recipe, FORMS[0]);
        let differ = |&at: &usize| many[0].data[at].to_bits() != one[0].data[at].to_bits();
        let read = (0..one[0].data.len()).filter(|&at| at >= 2000 * 160 || at % 2000 >= 160);
        assert_eq!(read.clone().filter(differ).count(), 0, "{threads} threads");
    }
}

#[test]
fn lengths_cover_all_rows_and_the_first_has_the_diagonal_block() {
    for (mp, top) in (0..130).flat_map(|mp| [0, mp / 3, mp.min(24), mp].map(|top| (mp, top))) {
        for threads in 1..6 {
            let lengths = lengths(mp, top, threads);
            assert_eq!(lengths.iter().sum::<usize>(), mp);
            assert!(lengths.len() <= threads && lengths[0] >= top, "{mp} {top} {threads}: {lengths:?}");
        }
    }
}

/// The messages of both forms differ only in L1: one has L1, the other its transpose.
#[test]
fn the_message_holds_l1_in_its_form() {
    for (m, jb, nb, p) in [(65, 13, 13, 1), (50, 8, 8, 2), (300, 96, 96, 3)] {
        let a = random(m, jb);
        for recipe in recipes() {
            let [transposed, plain] = FORMS.map(|form| factor(&a, m, jb, nb, p, recipe, form));
            for (transposed, plain) in transposed.into_iter().zip(plain) {
                let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-13;
                let (l_t, rest_t) = transposed.data.split_at(plain.shape.mp * jb);
                let (l, rest) = plain.data.split_at(plain.shape.mp * jb);
                // The rows of the diagonal block hold intermediate values that are never read.
                assert!(
                    l.iter()
                        .zip(l_t)
                        .enumerate()
                        .all(|(at, pair)| at % plain.shape.mp < plain.shape.diag_rows || close(pair))
                );
                let ((l1_t, rest_t), (l1, rest)) = (rest_t.split_at(jb * jb), rest.split_at(jb * jb));
                for (i, j) in (0..jb).flat_map(|j| (0..jb).map(move |i| (i, j))) {
                    assert!(close((&l1[i + j * jb], &l1_t[j + i * jb])), "({i}, {j}) {recipe:?}");
                }
                assert!((1..jb).any(|i| l1[i] != l1_t[i]), "two forms");
                assert_eq!(rest, rest_t, "pivots and info");
            }
        }
    }
}

#[test]
fn process_rows_without_rows_agree_on_the_pivots() {
    let recipe = Recipe { pfact: Looking::Crout, rfact: Looking::Left, nbmin: 2, ndiv: 2 };
    for p in 1..=7 {
        let a = random(9, 4);
        let pivots = check(&a, 9, 4, 4, &mut factor(&a, 9, 4, 4, p, recipe, FORMS[p % 2]));
        assert_eq!(pivots, check(&a, 9, 4, 4, &mut factor(&a, 9, 4, 4, 1, recipe, FORMS[0])));
    }
}

#[test]
fn ties_go_to_the_smaller_process_row() {
    let recipe = Recipe { pfact: Looking::Right, rfact: Looking::Right, nbmin: 1, ndiv: 2 };
    // Blocks of one row: process rows 1 and 2 own global rows 1 and 2.
    let a = [0.5, 1.0, -1.0];
    for mut part in factor(&a, 3, 1, 1, 3, recipe, FORMS[0]) {
        assert_eq!(part.parts().pivots, [1.0]);
    }
}

#[test]
fn zero_column_sets_info_everywhere() {
    for (p, recipe) in (1..=3).flat_map(|p| recipes().map(move |recipe| (p, recipe))) {
        let mut a = random(12, 4);
        a[2 * 12..3 * 12].fill(0.0);
        for mut part in factor_by(p % 2 + 1, &a, 12, 4, 4, p, recipe, FORMS[p % 2]) {
            assert_eq!(*part.parts().info, 3.0);
        }
    }
}

#[test]
fn not_a_number_ends_with_equal_pivots() {
    for (p, at) in (1..=4).flat_map(|p| (0..16).map(move |at| (p, at))) {
        let recipe = Recipe { pfact: Looking::Left, rfact: Looking::Crout, nbmin: 2, ndiv: 2 };
        let mut a = random(16, 4);
        a[at + 16] = f64::NAN;
        let mut parts = factor_by(at % 3 + 1, &a, 16, 4, 4, p, recipe, FORMS[at % 2]);
        let mut pivots = parts.iter_mut().map(|part| part.parts().pivots.to_vec());
        let first = pivots.next().unwrap();
        assert!(pivots.all(|other| other == first));
    }
}

/// Kernels that fail on the second thread of a team.
struct Failing;

impl Kernels for Failing {
    fn name(&self) -> String {
        "failing".to_owned()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        assert!(thread::current().name() != Some("hpl-1"), "on purpose");
        Builtin::best().gemm(a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        Builtin::best().trsm(l, b);
    }
}

#[test]
fn a_thread_that_fails_ends_the_others() {
    let (mut a, recipe) = (random(90, 12), recipes().next().unwrap());
    let recipe = Recipe { nbmin: 3, ..recipe };
    let shape = PanelShape { k: 0, ia: 0, jb: 12, row: 0, col: 0, ii: 0, mp: 90, diag_rows: 12 };
    let (rows, comm) = (Distribution::block_cyclic(90, 12, 1), threads::world(1, false).pop().unwrap());
    let mut data = vec![0.0; shape.words()];
    let (a, panel) = (MatMut::new(&mut a, 90, 12, 90), parts_mut(&shape, FORMS[0], &mut data));
    let fact = Fact { recipe, column: &comm, rows: &rows, shape, col: 0, panel };
    let team = TeamParams { threads: 3, cores: &[], spin: false };
    let outcome = with_team(team, |team| fact::factor_by(3, fact, &Failing, a, team, &ScratchPool::default())).unwrap();
    assert!(matches!(outcome, Err(Error::Panicked(_))), "{outcome:?}");
}

mod l1_share;
mod rates;
