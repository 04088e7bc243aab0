//! Where the time of a run went.

use serde::Serialize;
use space::result::PhaseTime;

/// Seconds of each phase of a run, mean over its ranks' first threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseTotals {
    /// The trial.
    pub trial: u64,
    /// Panel factorization.
    pub fact_s: f64,
    /// Panel broadcast, waiting included.
    pub lbcast_s: f64,
    /// Row exchange, waiting included.
    pub rs_s: f64,
    /// Triangular solve and DGEMM.
    pub update_s: f64,
    /// Back substitution.
    pub trsv_s: f64,
}

impl PhaseTotals {
    /// The totals of what a trial's phases say; `None` where they say nothing, also where all are 0 or one is no number.
    pub fn new(trial: u64, phases: &[PhaseTime]) -> Option<Self> {
        let ranks = phases.iter().map(|phase| phase.rank).max()? as f64 + 1.0;
        let mean = |of: fn(&PhaseTime) -> f64| phases.iter().map(of).sum::<f64>() / ranks;
        let totals = Self {
            trial,
            fact_s: mean(|p| p.fact_s),
            lbcast_s: mean(|p| p.lbcast_s),
            rs_s: mean(|p| p.rs_s),
            update_s: mean(|p| p.update_s),
            trsv_s: mean(|p| p.trsv_s),
        };
        Some(totals).filter(|totals| totals.all_s() > 0.0 && totals.all_s().is_finite())
    }

    /// Seconds of all phases together.
    pub fn all_s(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }

    /// The phases with HPL's names, in the order of a step.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("FACT", self.fact_s),
            ("LBCAST", self.lbcast_s),
            ("RS", self.rs_s),
            ("UPDATE", self.update_s),
            ("TRSV", self.trsv_s),
        ]
    }
}
