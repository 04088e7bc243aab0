//! Which two candidates can be measured in turn.

use hpl::plan::windows::covers_turn;
use space::{Candidate, DeviceChoice, KernelChoice, NodeSettings};

/// Where windows of two candidates can be measured in turn, in the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairRule {
    /// Nowhere.
    Never,
    /// In one process, whose threads any ranks are.
    InProcess,
    /// On the processes of one job, which has as many of them and as many cores of each as a candidate asks for.
    InJob,
}

impl PairRule {
    /// The rule for these candidates: nowhere, if none of them can be measured in turn with one of its kind.
    pub fn among(self, mut candidates: impl Iterator<Item = Candidate>) -> Self {
        if candidates.any(|candidate| self.allows([&candidate; 2])) { self } else { Self::Never }
    }

    /// Whether these two can: with the same kernels and settings of the node, on hosts, on grids of which windows say the whole, and in
    /// a job of the same ranks and threads.
    pub fn allows(self, [a, b]: [&Candidate; 2]) -> bool {
        let same = |of: fn(&Candidate) -> (&KernelChoice, &[KernelChoice], &NodeSettings)| of(a) == of(b);
        let shape = |of: &Candidate| (of.hpl.ranks(), of.engine.threads);
        let fits = match self {
            Self::Never => false,
            Self::InProcess => true,
            Self::InJob => shape(a) == shape(b),
        };
        fits && same(|of| (&of.engine.kernels, &of.engine.rank_kernels, &of.engine.settings))
            && [a, b].iter().all(|of| of.engine.device == DeviceChoice::None && covers_turn(&of.hpl))
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
        assert_eq!(allowed(PairRule::InProcess), [true, true]);
        assert_eq!(allowed(PairRule::InJob), [true, false]);
        let (square, long) = (candidate((8, 8), 1), candidate((4, 16), 1));
        assert!(PairRule::InJob.allows([&square, &square]) && !PairRule::InJob.allows([&square, &long]));
        assert_eq!(PairRule::InJob.among([long.clone(), a.clone()].into_iter()), PairRule::InJob);
        assert_eq!(PairRule::InJob.among([long].into_iter()), PairRule::Never);
        let mut other = b.clone();
        other.engine.kernels = KernelChoice::Auto;
        assert!(!PairRule::InProcess.allows([&a, &other]));
    }
}
