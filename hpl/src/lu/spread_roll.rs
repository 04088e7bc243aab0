//! Spread and roll: the pieces of a message reach a whole process row or column, while each rank sends only some of them.
//!
//! Positions count from the root. The spread is a binomial tree: position `at` receives the pieces of all positions of its
//! subtree in one message, and forwards those of the others. In the roll, neighbours around the ring exchange single pieces in
//! alternating pairs: first their own pieces, then in each step the pieces received two steps before [HPL,
//! `src/comm/HPL_blon*.c`, `src/pgesv/HPL_spreadN.c`, `HPL_rollN.c`].

use std::ops::Range;

use crate::comm::grid::rank_at;

/// Position from which `at` > 0 receives its pieces in the spread.
pub(crate) fn parent(at: usize) -> usize {
    at & (at - 1)
}

/// Positions of the subtree of `at` in the spread, `at` itself first.
pub(crate) fn subtree(at: usize, size: usize) -> Range<usize> {
    let lowest_bit = at & at.wrapping_neg();
    if at == 0 { 0..size } else { at..size.min(at + lowest_bit) }
}

/// Positions that `at` sends to, the largest subtree first.
pub(crate) fn children(at: usize, size: usize) -> impl Iterator<Item = usize> {
    let len = subtree(at, size).len();
    (0..usize::BITS).rev().map(|bit| 1 << bit).filter(move |&step| step < len).map(move |step| at + step)
}

/// One step of a position in the roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RollStep {
    /// Whether the partner is the next position, else it is the one before.
    pub(crate) with_next: bool,
    /// Position whose piece is sent.
    pub(crate) sends: usize,
    /// Position whose piece is received.
    pub(crate) receives: usize,
}

impl RollStep {
    /// Position of the partner of `at` among `size`.
    pub(crate) fn partner(&self, at: usize, size: usize) -> usize {
        rank_at(if self.with_next { 1 } else { size - 1 }, at, size)
    }
}

/// The `size` − 1 steps of position `at`.
pub(crate) fn roll(at: usize, size: usize) -> impl Iterator<Item = RollStep> {
    (0..size - 1).map(move |k| {
        let (with_next, done) = ((at + k).is_multiple_of(2), k / 2);
        let (behind, ahead) = (|by: usize| rank_at(size - by, at, size), |by: usize| rank_at(by, at, size));
        if with_next {
            RollStep { with_next, sends: behind(done), receives: ahead(done + 1) }
        } else {
            RollStep { with_next, sends: ahead(done), receives: behind(done + 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position except the root has one parent: its number without the lowest bit.
    #[test]
    fn the_spread_is_a_tree() {
        for size in 1..20 {
            let mut parents = vec![Vec::new(); size];
            for at in 0..size {
                let mut all: Vec<usize> = children(at, size).flat_map(|child| subtree(child, size)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(subtree(at, size).skip(1)));
                children(at, size).for_each(|child| parents[child].push(at));
            }
            assert!(parents[0].is_empty());
            assert!((1..size).all(|at| parents[at] == [parent(at)]));
        }
        assert!(children(0, 8).eq([4, 2, 1]));
        assert!(children(0, 6).eq([4, 2, 1]) && children(4, 6).eq([5]) && children(2, 6).eq([3]));
    }

    /// Every position receives every piece once, and the receiver expects exactly the pieces that are sent.
    #[test]
    fn all_positions_get_all_pieces() {
        for size in 1..=9 {
            let towards = |at: usize, to: usize, with_next| -> Vec<RollStep> {
                assert_eq!(rank_at(if with_next { 1 } else { size - 1 }, at, size), to);
                roll(at, size).filter(|step| step.with_next == with_next).collect()
            };
            for at in 0..size {
                let mut got: Vec<usize> = roll(at, size).map(|step| step.receives).collect();
                got.push(at);
                got.sort_unstable();
                assert!(got.into_iter().eq(0..size), "{at} of {size}");
                if size > 1 {
                    let next = rank_at(1, at, size);
                    let sent = towards(at, next, true).into_iter().map(|step| step.sends);
                    let expected = towards(next, at, false).into_iter().map(|step| step.receives);
                    assert!(sent.eq(expected), "{at} to {next} of {size}");
                    let sent = towards(next, at, false).into_iter().map(|step| step.sends);
                    let expected = towards(at, next, true).into_iter().map(|step| step.receives);
                    assert!(sent.eq(expected), "{next} to {at} of {size}");
                }
            }
        }
        // Pairs of the first two steps of four.
        let partners = |k: usize| -> Vec<bool> { (0..4).map(|at| roll(at, 4).nth(k).unwrap().with_next).collect() };
        assert_eq!((partners(0), partners(1)), (vec![true, false, true, false], vec![false, true, false, true]));
    }
}
