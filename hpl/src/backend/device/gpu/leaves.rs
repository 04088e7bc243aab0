//! Leaves of a panel: their size, and the kernels that factor them and go on from there.

use super::device::GpuDevice;
use super::kernels::{GpuKernel, LaunchSize, words};
use super::memory::GpuMemory;
use crate::backend::device::api::{FACTOR_COLS, MOST_ROWS_OF_BLOCK, factor_work};
use crate::backend::device::{Block, DeviceError, FactorMemory, Stream};

/// Columns that a block of `hpl_interchange` takes at once: `COLUMNS` there.
const COLUMNS: usize = 8;

/// Most rows of L1 that `hpl_interchange` solves with: 2 · `WIDEST` there.
pub(super) const MOST_SOLVED: usize = 2 * FACTOR_COLS;

/// Threads of a block of `hpl_factor` and of `hpl_permute`.
pub(super) const FACTOR_THREADS: u32 = 512;

/// Elements that a thread of `hpl_factor` has in registers: `HELD` there.
const HELD: usize = 32;

/// Fewest columns of which `hpl_factor` holds rows.
const LEAST_WIDTH: usize = HELD * FACTOR_THREADS as usize / MOST_ROWS_OF_BLOCK;

/// Elements of a row that `hpl_factor` holds for a leaf of so many columns.
fn factor_width(cols: usize) -> usize {
    cols.next_power_of_two().max(LEAST_WIDTH)
}

/// Blocks of `hpl_factor` for a leaf.
fn factor_blocks(rows: usize, cols: usize) -> usize {
    rows.div_ceil(FACTOR_THREADS as usize * HELD / factor_width(cols)).max(1)
}

/// Columns of the leaves of a panel of `rows` rows: `most`, or as many as `blocks` blocks have registers for, but not fewer than the
/// least width.
pub(super) fn leaf_cols(rows: usize, blocks: usize, most: usize) -> usize {
    let widths = std::iter::successors(Some(most), |cols| Some(factor_width(*cols) / 2));
    let mut wide = widths.take_while(|&cols| cols >= LEAST_WIDTH);
    wide.find(|&cols| factor_blocks(rows, cols) <= blocks).unwrap_or(most.min(LEAST_WIDTH))
}

impl GpuDevice {
    /// Queues the factorization of a leaf.
    pub(super) fn launch_factor(
        &self,
        stream: Stream,
        a: Block<'_, GpuMemory>,
        first: usize,
        to: &FactorMemory<'_, GpuMemory>,
    ) {
        let FactorMemory { pivots, values, work, round } = to;
        assert!(a.cols <= FACTOR_COLS && a.cols <= a.rows, "columns of one leaf");
        assert!(pivots.rows == a.cols && values.rows == a.cols, "a place for each pivot");
        let blocks = factor_blocks(a.rows, a.cols);
        assert!(work.rows >= factor_work(a.rows, blocks), "work for all blocks");
        if blocks > self.most_blocks {
            return self.queue(|| Err(self.too_many_rows(a.rows)));
        }
        let [ld, rows, cols, first] = words([a.ld, a.rows, a.cols, first]);
        let [pivots, values, work] = [pivots, values, work].map(Block::address);
        let arguments = [a.address(), ld, rows, cols, first, pivots, values, work, *round];
        let size = LaunchSize::Blocks(blocks, FACTOR_THREADS);
        // SAFETY: the arguments of hpl_factor: a block of `rows × cols` elements, vectors of `cols`, and work for all blocks, which are on
        // the device at the same time.
        unsafe { self.launch(stream, GpuKernel::Factor, size, &arguments) };
    }

    /// Queues the interchange of rows of all columns but `skipped` ones from `left` on, with the solve of those to the right of them.
    pub(super) fn launch_interchange(
        &self,
        stream: Stream,
        pivots: Block<'_, GpuMemory>,
        first: usize,
        a: Block<'_, GpuMemory>,
        (left, skipped, solves): (usize, usize, bool),
    ) {
        let blocks = (a.cols - skipped).div_ceil(COLUMNS).min(4096);
        if blocks > 0 {
            let [count, first, ld, left, skipped, cols] = words([pivots.rows, first, a.ld, left, skipped, a.cols]);
            let arguments = [pivots.address(), count, first, a.address(), ld, left, skipped, cols, u64::from(solves)];
            // SAFETY: the arguments of hpl_interchange; the pivots are rows of the panel, all of whose rows from `first` on are in `a`, and
            // to solve there are as many of them as columns skipped, and as it has memory for.
            unsafe { self.launch(stream, GpuKernel::Interchange, LaunchSize::Blocks(blocks, 256), &arguments) };
        }
    }

    /// The error that not so many blocks can be on the device at once as a panel of these rows needs.
    fn too_many_rows(&self, rows: usize) -> DeviceError {
        let most = self.most_blocks * MOST_ROWS_OF_BLOCK;
        DeviceError {
            device: self.gpu.label.clone(),
            reason: format!(
                "it factors panels of at most {most} rows, not of {rows}: let the host factor them (--fact-blocks 0)"
            ),
            lacks_memory: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_as_wide_as_the_registers_of_the_blocks_allow() {
        assert_eq!(leaf_cols(16_384, 32, 32), 32);
        assert_eq!(leaf_cols(16_385, 32, 32), 16);
        assert_eq!(leaf_cols(129_024, 64, 32), 8);
        assert_eq!(leaf_cols(129_024, 64, 24), 8);
        assert_eq!(leaf_cols(129_024, 1, 32), LEAST_WIDTH);
        for (most, expected) in [(1, 1), (2, 2), (3, 3), (5, 5), (24, 24)] {
            assert_eq!(leaf_cols(1000, 32, most), expected);
        }
        for (rows, cols, blocks) in
            [(1, 1, 1), (512, 32, 1), (513, 32, 2), (4096, 1, 1), (4097, 4, 2), (20_000, 17, 40)]
        {
            assert_eq!(factor_blocks(rows, cols), blocks, "{rows} x {cols}");
        }
    }
}
