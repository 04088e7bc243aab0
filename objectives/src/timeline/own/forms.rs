//! The work of each phase on one rank, in the terms of [`EnginePhase`](space::machine::EnginePhase).
//!
//! The operations are those of the engine's own plan and recursion; the cost per unit of each is calibrated. The constants
//! are 8 (words of a cache line), 32 (k from which C is prefetched), 256 (k of one pass over C), 2^18 and 2^21 words (an
//! L2 cache of 2 MiB, a core's part of L3). They only shape the terms: on a machine with other caches the fitted
//! coefficients differ.

use std::convert::Infallible;

use hpl::backend::host::kernels::SLAB_OF_COPIES;
use hpl::backend::host::slab_count;
use hpl::plan::recursion::{Op, Recipe};
use space::Swap;

/// Terms of a panel factorization.
pub(super) const FACT: usize = 11;
/// Terms of rows swapped in place.
pub(super) const HERE: usize = 4;
/// Terms of rows exchanged over the process column.
pub(super) const EXCHANGED: usize = 8;
/// Terms of an update.
pub(super) const UPDATE: usize = 9;
/// Terms of the back substitution.
pub(super) const TRSV: usize = 2;

/// Words of a panel that fit into the L2 cache.
const CACHED_WORDS: f64 = 262_144.0;

/// Words of the trailing matrix that fit into a core's part of the L3 cache.
const NEAR_WORDS: f64 = 2_097_152.0;

/// The fraction of `words` that exceeds `size`.
fn beyond(size: f64, words: f64) -> f64 {
    if words > size { 1.0 - size / words } else { 0.0 }
}

/// Rounds of messages over `p` ranks.
pub(super) fn rounds(p: usize) -> f64 {
    f64::from(p.next_power_of_two().ilog2())
}

/// The work of a panel factorization of some width, linear in the local rows m.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PanelWork {
    jb: f64,
    /// Units per local row.
    per_row: [f64; FACT],
    /// Subtracted on the process row that owns the diagonal block: its pivot rows are done one by one.
    less: [f64; FACT],
    /// Independent of the number of rows.
    fixed: [f64; FACT],
}

impl PanelWork {
    /// The work of a panel of `jb` columns.
    pub(super) fn new(recipe: &Recipe, jb: usize) -> Self {
        let none = [0.0; FACT];
        let mut work = Self { jb: jb as f64, per_row: none, less: none, fixed: none };
        let counted: Result<(), Infallible> = recipe.walk(0..jb, &mut |op| {
            work.count(&op);
            Ok(())
        });
        counted.unwrap_or_else(|never| match never {});
        work
    }

    /// Columns of the panel.
    pub(super) fn columns(&self) -> f64 {
        self.jb
    }

    fn count(&mut self, op: &Op) {
        match op {
            Op::Pivot(j) => {
                self.rows(0, 1.0, *j);
                self.fixed[8] += self.jb;
                self.fixed[9] += 1.0;
            }
            Op::Eliminate { k, cols } => match (k.len(), cols.len()) {
                (1, n) => self.rows(1, n as f64, k.end),
                (k_len, 1) => self.rows(2, k_len as f64, k.end),
                (k_len, n) => {
                    self.rows(3, (k_len * n) as f64, k.end);
                    self.rows(4, n as f64, k.end);
                }
            },
            Op::Solve { k, cols } => self.fixed[7] += (k.len() * k.len() * cols.len()) as f64 / 2.0,
            Op::EliminateU { blk, done, rest } => self.fixed[7] += (blk.len() * done.len() * rest.len()) as f64,
        }
    }

    /// Adds `units` of a term for each row below the first `above` rows of the panel.
    fn rows(&mut self, term: usize, units: f64, above: usize) {
        self.per_row[term] += units;
        self.less[term] += units * above as f64;
    }

    /// Terms on a rank with `mp` rows from the diagonal block on, in a process column of `p` ranks.
    pub(super) fn terms(&self, mp: usize, owns_diagonal: bool, p: usize) -> [f64; FACT] {
        let m = mp as f64;
        let less = if owns_diagonal { 1.0 } else { 0.0 };
        let mut terms: [f64; FACT] =
            std::array::from_fn(|i| (self.per_row[i] * m - self.less[i] * less).max(0.0) + self.fixed[i]);
        terms[5] = terms[3] * beyond(CACHED_WORDS, m * self.jb);
        terms[6] = m * self.jb;
        terms[10] = self.jb * rounds(p);
        terms
    }
}

/// Cache lines of one column of `m` rows in which `rows` rows at random places lie.
fn lines(m: f64, rows: f64) -> f64 {
    if m <= 0.0 { 0.0 } else { m / 8.0 * -(-8.0 * rows / m).exp_m1() }
}

/// Local sizes of a section: `m` rows below the diagonal block, `n` columns, `k` columns of the panel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub(super) m: f64,
    pub(super) n: usize,
    pub(super) k: f64,
    pub(super) threads: usize,
}

impl Shape {
    fn columns(&self) -> f64 {
        self.n as f64
    }

    /// The fraction of the trailing matrix that exceeds the L3 cache.
    fn far(&self) -> f64 {
        beyond(NEAR_WORDS, self.m * self.columns() / self.threads as f64)
    }

    /// k rows swapped in place, by all threads.
    pub(super) fn rows_here(&self) -> [f64; HERE] {
        let (k, n) = (self.k, self.columns() / self.threads as f64);
        let touched = lines(self.m, k) * n;
        [touched, k * n, n, touched * self.far()]
    }

    /// Update without packing, by all threads.
    pub(super) fn update(&self) -> [f64; UPDATE] {
        let (m, k, threads) = (self.m, self.k, self.threads as f64);
        let n = self.columns() / threads;
        let further = (k / 256.0).ceil() - 1.0;
        let short = if k < 32.0 { m * n } else { 0.0 };
        let slabs = slab_count(self.n, self.threads, SLAB_OF_COPIES) as f64 / threads;
        [m * n * k, m * n, m * n * further.max(0.0), short, k * k * n, k * n, slabs, 0.0, m * n * self.far()]
    }

    /// L2 packed once a step, by all threads.
    pub(super) fn pack(&self) -> [f64; UPDATE] {
        let mut terms = [0.0; UPDATE];
        terms[7] = self.m * self.k / self.threads as f64;
        terms
    }
}

/// One rank's part of a row exchange over a process column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exchange {
    pub(super) shape: Shape,
    pub(super) p: usize,
    /// This rank's fraction of the rows below the panel.
    pub(super) share: f64,
    pub(super) owns_diagonal: bool,
    pub(super) swap: Swap,
}

impl Exchange {
    fn long(&self) -> bool {
        match self.swap {
            Swap::BinExch => false,
            Swap::Long => true,
            Swap::Mix { threshold } => self.shape.n > threshold,
        }
    }

    /// Copying of the rows to send into messages, by `copiers` threads.
    pub(super) fn start(&self, copiers: usize) -> [f64; EXCHANGED] {
        let Shape { m, k, n, .. } = self.shape;
        let n = n as f64 / copiers as f64;
        let rows = k * self.share;
        let long = if self.long() { k * n / self.p as f64 } else { 0.0 };
        let touched = lines(m, rows) * n / 2.0;
        [touched, rows * n / 2.0, 0.0, 0.0, long, 1.0, k, touched * self.shape.far()]
    }

    /// Copying of the received rows to their places, slab by slab, by all threads.
    pub(super) fn place(&self) -> [f64; EXCHANGED] {
        let Shape { m, k, n, threads } = self.shape;
        let n = n as f64 / threads as f64;
        let rows = k * self.share;
        // Each further round of bin-exch copies all rows received so far into a new message.
        let again = if self.long() { 0.0 } else { (rounds(self.p) - 1.0) / 2.0 };
        let own = if self.owns_diagonal { k * n } else { 0.0 };
        let touched = lines(m, rows) * n / 2.0;
        [touched, rows * n / 2.0, k * n * (1.0 + again), own, 0.0, 0.0, 0.0, touched * self.shape.far()]
    }
}

/// Back substitution of order `n` on `ranks` ranks.
pub(super) fn trsv(n: usize, nb: usize, ranks: usize, threads: usize) -> [f64; TRSV] {
    let n_f = n as f64;
    [n_f * n_f / 2.0 / (ranks * threads) as f64, n.div_ceil(nb.max(1)) as f64]
}

/// Time of some work in seconds.
pub(super) fn dot<const LEN: usize>(terms: &[f64; LEN], coefficients: &[f64; LEN]) -> f64 {
    terms.iter().zip(coefficients).map(|(term, coefficient)| term * coefficient).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use space::Looking;
    use space::machine::EnginePhase;

    use super::*;

    #[test]
    fn forms_are_as_long_as_documented() {
        let lengths = [FACT, HERE, EXCHANGED, UPDATE, TRSV];
        assert!(EnginePhase::ALL.into_iter().zip(lengths).all(|(phase, length)| phase.coefficient_count() == length));
    }

    #[test]
    fn rows_share_cache_lines_when_they_are_many() {
        assert!((lines(1e9, 10.0) - 10.0).abs() < 1e-3);
        assert!(lines(800.0, 1e6) <= 100.0 && lines(0.0, 5.0) == 0.0);
    }

    proptest! {
        /// The multiply–adds below the triangle are those of LU for every recursion.
        #[test]
        fn all_recipes_have_the_same_products(
            variant in 0usize..9, nbmin in 1usize..20, ndiv in 2usize..5, jb in 1usize..70, below in 0usize..500,
        ) {
            let looking = [Looking::Left, Looking::Crout, Looking::Right];
            let recipe = Recipe { pfact: looking[variant % 3], rfact: looking[variant / 3], nbmin, ndiv };
            let work = PanelWork::new(&recipe, jb);
            let terms = work.terms(below, false, 1);
            let flops = terms[1] + terms[2] + terms[3];
            prop_assert_eq!(flops, (below * jb * (jb - 1) / 2) as f64);
            prop_assert_eq!(terms[0], (below * jb) as f64);
            let owner = work.terms(below + jb, true, 1);
            prop_assert!(owner.iter().all(|&units| units >= 0.0));
        }
    }
}
