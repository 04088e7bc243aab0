//! Time of each phase of each step on the first thread of one rank.

use std::ops::Range;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::result::PhaseTime;

/// Phase of the work of a thread.
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
    /// End of the prologue.
    begun_s: f64,
}

impl Phases {
    /// Room for `steps` steps, all times 0.
    pub fn new(rank: usize, steps: usize) -> Self {
        let rank = rank as u32;
        let steps = (0..steps as u32).map(|step| PhaseTime { step, rank, ..PhaseTime::default() }).collect();
        Self { steps, begun_s: 0.0 }
    }

    /// Adds the time since `start` to a phase of `step` and returns the current time, at which the next phase starts.
    pub fn add(&mut self, step: usize, phase: Phase, start: Instant) -> Instant {
        let now = Instant::now();
        self.add_until(step, phase, (start, now));
        now
    }

    /// Adds the time from `start` to `end` to a phase of `step`.
    pub fn add_until(&mut self, step: usize, phase: Phase, (start, end): (Instant, Instant)) {
        *self.slot(step, phase) += (end - start).as_secs_f64();
    }

    /// Sets the time of a phase of `step` to 0.
    pub fn clear(&mut self, step: usize, phase: Phase) {
        *self.slot(step, phase) = 0.0;
    }

    fn slot(&mut self, step: usize, phase: Phase) -> &mut f64 {
        let time = &mut self.steps[step];
        match phase {
            Phase::Fact => &mut time.fact_s,
            Phase::Lbcast => &mut time.lbcast_s,
            Phase::Rs => &mut time.rs_s,
            Phase::Update => &mut time.update_s,
            Phase::Trsv => &mut time.trsv_s,
        }
    }

    /// Records the end of step `step`; the factorization began at `start`.
    pub fn end(&mut self, step: usize, start: Instant) {
        self.steps[step].end_s = start.elapsed().as_secs_f64();
    }

    /// The start of the first step, followed by the end of each step, in seconds.
    pub fn ends(&self, steps: Range<usize>) -> Vec<f64> {
        let ends = self.steps[steps].iter();
        std::iter::once(self.begun_s).chain(ends.map(|time| time.end_s)).collect()
    }

    /// Records the start of the first step; the time since `start` is the prologue.
    pub fn begin(&mut self, start: Instant) {
        self.begun_s = start.elapsed().as_secs_f64();
    }

    /// Sets all times to 0, before steps that are made again.
    pub fn reset(&mut self) {
        for time in &mut self.steps {
            *time = PhaseTime { step: time.step, rank: time.rank, ..PhaseTime::default() };
        }
    }

    /// The times of the steps `steps`.
    pub fn times(&self, steps: Range<usize>) -> &[PhaseTime] {
        &self.steps[steps]
    }

    /// The times, one entry per step.
    pub fn into_steps(self) -> Vec<PhaseTime> {
        self.steps
    }
}
