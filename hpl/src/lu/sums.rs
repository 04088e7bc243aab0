//! Sums of the local matrix for the checks.

use std::ops::Range;

use crate::backend::host::kernels::isa::Isa;
use crate::backend::host::kernels::vector;
use crate::comm::reduce;
use crate::lu::matgen::LocalRows;
use crate::mat::Mat;
use crate::plan::layout::Layout;

/// Sums of some columns of HPL's random matrix [A | b] on one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatrixSums {
    /// b − A x of the local rows.
    pub(crate) r: Vec<f64>,
    /// Sums of |a| along the local rows.
    pub(crate) row_sums: Vec<f64>,
    /// Sums of |a| down the local rows of these columns; 0 for b.
    pub(crate) col_sums: Vec<f64>,
    /// ‖b‖∞ of the local rows.
    pub(crate) b_norminf: f64,
}

/// Sums of some columns along the local rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowSums {
    /// −Σ a.
    pub(crate) r: Vec<f64>,
    /// Σ |a|.
    pub(crate) row_sums: Vec<f64>,
}

impl MatrixSums {
    /// Generates the local columns `cols` of process (`row`, `col`) and adds them up; `x` has all N elements.
    pub(crate) fn of(layout: &Layout, (row, col): (usize, usize), cols: Range<usize>, x: &[f64]) -> Self {
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
        Self { r, row_sums, col_sums, b_norminf }
    }

    /// The sums of these consecutive columns, in order; `rows`: local rows.
    pub(crate) fn joined(parts: Vec<Self>, rows: usize) -> Self {
        let mut sum = Self { r: vec![0.0; rows], row_sums: vec![0.0; rows], col_sums: Vec::new(), b_norminf: 0.0 };
        for part in parts {
            add(&mut sum.r, &part.r);
            add(&mut sum.row_sums, &part.row_sums);
            sum.col_sums.extend(part.col_sums);
            sum.b_norminf = reduce::max(sum.b_norminf, part.b_norminf);
        }
        sum
    }
}

impl RowSums {
    /// Adds up the columns of `a`.
    pub(crate) fn of(a: Mat<'_>) -> Self {
        let mut sums = Self { r: vec![0.0; a.rows()], row_sums: vec![0.0; a.rows()] };
        vector::row_sums(Isa::detect(), a, &mut sums.r, &mut sums.row_sums);
        sums
    }

    /// The sums of these columns, in order; `rows`: local rows.
    pub(crate) fn joined(parts: &[Self], rows: usize) -> Self {
        let mut sum = Self { r: vec![0.0; rows], row_sums: vec![0.0; rows] };
        for part in parts {
            add(&mut sum.r, &part.r);
            add(&mut sum.row_sums, &part.row_sums);
        }
        sum
    }
}

/// y ← y + x.
pub(crate) fn add(y: &mut [f64], x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
}
