//! L1 and L2 of a panel in the storage that the updates use.

use crate::backend::host::kernels::{Kernels, PackedL};
use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::panel::Panel;
use crate::mat::{Buffer, Mat, MatMut};

/// L1 and L2 of one panel.
pub(crate) struct HostL {
    panel: Panel,
    /// Rows of a strip of packed L2; `None` if L2 is read from the panel.
    strip_rows: Option<usize>,
    memory: UpdateMemory,
}

/// Memory of the last update, reused by the next one.
#[derive(Default)]
pub(crate) struct UpdateMemory {
    /// L1 not transposed, jb×jb.
    l1: Buffer,
    /// L2 in strips.
    strips: Buffer,
}

impl HostL {
    /// Packs L2 for many slabs, each thread some strips. If the kernels make a copy, the panel releases L.
    pub(crate) fn new(
        kernels: &dyn Kernels,
        team: &mut Team<'_>,
        panel: &mut Panel,
        mut memory: UpdateMemory,
    ) -> Result<Self, HelperPanicked> {
        memory.l1 = copy_of_l1(panel, std::mem::take(&mut memory.l1));
        let strip_rows = kernels.strip_rows();
        if let Some(height) = strip_rows {
            pack(kernels, height, team, panel.l2(), &mut memory.strips)?;
            panel.release_l();
        }
        Ok(Self { panel: panel.clone(), strip_rows, memory })
    }

    /// Columns of the panel.
    pub(super) fn jb(&self) -> usize {
        self.panel.shape().jb
    }

    /// L1, jb×jb.
    pub(super) fn l1(&self) -> Mat<'_> {
        let jb = self.jb();
        Mat::new(&self.memory.l1, jb, jb, jb)
    }

    /// L2, packed if the kernels pack it.
    pub(super) fn l2(&self) -> PackedL<'_> {
        let Some(height) = self.strip_rows else { return PackedL::InPlace(self.panel.l2()) };
        let shape = self.panel.shape();
        let (rows, cols) = (shape.mp - shape.diag_rows, shape.jb);
        let strips = &self.memory.strips[..rows.next_multiple_of(height) * cols];
        PackedL::strips(strips, rows, cols, height)
    }

    /// Returns the memory, for the next update.
    pub(crate) fn into_memory(self) -> UpdateMemory {
        self.memory
    }
}

impl UpdateMemory {
    /// Touches the memory for updates by panels of the shape of `l2`, by packing it.
    pub(crate) fn warm_up(
        &mut self,
        kernels: &dyn Kernels,
        team: &mut Team<'_>,
        l2: Mat<'_>,
    ) -> Result<(), HelperPanicked> {
        kernels.strip_rows().map_or(Ok(()), |height| pack(kernels, height, team, l2, &mut self.strips))
    }
}

/// Copies L1, not transposed, to `memory`.
fn copy_of_l1(panel: &Panel, mut memory: Buffer) -> Buffer {
    let jb = panel.shape().jb;
    if memory.len() < jb * jb {
        memory = Buffer::of(jb * jb);
    }
    panel.l1().copy_to(MatMut::new(&mut memory, jb, jb, jb));
    memory
}

/// Packs L2 in strips of `height` rows, each thread an equal number of them.
fn pack(
    kernels: &dyn Kernels,
    height: usize,
    team: &mut Team<'_>,
    l2: Mat<'_>,
    memory: &mut Buffer,
) -> Result<(), HelperPanicked> {
    let (rows, cols) = (l2.rows(), l2.cols());
    let strips = memory.at_least(rows.next_multiple_of(height) * cols);
    let share = team.share(rows.div_ceil(height), height * cols) * height;
    let parts = strips.chunks_mut((share * cols).max(1)).enumerate();
    let parts = parts.map(|(i, part)| (l2.sub(i * share, 0, share.min(rows - i * share), cols), part));
    team.map(parts.collect(), |(rows, part)| kernels.pack_l(rows, part)).map(drop)
}
