//! y ← y + A·x shared by two workers of unequal speed.
//!
//! Each [`Worker`] is some threads with one compute path; rows are divided between the workers so that the slower one gets
//! its share of the entries, then between the threads of a worker. All times are measured.
//!
//! The upper bound of two workers is the sum of their rates while both work, as they share the memory bandwidth. So this sum
//! is measured with both at the same time, each on its own rows without waiting for the other.

mod csr;
mod dense;

use std::ops::Range;
use std::time::{Duration, Instant};

pub use csr::Csr;
pub use dense::Dense;

use crate::backend::host::team::{BarrierBroken, HelperPanicked, NotStarted, Team, TeamParams, with_team};
use crate::balance::{Balance, Times};

/// A matrix whose rows can be multiplied independently.
#[derive(Debug, Clone)]
pub enum Matrix {
    /// All entries stored.
    Dense(Dense),
    /// Compressed rows.
    Csr(Csr),
}

/// The compute path of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Several independent sums, which can be vectorized.
    Fast,
    /// One sum, in which each addition depends on the one before. It simulates the slower of two kinds of processors; both
    /// workers are cores of the same processor.
    Slow,
}

/// Some threads with one compute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Their compute path.
    pub path: Path,
}

/// One measured iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// The slower worker's share of the entries.
    pub share: f64,
    /// Its times.
    pub times: Times,
}

/// Flops per second of two workers in one round of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The slower worker, then the faster one, each with all rows while the other is idle.
    pub alone: [f64; 2],
    /// The same while both work, each on its own rows without waiting for the other.
    pub at_once: [f64; 2],
    /// Products shared by both.
    pub shared: f64,
}

/// Two workers that were balanced and measured.
#[derive(Debug, Clone)]
pub struct BalancedWorkers {
    /// The iterations of the balance.
    pub iterations: Vec<Iteration>,
    /// The final share.
    pub share: f64,
    /// Rounds of measurements with the final share, in order.
    pub rounds: Vec<Rates>,
    /// Largest difference between the shared result and that of a plain loop, relative to the largest entry.
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

    /// First row with at least `entries` entries before it.
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
    /// When the length of `x` differs from the number of columns, or that of `y` from the length of `rows`.
    pub fn multiply(&self, rows: Range<usize>, x: &[f64], y: &mut [f64], path: Path) {
        assert!(x.len() == self.cols() && y.len() == rows.len() && rows.end <= self.rows(), "shapes agree");
        match self {
            Self::Dense(matrix) => matrix.multiply(rows, x, y, path),
            Self::Csr(matrix) => matrix.multiply(rows, x, y, path),
        }
    }

    /// Divides `rows` into `parts` ranges with about the same number of entries.
    fn divide(&self, rows: Range<usize>, parts: usize) -> Vec<Range<usize>> {
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

/// Balances two workers by `balance`, then measures `rounds` times: the rate of each alone, the rates of both at the same
/// time, and the rate of the shared product. Threads are pinned to `cores` if there are enough cores.
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
    rounds: usize,
    cores: &[usize],
) -> Result<BalancedWorkers, MatvecError> {
    assert!(slow.threads > 0 && fast.threads > 0, "a worker has threads");
    let threads = slow.threads + fast.threads;
    let cores = if cores.len() >= threads { &cores[..threads] } else { &[] };
    let params = TeamParams { threads, cores, spin: !cores.is_empty() };
    let work = |team: &mut Team<'_>| -> Result<BalancedWorkers, HelperPanicked> {
        let mut pair = WorkerPair::new(matrix, slow, fast, team);
        let flops = 2.0 * matrix.entries() as f64;
        // Warms up caches, pages and clocks.
        pair.products(0.5, 1)?;
        let mut iterations = Vec::new();
        while !balance.is_final() {
            let share = balance.share();
            // The first product after a change of the share has cold caches and is not measured; several are measured, as one of
            // a millisecond is too short.
            pair.products(share, 1)?;
            let times = pair.products(share, SPAN)?;
            balance.observe(&times);
            iterations.push(Iteration { share, times });
        }
        let share = balance.share();
        let rates = |_| -> Result<Rates, HelperPanicked> {
            let alone = [pair.alone(1.0)?, pair.alone(0.0)?].map(|time_s| flops / time_s);
            // The first product warms the caches, which contain the rows of the other worker.
            pair.products(share, 1)?;
            let whole_s = pair.products(share, SPAN)?.whole_s;
            let at_once = pair.at_once(share, Duration::from_secs_f64(f64::from(SPAN) * whole_s))?;
            Ok(Rates { alone, at_once, shared: flops / whole_s })
        };
        let rounds = (0..rounds).map(rates).collect::<Result<_, _>>()?;
        Ok(BalancedWorkers { iterations, share, rounds, error: pair.error() })
    };
    with_team(params, work).map_err(MatvecError::NotStarted)?.map_err(MatvecError::Panicked)
}

/// Shared products per measurement; the measurement of both workers without waiting takes the same time.
const SPAN: u32 = 4;
/// Pieces of a thread's rows; the thread reads the clock after each of them.
const PIECES: usize = 16;

/// Two workers on one team: the threads of the slower one first.
struct WorkerPair<'a, 'team, 'scope> {
    matrix: &'a Matrix,
    slow: &'a Worker,
    fast: &'a Worker,
    team: &'team mut Team<'scope>,
    x: Vec<f64>,
    y: Vec<f64>,
    /// Output of products that are not added to y.
    scratch: Vec<f64>,
    /// Number of products added to y so far.
    products: f64,
}

impl<'a, 'team, 'scope> WorkerPair<'a, 'team, 'scope> {
    fn new(matrix: &'a Matrix, slow: &'a Worker, fast: &'a Worker, team: &'team mut Team<'scope>) -> Self {
        let x = (0..matrix.cols()).map(|j| 1.0 + (j % 7) as f64 / 8.0).collect();
        let (y, scratch) = (vec![0.0; matrix.rows()], vec![0.0; matrix.rows()]);
        Self { matrix, slow, fast, team, x, y, scratch, products: 0.0 }
    }

    /// Rows of each thread with this share for the slower worker.
    fn parts(&self, share: f64) -> Vec<(Range<usize>, Path)> {
        let matrix = self.matrix;
        let split = matrix.row_after((share * matrix.entries() as f64).round() as usize);
        let slow = matrix.divide(0..split, self.slow.threads).into_iter().map(|rows| (rows, self.slow.path));
        let fast =
            matrix.divide(split..matrix.rows(), self.fast.threads).into_iter().map(|rows| (rows, self.fast.path));
        slow.chain(fast).collect()
    }

    /// Time of y ← y + A·x by one worker in seconds, with the other one's threads parked: share 1 is the slower one, 0 the
    /// faster.
    fn alone(&mut self, share: f64) -> Result<f64, HelperPanicked> {
        let (matrix, parts) = (self.matrix, self.parts(share));
        let parts = with_rows_of(&mut self.y, parts);
        let x = &self.x;
        let ends = self.team.map(parts, |(rows, path, y)| {
            let begun = Instant::now();
            matrix.multiply(rows, x, y, path);
            begun.elapsed().as_secs_f64()
        })?;
        self.products += 1.0;
        Ok(ends.into_iter().fold(0.0, f64::max))
    }

    /// y ← y + A·x `count` times, one after the other, with this share for the slower worker; returns mean times per product.
    ///
    /// There is a barrier before the first product and after each, as in an iteration that changes x. The threads do not park
    /// in between: waking one takes a tenth of the time of a product of a millisecond.
    fn products(&mut self, share: f64, count: u32) -> Result<Times, HelperPanicked> {
        let (matrix, parts) = (self.matrix, self.parts(share));
        let barrier = self.team.barrier(parts.len());
        let parts = with_rows_of(&mut self.y, parts).into_iter().enumerate().collect();
        let x = &self.x;
        let times = self.team.map(parts, |(thread, (rows, path, y))| {
            let (mut busy, mut whole) = (Duration::ZERO, Duration::ZERO);
            let outcome = barrier.guard(|| {
                barrier.wait(thread)?;
                let start = Instant::now();
                for _ in 0..count {
                    let begun = Instant::now();
                    matrix.multiply(rows.clone(), x, y, path);
                    busy += begun.elapsed();
                    barrier.wait(thread)?;
                }
                whole = start.elapsed();
                Ok::<_, BarrierBroken>(())
            });
            // A panic of another thread is reported by the team.
            outcome.map_or([0.0; 2], |()| [busy, whole].map(|time| time.as_secs_f64() / f64::from(count)))
        })?;
        self.products += f64::from(count);
        let longest = |times: &[[f64; 2]], at: usize| times.iter().map(|time| time[at]).fold(0.0, f64::max);
        let (slow, fast) = times.split_at(self.slow.threads);
        Ok(Times { slow_s: longest(slow, 0), fast_s: longest(fast, 0), whole_s: longest(&times, 1) })
    }

    /// Flops per second of both workers, which for `time` multiply their rows with this share repeatedly, without waiting for
    /// each other.
    fn at_once(&mut self, share: f64, time: Duration) -> Result<[f64; 2], HelperPanicked> {
        let (matrix, parts) = (self.matrix, self.parts(share));
        let parts = with_rows_of(&mut self.scratch, parts);
        let x = &self.x;
        let rates = self.team.map(parts, |(rows, path, y)| {
            let pieces = matrix.divide(rows.clone(), PIECES);
            let (begun, mut entries) = (Instant::now(), 0);
            for piece in pieces.into_iter().cycle() {
                let y = &mut y[piece.start - rows.start..piece.end - rows.start];
                entries += matrix.entries_before(piece.end) - matrix.entries_before(piece.start);
                matrix.multiply(piece, x, y, path);
                if begun.elapsed() >= time {
                    break;
                }
            }
            2.0 * entries as f64 / begun.elapsed().as_secs_f64()
        })?;
        let (slow, fast) = rates.split_at(self.slow.threads);
        Ok([slow, fast].map(|rates| rates.iter().sum()))
    }

    /// Largest relative difference between y and the same number of products by a plain loop.
    fn error(&self) -> f64 {
        let mut product = vec![0.0; self.matrix.rows()];
        self.matrix.multiply(0..self.matrix.rows(), &self.x, &mut product, Path::Slow);
        let largest = product.iter().fold(0.0, |largest: f64, y| largest.max(y.abs())) * self.products;
        let difference = product.iter().zip(&self.y).map(|(one, all)| (one * self.products - all).abs());
        difference.fold(0.0, f64::max) / largest.max(f64::MIN_POSITIVE)
    }
}

/// Each part with its rows of `y`, which the parts cover from first to last.
fn with_rows_of(y: &mut [f64], parts: Vec<(Range<usize>, Path)>) -> Vec<(Range<usize>, Path, &mut [f64])> {
    let mut rest = y;
    let part = |(rows, path): (Range<usize>, Path)| {
        let (mine, others) = std::mem::take(&mut rest).split_at_mut(rows.len());
        rest = others;
        (rows, path, mine)
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests;
