//! A trial before it starts.

use objectives::real::Extent;
use space::Candidate;

use super::row::Prediction;

/// A trial that is to run next.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// The run.
    pub candidate: Candidate,
    /// How much of it.
    pub extent: Extent,
    /// What chose it, as stored.
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// The trial that it measures again.
    pub repeat_of: Option<u64>,
    /// The trial measured just before, to compare with.
    pub paired_with: Option<u64>,
    /// What is expected of it.
    pub predicted: Option<Prediction>,
    /// Expected wall-clock cost in seconds.
    pub expected_s: f64,
}
