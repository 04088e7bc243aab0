//! Memory for panels that the device factors.

use std::cell::Cell;
use std::ops::Range;

use super::api::{FACTOR_COLS, FactorMemory, factor_work};
use super::inverse::L1Inverses;
use super::{Block, Device, HostBlock, Stream};
use crate::Error;
use crate::comm::Msg;
use crate::mat::Buffer;
use crate::sync::Arc;

/// Memory for the factorization of a panel by the device.
pub(crate) struct DeviceFact<D: Device> {
    /// For each column of a panel the pivot row, then for each the pivot.
    pub(super) columns: D::Memory,
    pub(super) staged: D::Staging,
    work: D::Memory,
    work_len: usize,
    /// Tag of the next leaf.
    round: Cell<u64>,
    pub(super) nb: usize,
    /// Blocks of threads.
    pub(super) blocks: usize,
    /// `None` where other processes need L of a panel.
    inverses: Option<L1Inverses<D>>,
}

impl<D: Device> DeviceFact<D> {
    /// Memory for panels of at most `rows × nb` elements, factored by `blocks` blocks of threads. `inverses`: where no other process
    /// needs L of a panel.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(super) fn new(
        device: &D,
        (rows, nb): (usize, usize),
        blocks: usize,
        inverses: Option<L1Inverses<D>>,
    ) -> Result<Self, Error> {
        let work_len = factor_work(rows, blocks);
        let work = device.allocate(work_len)?;
        let zeros = HostBlock { msg: Msg::new(Arc::new(Buffer::of(work_len)), 0..work_len), at: 0, ld: work_len };
        device.upload(Stream::Fact, zeros, Block::dense(&work, 0, work_len, 1));
        Ok(Self {
            columns: device.allocate(2 * nb)?,
            staged: device.staging(2 * nb)?,
            work,
            work_len,
            round: Cell::new(1),
            nb,
            blocks,
            inverses,
        })
    }

    /// L1⁻¹ where L of a panel is in the matrix only: no other process needs it.
    pub(super) fn inverses(&self) -> Option<&L1Inverses<D>> {
        self.inverses.as_ref()
    }

    /// What the next leaf finds and needs.
    pub(super) fn of_leaf(&self, cols: &Range<usize>) -> FactorMemory<'_, D::Memory> {
        let round = self.round.replace(self.round.get() + FACTOR_COLS as u64);
        FactorMemory {
            pivots: self.pivots(cols),
            values: self.part(1, cols),
            work: Block::dense(&self.work, 0, self.work_len, 1),
            round,
        }
    }

    /// The pivot rows of some columns.
    pub(super) fn pivots(&self, cols: &Range<usize>) -> Block<'_, D::Memory> {
        self.part(0, cols)
    }

    fn part(&self, part: usize, cols: &Range<usize>) -> Block<'_, D::Memory> {
        Block::dense(&self.columns, part * self.nb + cols.start, cols.len(), 1)
    }
}
