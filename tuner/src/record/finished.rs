//! What a search asks of a finished trial.

use std::sync::Arc;

use objectives::real::Extent;
use space::{Candidate, EngineParams, HplParams};

use super::row::{comparable_rate_gflops, score_gflops};
use super::{Outcome, Row};

/// A candidate whose engine parameters are shared with others that have the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedCandidate {
    /// The parameters in HPL.dat.
    pub hpl: HplParams,
    /// The parameters of the engine.
    pub engine: Arc<EngineParams>,
}

impl SharedCandidate {
    /// A copy of its own.
    pub fn candidate(&self) -> Candidate {
        Candidate { hpl: self.hpl, engine: EngineParams::clone(&self.engine) }
    }

    /// Whether it is this one.
    pub fn is(&self, candidate: &Candidate) -> bool {
        self.hpl == candidate.hpl && *self.engine == candidate.engine
    }

    /// Whether it is this one at any N.
    pub fn is_at_any_n(&self, candidate: &Candidate) -> bool {
        HplParams { n: candidate.hpl.n, ..self.hpl } == candidate.hpl && *self.engine == candidate.engine
    }
}

/// What a trial says of two candidates whose windows were measured in turn, in one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredPair {
    /// The first trial of the reference.
    pub reference_trial: u64,
    /// As [`Row::reference_rate_gflops`].
    pub reference_rate_gflops: f64,
    /// As [`Row::log_ratio`].
    pub log_ratio: f64,
}

/// A finished trial as a search looks at it: a [`Row`], or what is kept of one in memory ([`ShortRow`](super::ShortRow)).
/// Each function gives what the field of [`Row`] with its name is.
pub trait Finished {
    /// Number of the trial.
    fn trial(&self) -> u64;
    /// The trial that it is compared with.
    fn paired_with(&self) -> Option<u64>;
    /// The trial whose candidate was measured in turn with it.
    fn reference_trial(&self) -> Option<u64>;
    /// What chose the candidate.
    fn strategy(&self) -> &str;
    /// How much of the run was done.
    fn extent(&self) -> Extent;
    /// Order N.
    fn n(&self) -> usize;
    /// The candidate that was run.
    fn shared(&self) -> SharedCandidate;
    /// What came of the run.
    fn outcome(&self) -> Outcome;
    /// Whether the residual is below the threshold.
    fn passed(&self) -> bool;
    /// Wall-clock seconds that the trial took.
    fn wall_s(&self) -> f64;
    /// Wall-clock seconds of the budget left after it.
    fn budget_left_s(&self) -> f64;
    /// GFLOP/s that HPL credits for it.
    fn rate_gflops(&self) -> Option<f64>;
    /// GFLOP/s of the whole run as estimated from a part of it.
    fn estimated_rate_gflops(&self) -> Option<f64>;
    /// What it says of itself and a reference, where both were measured in turn.
    fn pair(&self) -> Option<MeasuredPair>;
    /// Mean power of the core phase, in watts.
    fn power_w(&self) -> Option<f64>;
    /// Mean power of the whole run, in watts.
    fn run_power_w(&self) -> Option<f64>;
    /// Mean power that windows predict for the core phase of the whole run, in watts.
    fn estimated_power_w(&self) -> Option<f64>;

    /// A copy of the candidate that was run.
    fn candidate(&self) -> Candidate {
        self.shared().candidate()
    }

    /// Whether this candidate was run.
    fn is_of(&self, candidate: &Candidate) -> bool {
        self.shared().is(candidate)
    }

    /// The measured score: GFLOP/s of a full run whose residual passed.
    fn score_gflops(&self) -> Option<f64> {
        score_gflops(self.extent(), self.passed(), self.rate_gflops())
    }

    /// What compares with other trials of the same extent: the score of a full run, the estimate of windows whose checks
    /// passed.
    fn comparable_rate_gflops(&self) -> Option<f64> {
        comparable_rate_gflops(self.extent(), self.passed(), self.rate_gflops(), self.estimated_rate_gflops())
    }
}

/// The functions of [`Finished`] that give a field with their name.
macro_rules! fields {
    () => {
        fn trial(&self) -> u64 {
            self.trial
        }

        fn strategy(&self) -> &str {
            &self.strategy
        }

        fn extent(&self) -> Extent {
            self.extent
        }

        fn outcome(&self) -> Outcome {
            self.outcome
        }

        fn passed(&self) -> bool {
            self.passed
        }

        fn wall_s(&self) -> f64 {
            self.wall_s
        }

        fn budget_left_s(&self) -> f64 {
            self.budget_left_s
        }

        fn rate_gflops(&self) -> Option<f64> {
            self.rate_gflops
        }

        fn estimated_rate_gflops(&self) -> Option<f64> {
            self.estimated_rate_gflops
        }
    };
}
pub(super) use fields;

impl Finished for Row {
    fields!();

    fn n(&self) -> usize {
        self.n
    }

    fn shared(&self) -> SharedCandidate {
        let Candidate { hpl, engine } = self.candidate();
        SharedCandidate { hpl, engine: Arc::new(engine) }
    }

    fn paired_with(&self) -> Option<u64> {
        self.paired_with
    }

    fn reference_trial(&self) -> Option<u64> {
        self.reference_trial
    }

    fn pair(&self) -> Option<MeasuredPair> {
        Some(MeasuredPair {
            reference_trial: self.reference_trial?,
            reference_rate_gflops: self.reference_rate_gflops?,
            log_ratio: self.log_ratio?,
        })
    }

    fn power_w(&self) -> Option<f64> {
        self.power_w
    }

    fn run_power_w(&self) -> Option<f64> {
        self.run_power_w
    }

    fn estimated_power_w(&self) -> Option<f64> {
        self.estimated_power_w
    }

    fn candidate(&self) -> Candidate {
        Self::candidate(self)
    }
}
