//! Memory of a device for L of panels and for rows of exchanges.

use super::api::{Block, Device};
use crate::Error;
use crate::plan::PanelShape;

/// Device memory for L of one panel.
pub(super) struct LMemory<D: Device> {
    /// L and L1, as in the message.
    pub(super) message: D::Memory,
    /// L1 not transposed.
    l1: D::Memory,
    /// The last update with the previous content is complete.
    pub(super) used: Option<D::Event>,
}

/// L1 and L2 of one panel on the device.
pub(crate) struct DeviceL<D: Device> {
    pub(super) memory: LMemory<D>,
    pub(super) shape: PanelShape,
}

impl<D: Device> LMemory<D> {
    /// Memory for L of `rows` rows and `nb` columns.
    pub(super) fn new(device: &D, rows: usize, nb: usize) -> Result<Self, Error> {
        Ok(Self { message: device.allocate((rows + nb) * nb)?, l1: device.allocate(nb * nb)?, used: None })
    }
}

impl<D: Device> DeviceL<D> {
    /// L of a panel of this shape, to be copied to `memory`.
    pub(super) fn new(memory: LMemory<D>, shape: PanelShape) -> Self {
        Self { memory, shape }
    }

    /// L1 not transposed.
    pub(super) fn l1(&self) -> Block<'_, D::Memory> {
        Block::dense(&self.memory.l1, 0, self.shape.jb, self.shape.jb)
    }

    /// L2.
    pub(super) fn l2(&self) -> Block<'_, D::Memory> {
        let PanelShape { mp, jb, diag_rows, .. } = self.shape;
        Block::dense(&self.memory.message, 0, mp, jb).sub(diag_rows, 0, mp - diag_rows, jb)
    }

    /// The memory, which is free after the event `used`.
    pub(super) fn into_memory(self, used: D::Event) -> LMemory<D> {
        LMemory { used: Some(used), ..self.memory }
    }
}

/// Device memory for rows of a section. A row exchange moves at most 2·NB of its rows in one message: U and the displaced rows.
pub(super) struct RowMemory<D: Device> {
    /// Rows on the way to the host.
    pub(super) gathered: D::Memory,
    pub(super) staged: D::Staging,
    /// Rows from the host.
    pub(super) received: D::Memory,
    /// Elements of each of these.
    pub(super) len: usize,
    /// The rows in `received` have been copied to their places.
    pub(super) placed: Option<D::Event>,
    /// Rows of the matrix on the way to another place.
    pub(super) moved: D::Memory,
    /// U of exchanged rows.
    u: D::Memory,
}

impl<D: Device> RowMemory<D> {
    /// Memory for sections of `cols` columns; with one process row there are no exchanges.
    pub(super) fn new(device: &D, nb: usize, cols: usize, one_row: bool) -> Result<Self, Error> {
        let moved = 2 * nb * cols;
        let len = if one_row { 0 } else { moved };
        Ok(Self {
            gathered: device.allocate(len)?,
            staged: device.staging(len)?,
            received: device.allocate(len)?,
            len,
            placed: None,
            moved: device.allocate(moved)?,
            u: device.allocate(len / 2)?,
        })
    }

    /// U of exchanged rows.
    pub(super) fn u(&self, jb: usize, cols: usize) -> Block<'_, D::Memory> {
        Block::dense(&self.u, 0, jb, cols)
    }
}
