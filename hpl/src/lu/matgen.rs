//! HPL's random matrix; every rank generates its own part.
//!
//! X' = a·X + 1 mod 2⁶⁴ with X₀ = 100; element (i, j) of the N×(N+1) matrix `[A | b]` is
//! 0.5 − X·2⁻⁶⁴ with X = X₁₊ᵢ₊ⱼ·ₙ, bit for bit as in \[HPL\] testing/matgen/HPL_rand.c. Any element is
//! reached in O(log) steps, so the values depend on N only, not on NB, P or Q.

use std::ops::Range;

use crate::backend::host::kernels::isa::Isa;
use crate::backend::host::kernels::random::{self, Jump};
use crate::backend::host::kernels::vector;
use crate::mat::MatMut;
use crate::plan::layout::{BlockRun, Distribution, Layout};

/// Fills the local columns `cols` of process (`row`, `col`): `out` has the process's local rows and one
/// column for each of `cols`. Threads of a process may share the work by column ranges.
///
/// # Panics
/// When `out` has another shape or `cols` exceeds the local columns.
pub fn generate(layout: &Layout, (row, col): (usize, usize), cols: Range<usize>, mut out: MatMut<'_>) {
    let rows = LocalRows::all(layout, row);
    assert!(out.rows() == rows.len && out.cols() == cols.len(), "one column of local rows each");
    for (j, local) in cols.enumerate() {
        rows.fill(layout.cols.global(col, local), out.col_mut(j));
    }
}

/// Fills the trailing matrix in place and adds up its rows: elements (i, j) with global first ≤ i and
/// first ≤ j < N among the local columns `cols`.
///
/// `out` has all local rows, one column for each of `cols`; elements before row or column `first`, and b, keep
/// their values. `sums` has one element for each local row from `first` on, to which the row's new elements are
/// added. Threads of a process may share the work by column ranges, each with its own sums.
///
/// # Panics
/// When `out` or `sums` has another shape or `cols` exceeds the local columns.
pub fn generate_trailing(
    layout: &Layout,
    (row, col): (usize, usize),
    first: usize,
    cols: Range<usize>,
    mut out: MatMut<'_>,
    sums: &mut [f64],
) {
    let (rows, above) = (LocalRows::from(layout, row, first), layout.rows.local_from(row, first));
    assert!(out.rows() == above + rows.len && out.cols() == cols.len(), "one column of local rows each");
    for local in cols.start.max(layout.cols.local_from(col, first))..cols.end {
        let global = layout.cols.global(col, local);
        if global < layout.n() {
            let column = &mut out.col_mut(local - cols.start)[above..];
            rows.fill(global, column);
            vector::add(Isa::detect(), column, sums);
        }
    }
}

/// Fills `out` with the block of the N×(N+1) matrix that starts at global element (`row`, `col`).
///
/// # Panics
/// When the block reaches beyond the matrix.
pub fn generate_block(n: usize, row: usize, col: usize, mut out: MatMut<'_>) {
    assert!(row + out.rows() <= n && col + out.cols() <= n + 1, "block exceeds the matrix");
    let run = RowRun { jump: Jump::by(row as u64), rows: 0..out.rows() };
    let rows = LocalRows { n, len: out.rows(), runs: vec![run] };
    for j in 0..out.cols() {
        rows.fill(col + j, out.col_mut(j));
    }
}

/// The rows of a process, for which any column can be generated.
pub(crate) struct LocalRows {
    n: usize,
    /// Number of rows.
    len: usize,
    runs: Vec<RowRun>,
}

/// Consecutive rows: `jump` advances the generator from the top of a column to the first of them.
struct RowRun {
    jump: Jump,
    rows: Range<usize>,
}

impl LocalRows {
    /// All rows of process row `row`.
    pub(crate) fn all(layout: &Layout, row: usize) -> Self {
        Self::from(layout, row, 0)
    }

    /// The rows with a global index of at least `first`.
    pub(crate) fn from(layout: &Layout, row: usize, first: usize) -> Self {
        let axis: &Distribution = &layout.rows;
        let local = axis.local_from(row, first)..axis.local_len(row);
        let row_run = |run: BlockRun| {
            let start = run.local - local.start;
            RowRun { jump: Jump::by(run.global.start as u64), rows: start..start + run.global.len() }
        };
        let runs = axis.block_runs(row, local.clone()).into_iter().map(row_run).collect();
        Self { n: layout.n(), len: local.len(), runs }
    }

    /// State of element (0, `col`); products of indices wrap like the sequence itself, whose period is 2⁶⁴.
    pub(crate) fn top(&self, col: usize) -> u64 {
        Jump::by((col as u64).wrapping_mul(self.n as u64).wrapping_add(1)).apply(100)
    }

    /// For each row the step of the generator from the top of a column to the row.
    pub(crate) fn jumps(&self) -> impl Iterator<Item = Jump> {
        self.runs.iter().flat_map(|RowRun { jump, rows }| (0..rows.len()).map(|i| jump.then(Jump::by(i as u64))))
    }

    /// Writes these rows of global column `col`.
    pub(crate) fn fill(&self, col: usize, out: &mut [f64]) {
        let top = self.top(col);
        for run in &self.runs {
            random::fill(Isa::detect(), run.jump.apply(top), &mut out[run.rows.clone()]);
        }
    }

    /// Adds `x.len()` global columns to the check: r ← r − A·x, s ← s + Σ|a| along each row, and appends
    /// Σ|a| of each column to `sums`.
    pub(crate) fn check(&self, cols: &[usize], x: &[f64], r: &mut [f64], s: &mut [f64], sums: &mut Vec<f64>) {
        let (groups, singles) = cols.as_chunks::<{ random::COLUMNS }>();
        let (x_groups, x_singles) = x.as_chunks::<{ random::COLUMNS }>();
        for (cols, x) in groups.iter().zip(x_groups) {
            let (tops, mut totals) = (cols.map(|col| self.top(col)), [0.0; random::COLUMNS]);
            for RowRun { jump, rows } in &self.runs {
                let starts = tops.map(|top| jump.apply(top));
                let part = random::check_columns(Isa::detect(), starts, *x, &mut r[rows.clone()], &mut s[rows.clone()]);
                totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
            sums.extend(totals);
        }
        for (&col, &x) in singles.iter().zip(x_singles) {
            let part = |RowRun { jump, rows }: &RowRun| {
                random::check_column(
                    Isa::detect(),
                    jump.apply(self.top(col)),
                    x,
                    &mut r[rows.clone()],
                    &mut s[rows.clone()],
                )
            };
            sums.push(self.runs.iter().map(part).sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(n: usize) -> Vec<f64> {
        let mut data = vec![0.0; n * (n + 1)];
        generate_block(n, 0, 0, MatMut::new(&mut data, n, n + 1, n.max(1)));
        data
    }

    /// Values of element (0, 0), (1, 0) and (2, 0) in Netlib's HPL, for any N.
    #[test]
    #[expect(clippy::excessive_precision, reason = "as published, with 17 digits")]
    fn published_values() {
        for n in [3, 64, 1000] {
            let column = whole(n);
            assert_eq!(column[..3], [-5.1599441937666413e-05, 0.38413122531282284, 0.44368366759894268]);
        }
        let mut first = [0.0];
        generate_block(123_456_789, 0, 0, MatMut::new(&mut first, 1, 1, 1));
        assert_eq!(first, [-5.1599441937666413e-05]);
    }

    /// Against the definition: one step at a time through the matrix in column-major order.
    #[test]
    fn jumps_agree_with_steps() {
        let n = 37;
        let mut x = 100_u64;
        for value_at in whole(n) {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert_eq!(value_at, 0.5 - x as f64 * 2.0_f64.powi(-64));
        }
    }

    #[test]
    fn independent_of_the_distribution() {
        for n in [1, 7, 8, 9, 40] {
            let reference = whole(n);
            for (nb, p, q) in [(1, 1, 1), (1, 2, 3), (8, 3, 2), (7, 1, 5), (64, 2, 2)] {
                let layout = Layout::block_cyclic(n, nb, p, q);
                for (row, col) in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                    let (mp, nq) = (layout.rows.local_len(row), layout.cols.local_len(col));
                    let mut local = vec![f64::NAN; mp * nq];
                    let mut view = MatMut::new(&mut local, mp, nq, mp);
                    // Two calls, as two threads would share the columns.
                    let half = nq / 2;
                    generate(&layout, (row, col), 0..half, view.reborrow().sub(0, 0, mp, half));
                    generate(&layout, (row, col), half..nq, view.reborrow().sub(0, half, mp, nq - half));
                    for (i, j) in (0..nq).flat_map(|j| (0..mp).map(move |i| (i, j))) {
                        let (gi, gj) = (layout.rows.global(row, i), layout.cols.global(col, j));
                        assert_eq!(view.at(i, j), reference[gi + gj * n]);
                    }
                }
            }
        }
    }

    /// The sequence is uniform in (−0.5, 0.5]: mean 0, variance 1/12.
    #[test]
    fn mean_and_variance() {
        let data = whole(300);
        let count = data.len() as f64;
        let mean = data.iter().sum::<f64>() / count;
        let variance = data.iter().map(|v| v * v).sum::<f64>() / count;
        assert!(mean.abs() < 4.0 * (1.0 / 12.0 / count).sqrt(), "mean {mean}");
        assert!((variance - 1.0 / 12.0).abs() < 1e-3, "variance {variance}");
    }

    /// The calls of two threads fill the trailing matrix with the same elements as `generate`, and add exactly these up.
    #[test]
    fn trailing_blocks_agree_with_the_whole_matrix() {
        for (n, nb, p, q) in [(1, 1, 1, 1), (9, 4, 1, 1), (40, 7, 2, 3), (41, 8, 3, 2)] {
            let layout = Layout::block_cyclic(n, nb, p, q);
            for (first, row, col) in on_all_processes(&[0, 1, nb, n / 2, n - 1, n], p, q) {
                let (mp, nq) = (layout.rows.local_len(row), layout.cols.local_len(col));
                let (mut whole, mut local) = (vec![0.0; mp * nq], vec![9.0; mp * nq]);
                generate(&layout, (row, col), 0..nq, MatMut::new(&mut whole, mp, nq, mp));
                let above = layout.rows.local_from(row, first);
                let mut sums = vec![0.0; mp - above];
                let (left, right) = MatMut::new(&mut local, mp, nq, mp).split_cols(nq / 2);
                generate_trailing(&layout, (row, col), first, 0..nq / 2, left, &mut sums);
                generate_trailing(&layout, (row, col), first, nq / 2..nq, right, &mut sums);
                for i in 0..mp {
                    let inside = |j: &usize| i >= above && (first..n).contains(&layout.cols.global(col, *j));
                    for j in 0..nq {
                        let expected = if inside(&j) { whole[i + j * mp] } else { 9.0 };
                        assert_eq!(local[i + j * mp], expected);
                    }
                    if i >= above {
                        let sum: f64 = (0..nq).filter(inside).map(|j| whole[i + j * mp]).sum();
                        assert_eq!(sums[i - above], sum, "added from left to right");
                    }
                }
            }
        }
    }

    /// Each of `firsts` on each process of a P×Q grid.
    fn on_all_processes(firsts: &[usize], p: usize, q: usize) -> Vec<(usize, usize, usize)> {
        let processes = |&first| (0..p).flat_map(move |row| (0..q).map(move |col| (first, row, col)));
        firsts.iter().flat_map(processes).collect()
    }

    /// Speed of one core: `cargo test --release -p hpl --lib -- --ignored --nocapture rate_of_generation`.
    #[test]
    #[ignore = "a measurement"]
    fn rate_of_generation() {
        let layout = Layout::block_cyclic(8000, 192, 1, 1);
        let mut data = vec![1.0; 8000 * 1000];
        for _ in 0..5 {
            let clock = std::time::Instant::now();
            generate(&layout, (0, 0), 0..1000, MatMut::new(&mut data, 8000, 1000, 8000));
            println!("{:.2} ns per element", clock.elapsed().as_secs_f64() * 1e9 / data.len() as f64);
        }
    }
}
