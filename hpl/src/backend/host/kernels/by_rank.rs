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
    /// The `common` kernels for all ranks or, if `choices` is not empty, one choice for each rank.
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

    /// Names of the kernels, each run of equal ones once, as stored with a result.
    pub(crate) fn names(&self) -> String {
        let mut names: Vec<String> = self.by_rank.iter().map(|&at| self.loaded[at].name()).collect();
        names.dedup();
        if names.is_empty() { self.common.name() } else { names.join("; ") }
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
        let mut expected = vec![limited.clone(), best, limited.clone(), limited];
        assert_eq!((0..4).map(|rank| kernels.of(rank).name()).collect::<Vec<_>>(), expected);
        expected.dedup();
        assert_eq!(kernels.names(), expected.join("; "));
        let alike = RankKernels::new(&common, &[]).unwrap();
        assert_eq!((alike.of(7).name(), alike.names()), (common.name(), common.name()));
    }
}
