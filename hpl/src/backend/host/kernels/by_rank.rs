//! The kernels of each rank, which may differ between ranks.

use space::KernelChoice;

use super::{KernelError, Kernels, load};

/// Kernels that have been loaded and tested.
pub(crate) type Loaded = Box<dyn Kernels>;

/// The kernels of all ranks of a run in this process.
pub(crate) struct RankKernels<'a> {
    common: &'a Loaded,
    by_rank: Vec<Loaded>,
}

impl<'a> RankKernels<'a> {
    /// The `common` kernels for all ranks or, if `choices` is not empty, one choice for each rank.
    pub(crate) fn new(common: &'a Loaded, choices: &[KernelChoice]) -> Result<Self, KernelError> {
        Ok(Self { common, by_rank: choices.iter().map(load).collect::<Result<_, _>>()? })
    }

    /// The kernels of rank `rank`.
    pub(crate) fn of(&self, rank: usize) -> &dyn Kernels {
        &**self.by_rank.get(rank).unwrap_or(self.common)
    }

    /// Names of the kernels, each run of equal ones once, as stored with a result.
    pub(crate) fn names(&self) -> String {
        let mut names: Vec<String> = self.by_rank.iter().map(|kernels| kernels.name()).collect();
        names.dedup();
        if names.is_empty() { self.common.name() } else { names.join("; ") }
    }
}
