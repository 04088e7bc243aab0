//! What a run will cost in wall-clock time: the model's word, scaled by what runs really took.

use objectives::predict::Predictor;
use space::Candidate;

use crate::record::{Fidelity, Row};
use crate::report::stats::median;

/// Fixed part of a run's wall clock (starting the process and its threads), in seconds.
const START_S: f64 = 0.1;

/// Share that generation and check add to the solve time, until runs have told better.
const CHECK_SHARE: f64 = 0.1;

/// Wall-clock seconds of a run by the model alone.
pub fn model_s(predictor: &Predictor, candidate: &Candidate) -> f64 {
    START_S + predictor.time_s(candidate) * (1.0 + CHECK_SHARE)
}

/// The model corrected by the finished runs of a session.
pub struct CostEstimate<'a> {
    predictor: &'a Predictor,
    /// Measured over expected cost of each finished full run.
    measured: Vec<(Candidate, f64)>,
}

impl<'a> CostEstimate<'a> {
    /// Learns from the rows of a session.
    pub fn new(rows: &[Row], predictor: &'a Predictor) -> Self {
        let full = rows.iter().filter(|row| row.passed && row.fidelity == Fidelity::Full);
        let ratio = |row: &Row| (row.candidate(), row.wall_s / model_s(predictor, &row.candidate()));
        Self { predictor, measured: full.map(ratio).collect() }
    }

    /// Expected wall-clock seconds of a run: by its own earlier runs at any N, else by those of all candidates.
    pub fn of(&self, candidate: &Candidate) -> f64 {
        median(&self.ratios(candidate)).unwrap_or(1.0) * model_s(self.predictor, candidate)
    }

    /// Wall-clock seconds that a run hardly exceeds: as [`of`](Self::of), by the slowest of those runs.
    pub fn at_most(&self, candidate: &Candidate) -> f64 {
        self.ratios(candidate).into_iter().reduce(f64::max).unwrap_or(1.0) * model_s(self.predictor, candidate)
    }

    /// Measured over expected cost of the candidate's own runs; of all where it has none.
    fn ratios(&self, candidate: &Candidate) -> Vec<f64> {
        let same = |other: &Candidate| {
            let mut other = other.clone();
            other.hpl.n = candidate.hpl.n;
            other == *candidate
        };
        let own: Vec<f64> = self.measured.iter().filter(|(c, _)| same(c)).map(|(_, ratio)| *ratio).collect();
        if own.is_empty() { self.measured.iter().map(|(_, ratio)| *ratio).collect() } else { own }
    }
}
