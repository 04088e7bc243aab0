//! Moves of scattered rows, column by column.
//!
//! Each element lies in a cache line of its own, and the columns are long: nearly every access would wait for
//! memory. While one column is moved, the lines of the next are asked for, which halves the time.

use crate::mat::{Mat, MatMut};

/// Asks for the cache line at `address`, which may be anywhere.
#[inline(always)]
fn prefetch(address: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and ignores addresses that are not mapped.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Top of the column after `col`; beyond the view after the last.
#[inline(always)]
fn next_column(a: Mat<'_>, col: usize) -> *const f64 {
    a.as_ptr().wrapping_add((col + 1) * a.ld())
}

/// Interchanges row j of the stacked [U; C] with row `pivots[j]`, for j = 0, 1, …; indices count from the
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
                prefetch(below.wrapping_add(pivot - jb));
                std::mem::swap(&mut top[j], &mut column[pivot - jb]);
            }
        }
    }
}

/// to(second) ← from(first) for each pair of rows, in each column.
///
/// # Panics
/// When `from` has fewer columns or a row is not there.
pub(crate) fn copy(to: &mut MatMut<'_>, from: Mat<'_>, pairs: impl Iterator<Item = (usize, usize)> + Clone) {
    for col in 0..to.cols() {
        let (next_source, next_place) = (next_column(from, col), next_column(to.as_ref(), col));
        let (place, source) = (to.col_mut(col), from.col(col));
        for (first, second) in pairs.clone() {
            prefetch(next_source.wrapping_add(first));
            prefetch(next_place.wrapping_add(second));
            place[second] = source[first];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_where_they_are_told() {
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
}
