//! L1 and L2 of a panel in the storage that the updates use.

use crate::backend::host::kernels::{Kernels, PackedL};
use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::panel::Panel;
use crate::mat::{Buffer, Mat, MatMut};

/// L1 and L2 of one panel.
pub(crate) struct HostL {
    panel: Panel,
    /// L1 not transposed, jb×jb.
    l1: Buffer,
    /// L2 in blocks from top to bottom; `None` if it is read directly from the panel.
    packed: Option<Vec<PackedL<'static>>>,
}

/// Memory of the last update, reused by the next one.
#[derive(Default)]
pub(crate) struct UpdateMemory {
    l1: Buffer,
    /// Packed L2 of each thread.
    packed: Vec<Buffer>,
}

impl HostL {
    /// Packs L2 for many slabs, each thread some rows. If the kernels make a copy, the panel releases L.
    pub(crate) fn new(
        kernels: &dyn Kernels,
        team: &mut Team<'_>,
        panel: &mut Panel,
        memory: UpdateMemory,
    ) -> Result<Self, HelperPanicked> {
        let l1 = copy_of_l1(panel, memory.l1);
        let blocks = pack(kernels, team, panel.l2(), memory.packed)?;
        let packed: Option<Vec<_>> = blocks.into_iter().map(PackedL::detach).collect();
        if packed.is_some() {
            panel.release_l();
        }
        Ok(Self { panel: panel.clone(), l1, packed })
    }

    /// Columns of the panel.
    pub(super) fn jb(&self) -> usize {
        self.panel.shape().jb
    }

    /// L1, jb×jb.
    pub(super) fn l1(&self) -> Mat<'_> {
        let jb = self.jb();
        Mat::new(&self.l1, jb, jb, jb)
    }

    /// L2 in the panel's own storage.
    pub(super) fn l2(&self) -> Mat<'_> {
        self.panel.l2()
    }

    /// Packed L2, if the kernels pack it.
    pub(super) fn packed(&self) -> Option<&[PackedL<'static>]> {
        self.packed.as_deref()
    }

    /// Returns the memory, for the next update.
    pub(crate) fn into_memory(self) -> UpdateMemory {
        let packed = self.packed.into_iter().flatten().map(PackedL::into_memory).collect();
        UpdateMemory { l1: self.l1, packed }
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
        let packed = pack(kernels, team, l2, std::mem::take(&mut self.packed))?;
        self.packed = packed.into_iter().map(PackedL::into_memory).collect();
        Ok(())
    }
}

/// Copies L1, not transposed, to `memory`.
pub(super) fn copy_of_l1(panel: &Panel, mut memory: Buffer) -> Buffer {
    let jb = panel.shape().jb;
    if memory.len() < jb * jb {
        memory = Buffer::of(jb * jb);
    }
    panel.l1().copy_to(MatMut::new(&mut memory, jb, jb, jb));
    memory
}

/// Packs L2, each thread some rows, in its own memory.
fn pack<'a>(
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    l2: Mat<'a>,
    memory: Vec<Buffer>,
) -> Result<Vec<PackedL<'a>>, HelperPanicked> {
    let share = team.share(l2.rows(), l2.cols());
    let blocks = (0..l2.rows()).step_by(share).map(|row| l2.sub(row, 0, share.min(l2.rows() - row), l2.cols()));
    let memory = memory.into_iter().chain(std::iter::repeat_with(Buffer::default));
    team.map(blocks.zip(memory).collect(), |(block, memory)| kernels.pack_l(block, memory))
}
