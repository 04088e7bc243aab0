//! The wall-clock budget: how much is left, what still fits, what must be kept for the final run.

use std::time::Instant;

/// Smallest budget that allows a calibration, a baseline, a few trials and a verified final run, in seconds.
pub const SMALLEST_BUDGET_S: f64 = 30.0;

/// Seconds at the end in which the record is closed and the report written.
pub const CLOSING_S: f64 = 0.3;

/// Shares of the budget that calibration and the survey of the nodes may take.
const CALIBRATION_SHARE: f64 = 0.1;
const SURVEY_SHARE: f64 = 0.05;

/// The budget of which these are shares, as a multiple of what is left, where that is less than all of it: nodes may be lost late.
const OF_WHAT_IS_LEFT: f64 = 2.0;

/// Longest calibration in seconds: what `hpl-tune calibrate` takes as its `--budget` at most.
pub const LONGEST_CALIBRATION_S: f64 = 60.0;

/// A running budget. Time that passed before a kill counts, downtime does not.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    started: Instant,
    spent_before_s: f64,
    total_s: f64,
    /// Seconds of the session's budget beyond that, as its job ends before.
    after_job_s: f64,
    /// Seconds by which the clock of simulated runs is ahead of the real one.
    ahead_s: f64,
}

impl Budget {
    /// A budget of `total_s` seconds of which `spent_before_s` were spent before `started`.
    pub fn new(started: Instant, total_s: f64, spent_before_s: f64) -> Self {
        Self { started, spent_before_s, total_s, after_job_s: 0.0, ahead_s: 0.0 }
    }

    /// This budget as part of the `whole_s` seconds of a session, whose job ends before they are used.
    #[must_use]
    pub fn of_session(self, whole_s: f64) -> Self {
        Self { after_job_s: (whole_s - self.total_s).max(0.0), ..self }
    }

    /// Counts seconds that did not pass: those of a simulated run, less what simulating it took.
    pub fn pass(&mut self, seconds: f64) {
        self.ahead_s += seconds;
    }

    /// The whole budget in seconds.
    pub fn total_s(&self) -> f64 {
        self.total_s
    }

    /// Seconds spent, over all sittings of the session.
    pub fn spent_s(&self) -> f64 {
        self.spent_before_s + self.started.elapsed().as_secs_f64() + self.ahead_s
    }

    /// Seconds left; negative once the budget is overdrawn.
    pub fn left_s(&self) -> f64 {
        self.total_s - self.spent_s()
    }

    /// Seconds left of the budget of the session, also those after the end of its job: what the record has, as another job may use them.
    pub fn left_of_session_s(&self) -> f64 {
        self.left_s() + self.after_job_s
    }

    /// The budget of which calibration and survey take shares, in seconds: all of it, or where more than half is spent twice what is left, as
    /// in a session that goes on on other nodes; then no less than the smallest budget.
    pub fn shared_s(&self) -> f64 {
        self.total_s.min((OF_WHAT_IS_LEFT * self.left_s()).max(SMALLEST_BUDGET_S))
    }

    /// Seconds that a calibration may take: at most a minute, and a tenth of the budget that is shared.
    pub fn calibration_s(&self) -> f64 {
        (self.shared_s() * CALIBRATION_SHARE).min(LONGEST_CALIBRATION_S)
    }

    /// Seconds that a survey of the nodes may take: at most a twentieth of the budget that is shared.
    pub fn survey_s(&self) -> f64 {
        self.shared_s() * SURVEY_SHARE
    }

    /// Wall-clock seconds that one run at the target N may take: 1/60 of the budget, so that six pairs take less than a quarter
    /// of it.
    pub fn run_s(&self) -> f64 {
        self.total_s / 60.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_before_a_kill_counts_and_shares_are_bounded() {
        let budget = Budget::new(Instant::now(), 120.0, 50.0);
        assert!((budget.left_s() - 70.0).abs() < 0.5);
        assert_eq!(budget.calibration_s(), 12.0);
        assert_eq!(Budget::new(Instant::now(), 36000.0, 0.0).calibration_s(), 60.0);
        assert_eq!(budget.run_s(), 2.0);
        let mut simulated = budget;
        simulated.pass(30.0);
        assert!((simulated.left_s() - 40.0).abs() < 0.5);
    }

    /// Calibration and survey on other nodes took their shares of all that there had been, and no time was left for trials.
    #[test]
    fn what_is_measured_late_takes_shares_of_what_is_left() {
        let left = |left_s: f64| Budget::new(Instant::now(), 14400.0, 14400.0 - left_s);
        let shares = |budget: Budget| [budget.calibration_s(), budget.survey_s()];
        assert_eq!(shares(left(14000.0)), [60.0, 720.0], "as of a new session");
        for (found, expected) in shares(left(60.0)).into_iter().zip([12.0, 6.0]) {
            assert!((expected - 0.1..=expected).contains(&found), "{found} of {expected}");
        }
        assert_eq!(shares(left(5.0)), [3.0, 1.5], "as of the smallest budget");
    }

    #[test]
    fn what_is_left_after_the_end_of_a_job_is_not_spent() {
        let budget = Budget::new(Instant::now(), 150.0, 50.0).of_session(400.0);
        assert!((budget.left_s() - 100.0).abs() < 0.5 && budget.total_s() == 150.0);
        assert!((400.0 - budget.left_of_session_s() - budget.spent_s()).abs() < 0.5);
        let all = Budget::new(Instant::now(), 400.0, 50.0).of_session(400.0);
        assert!((all.left_of_session_s() - all.left_s()).abs() < 0.5);
    }
}
