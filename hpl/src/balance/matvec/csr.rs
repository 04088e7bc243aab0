//! A sparse matrix in compressed rows.

use std::ops::Range;

use super::Path;

/// Sums of the fast path.
const LANES: usize = 4;

/// Rows of (column, entry).
#[derive(Debug, Clone)]
pub struct Csr {
    cols: usize,
    /// Start of each row, then the end of the last one.
    starts: Vec<usize>,
    columns: Vec<u32>,
    entries: Vec<f64>,
}

impl Csr {
    /// The matrix of these rows.
    ///
    /// # Panics
    /// When a column is `cols` or beyond.
    pub fn new(cols: usize, rows: impl Iterator<Item = Vec<(u32, f64)>>) -> Self {
        let mut matrix = Self { cols, starts: vec![0], columns: Vec::new(), entries: Vec::new() };
        for row in rows {
            for (column, entry) in row {
                assert!((column as usize) < cols, "column {column} of {cols}");
                matrix.columns.push(column);
                matrix.entries.push(entry);
            }
            matrix.starts.push(matrix.entries.len());
        }
        matrix
    }

    pub(super) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn entries_before(&self, row: usize) -> usize {
        self.starts[row]
    }

    pub(super) fn multiply(&self, rows: Range<usize>, x: &[f64], y: &mut [f64], path: Path) {
        for (row, y) in rows.zip(y) {
            let at = self.starts[row]..self.starts[row + 1];
            let (columns, entries) = (&self.columns[at.clone()], &self.entries[at]);
            let products = |columns: &[u32], entries: &[f64]| {
                entries.iter().zip(columns).fold(0.0, |sum, (a, &j)| sum + a * x[j as usize])
            };
            *y += match path {
                Path::Slow => products(columns, entries),
                Path::Fast => {
                    let mut sums = [0.0; LANES];
                    let (cs, es) = (columns.chunks_exact(LANES), entries.chunks_exact(LANES));
                    let rest = products(cs.remainder(), es.remainder());
                    for (c, e) in cs.zip(es) {
                        for lane in 0..LANES {
                            sums[lane] += e[lane] * x[c[lane] as usize];
                        }
                    }
                    sums.iter().sum::<f64>() + rest
                }
            };
        }
    }
}
