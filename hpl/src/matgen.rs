//! HPL's random matrix, generated wherever it is needed.
//!
//! X' = a·X + 1 mod 2⁶⁴ with X₀ = 100; element (i, j) of the N×(N+1) matrix `[A | b]` is
//! 0.5 − X·2⁻⁶⁴ with X = X₁₊ᵢ₊ⱼ·ₙ, bit for bit as in \[HPL\] testing/matgen/HPL_rand.c. Any element is
//! reached in O(log) steps, so the values depend on N only, not on NB, P or Q.

use std::ops::Range;

use crate::kernels::random::{self, Jump};
use crate::layout::Layout;
use crate::mat::MatMut;

/// Fills the local columns `cols` of process (`row`, `col`): `out` has the process's local rows and one
/// column for each of `cols`. Threads of a process may share the work by column ranges.
///
/// # Panics
/// When `out` has another shape or `cols` are not all there.
pub fn generate(layout: &Layout, (row, col): (usize, usize), cols: Range<usize>, mut out: MatMut<'_>) {
    let rows = LocalRows::all(layout, row);
    assert!(out.rows() == rows.len && out.cols() == cols.len(), "one column of local rows each");
    for (j, local) in cols.enumerate() {
        rows.fill(layout.cols.global(col, local), out.col_mut(j));
    }
}

/// shim
pub fn generate_trailing(
    layout: &Layout,
    place: (usize, usize),
    first: usize,
    cols: Range<usize>,
    mut out: MatMut<'_>,
    sums: &mut [f64],
) {
    let above = layout.rows.local_from(place.0, first);
    for local in cols.start.max(layout.cols.local_from(place.1, first))..cols.end {
        if layout.cols.global(place.1, local) < layout.n() {
            let rows = out.rows();
            generate(layout, place, local..local + 1, out.reborrow().sub(0, local - cols.start, rows, 1));
            sums.iter_mut().zip(&out.col(local - cols.start)[above..]).for_each(|(s, a)| *s += a);
        }
    }
}

/// Fills `out` with the block of the N×(N+1) matrix that starts at global element (`row`, `col`).
///
/// # Panics
/// When the block reaches beyond the matrix.
pub fn generate_block(n: usize, row: usize, col: usize, mut out: MatMut<'_>) {
    assert!(row + out.rows() <= n && col + out.cols() <= n + 1, "block exceeds the matrix");
    let piece = Piece { jump: Jump::by(row as u64), rows: 0..out.rows() };
    let rows = LocalRows { n, len: out.rows(), pieces: vec![piece] };
    for j in 0..out.cols() {
        rows.fill(col + j, out.col_mut(j));
    }
}

/// The rows of a process, from which any column of them can be generated.
pub(crate) struct LocalRows {
    n: usize,
    /// Number of rows.
    len: usize,
    pieces: Vec<Piece>,
}

/// Consecutive elements of each column: `jump` leads to the first of them from the top of the column.
struct Piece {
    jump: Jump,
    rows: Range<usize>,
}

impl LocalRows {
    /// All rows of process row `row`.
    pub(crate) fn all(layout: &Layout, row: usize) -> Self {
        let len = layout.rows.local_len(row);
        let piece = |run: crate::layout::Run| Piece {
            jump: Jump::by(run.global.start as u64),
            rows: run.local..run.local + run.global.len(),
        };
        Self { n: layout.n(), len, pieces: layout.rows.runs(row, 0..len).into_iter().map(piece).collect() }
    }

    /// State of element (0, `col`); products of indices wrap like the sequence itself, whose period is 2⁶⁴.
    fn top(&self, col: usize) -> u64 {
        Jump::by((col as u64).wrapping_mul(self.n as u64).wrapping_add(1)).apply(100)
    }

    /// Writes these rows of global column `col`.
    pub(crate) fn fill(&self, col: usize, out: &mut [f64]) {
        let top = self.top(col);
        for piece in &self.pieces {
            random::fill(piece.jump.apply(top), &mut out[piece.rows.clone()]);
        }
    }

    /// Takes `x.len()` global columns into the check: r ← r − A·x, s ← s + Σ|a| along each row, and appends
    /// Σ|a| down each column.
    pub(crate) fn check(&self, cols: &[usize], x: &[f64], r: &mut [f64], s: &mut [f64], sums: &mut Vec<f64>) {
        let (groups, singles) = cols.as_chunks::<{ random::COLUMNS }>();
        let (x_groups, x_singles) = x.as_chunks::<{ random::COLUMNS }>();
        for (cols, x) in groups.iter().zip(x_groups) {
            let (tops, mut totals) = (cols.map(|col| self.top(col)), [0.0; random::COLUMNS]);
            for Piece { jump, rows } in &self.pieces {
                let starts = tops.map(|top| jump.apply(top));
                let part = random::check_columns(starts, *x, &mut r[rows.clone()], &mut s[rows.clone()]);
                totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
            sums.extend(totals);
        }
        for (&col, &x) in singles.iter().zip(x_singles) {
            let part = |Piece { jump, rows }: &Piece| {
                random::check_column(jump.apply(self.top(col)), x, &mut r[rows.clone()], &mut s[rows.clone()])
            };
            sums.push(self.pieces.iter().map(part).sum());
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
