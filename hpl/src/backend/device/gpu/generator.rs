//! Tables by which the kernels generate HPL's matrix.

use std::ops::Range;

use crate::lu::matgen::LocalRows;
use crate::plan::layout::Layout;

/// What the kernels need to generate elements of a local matrix.
pub(super) struct GeneratorTables {
    /// For each row a step of the generator: factor and summand; for each column the state at its top; for each column its
    /// global index.
    pub(super) words: Vec<u64>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl GeneratorTables {
    /// For the local rows from global index `first_row` on and the local columns `cols` of process `place`.
    pub(super) fn new(layout: &Layout, place: (usize, usize), first_row: usize, cols: Range<usize>) -> Self {
        let rows = LocalRows::from(layout, place.0, first_row);
        let globals: Vec<usize> = cols.map(|col| layout.cols.global(place.1, col)).collect();
        let mut words: Vec<u64> = rows.jumps().flat_map(|jump| jump.parts()).collect();
        let row_count = words.len() / 2;
        words.extend(globals.iter().map(|&col| rows.top(col)));
        words.extend(globals.iter().map(|&col| col as u64));
        Self { words, rows: row_count, cols: globals.len() }
    }

    /// Addresses of the tables of rows, of columns, and of global indices, if the words are at `start`.
    pub(super) fn addresses(rows: usize, cols: usize, start: u64) -> [u64; 3] {
        let tops = start + 16 * rows as u64;
        [start, tops, tops + 8 * cols as u64]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lu::matgen;
    use crate::mat::MatMut;

    /// The element of `kernels.c`.
    fn element(words: &[u64], row: usize, top: u64) -> f64 {
        0.5 - words[2 * row].wrapping_mul(top).wrapping_add(words[2 * row + 1]) as f64 * 2.0_f64.powi(-64)
    }

    /// By the tables the device has the elements of the host, bit for bit, on any process and from any row and column on.
    #[test]
    fn tables_give_the_matrix_of_the_host() {
        for (n, nb, p, q) in [(1, 1, 1, 1), (40, 7, 2, 3), (41, 8, 3, 2), (64, 64, 1, 2)] {
            let layout = Layout::block_cyclic(n, nb, p, q);
            for place in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                let (rows, cols) = (layout.rows.local_len(place.0), layout.cols.local_len(place.1));
                let mut host = vec![0.0; rows * cols];
                matgen::generate(&layout, place, 0..cols, MatMut::new(&mut host, rows, cols, rows.max(1)));
                for first in [0, 1, nb, n / 2, n] {
                    let from = layout.cols.local_from(place.1, first)..cols;
                    let tables = GeneratorTables::new(&layout, place, first, from.clone());
                    let above = rows - tables.rows;
                    assert_eq!((above, tables.cols), (layout.rows.local_from(place.0, first), from.len()));
                    let [row_table, tops, globals] = GeneratorTables::addresses(tables.rows, tables.cols, 0);
                    assert_eq!((row_table, globals - tops), (0, 8 * tables.cols as u64));
                    for (j, local) in from.enumerate() {
                        let at = |start: u64| tables.words[start as usize / 8 + j];
                        assert_eq!(at(globals), layout.cols.global(place.1, local) as u64);
                        for i in 0..tables.rows {
                            assert_eq!(element(&tables.words, i, at(tops)), host[above + i + local * rows]);
                        }
                    }
                }
            }
        }
    }
}
