//! The recursion of the panel factorization as data: the operations, their columns and their order.
//!
//! One [`Recipe::walk`] serves both levels: with blocks of one column it is PFACT, with blocks of jb columns it is
//! RFACT. At each block the columns are `done | blk | rest`, and the variants differ in when they apply which product
//! [HPL, `src/pfact/HPL_pdrpan*.c`, `HPL_pdpan*.c`]. The engine executes the operations; a model counts them.

use std::ops::Range;

use space::{HplParams, Looking};

/// Parameters of the recursion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// PFACT: the variant for up to `nbmin` columns.
    pub pfact: Looking,
    /// RFACT: the variant for more than `nbmin` columns.
    pub rfact: Looking,
    /// NBMIN, at least 1.
    pub nbmin: usize,
    /// NDIV, at least 2.
    pub ndiv: usize,
}

/// One operation on the columns of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Column j: find the pivot, swap the rows, scale.
    Pivot(usize),
    /// U(k, cols) ← L1(k, k)⁻¹ · U(k, cols)
    Solve {
        /// Rows of U, at least two.
        k: Range<usize>,
        /// Columns, not empty.
        cols: Range<usize>,
    },
    /// A(below k, cols) ← A(below k, cols) − A(below k, k) · U(k, cols)
    Eliminate {
        /// Columns of L, not empty.
        k: Range<usize>,
        /// Columns, not empty.
        cols: Range<usize>,
    },
    /// U(blk, rest) ← U(blk, rest) − L1(blk, done) · U(done, rest)
    EliminateU {
        /// Rows that are updated.
        blk: Range<usize>,
        /// Columns of L1, not empty.
        done: Range<usize>,
        /// Columns, not empty.
        rest: Range<usize>,
    },
}

impl Recipe {
    /// The recursion of `params`.
    pub fn new(params: &HplParams) -> Self {
        Self { pfact: params.pfact, rfact: params.rfact, nbmin: params.nbmin, ndiv: params.ndiv }
    }

    /// Calls `act` with the operations that factor `cols`, in order, until one fails. The updates by all columns before
    /// `cols` have been applied by the outer levels.
    ///
    /// # Errors
    /// The first error of `act`.
    pub fn walk<E>(&self, cols: Range<usize>, act: &mut impl FnMut(Op) -> Result<(), E>) -> Result<(), E> {
        let width = self.width(cols.len());
        let looking = if width == 1 { self.pfact } else { self.rfact };
        let mut at = cols.start;
        while at < cols.end {
            let blk = at..(at + width).min(cols.end);
            let (done, rest) = (cols.start..blk.start, blk.end..cols.end);
            match looking {
                Looking::Left => {
                    solve(&done, &blk, act)?;
                    eliminate(&done, &blk, act)?;
                }
                Looking::Crout => eliminate(&done, &blk, act)?,
                Looking::Right => {}
            }
            // A block of one column is a leaf at every level.
            if blk.len() == 1 {
                act(Op::Pivot(at))?
            } else {
                self.walk(blk.clone(), act)?
            }
            match looking {
                Looking::Left => {}
                Looking::Crout => {
                    eliminate_u(&blk, &done, &rest, act)?;
                    solve(&blk, &rest, act)?;
                }
                Looking::Right => {
                    solve(&blk, &rest, act)?;
                    eliminate(&blk, &rest, act)?;
                }
            }
            at = blk.end;
        }
        Ok(())
    }

    /// Columns per block when `n` columns are divided: ⌈⌈n/NBMIN⌉/NDIV⌉·NBMIN, or 1 for n ≤ NBMIN.
    fn width(&self, n: usize) -> usize {
        if n <= self.nbmin { 1 } else { n.div_ceil(self.nbmin).div_ceil(self.ndiv) * self.nbmin }
    }
}

fn solve<E>(k: &Range<usize>, cols: &Range<usize>, act: &mut impl FnMut(Op) -> Result<(), E>) -> Result<(), E> {
    if k.len() < 2 || cols.is_empty() {
        return Ok(());
    }
    act(Op::Solve { k: k.clone(), cols: cols.clone() })
}

fn eliminate<E>(k: &Range<usize>, cols: &Range<usize>, act: &mut impl FnMut(Op) -> Result<(), E>) -> Result<(), E> {
    if k.is_empty() || cols.is_empty() {
        return Ok(());
    }
    act(Op::Eliminate { k: k.clone(), cols: cols.clone() })
}

fn eliminate_u<E>(
    blk: &Range<usize>,
    done: &Range<usize>,
    rest: &Range<usize>,
    act: &mut impl FnMut(Op) -> Result<(), E>,
) -> Result<(), E> {
    if done.is_empty() || rest.is_empty() {
        return Ok(());
    }
    act(Op::EliminateU { blk: blk.clone(), done: done.clone(), rest: rest.clone() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// In every variant, each column is pivoted once, and its `Eliminate` updates each column to its right exactly once.
    #[test]
    fn every_variant_updates_every_column_once() {
        const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];
        for (pfact, rfact) in LOOKING.into_iter().flat_map(|pfact| LOOKING.map(|rfact| (pfact, rfact))) {
            for (nb, nbmin, ndiv) in [(1, 1, 2), (5, 2, 2), (16, 4, 3), (23, 5, 4), (8, 8, 2), (9, 1, 2)] {
                let (mut pivots, mut updates) = (Vec::new(), vec![vec![0; nb]; nb]);
                let mut count = |op: Op| -> Result<(), Infallible> {
                    match op {
                        Op::Pivot(j) => pivots.push(j),
                        Op::Eliminate { k, cols } => {
                            k.for_each(|k| cols.clone().for_each(|col| updates[k][col] += 1));
                        }
                        Op::Solve { .. } | Op::EliminateU { .. } => {}
                    }
                    Ok(())
                };
                let recipe = Recipe { pfact, rfact, nbmin, ndiv };
                recipe.walk(0..nb, &mut count).unwrap();
                assert!(pivots.into_iter().eq(0..nb), "{recipe:?}");
                let once = |k: usize, col: usize| updates[k][col] == usize::from(col > k);
                assert!((0..nb).all(|k| (0..nb).all(|col| once(k, col))), "{recipe:?} {updates:?}");
            }
        }
    }
}
