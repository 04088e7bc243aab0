//! y ← y + A·x shared by two workers of unequal speed.
//!
//! Each [`Worker`] is some threads with their way to compute; rows are cut between the workers so that the slower one
//! gets its share of the entries, then between the threads of a worker. All times are measured.

mod csr;
mod dense;

use std::ops::Range;
use std::time::Instant;

pub use csr::Csr;
pub use dense::Dense;

use space::stats::summary;

use crate::balance::{Balance, Times};
use crate::team::{HelperPanicked, NotStarted, Team, TeamParams, with_team};

/// A matrix whose rows can be multiplied apart.
#[derive(Debug, Clone)]
pub enum Matrix {
    /// All entries stored.
    Dense(Dense),
    /// Compressed rows.
    Csr(Csr),
}

/// How a worker computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Several sums at once, which vector units can follow.
    Fast,
    /// One sum, each addition waiting for the one before: the slow processor among two kinds.
    Slow,
}

/// Some threads that compute in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Number of threads, at least 1.
    pub threads: usize,
    /// How they compute.
    pub path: Path,
}

/// One iteration as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// Share of the entries that the slower worker had.
    pub share: f64,
    /// What it took.
    pub times: Times,
}

/// Two workers measured alone and together.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Flops per second of the slower worker alone, median.
    pub slow_rate: f64,
    /// Of the faster one.
    pub fast_rate: f64,
    /// The iterations in which the share was found.
    pub iterations: Vec<Iteration>,
    /// The share that was kept.
    pub share: f64,
    /// Flops per second of both with it, median.
    pub rate: f64,
    /// Largest difference between the parts' result and that of the plain loop, relative to the largest entry.
    pub error: f64,
}

/// Why two workers could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MatvecError {
    /// The system refused a thread.
    #[error("thread {} could not be started: {}; lower the threads", .0.index, .0.error)]
    NotStarted(NotStarted),
    /// A thread panicked.
    #[error(transparent)]
    Panicked(#[from] HelperPanicked),
}

impl Matrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.rows(),
            Self::Csr(matrix) => matrix.rows(),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.cols(),
            Self::Csr(matrix) => matrix.cols(),
        }
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.entries_before(self.rows())
    }

    /// Stored entries of the rows before `row`.
    fn entries_before(&self, row: usize) -> usize {
        match self {
            Self::Dense(matrix) => row * matrix.cols(),
            Self::Csr(matrix) => matrix.entries_before(row),
        }
    }

    /// First row before which lie at least `entries` entries.
    fn row_after(&self, entries: usize) -> usize {
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = low.midpoint(high);
            if self.entries_before(middle) < entries { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// y ← y + A·x for the rows `rows`, of which `y` holds the entries.
    ///
    /// # Panics
    /// When `x` is not as long as the rows, or `y` not as long as `rows`.
    pub fn multiply(&self, rows: Range<usize>, x: &[f64], y: &mut [f64], path: Path) {
        assert!(x.len() == self.cols() && y.len() == rows.len() && rows.end <= self.rows(), "shapes agree");
        match self {
            Self::Dense(matrix) => matrix.multiply(rows, x, y, path),
            Self::Csr(matrix) => matrix.multiply(rows, x, y, path),
        }
    }

    /// Cuts `rows` into `parts` ranges of about equally many entries.
    fn cut(&self, rows: Range<usize>, parts: usize) -> Vec<Range<usize>> {
        let (first, last) = (self.entries_before(rows.start), self.entries_before(rows.end));
        let at = |part: usize| {
            let row = self.row_after(first + (last - first) * part / parts);
            if part == 0 {
                rows.start
            } else if part == parts {
                rows.end
            } else {
                row.clamp(rows.start, rows.end)
            }
        };
        (0..parts).map(|part| at(part)..at(part + 1)).collect()
    }
}

/// Measures each worker alone, balances the two by `balance`, and measures them with the share that was found: medians
/// of `repeats` iterations. Threads are pinned to `cores` where there are as many of them.
///
/// # Errors
/// [`MatvecError`].
///
/// # Panics
/// When a worker has no thread.
pub fn share(
    matrix: &Matrix,
    slow: &Worker,
    fast: &Worker,
    mut balance: Balance,
    repeats: usize,
    cores: &[usize],
) -> Result<Shared, MatvecError> {
    assert!(slow.threads > 0 && fast.threads > 0, "a worker has threads");
    let threads = slow.threads + fast.threads;
    let cores = if cores.len() >= threads { &cores[..threads] } else { &[] };
    let params = TeamParams { threads, cores, spin: !cores.is_empty() };
    let work = |team: &mut Team<'_>| -> Result<Shared, HelperPanicked> {
        let mut pair = Pair::new(matrix, slow, fast, team);
        let flops = 2.0 * matrix.entries() as f64;
        // Warm caches, pages and clocks.
        pair.iterate(0.5)?;
        let slow_rate = flops / median(repeats, || Ok(pair.iterate(1.0)?.slow_s))?;
        let fast_rate = flops / median(repeats, || Ok(pair.iterate(0.0)?.fast_s))?;
        let mut iterations = Vec::new();
        while !balance.settled() {
            let share = balance.share();
            let times = pair.iterate(share)?;
            balance.observe(&times);
            iterations.push(Iteration { share, times });
        }
        let share = balance.share();
        let rate = flops / median(repeats, || Ok(pair.iterate(share)?.whole_s))?;
        Ok(Shared { slow_rate, fast_rate, iterations, share, rate, error: pair.error() })
    };
    with_team(params, work).map_err(MatvecError::NotStarted)?.map_err(MatvecError::Panicked)
}

/// Median of some measured times in seconds.
fn median(repeats: usize, mut time: impl FnMut() -> Result<f64, HelperPanicked>) -> Result<f64, HelperPanicked> {
    let times = (0..repeats.max(1)).map(|_| time()).collect::<Result<Vec<f64>, _>>()?;
    Ok(summary(&times).median)
}

/// Two workers on one team: the threads of the slower one first.
struct Pair<'a, 'team, 'scope> {
    matrix: &'a Matrix,
    slow: &'a Worker,
    fast: &'a Worker,
    team: &'team mut Team<'scope>,
    x: Vec<f64>,
    y: Vec<f64>,
    /// Number of products added to y so far.
    products: f64,
}

impl<'a, 'team, 'scope> Pair<'a, 'team, 'scope> {
    fn new(matrix: &'a Matrix, slow: &'a Worker, fast: &'a Worker, team: &'team mut Team<'scope>) -> Self {
        let x = (0..matrix.cols()).map(|j| 1.0 + (j % 7) as f64 / 8.0).collect();
        Self { matrix, slow, fast, team, x, y: vec![0.0; matrix.rows()], products: 0.0 }
    }

    /// y ← y + A·x with this share for the slower worker.
    fn iterate(&mut self, share: f64) -> Result<Times, HelperPanicked> {
        let matrix = self.matrix;
        let split = matrix.row_after((share * matrix.entries() as f64).round() as usize);
        let slow = matrix.cut(0..split, self.slow.threads).into_iter().map(|rows| (rows, self.slow.path));
        let fast = matrix.cut(split..matrix.rows(), self.fast.threads).into_iter().map(|rows| (rows, self.fast.path));
        let mut rest = self.y.as_mut_slice();
        let parts = slow.chain(fast).map(|(rows, path)| {
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(rows.len());
            rest = others;
            (rows, path, mine)
        });
        let (parts, x) = (parts.collect(), &self.x);
        let start = Instant::now();
        let ends = self.team.map(parts, |(rows, path, y)| {
            let begun = Instant::now();
            matrix.multiply(rows, x, y, path);
            begun.elapsed().as_secs_f64()
        })?;
        let whole_s = start.elapsed().as_secs_f64();
        self.products += 1.0;
        let longest = |ends: &[f64]| ends.iter().copied().fold(0.0, f64::max);
        let (slow, fast) = ends.split_at(self.slow.threads);
        Ok(Times { slow_s: longest(slow), fast_s: longest(fast), whole_s })
    }

    /// Largest relative difference of y from all products made in one plain loop.
    fn error(&self) -> f64 {
        let mut product = vec![0.0; self.matrix.rows()];
        self.matrix.multiply(0..self.matrix.rows(), &self.x, &mut product, Path::Slow);
        let largest = product.iter().fold(0.0, |largest: f64, y| largest.max(y.abs())) * self.products;
        let difference = product.iter().zip(&self.y).map(|(one, all)| (one * self.products - all).abs());
        difference.fold(0.0, f64::max) / largest.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests;
