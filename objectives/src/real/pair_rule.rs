//! Which two candidates can be measured in turn.

use hpl::plan::windows::covers_owner_cycle;
use space::{Candidate, DeviceChoice, KernelChoice, NodeSettings};

/// Where windows of two candidates can be measured in turn, in the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairRule {
    /// Nowhere.
    Never,
    /// In one process, whose threads any ranks are.
    InProcess(Grids),
    /// On the processes of one job, which has as many of them and as many cores of each as a candidate asks for.
    InJob(Grids),
}

/// On which grids the ratio of two whole runs is known from their windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grids {
    /// Those whose cycle of panel owners a window covers.
    Covered,
    /// All: a timeline says what other owners do.
    All,
}

impl PairRule {
    /// The rule for these candidates: nowhere, if none of them can be measured in turn with one of its kind.
    pub fn among(self, mut candidates: impl Iterator<Item = Candidate>) -> Self {
        if candidates.any(|candidate| self.allows([&candidate; 2])) { self } else { Self::Never }
    }

    /// Whether these two can: with the same kernels and settings of the node, on hosts, on such grids, and in a job of the same ranks and threads.
    pub fn allows(self, [a, b]: [&Candidate; 2]) -> bool {
        let same = |of: fn(&Candidate) -> (&KernelChoice, &[KernelChoice], &NodeSettings)| of(a) == of(b);
        let shape = |of: &Candidate| (of.hpl.ranks(), of.engine.threads);
        let (fits, grids) = match self {
            Self::Never => return false,
            Self::InProcess(grids) => (true, grids),
            Self::InJob(grids) => (shape(a) == shape(b), grids),
        };
        let known = |of: &Candidate| grids == Grids::All || covers_owner_cycle(&of.hpl);
        fits && same(|of| (&of.engine.kernels, &of.engine.rank_kernels, &of.engine.settings))
            && [a, b].iter().all(|of| of.engine.device == DeviceChoice::None && known(of))
    }
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    #[test]
    fn a_job_has_pairs_of_the_same_shape() {
        let candidate = |(p, q): (usize, usize), threads: usize| Candidate {
            hpl: HplParams::baseline(1000, p, q),
            engine: EngineParams { threads, ..EngineParams::default() },
        };
        let (a, b, wide) = (candidate((2, 2), 4), candidate((1, 4), 4), candidate((1, 2), 8));
        let allowed = |rule: PairRule| [rule.allows([&a, &b]), rule.allows([&a, &wide])];
        assert_eq!(allowed(PairRule::Never), [false, false]);
        assert_eq!(allowed(PairRule::InProcess(Grids::Covered)), [true, true]);
        assert_eq!(allowed(PairRule::InJob(Grids::Covered)), [true, false]);
        let (square, long) = (candidate((8, 8), 1), candidate((4, 16), 1));
        let covered = PairRule::InJob(Grids::Covered);
        assert!(covered.allows([&square, &square]) && !covered.allows([&square, &long]));
        assert!(PairRule::InJob(Grids::All).allows([&square, &long]));
        assert_eq!(covered.among([long.clone(), a.clone()].into_iter()), covered);
        assert_eq!(covered.among([long].into_iter()), PairRule::Never);
        let mut other = b.clone();
        other.engine.kernels = KernelChoice::Auto;
        assert!(!PairRule::InProcess(Grids::All).allows([&a, &other]));
    }
}
