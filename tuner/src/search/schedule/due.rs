//! The next trial of a session with its time limit: the search, the final run, the rounds after it.

use std::ops::RangeInclusive;

use objectives::real::Extent;

use super::View;
use crate::record::{Finished, Identity, PlannedTrial};
use crate::search::budget::CLOSING_S;

/// Seconds by which the final run may pass the deadline before it is ended: with a second to end it and the closing of
/// the session less than three.
const GRACE_S: f64 = 1.0;

/// A trial, and when it is ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// The trial.
    pub plan: PlannedTrial,
    /// Seconds after which it is ended.
    pub limit_s: f64,
}

impl<R: Finished> View<'_, R> {
    /// What is due: a trial of the search as long as the time of the final run is kept, then the final run, of an order among
    /// `final_n`, then what follows it; `None` at the end. [`View::left_s`] is all of the time left.
    pub fn due(&self, final_n: RangeInclusive<usize>) -> Option<Due> {
        let search = Self { left_s: self.left_s - self.final_reserve_s(), ..*self };
        let is_searching = self.rows.iter().all(|row| row.strategy() != Identity::FINAL);
        if let Some(plan) = is_searching.then(|| search.next()).flatten() {
            let limit_s = search.limit_s(&plan);
            return Some(Due { plan, limit_s });
        }
        let after = Self { left_s: self.left_s - CLOSING_S, ..*self };
        after.final_due(final_n).or_else(|| {
            let plan = after.after_final()?;
            let limit_s = after.hopeless_s(&plan).min(after.left_s);
            Some(Due { plan, limit_s })
        })
    }

    /// The final run, if it is still to be done and fits: the best configuration at the largest N that does.
    fn final_due(&self, final_n: RangeInclusive<usize>) -> Option<Due> {
        let mut plan = self.final_plan()?;
        plan.candidate.hpl.n = self.final_order(&plan.candidate, final_n, self.left_s)?;
        plan.expected_s = self.cost.of(&plan.candidate, Extent::Whole);
        let limit_s = match self.final_runs() {
            1 => self.left_s + CLOSING_S + GRACE_S,
            runs => self.left_s / f64::from(runs),
        };
        Some(Due { plan, limit_s })
    }
}
