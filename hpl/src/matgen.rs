//! HPL's random matrix, generated wherever it is needed.
//!
//! X' = a·X + 1 mod 2⁶⁴ with X₀ = 100; element (i, j) of the N×(N+1) matrix `[A | b]` is
//! 0.5 − X·2⁻⁶⁴ with X = X₁₊ᵢ₊ⱼ·ₙ, bit for bit as in \[HPL\] testing/matgen/HPL_rand.c. Any element is
//! reached in O(log) steps, so the values depend on N only, not on NB, P or Q.

use std::ops::Range;

use crate::layout::{Axis, Layout};
use crate::mat::MatMut;

/// Columns advance in this many independent sequences, which hides the latency of the multiplication.
const LANES: usize = 8;

/// X ↦ mul·X + add mod 2⁶⁴: some number of generator steps in one.
#[derive(Debug, Clone, Copy)]
struct Jump {
    mul: u64,
    add: u64,
}

impl Jump {
    const ONE: Self = Self { mul: 6_364_136_223_846_793_005, add: 1 };

    /// `steps` generator steps.
    const fn by(mut steps: u64) -> Self {
        let (mut done, mut power) = (Self { mul: 1, add: 0 }, Self::ONE);
        while steps > 0 {
            if steps & 1 == 1 {
                done = done.then(power);
            }
            power = power.then(power);
            steps >>= 1;
        }
        done
    }

    /// This jump, then `next`.
    const fn then(self, next: Self) -> Self {
        Self { mul: next.mul.wrapping_mul(self.mul), add: next.apply(self.add) }
    }

    #[inline(always)]
    const fn apply(self, x: u64) -> u64 {
        self.mul.wrapping_mul(x).wrapping_add(self.add)
    }
}

/// The value that generator state `x` stands for. X·2⁻⁶⁴ is rounded before the difference, as there.
#[inline(always)]
fn value(x: u64) -> f64 {
    const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    0.5 - x as f64 * SCALE
}

/// Fills the local columns `cols` of process (`row`, `col`): `out` has the process's local rows and one
/// column for each of `cols`. Threads of a process may share the work by column ranges.
///
/// # Panics
/// When `out` has another shape or `cols` are not all there.
pub fn generate(layout: &Layout, (row, col): (usize, usize), cols: Range<usize>, mut out: MatMut<'_>) {
    let rows = layout.rows.local_len(row);
    assert!(out.rows() == rows && out.cols() == cols.len(), "one column of local rows each");
    let pieces = pieces(&layout.rows, row);
    for run in layout.cols.runs(col, cols.clone()) {
        let first = run.local - cols.start;
        fill(layout.n(), &pieces, run.global.start, out.reborrow().sub(0, first, rows, run.global.len()));
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
pub fn generate_block(n: usize, row: usize, col: usize, out: MatMut<'_>) {
    assert!(row + out.rows() <= n && col + out.cols() <= n + 1, "block exceeds the matrix");
    fill(n, &[Piece { jump: Jump::by(row as u64), rows: 0..out.rows() }], col, out);
}

/// Consecutive elements of each column: `jump` leads to the first of them from the top of the column.
struct Piece {
    jump: Jump,
    /// Rows of the output.
    rows: Range<usize>,
}

/// The pieces of every local column of process row `row`.
fn pieces(axis: &Axis, row: usize) -> Vec<Piece> {
    let runs = axis.runs(row, 0..axis.local_len(row));
    let piece = |run: crate::layout::Run| Piece {
        jump: Jump::by(run.global.start as u64),
        rows: run.local..run.local + run.global.len(),
    };
    runs.into_iter().map(piece).collect()
}

/// Fills the pieces of consecutive global columns from `col` on.
fn fill(n: usize, pieces: &[Piece], col: usize, mut out: MatMut<'_>) {
    let next_column = Jump::by(n as u64);
    // X of element (0, col); products of indices wrap like the sequence itself, whose period is 2⁶⁴.
    let mut top = Jump::by((col as u64).wrapping_mul(n as u64).wrapping_add(1)).apply(100);
    for j in 0..out.cols() {
        let column = out.col_mut(j);
        for piece in pieces {
            fill_run(piece.jump.apply(top), &mut column[piece.rows.clone()]);
        }
        top = next_column.apply(top);
    }
}

/// Writes the values of `x` and its successors.
fn fill_run(x: u64, out: &mut [f64]) {
    const STRIDE: Jump = Jump::by(LANES as u64);
    let mut lanes = [x; LANES];
    for lane in 1..LANES {
        lanes[lane] = Jump::ONE.apply(lanes[lane - 1]);
    }
    let mut chunks = out.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (slot, lane) in chunk.iter_mut().zip(&mut lanes) {
            *slot = value(*lane);
            *lane = STRIDE.apply(*lane);
        }
    }
    for (slot, lane) in chunks.into_remainder().iter_mut().zip(&lanes) {
        *slot = value(*lane);
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
