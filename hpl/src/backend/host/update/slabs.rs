//! Column slabs of a section, in a queue for the threads.

use std::vec;

use parking_lot::Mutex;

use crate::mat::MatMut;

/// The columns of a slab are a multiple of this, which suits the register tiles of the kernels.
const TILE: usize = 16;

/// Some columns of the trailing matrix.
pub(super) struct Slab<'a> {
    /// Index of the first column in the section.
    pub(super) first: usize,
    /// The local rows of the diagonal block, which become U; empty on ranks that do not own it.
    pub(super) diag: MatMut<'a>,
    /// The local rows below the diagonal block.
    pub(super) c: MatMut<'a>,
}

impl<'a> Slab<'a> {
    /// Splits off the first `width` columns.
    fn split(self, width: usize) -> (Self, Self) {
        let (diag, diag_rest) = self.diag.split_cols(width);
        let (c, c_rest) = self.c.split_cols(width);
        (Self { first: self.first, diag, c }, Self { first: self.first + width, diag: diag_rest, c: c_rest })
    }

    /// Splits off at most `width` columns; the second slab is `None` when no column is left.
    pub(super) fn cut(self, width: usize) -> (Self, Option<Self>) {
        if width >= self.c.cols() {
            return (self, None);
        }
        let (first, rest) = self.split(width);
        (first, Some(rest))
    }
}

/// The slabs that no thread has taken yet.
pub(super) struct Queue<'a>(Mutex<vec::IntoIter<Slab<'a>>>);

impl<'a> Queue<'a> {
    /// Divides `all` into slabs of at most `widest` columns for `threads` threads.
    pub(super) fn new(all: Slab<'a>, threads: usize, widest: usize) -> Self {
        let mut slabs = Vec::new();
        let mut left = all;
        for width in widths(left.c.cols(), threads, widest) {
            let (slab, rest) = left.split(width);
            slabs.push(slab);
            left = rest;
        }
        Self(Mutex::new(slabs.into_iter()))
    }

    /// The next slab; `None` when all are taken.
    pub(super) fn next(&self) -> Option<Slab<'a>> {
        self.0.lock().next()
    }
}

/// Widths of the slabs of `cols` columns: each is half of a thread's equal share of the remaining columns, so that the last
/// slabs are narrow and the threads end together; at most `widest`, see [`Kernels::widest_slab`].
pub(crate) fn widths(cols: usize, threads: usize, widest: usize) -> impl Iterator<Item = usize> {
    let mut left = cols;
    std::iter::from_fn(move || {
        let share = left.div_ceil(2 * threads).next_multiple_of(TILE);
        let width = if threads == 1 { widest } else { share.min(widest) }.min(left);
        left -= width;
        (width > 0).then_some(width)
    })
}

/// Number of slabs of `cols` columns for `threads` threads, with at most `widest` columns each; computed width by width,
/// without listing the slabs.
pub fn slab_count(cols: usize, threads: usize, widest: usize) -> usize {
    if threads == 1 {
        return cols.div_ceil(widest);
    }
    let (mut left, mut count) = (cols, 0);
    for tiles in (1..=widest / TILE).rev() {
        let enough = 2 * threads * TILE * (tiles - 1);
        if left > enough {
            let slabs = (left - enough).div_ceil(tiles * TILE);
            count += slabs;
            left = left.saturating_sub(slabs * tiles * TILE);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slab_count_equals_the_number_of_widths() {
        for (cols, threads) in [0, 1, 15, 16, 17, 300, 1000, 5000, 20_000, 100_000]
            .into_iter()
            .flat_map(|cols| [1, 2, 3, 4, 8, 16, 64, 192].map(|threads| (cols, threads)))
        {
            let cut = widths(cols, threads, 256).count();
            assert_eq!(slab_count(cols, threads, 256), cut, "{cols} columns, {threads} threads");
        }
    }

    #[test]
    fn widths_cover_all_columns() {
        for (cols, threads) in (0..700).flat_map(|cols| (1..5).map(move |threads| (cols, threads))) {
            let widths: Vec<usize> = widths(cols, threads, 256).collect();
            assert_eq!(widths.iter().sum::<usize>(), cols);
            assert!(widths.iter().all(|width| (1..=256).contains(width)));
        }
    }
}
