//! Owner tables: which process of a row or column owns which block, at what local index.
//!
//! A [`Distribution`] distributes the rows or the columns of the matrix. Its table is the only source of block owners:
//! the engine looks owners up here and never computes `% P` itself. Blocks are NB long, the last one is the
//! remainder, and each process stores its blocks in ascending order without gaps.

use std::ops::Range;

use space::{HplParams, Share, Weights, deal};

/// One distributed dimension: blocks of indices `0..len` and their owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    len: usize,
    nb: usize,
    /// Owner of each block.
    owners: Vec<usize>,
    /// Position of each block among the blocks of its owner.
    slots: Vec<usize>,
    /// Blocks of each process, ascending.
    owned: Vec<Vec<usize>>,
}

/// Consecutive blocks of one owner: a range that is contiguous both globally and in its owner's storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRun {
    /// Global indices.
    pub global: Range<usize>,
    /// Local index of the first global index.
    pub local: usize,
}

impl Distribution {
    /// `len` indices in blocks of `nb`, block `k` owned by process `owners[k]` of `procs`.
    ///
    /// # Panics
    /// When `nb` or `procs` is 0, the length of the table differs from the number of blocks, or an owner is not below `procs`.
    pub fn new(len: usize, nb: usize, procs: usize, owners: Vec<usize>) -> Self {
        assert!(nb > 0 && procs > 0, "blocks and processes must exist");
        assert_eq!(owners.len(), len.div_ceil(nb), "one owner per block");
        let mut owned = vec![Vec::new(); procs];
        let mut slots = Vec::with_capacity(owners.len());
        for (block, &owner) in owners.iter().enumerate() {
            slots.push(owned[owner].len());
            owned[owner].push(block);
        }
        Self { len, nb, owners, slots, owned }
    }

    /// Blocks dealt to the processes in turn, starting with process 0.
    ///
    /// # Panics
    /// When `nb` or `procs` is 0.
    pub fn block_cyclic(len: usize, nb: usize, procs: usize) -> Self {
        assert!(nb > 0 && procs > 0, "blocks and processes must exist");
        Self::new(len, nb, procs, (0..procs).cycle().take(len.div_ceil(nb)).collect())
    }

    /// Blocks dealt by `shares`, the relative speeds of the processes, so that every trailing part of the axis is balanced:
    /// see [`space::deal`].
    ///
    /// # Panics
    /// When `nb` is 0, a share is negative or not finite, or no share is positive.
    pub fn weighted(len: usize, nb: usize, shares: &[f64]) -> Self {
        assert!(nb > 0, "blocks must exist");
        Self::new(len, nb, shares.len(), deal(len.div_ceil(nb), shares))
    }

    /// Number of indices over all processes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the axis has length 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of every block except the last.
    pub fn nb(&self) -> usize {
        self.nb
    }

    /// Number of processes.
    pub fn procs(&self) -> usize {
        self.owned.len()
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.owners.len()
    }

    /// Global indices of block `block`.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn block(&self, block: usize) -> Range<usize> {
        assert!(block < self.blocks());
        block * self.nb..self.len.min((block + 1) * self.nb)
    }

    /// Process that owns block `block`.
    pub fn block_owner(&self, block: usize) -> usize {
        self.owners[block]
    }

    /// Last block before `block` that process `proc` owns.
    pub fn block_before(&self, proc: usize, block: usize) -> Option<usize> {
        let owned = &self.owned[proc];
        owned.partition_point(|&other| other < block).checked_sub(1).map(|at| owned[at])
    }

    /// Process that owns global index `global`.
    ///
    /// # Panics
    /// When `global` is not below the length.
    pub fn owner(&self, global: usize) -> usize {
        assert!(global < self.len);
        self.owners[global / self.nb]
    }

    /// Number of indices that process `proc` owns.
    pub fn local_len(&self, proc: usize) -> usize {
        self.local_from(proc, self.len)
    }

    /// Local index of global index `global` on its owner.
    ///
    /// # Panics
    /// When `global` is not below the length.
    pub fn local(&self, global: usize) -> usize {
        assert!(global < self.len);
        self.slots[global / self.nb] * self.nb + global % self.nb
    }

    /// Global index of local index `local` on process `proc`.
    ///
    /// # Panics
    /// When `local` is not below the process's local length.
    pub fn global(&self, proc: usize, local: usize) -> usize {
        let global = self.owned[proc][local / self.nb] * self.nb + local % self.nb;
        assert!(global < self.len);
        global
    }

    /// Number of indices below `global` that process `proc` owns. This is also the local index of its first index
    /// ≥ `global`, or its local length if there is none.
    pub fn local_from(&self, proc: usize, global: usize) -> usize {
        let (block, owned) = (global / self.nb, &self.owned[proc]);
        if global >= self.len {
            // Only the last block can be short, and it is the last of its owner.
            let short = owned.last().map_or(0, |&b| self.nb - self.block(b).len());
            return owned.len() * self.nb - short;
        }
        // Start of the search: block-cyclic or by shares, a process owns about the same fraction of every leading part.
        let mut slot = block * owned.len() / self.blocks();
        while slot > 0 && owned[slot - 1] >= block {
            slot -= 1;
        }
        while owned.get(slot).is_some_and(|&b| b < block) {
            slot += 1;
        }
        if owned.get(slot) == Some(&block) { slot * self.nb + global % self.nb } else { slot * self.nb }
    }

    /// The local indices `local` of process `proc` as block runs, ascending; adjacent blocks are merged into one run.
    ///
    /// # Panics
    /// When `local` ends beyond what the process owns.
    pub fn block_runs(&self, proc: usize, local: Range<usize>) -> Vec<BlockRun> {
        assert!(local.end <= self.local_len(proc));
        let mut runs: Vec<BlockRun> = Vec::new();
        let mut at = local.start;
        while at < local.end {
            let len = (self.nb - at % self.nb).min(local.end - at);
            let start = self.global(proc, at);
            match runs.last_mut() {
                Some(last) if last.global.end == start => last.global.end = start + len,
                _ => runs.push(BlockRun { global: start..start + len, local: at }),
            }
            at += len;
        }
        runs
    }
}

/// Distribution of the N×(N+1) matrix `[A | b]` over a P×Q grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Block rows over process rows.
    pub rows: Distribution,
    /// Block columns over process columns; the last column is b.
    pub cols: Distribution,
}

impl Layout {
    /// HPL's block-cyclic distribution in blocks of `nb`.
    ///
    /// # Panics
    /// When `nb`, `p` or `q` is 0.
    pub fn block_cyclic(n: usize, nb: usize, p: usize, q: usize) -> Self {
        Self { rows: Distribution::block_cyclic(n, nb, p), cols: Distribution::block_cyclic(n + 1, nb, q) }
    }

    /// The distribution of a run: block-cyclic along an axis without weights, by its weights along the other.
    ///
    /// # Panics
    /// When a list of weights is not empty and its length is not P (rows) or Q (columns), or all of its weights are 0.
    pub fn of(hpl: &HplParams, weights: &Weights) -> Self {
        let axis = |len, procs, weights: &[Share]| {
            if weights.is_empty() {
                return Distribution::block_cyclic(len, hpl.nb, procs);
            }
            assert_eq!(weights.len(), procs, "one weight per process");
            Distribution::weighted(len, hpl.nb, &weights.iter().map(|weight| weight.get()).collect::<Vec<_>>())
        };
        Self { rows: axis(hpl.n, hpl.p, &weights.rows), cols: axis(hpl.n + 1, hpl.q, &weights.columns) }
    }

    /// Order N of the system.
    pub fn n(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests;
