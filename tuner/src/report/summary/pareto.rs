//! The candidates that no other one beats both in speed and in efficiency.

use serde::Serialize;
use space::Candidate;

use super::score::Score;

/// A candidate of the front.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParetoPoint {
    /// What ran.
    pub candidate: Candidate,
    /// Number of its passed runs.
    pub runs: usize,
    /// Number of those whose GFLOPS/W are known.
    pub runs_read: usize,
    /// Median of their rates in GFLOP/s.
    pub rate_gflops: f64,
    /// Median of their GFLOPS/W over the core phase.
    pub gflops_per_w: f64,
}

/// Those of `scores` whose efficiency was read and that no other one beats in one of rate and efficiency without being worse in the
/// other; the fastest first. Of equals the first.
pub(super) fn front<'a>(scores: impl Iterator<Item = &'a Score>) -> Vec<ParetoPoint> {
    let point = |score: &Score| {
        let Score { candidate, runs, runs_read, rate_gflops, gflops_per_w, .. } = score;
        Some(ParetoPoint {
            candidate: candidate.clone(),
            runs: *runs,
            runs_read: *runs_read,
            rate_gflops: *rate_gflops,
            gflops_per_w: (*gflops_per_w)?,
        })
    };
    let mut points: Vec<ParetoPoint> = scores.filter_map(point).collect();
    let order = |a: &ParetoPoint, b: &ParetoPoint| {
        b.rate_gflops.total_cmp(&a.rate_gflops).then(b.gflops_per_w.total_cmp(&a.gflops_per_w))
    };
    points.sort_by(order);
    let mut highest = 0.0;
    points.retain(|point| {
        let more = point.gflops_per_w > highest;
        if more {
            highest = point.gflops_per_w;
        }
        more
    });
    points
}
