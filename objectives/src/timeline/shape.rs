//! Local sizes of a dimension: block-cyclic in closed form, dealt by weights from the engine's table.

use hpl::plan::layout::Distribution;
use space::{HplParams, Share, Weights};

/// Bytes of a matrix element.
pub(super) const WORD: f64 = 8.0;

/// `n` indices in blocks of `nb`, dealt to `procs` processes in turn, as one dimension of HPL's matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deal {
    /// Number of indices.
    pub n: usize,
    /// Length of every block but the last.
    pub nb: usize,
    /// Processes.
    pub procs: usize,
}

/// Number of indices that each process owns from some block on.
///
/// Counted cyclically from the owner of the first block, the first `ahead` processes own `more` indices each,
/// the others `less`; only the owner of a short last block owns fewer, which is ignored if another process owns a full one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trailing {
    /// Owner of the first block.
    pub first: usize,
    /// Number of processes that have one block more than the others.
    pub ahead: usize,
    /// Indices of each of these.
    pub more: f64,
    /// Indices of each of the others.
    pub less: f64,
}

impl Trailing {
    /// Indices of process `proc` of `procs`.
    pub(super) fn of(&self, proc: usize, procs: usize) -> f64 {
        let distance = if proc >= self.first { proc - self.first } else { proc + procs - self.first };
        if distance < self.ahead { self.more } else { self.less }
    }

    /// The most that a process owns.
    pub(super) fn most(&self) -> f64 {
        if self.ahead > 0 { self.more } else { self.less }
    }
}

impl Deal {
    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.n.div_ceil(self.nb)
    }

    /// Indices of block `block`.
    pub(super) fn len(&self, block: usize) -> usize {
        self.n.saturating_sub(block * self.nb).min(self.nb)
    }

    /// The indices from block `block` on.
    pub(super) fn trailing(&self, block: usize) -> Trailing {
        let left = self.blocks().saturating_sub(block);
        let (rounds, ahead) = (left / self.procs, left % self.procs);
        let missing = if left == 0 { 0 } else { self.nb - self.len(self.blocks() - 1) };
        // If one process has a block more, it owns the short block. If none has, the last process does, and only a single
        // process is shortened by it.
        let short = |alone: bool| if alone { missing } else { 0 };
        let more = (rounds + 1) * self.nb - short(ahead == 1);
        let less = rounds * self.nb - short(self.procs == 1 && left > 0);
        Trailing { first: block % self.procs, ahead, more: more as f64, less: less as f64 }
    }
}

/// The dimensions that are dealt by weights.
#[derive(Debug, Clone, Default)]
pub(super) struct DealtDims {
    pub(super) rows: Option<DealtDim>,
    pub(super) cols: Option<DealtDim>,
}

/// One of them, in the engine's table.
#[derive(Debug, Clone)]
pub(super) struct DealtDim {
    axis: Distribution,
    nb: usize,
}

impl DealtDims {
    pub(super) fn new(hpl: &HplParams, weights: &Weights) -> Self {
        let dealt = |len: usize, procs: usize, shares: &[Share]| {
            let shares: Vec<f64> = shares.iter().map(|share| share.get()).collect();
            assert!(shares.is_empty() || shares.len() == procs, "one weight per process row or column");
            (!shares.is_empty()).then(|| DealtDim { axis: Distribution::weighted(len, hpl.nb, &shares), nb: hpl.nb })
        };
        Self { rows: dealt(hpl.n, hpl.p, &weights.rows), cols: dealt(hpl.n + 1, hpl.q, &weights.columns) }
    }
}

impl DealtDim {
    /// Process of a block.
    pub(super) fn owner(&self, block: usize) -> usize {
        self.axis.block_owner(block)
    }

    /// Indices of a process from block `block` on.
    pub(super) fn left(&self, proc: usize, block: usize) -> f64 {
        let start = (block * self.nb).min(self.axis.len());
        (self.axis.local_len(proc) - self.axis.local_from(proc, start)) as f64
    }

    /// The most that a process has of them.
    pub(super) fn most(&self, block: usize) -> f64 {
        (0..self.axis.procs()).map(|proc| self.left(proc, block)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The closed form equals the engine's table, except for the owner of a short last block.
        #[test]
        fn trailing_sizes_are_those_of_the_layout(n in 1..400usize, nb in 1..40usize, procs in 1..9usize, at in 0..400usize) {
            let deal = Deal { n, nb, procs };
            let axis = Distribution::block_cyclic(n, nb, procs);
            let block = at % (deal.blocks() + 1);
            let trailing = deal.trailing(block);
            let exact = |proc| (axis.local_len(proc) - axis.local_from(proc, n.min(block * nb))) as f64;
            let most = (0..procs).map(exact).fold(0.0, f64::max);
            prop_assert_eq!(trailing.most(), most);
            for proc in 0..procs {
                let over = trailing.of(proc, procs) - exact(proc);
                prop_assert!((0.0..nb as f64).contains(&over), "process {}: {} too many", proc, over);
            }
        }
    }
}
