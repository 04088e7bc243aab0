//! How long a trial may take.

use super::View;
use crate::record::{Finished, PlannedTrial};

/// A run slower than this many times the best is not worth its end: the limit of a trial.
const SLOWEST: f64 = 2.5;

/// A run may take this many times what is expected of it, and as many seconds more, while none like it has passed.
const UNSEEN: f64 = 10.0;
const UNSEEN_MORE_S: f64 = 30.0;

impl<R: Finished> View<'_, R> {
    /// Seconds after which a trial is ended: at the latest when the final run has to start, and earlier when it is hopeless.
    /// While nothing has passed it may take half of the time left: another one deserves a try.
    pub fn limit_s(&self, plan: &PlannedTrial) -> f64 {
        let share = if self.rows.iter().any(|row| row.passed()) { 1.0 } else { 0.5 };
        (share * self.left_s).min(hopeless_s(self.rows, plan)).max(1.0)
    }
}

/// Seconds after which a trial is not worth its end, by the quickest of its extent among `rows` and by what is expected of it.
pub(crate) fn hopeless_s<R: Finished>(rows: &[R], plan: &PlannedTrial) -> f64 {
    let passed = rows.iter().filter(|row| row.passed() && row.extent() == plan.extent);
    let quickest = passed.map(|row| row.wall_s()).reduce(f64::min);
    let unseen_s = UNSEEN * plan.expected_s + UNSEEN_MORE_S;
    quickest.map_or(unseen_s, |s| SLOWEST * s + 1.0).max(SLOWEST * plan.expected_s)
}
