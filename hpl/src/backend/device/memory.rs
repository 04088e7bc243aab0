//! Memory of a device for L of panels and for rows of exchanges.

use super::api::{Block, Device, PERMUTED_ROWS};
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
    /// `None` for those in the matrix, where the device has factored the panel.
    pub(super) memory: Option<LMemory<D>>,
    pub(super) shape: PanelShape,
}

impl<D: Device> LMemory<D> {
    /// Memory for L of `rows` rows and `nb` columns.
    pub(super) fn new(device: &D, rows: usize, nb: usize) -> Result<Self, Error> {
        Ok(Self { message: device.allocate((rows + nb) * nb)?, l1: device.allocate(nb * nb)?, used: None })
    }

    /// L1 of a panel of this shape, not transposed.
    pub(super) fn l1(&self, shape: &PanelShape) -> Block<'_, D::Memory> {
        Block::dense(&self.l1, 0, shape.jb, shape.jb)
    }

    /// L2 of a panel of this shape.
    pub(super) fn l2(&self, shape: &PanelShape) -> Block<'_, D::Memory> {
        let PanelShape { mp, jb, diag_rows, .. } = *shape;
        Block::dense(&self.message, 0, mp, jb).sub(diag_rows, 0, mp - diag_rows, jb)
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
    /// Rows of the matrix on the way to another place; none where the device moves all of them at once.
    pub(super) moved: D::Memory,
    /// U of exchanged rows.
    u: D::Memory,
}

impl<D: Device> RowMemory<D> {
    /// Memory for sections of `cols` columns; with one process row there are no exchanges.
    pub(super) fn new(device: &D, nb: usize, cols: usize, one_row: bool) -> Result<Self, Error> {
        let rows = 2 * nb * cols;
        let len = if one_row { 0 } else { rows };
        let moved = if one_row && 2 * nb <= PERMUTED_ROWS { 0 } else { rows };
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
