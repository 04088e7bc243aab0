//! Swaps and copies of scattered rows, column by column.
//!
//! Each element is in a cache line of its own, and the columns are long: nearly every access would wait for memory.
//! While one column is copied, the cache lines of the next are prefetched, which halves the time.

use super::prefetch;
use crate::mat::{Mat, MatMut};

/// Top of the column after `col`; after the last column an address outside the view.
#[inline(always)]
fn next_column(a: Mat<'_>, col: usize) -> *const f64 {
    a.as_ptr().wrapping_add((col + 1) * a.ld())
}

/// Swaps row j of the stacked [U; C] with row `pivots[j]`, for j = 0, 1, …; indices count from the
/// first row of U.
///
/// # Panics
/// When the matrices differ in columns or a pivot is not among their rows.
pub(crate) fn interchange(u: &mut MatMut<'_>, c: &mut MatMut<'_>, pivots: &[usize]) {
    let jb = u.rows();
    for col in 0..u.cols() {
        let (top, below) = (u.col_mut(col), next_column(c.as_ref(), col));
        let column = c.col_mut(col);
        for (j, &pivot) in pivots.iter().enumerate() {
            if pivot < jb {
                top.swap(j, pivot);
            } else {
                prefetch::to_first_level(below.wrapping_add(pivot - jb));
                std::mem::swap(&mut top[j], &mut column[pivot - jb]);
            }
        }
    }
}

/// For each pair (i, k): row k of `to` ← row i of `from`, in each column.
///
/// # Panics
/// When `from` has fewer columns or a row index is out of range.
pub(crate) fn copy(to: &mut MatMut<'_>, from: Mat<'_>, pairs: impl Iterator<Item = (usize, usize)> + Clone) {
    for col in 0..to.cols() {
        let (next_from, next_to) = (next_column(from, col), next_column(to.as_ref(), col));
        let (to, from) = (to.col_mut(col), from.col(col));
        for (i, k) in pairs.clone() {
            prefetch::to_first_level(next_from.wrapping_add(i));
            prefetch::to_first_level(next_to.wrapping_add(k));
            to[k] = from[i];
        }
    }
}

/// Columns that are copied together between rows and contiguous lines: as many as a cache line has elements.
const LINE: usize = 8;

/// Distance of the prefetch, in rows.
const AHEAD: usize = 8;

/// The row `AHEAD` pairs after pair `at`, and its block of columns: 0 for this block, 1 for the next.
#[inline(always)]
fn ahead(pairs: &[(usize, usize)], at: usize) -> (usize, usize) {
    let next = at + AHEAD;
    let block = usize::from(next >= pairs.len());
    (pairs[(next - block * pairs.len()).min(pairs.len() - 1)].0, block)
}

/// For each pair (i, k): column k of `to` ← row i of `from`.
///
/// # Panics
/// When the lines differ in length or an index is out of range.
pub(crate) fn copy_to_columns(to: &mut MatMut<'_>, from: Mat<'_>, pairs: &[(usize, usize)]) {
    assert!(to.rows() == from.cols(), "lines have the same length");
    let whole = from.cols() / LINE * LINE;
    for col in (0..whole).step_by(LINE) {
        let columns: [&[f64]; LINE] = std::array::from_fn(|j| from.col(col + j));
        for (at, &(row, line)) in pairs.iter().enumerate() {
            let (row_ahead, block) = ahead(pairs, at);
            columns.iter().for_each(|column| {
                prefetch::to_first_level(column.as_ptr().wrapping_add(row_ahead + block * LINE * from.ld()))
            });
            let line = &mut to.col_mut(line)[col..col + LINE];
            line.iter_mut().zip(columns).for_each(|(element, column)| *element = column[row]);
        }
    }
    for (col, &(row, line)) in (whole..from.cols()).flat_map(|col| pairs.iter().map(move |pair| (col, pair))) {
        to.col_mut(line)[col] = from.col(col)[row];
    }
}

/// For each pair (i, k): row k of `to` ← column i of `from`.
///
/// # Panics
/// When the lines differ in length or an index is out of range.
pub(crate) fn copy_from_columns(to: &mut MatMut<'_>, from: Mat<'_>, pairs: &[(usize, usize)]) {
    assert!(from.rows() == to.cols(), "lines have the same length");
    let (rows, whole) = (to.rows(), to.cols() / LINE * LINE);
    for col in (0..whole).step_by(LINE) {
        let mut rest = Some(to.reborrow().sub(0, col, rows, LINE));
        let mut columns: [MatMut<'_>; LINE] = std::array::from_fn(|_| {
            let (column, others) = rest.take().expect("LINE columns").split_cols(1);
            rest = Some(others);
            column
        });
        let mut columns = columns.each_mut().map(|column| column.col_mut(0));
        for (at, &(line, row)) in pairs.iter().enumerate() {
            if let Some(&(line, row)) = pairs.get(at + AHEAD) {
                columns.iter().for_each(|column| prefetch::to_first_level(column.as_ptr().wrapping_add(row)));
                prefetch::to_first_level(from.as_ptr().wrapping_add(line * from.ld() + col));
            }
            let line = &from.col(line)[col..col + LINE];
            columns.iter_mut().zip(line).for_each(|(column, element)| column[row] = *element);
        }
    }
    for (col, &(line, row)) in (whole..to.cols()).flat_map(|col| pairs.iter().map(move |pair| (col, pair))) {
        to.col_mut(col)[row] = from.col(line)[col];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_swapped_and_copied() {
        let numbers: Vec<f64> = (0..40).map(f64::from).collect();
        let mut whole = numbers.clone();
        let (mut u, mut c) = MatMut::new(&mut whole, 10, 4, 10).split_rows(3);
        interchange(&mut u, &mut c, &[2, 7, 9]);
        let mut expected = numbers.clone();
        for col in expected.chunks_exact_mut(10) {
            [(0, 2), (1, 7), (2, 9)].into_iter().for_each(|(i, j)| col.swap(i, j));
        }
        assert_eq!(whole, expected);
        let mut out = vec![0.0; 8];
        let pairs = [(9, 0), (4, 1)];
        copy(&mut MatMut::new(&mut out, 2, 4, 2), Mat::new(&numbers, 10, 4, 10), pairs.into_iter());
        assert_eq!(out, [9.0, 4.0, 19.0, 14.0, 29.0, 24.0, 39.0, 34.0]);
    }

    #[test]
    fn rows_are_copied_to_columns_and_back() {
        for n in [1, 7, 8, 9, 21] {
            let numbers: Vec<f64> = (0..6 * n).map(|i| i as f64).collect();
            let a = Mat::new(&numbers, 6, n, 6);
            let mut lines = vec![0.0; 5 * n];
            let pairs = [(4, 1), (0, 2), (5, 0), (2, 4), (1, 3)];
            copy_to_columns(&mut MatMut::new(&mut lines, n, 5, n), a, &pairs);
            assert!(pairs.iter().all(|&(row, line)| (0..n).all(|j| lines[line * n + j] == a.at(row, j))));
            let mut back = vec![0.0; 6 * n];
            let pairs = pairs.map(|(row, line)| (line, row));
            copy_from_columns(&mut MatMut::new(&mut back, 6, n, 6), Mat::new(&lines, n, 5, n), &pairs);
            assert!((0..6 * n).all(|i| back[i] == if i % 6 == 3 { 0.0 } else { numbers[i] }));
        }
    }
}
