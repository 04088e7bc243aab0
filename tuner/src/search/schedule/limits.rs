//! How long a trial may take.

use objectives::real::Extent;

use super::View;
use crate::record::{Finished, Outcome, PlannedTrial};
use crate::search::history::NO_CHANCE;

/// A run slower than this many times the best is not worth its end: the limit of a trial.
const SLOWEST: f64 = 2.5;

/// A run may take this many times what is expected of it, and as many seconds more, while none like it has passed.
const UNSEEN: f64 = 10.0;
const UNSEEN_MORE_S: f64 = 30.0;

/// Times that this limit doubles at most, and that of later runs where many were ended in a row.
const MOST_UNSEEN: usize = 10;
const MOST_IN_A_ROW: usize = 5;

impl<R: Finished> View<'_, R> {
    /// Seconds after which a trial is ended: at the latest when the final run has to start, and earlier when it is hopeless.
    /// While nothing has passed it may take half of the time left, as another one deserves a try, but what it hardly exceeds in any case.
    pub fn limit_s(&self, plan: &PlannedTrial) -> f64 {
        let most_s = if self.rows.iter().any(|row| row.passed()) {
            self.left_s
        } else {
            let hardly_s = self.cost.at_most(&plan.candidate, plan.extent);
            (0.5 * self.left_s).max(hardly_s).min(self.left_s)
        };
        most_s.min(hopeless_s(self.rows, plan)).max(1.0)
    }
}

/// Seconds after which a trial is not worth its end, by the quickest of its extent among `rows` and by what is expected of it. While none of
/// them has passed, each that was ended at its limit doubles it: what is expected may be far too little, but not of a whole run whose
/// windows have passed. Each time that the latest three more have all been ended as too slow it doubles, too: perhaps it is the machine that
/// is slower.
pub(crate) fn hopeless_s<R: Finished>(rows: &[R], plan: &PlannedTrial) -> f64 {
    let alike = || rows.iter().filter(|row| row.extent() == plan.extent);
    let quickest = alike().filter(|row| row.passed()).map(|row| row.wall_s()).reduce(f64::min);
    let has_windows =
        || plan.extent == Extent::Whole && rows.iter().any(|row| row.passed() && row.is_of(&plan.candidate));
    let expected_s = SLOWEST * plan.expected_s;
    match quickest {
        Some(s) => {
            let in_a_row = alike().rev().take_while(|row| was_slow(*row)).count();
            expected_s.max(SLOWEST * s + 1.0) * doubled((in_a_row / NO_CHANCE).min(MOST_IN_A_ROW))
        }
        None if has_windows() => expected_s + 1.0,
        None => {
            let ended = alike().filter(|row| row.outcome() == Outcome::TimedOut).count();
            (UNSEEN * plan.expected_s + UNSEEN_MORE_S) * doubled(ended.min(MOST_UNSEEN))
        }
    }
}

/// 1, doubled so many times.
fn doubled(times: usize) -> f64 {
    f64::from(1_u32 << times)
}

/// Whether a trial was ended as it took too long.
pub(super) fn was_slow<R: Finished>(row: &R) -> bool {
    matches!(row.outcome(), Outcome::TimedOut | Outcome::Beaten)
}

#[cfg(test)]
mod tests {
    use space::domain::default_candidate;

    use super::super::tests::{look, spec};
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row_of;

    /// Rows of so many runs of the default that did not pass.
    fn ended(count: usize, outcome: Outcome) -> Vec<Row> {
        let usual = default_candidate(&spec());
        let row = |trial: usize| Row { passed: false, outcome, rate_gflops: None, ..row_of(trial as u64, &usual) };
        (0..count).map(row).collect()
    }

    /// On a machine whose speed is unknown the default was ended at the same limit until the budget was used.
    #[test]
    fn while_nothing_passes_each_run_that_was_ended_doubles_the_limit() {
        let plan = look(&[], 1e5, |view| view.next()).unwrap();
        let limit_s = |count: usize| hopeless_s(&ended(count, Outcome::TimedOut), &plan);
        let first_s = UNSEEN * plan.expected_s + UNSEEN_MORE_S;
        assert_eq!([0, 1, 3, 10, 11].map(limit_s), [1.0, 2.0, 8.0, 1024.0, 1024.0].map(|times| times * first_s));
        assert_eq!(hopeless_s(&ended(3, Outcome::Crashed), &plan), first_s);
    }

    /// Ten times what its windows say may be the time of the rounds.
    #[test]
    fn the_first_whole_run_of_a_candidate_whose_windows_passed_has_no_more_time_than_later_ones() {
        let plan = PlannedTrial { expected_s: 100.0, ..look(&[], 1e5, |view| view.next()).unwrap() };
        let seen = row_of(0, &plan.candidate);
        let windows = Row { extent: Extent::Windows, rate_gflops: None, estimated_rate_gflops: Some(20.0), ..seen };
        let other = Row { nb: 192, ..windows.clone() };
        assert_eq!([windows, other].map(|row| hopeless_s(&[row], &plan)), [251.0, 1030.0]);
    }

    /// A machine that had become slower than the limit allows ended all that followed.
    #[test]
    fn runs_that_are_ended_one_after_the_other_double_the_limit_until_one_passes() {
        let plan = PlannedTrial { expected_s: 0.1, ..look(&[], 1e5, |view| view.next()).unwrap() };
        let passed = row_of(0, &plan.candidate);
        let times = |rows: &[Row]| hopeless_s(rows, &plan) / (SLOWEST * passed.wall_s + 1.0);
        let after = |count: usize| [vec![passed.clone()], ended(count, Outcome::TimedOut)].concat();
        assert_eq!([0, 2, 3, 5, 6, 15, 40].map(|count| times(&after(count))), [1.0, 1.0, 2.0, 2.0, 4.0, 32.0, 32.0]);
        let beaten = [after(1), ended(2, Outcome::Beaten)].concat();
        let crashed = [after(2), ended(1, Outcome::Crashed), ended(1, Outcome::TimedOut)].concat();
        let ended_before = [after(6), vec![passed.clone()]].concat();
        assert_eq!([beaten, crashed, ended_before].map(|rows| times(&rows)), [2.0, 1.0, 1.0]);
    }

    /// Where it was expected to take more than half of the time left, it was ended before its end, and nothing was run to an end.
    #[test]
    fn the_first_run_may_take_what_is_expected_of_it() {
        let limit_s = |part: f64| {
            look(&[], 0.0, |view| {
                let hardly_s = view.cost.at_most(view.setup.baseline, Extent::Whole);
                let view = View { left_s: part * hardly_s, ..*view };
                view.limit_s(&view.next().unwrap()) / hardly_s
            })
        };
        for (part, expected) in [(0.9, 0.9), (1.5, 1.0), (4.0, 2.0)] {
            assert!((limit_s(part) - expected).abs() < 1e-9, "{part}: {}", limit_s(part));
        }
    }
}
