//! Memory for panels that the device factors.

use std::ops::Range;

use super::api::{FactorMemory, factor_work};
use super::inverse::L1Inverses;
use super::{Block, Device};
use crate::Error;
use crate::comm::Msg;
use crate::mat::Buffer;
use crate::sync::Arc;

/// Memory for the factorization of a panel by the device.
pub(crate) struct DeviceFact<D: Device> {
    /// For each column of a panel the pivot row, then for each the pivot, then for each what a leaf counts with.
    pub(super) columns: D::Memory,
    pub(super) staged: D::Staging,
    work: D::Memory,
    /// Zeros for `columns`.
    pub(super) zeros: Msg,
    pub(super) nb: usize,
    /// Blocks of threads.
    pub(super) blocks: usize,
    /// `None` where other processes need L of a panel.
    inverses: Option<L1Inverses<D>>,
}

impl<D: Device> DeviceFact<D> {
    /// Memory for panels of `nb` columns, factored by `blocks` blocks of threads. `inverses`: where no other process needs L of a panel.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(super) fn new(device: &D, nb: usize, blocks: usize, inverses: Option<L1Inverses<D>>) -> Result<Self, Error> {
        Ok(Self {
            columns: device.allocate(3 * nb)?,
            staged: device.staging(2 * nb)?,
            work: device.allocate(factor_work(blocks))?,
            zeros: Msg::new(Arc::new(Buffer::of(3 * nb)), 0..3 * nb),
            nb,
            blocks,
            inverses,
        })
    }

    /// L1⁻¹ where L of a panel is in the matrix only: no other process needs it.
    pub(super) fn inverses(&self) -> Option<&L1Inverses<D>> {
        self.inverses.as_ref()
    }

    /// What a leaf finds and needs.
    pub(super) fn of(&self, cols: &Range<usize>) -> FactorMemory<'_, D::Memory> {
        let part = |part: usize, len: usize| Block::dense(&self.columns, part * self.nb + cols.start, len, 1);
        FactorMemory {
            pivots: part(0, cols.len()),
            values: part(1, cols.len()),
            arrived: part(2, 1),
            work: Block::dense(&self.work, 0, factor_work(self.blocks), 1),
        }
    }
}
