//! HPL's check of a solution against the matrix, which is generated a second time.

use crate::Error;
use crate::backend::Storage;
use crate::comm::grid::Grid;
use crate::comm::reduce;
use crate::comm::{Comm, PeerGone};
use crate::lu::sums::{MatrixSums, RowSums};
use crate::plan::layout::Layout;

/// ε of the check: 2⁻⁵³ [HPL, `testing/ptest/HPL_pdtest.c`].
const EPSILON: f64 = f64::EPSILON / 2.0;

/// The check of one solution x of A x = b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// ‖Ax − b‖∞ / (ε (‖A‖∞ ‖x‖∞ + ‖b‖∞) N); a run passes when this is below its threshold.
    pub scaled: f64,
    /// ‖Ax − b‖∞.
    pub r_norminf: f64,
    /// ‖A‖∞, the largest row sum.
    pub a_norminf: f64,
    /// ‖A‖₁, the largest column sum.
    pub a_norm1: f64,
    /// ‖x‖∞.
    pub x_norminf: f64,
    /// ‖x‖₁.
    pub x_norm1: f64,
    /// ‖b‖∞.
    pub b_norminf: f64,
}

/// Checks `x`, which has all N elements on every rank.
///
/// # Errors
/// When a rank or thread fails.
pub(crate) fn check<C: Comm>(
    layout: &Layout,
    grid: &Grid<C>,
    comm: &C,
    a: &mut impl Storage,
    x: &[f64],
) -> Result<Residual, Error> {
    let sums = a.matrix_sums(layout, (grid.row, grid.col), x)?;
    Ok(combine(layout, grid, comm, sums, x)?)
}

/// Checks that A'·1 = b' for the rows from `corner.0` and the columns from `corner.1` on of the matrix in `a`; column N
/// is b'. Returns ‖A'·1 − b'‖∞ / (ε (‖A'‖∞ + ‖b'‖∞) `order`).
///
/// # Errors
/// When a rank or thread fails.
pub(crate) fn check_ones<C: Comm>(
    layout: &Layout,
    grid: &Grid<C>,
    comm: &C,
    a: &mut impl Storage,
    corner: (usize, usize),
    order: usize,
) -> Result<f64, Error> {
    let (row, n) = (layout.rows.local_from(grid.row, corner.0), layout.n());
    let cols = layout.cols.local_from(grid.col, corner.1)..layout.cols.local_from(grid.col, n);
    let end = layout.rows.local_len(grid.row);
    let RowSums { r: mut by_row, row_sums } = a.row_sums(row, cols)?;
    let mut b_norminf = 0.0;
    if layout.cols.owner(n) == grid.col {
        for (r, b) in by_row.iter_mut().zip(a.column(row..end, layout.cols.local(n))?) {
            *r += b;
            b_norminf = reduce::max(b.abs(), b_norminf);
        }
    }
    by_row.extend(row_sums);
    reduce::all(&grid.row_comm, &mut by_row, |a, b| a + b)?;
    let (r, row_sums) = by_row.split_at(end - row);
    let mut norms = [norminf(r), norminf(row_sums), b_norminf];
    reduce::all(comm, &mut norms, reduce::max)?;
    let [r_norminf, a_norminf, b_norminf] = norms;
    Ok(r_norminf / (EPSILON * (a_norminf + b_norminf) * order as f64))
}

/// The largest absolute value; NaN if a value is NaN.
fn norminf(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, value| reduce::max(value.abs(), max))
}

/// Adds up the sums along process rows and columns, and computes the norms.
fn combine<C: Comm>(
    layout: &Layout,
    grid: &Grid<C>,
    comm: &C,
    sums: MatrixSums,
    x: &[f64],
) -> Result<Residual, PeerGone> {
    let MatrixSums { r: mut by_row, row_sums, col_sums: mut by_col, b_norminf } = sums;
    let rows = by_row.len();
    by_row.extend(row_sums);
    reduce::all(&grid.row_comm, &mut by_row, |a, b| a + b)?;
    reduce::all(&grid.col_comm, &mut by_col, |a, b| a + b)?;
    let (r, row_sums) = by_row.split_at(rows);
    let mut norms = [norminf(r), norminf(row_sums), norminf(&by_col), b_norminf];
    reduce::all(comm, &mut norms, reduce::max)?;
    let [r_norminf, a_norminf, a_norm1, b_norminf] = norms;
    let x_norminf = norminf(x);
    let n = layout.n();
    // The residual of an empty system is 0.
    let scaled = if n == 0 { 0.0 } else { r_norminf / (EPSILON * (a_norminf * x_norminf + b_norminf) * n as f64) };
    let x_norm1 = x.iter().map(|value| value.abs()).sum();
    Ok(Residual { scaled, r_norminf, a_norminf, a_norm1, x_norminf, x_norm1, b_norminf })
}
