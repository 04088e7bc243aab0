//! A dense matrix by rows.

use std::ops::Range;

use super::Path;

/// Sums of the fast path.
const LANES: usize = 32;

/// Entries by rows.
#[derive(Debug, Clone)]
pub struct Dense {
    cols: usize,
    data: Vec<f64>,
}

impl Dense {
    /// The matrix with entry (i, j) `entry(i, j)`; `cols` is at least 1.
    pub fn new(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        assert!(cols > 0, "a matrix has columns");
        let data = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
        Self { cols, data }
    }

    pub(super) fn rows(&self) -> usize {
        self.data.len() / self.cols
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn multiply(&self, rows: Range<usize>, x: &[f64], y: &mut [f64], path: Path) {
        let entries = &self.data[rows.start * self.cols..rows.end * self.cols];
        for (row, y) in entries.chunks_exact(self.cols).zip(y) {
            *y += match path {
                Path::Fast => in_lanes(row, x),
                Path::Slow => row.iter().zip(x).fold(0.0, |sum, (a, x)| sum + a * x),
            };
        }
    }
}

fn in_lanes(row: &[f64], x: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks, xs) = (row.chunks_exact(LANES), x.chunks_exact(LANES));
    let rest: f64 = chunks.remainder().iter().zip(xs.remainder()).map(|(a, x)| a * x).sum();
    for (a, x) in chunks.zip(xs) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * x[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}
