//! The kernels of each rank, where ranks have different ones.

use space::KernelChoice;

use super::{KernelError, Kernels, load};

/// Kernels that have been loaded and tested.
pub(crate) type Loaded = Box<dyn Kernels>;

/// The kernels of all ranks of a run in this process.
pub(crate) struct RankKernels<'a> {
    common: &'a Loaded,
    own: Vec<Loaded>,
}

impl<'a> RankKernels<'a> {
    /// The `common` kernels, or those of each rank in `choices` where there are any.
    pub(crate) fn new(common: &'a Loaded, choices: &[KernelChoice]) -> Result<Self, KernelError> {
        Ok(Self { common, own: choices.iter().map(load).collect::<Result<_, _>>()? })
    }

    /// Those of rank `rank`.
    pub(crate) fn of(&self, rank: usize) -> &dyn Kernels {
        &**self.own.get(rank).unwrap_or(self.common)
    }

    /// Names of all that differ, as stored with a result.
    pub(crate) fn names(&self) -> String {
        let mut names: Vec<String> = self.own.iter().map(|kernels| kernels.name()).collect();
        names.dedup();
        if names.is_empty() { self.common.name() } else { names.join("; ") }
    }
}
