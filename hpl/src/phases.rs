//! Time of each phase of each step, as one rank's first thread sees it.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::result::PhaseTime;

/// What the first thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Panel factorization.
    Fact,
    /// Panel broadcast, waiting included.
    Lbcast,
    /// Row exchange, waiting included.
    Rs,
    /// Triangular solve and DGEMM.
    Update,
    /// Back substitution.
    Trsv,
}

/// Collects [`PhaseTime`]s.
#[derive(Debug)]
pub struct Phases {
    steps: Vec<PhaseTime>,
}

impl Phases {
    /// Room for `steps` steps, all times 0.
    pub fn new(rank: usize, steps: usize) -> Self {
        let rank = rank as u32;
        let steps = (0..steps as u32).map(|step| PhaseTime { step, rank, ..PhaseTime::default() }).collect();
        Self { steps }
    }

    /// Adds the time since `start` to a phase of `step` and returns the present, for the next phase to start at.
    pub fn add(&mut self, step: usize, phase: Phase, start: Instant) -> Instant {
        let now = Instant::now();
        let time = &mut self.steps[step];
        let slot = match phase {
            Phase::Fact => &mut time.fact_s,
            Phase::Lbcast => &mut time.lbcast_s,
            Phase::Rs => &mut time.rs_s,
            Phase::Update => &mut time.update_s,
            Phase::Trsv => &mut time.trsv_s,
        };
        *slot += (now - start).as_secs_f64();
        now
    }

    /// The times, one entry per step.
    pub fn into_steps(self) -> Vec<PhaseTime> {
        self.steps
    }
}
