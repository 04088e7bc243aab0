//! Large triangular solves by all threads: each solves some columns of U and reads those of the others after a barrier.
//!
//! A part is solved as it is within the whole: the built-in kernels treat each column alike, wherever a part begins.

use std::convert::Infallible;
use std::ops::Range;

use crate::mat::{Stored, StoredMut};
use crate::plan::recursion::{Op, Recipe};
use crate::sync::OnceLock;

/// Columns of a part are a multiple of this, the last one's not fewer: the longest vector of the kernels.
const GROUP: usize = 8;

/// Multiplications and additions from which on a solve is divided: with fewer, a barrier and the copies cost more.
const DIVIDED_FROM: usize = 1 << 17;

/// How the columns of solves are divided, and the parts that the threads have solved.
pub(super) struct SolvedParts {
    threads: usize,
    /// The divided solves, in order.
    solves: Vec<DividedSolve>,
}

/// The part of each thread, set when the thread has solved it.
type DividedSolve = Box<[OnceLock<Box<[f64]>>]>;

impl SolvedParts {
    /// For the panel of `jb` columns that `threads` threads factor by `recipe`; with one thread nothing is divided.
    pub(super) fn new(recipe: Recipe, jb: usize, threads: usize) -> Self {
        let mut parts = Self { threads, solves: Vec::new() };
        let mut divided = Vec::new();
        let count = |op: Op| -> Result<(), Infallible> {
            if let Op::Solve { k, cols } = op
                && parts.count(k.len(), &cols) > 1
            {
                divided.push((0..threads).map(|_| OnceLock::new()).collect());
            }
            Ok(())
        };
        if threads > 1 {
            let Ok(()) = recipe.walk(0..jb, &mut { count });
        }
        parts.solves = divided;
        parts
    }

    /// Parts of the columns `cols` for a solve with a triangle of order `order`: of each thread one at most.
    pub(super) fn count(&self, order: usize, cols: &Range<usize>) -> usize {
        let divided = self.threads > 1 && order > 1 && order * order * cols.len() >= DIVIDED_FROM;
        if divided { (cols.len() / self.width(cols)).max(1) } else { 1 }
    }

    fn width(&self, cols: &Range<usize>) -> usize {
        cols.len().div_ceil(self.threads).next_multiple_of(GROUP)
    }

    /// The columns of part `part` of `count`, none beyond; the last part has the columns that are left.
    pub(super) fn part(&self, cols: &Range<usize>, part: usize, count: usize) -> Range<usize> {
        let start = cols.start + part.min(count) * self.width(cols);
        if part + 1 < count {
            start..start + self.width(cols)
        } else if part < count {
            start..cols.end
        } else {
            cols.end..cols.end
        }
    }

    /// Posts part `part` of the divided solve number `solve`.
    pub(super) fn post(&self, solve: usize, part: usize, u: Stored<'_>) {
        let u = u.memory();
        let mut elements = Vec::with_capacity(u.rows() * u.cols());
        (0..u.cols()).for_each(|j| elements.extend_from_slice(u.col(j)));
        // Set once: each thread has one part of a solve.
        let _ = self.solves[solve][part].set(elements.into());
    }

    /// `u` ← part `part` of the divided solve number `solve`, which has been posted.
    pub(super) fn read(&self, solve: usize, part: usize, u: StoredMut<'_>) {
        let mut u = u.into_memory();
        let elements = self.solves[solve][part].get().expect("posted before the barrier");
        for (j, column) in elements.chunks_exact(u.rows()).enumerate() {
            u.col_mut(j).copy_from_slice(column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_columns_in_groups() {
        for (threads, cols) in
            [2, 3, 16, 64].into_iter().flat_map(|t| [(t, 3..18), (t, 64..128), (t, 128..261), (t, 5..6)])
        {
            let parts = SolvedParts { threads, solves: Vec::new() };
            let count = parts.count(128, &cols);
            assert!(count <= threads);
            let mut at = cols.start;
            for part in 0..count {
                let of_part = parts.part(&cols, part, count);
                assert_eq!(of_part.start, at);
                assert!(
                    count == 1 || of_part.len() >= GROUP && (part + 1 == count || of_part.len().is_multiple_of(GROUP))
                );
                at = of_part.end;
            }
            assert_eq!(at, cols.end, "{threads} threads");
            assert!(parts.part(&cols, count, count).is_empty() && parts.part(&cols, count + 9, count).is_empty());
        }
    }

    #[test]
    fn one_thread_divides_nothing() {
        let recipe = Recipe { pfact: space::Looking::Right, rfact: space::Looking::Right, nbmin: 8, ndiv: 2 };
        assert!(SolvedParts::new(recipe, 256, 1).solves.is_empty());
        assert!(!SolvedParts::new(recipe, 256, 2).solves.is_empty());
    }
}
