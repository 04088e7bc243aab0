//! HPL's check of a solution against the matrix, which is generated a second time.

use std::ops::Range;

use crate::Error;
use crate::backend::host::kernels::isa::Isa;
use crate::backend::host::kernels::vector;
use crate::backend::host::team::Team;
use crate::comm::grid::Grid;
use crate::comm::reduce;
use crate::comm::{Comm, PeerGone};
use crate::lu::matgen::LocalRows;
use crate::mat::Mat;
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

/// Contributions of some columns on one rank.
struct Partial {
    /// b − A x of the local rows.
    r: Vec<f64>,
    /// Sums of |a| along the local rows.
    row_sums: Vec<f64>,
    /// Sums of |a| down the local rows of these columns; 0 for b.
    col_sums: Vec<f64>,
    b_norminf: f64,
}

/// Checks `x`, which has all N elements on every rank.
///
/// # Errors
/// When a rank or thread fails.
pub(crate) fn check<C: Comm>(
    layout: &Layout,
    grid: &Grid<C>,
    comm: &C,
    team: &mut Team<'_>,
    x: &[f64],
) -> Result<Residual, Error> {
    let cols = layout.cols.local_len(grid.col);
    let share = cols.div_ceil(team.threads()).max(1);
    let parts = (0..cols).step_by(share).map(|at| at..cols.min(at + share)).collect();
    let place = (grid.row, grid.col);
    let partials = team.map(parts, |cols| partial(layout, place, cols, x))?;
    Ok(combine(layout, grid, comm, partials, x)?)
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
    team: &mut Team<'_>,
    a: Mat<'_>,
    corner: (usize, usize),
    order: usize,
) -> Result<f64, Error> {
    let (row, n) = (layout.rows.local_from(grid.row, corner.0), layout.n());
    let cols = layout.cols.local_from(grid.col, corner.1)..layout.cols.local_from(grid.col, n);
    let rows = a.rows() - row;
    let share = cols.len().div_ceil(team.threads()).max(1);
    let parts = cols.clone().step_by(share).map(|at| at..cols.end.min(at + share)).collect();
    let partials = team.map(parts, |cols: Range<usize>| {
        let (mut r, mut row_sums) = (vec![0.0; rows], vec![0.0; rows]);
        for j in cols {
            vector::column_check(Isa::detect(), &a.col(j)[row..], 1.0, &mut r, &mut row_sums);
        }
        (r, row_sums)
    })?;
    let mut by_row = vec![0.0; 2 * rows];
    for (r, row_sums) in &partials {
        by_row.iter_mut().zip(r.iter().chain(row_sums)).for_each(|(sum, value)| *sum += value);
    }
    let mut b_norminf = 0.0;
    if layout.cols.owner(n) == grid.col {
        for (r, b) in by_row.iter_mut().zip(&a.col(layout.cols.local(n))[row..]) {
            *r += b;
            b_norminf = reduce::max(b.abs(), b_norminf);
        }
    }
    reduce::all(&grid.row_comm, &mut by_row, |a, b| a + b)?;
    let mut norms = [norminf(&by_row[..rows]), norminf(&by_row[rows..]), b_norminf];
    reduce::all(comm, &mut norms, reduce::max)?;
    let [r_norminf, a_norminf, b_norminf] = norms;
    Ok(r_norminf / (EPSILON * (a_norminf + b_norminf) * order as f64))
}

/// Generates local columns and computes their contributions.
fn partial(layout: &Layout, (row, col): (usize, usize), cols: Range<usize>, x: &[f64]) -> Partial {
    let rows = LocalRows::all(layout, row);
    let local_rows = layout.rows.local_len(row);
    let (mut r, mut row_sums) = (vec![0.0; local_rows], vec![0.0; local_rows]);
    let mut globals: Vec<usize> = cols.clone().map(|local| layout.cols.global(col, local)).collect();
    // Column N is b, the last column.
    let b = globals.pop_if(|global| *global == layout.n());
    let x: Vec<f64> = globals.iter().map(|&global| x[global]).collect();
    let mut col_sums = Vec::with_capacity(cols.len());
    rows.check(&globals, &x, &mut r, &mut row_sums, &mut col_sums);
    let mut b_norminf = 0.0;
    if let Some(b) = b {
        let mut column = vec![0.0; local_rows];
        rows.fill(b, &mut column);
        vector::add(Isa::detect(), &column, &mut r);
        b_norminf = column.iter().fold(0.0, |max, b| reduce::max(b.abs(), max));
        col_sums.push(0.0);
    }
    Partial { r, row_sums, col_sums, b_norminf }
}

/// The largest absolute value; NaN if a value is NaN.
fn norminf(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, value| reduce::max(value.abs(), max))
}

/// Sums the contributions along process rows and columns, and computes the norms.
fn combine<C: Comm>(
    layout: &Layout,
    grid: &Grid<C>,
    comm: &C,
    partials: Vec<Partial>,
    x: &[f64],
) -> Result<Residual, PeerGone> {
    let rows = layout.rows.local_len(grid.row);
    let mut by_row = vec![0.0; 2 * rows];
    let mut by_col = Vec::new();
    let mut b_norminf = 0.0;
    for partial in partials {
        let values = partial.r.iter().chain(&partial.row_sums);
        by_row.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        by_col.extend(partial.col_sums);
        b_norminf = reduce::max(b_norminf, partial.b_norminf);
    }
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
