//! U ← L1⁻¹ U by DGEMM, which is several times as fast as DTRSM, where one process has all panels.

use super::parts::PART_COLS;
use super::{Block, Device, HostBlock, Stream};
use crate::Error;
use crate::comm::Msg;
use crate::mat::Buffer;
use crate::sync::Arc;

/// L1⁻¹ of the panels in flight.
pub(crate) struct L1Inverses<D: Device> {
    /// One after the other in turn.
    inverses: D::Memory,
    /// Panels whose updates may be in progress at the same time.
    panels: usize,
    identity: D::Memory,
    /// U of a part of a section.
    solved: D::Memory,
    nb: usize,
}

impl<D: Device> L1Inverses<D> {
    /// Memory for panels of `nb` columns of a local matrix of `cols` with look-ahead `depth`.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(super) fn new(device: &D, nb: usize, cols: usize, depth: usize) -> Result<Self, Error> {
        let mut elements = Buffer::of(nb * nb);
        (0..nb).for_each(|i| elements[i * (nb + 1)] = 1.0);
        let identity = device.allocate(nb * nb)?;
        let msg = Msg::new(Arc::new(elements), 0..nb * nb);
        device.upload(Stream::Fact, HostBlock { msg, at: 0, ld: nb * nb }, Block::dense(&identity, 0, nb * nb, 1));
        // While panel k + DEPTH is factored, those from k on are in use.
        let panels = depth.max(1) + 1;
        let inverses = device.allocate(panels * nb * nb)?;
        Ok(Self { inverses, panels, identity, solved: device.allocate(nb * PART_COLS.min(cols))?, nb })
    }

    /// L1⁻¹ of panel `k` with `jb` columns.
    fn of(&self, k: usize, jb: usize) -> Block<'_, D::Memory> {
        Block::dense(&self.inverses, k % self.panels * self.nb * self.nb, jb, jb)
    }

    /// Queues the inversion of `l1` of panel `k` on `Fact`.
    pub(super) fn invert(&self, device: &D, k: usize, l1: Block<'_, D::Memory>) {
        let (jb, inverse) = (l1.rows, self.of(k, l1.rows));
        let identity = Block { ld: self.nb, ..Block::dense(&self.identity, 0, jb, jb) };
        device.copy(Stream::Fact, identity, inverse);
        device.trsm(Stream::Fact, l1, inverse);
    }

    /// Queues U ← L1⁻¹ U of panel `k`, for at most [`PART_COLS`] columns, on `Copy`.
    pub(super) fn solve(&self, device: &D, k: usize, u: Block<'_, D::Memory>) {
        let solved = Block::dense(&self.solved, 0, u.rows, u.cols);
        device.product(Stream::Copy, self.of(k, u.rows), u, solved);
        device.copy(Stream::Copy, solved, u);
    }
}
