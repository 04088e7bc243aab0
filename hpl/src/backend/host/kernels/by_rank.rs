//! The kernels of each rank, which may differ between ranks.

use space::KernelChoice;

use super::{KernelError, Kernels, load};

/// Kernels that have been loaded and tested.
pub(crate) type Loaded = Box<dyn Kernels>;

/// The kernels of all ranks of a run in this process.
pub(crate) struct RankKernels<'a> {
    common: &'a Loaded,
    /// Each choice once: its self-test takes some milliseconds.
    loaded: Vec<Loaded>,
    /// Which of them each rank has; empty where all have the common ones.
    by_rank: Vec<usize>,
}

impl<'a> RankKernels<'a> {
    /// The `common` kernels for all ranks or, if `choices` is not empty, one choice for each rank of this process.
    pub(crate) fn new(common: &'a Loaded, choices: &[KernelChoice]) -> Result<Self, KernelError> {
        let (mut loaded, mut distinct): (Vec<Loaded>, Vec<&KernelChoice>) = (Vec::new(), Vec::new());
        let mut by_rank = Vec::with_capacity(choices.len());
        for choice in choices {
            let known = distinct.iter().position(|known| *known == choice);
            by_rank.push(known.unwrap_or(distinct.len()));
            if known.is_none() {
                loaded.push(load(choice)?);
                distinct.push(choice);
            }
        }
        Ok(Self { common, loaded, by_rank })
    }

    /// The kernels of rank `rank`.
    pub(crate) fn of(&self, rank: usize) -> &dyn Kernels {
        &**self.by_rank.get(rank).map_or(self.common, |&at| &self.loaded[at])
    }
}

#[cfg(test)]
mod tests {
    use space::engine::InstructionSet;

    use super::super::Builtin;
    use super::*;

    #[test]
    fn each_choice_is_loaded_once() {
        let common: Loaded = Box::new(Builtin::best());
        let portable = KernelChoice::Limited(InstructionSet::Portable);
        let choices = [portable.clone(), KernelChoice::Builtin, portable.clone(), portable];
        let kernels = RankKernels::new(&common, &choices).unwrap();
        assert_eq!(kernels.loaded.len(), 2);
        let (limited, best) = (Builtin::of(InstructionSet::Portable).unwrap().name(), common.name());
        let expected = [limited.clone(), best, limited.clone(), limited];
        assert_eq!([0, 1, 2, 3].map(|rank| kernels.of(rank).name()), expected);
        assert_eq!(RankKernels::new(&common, &[]).unwrap().of(7).name(), common.name());
    }
}
