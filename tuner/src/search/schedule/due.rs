//! The next trial of a session with its time limit: the search, the final run, the rounds after it.

use std::ops::RangeInclusive;

use objectives::real::Extent;

use super::View;
use super::limits::{hopeless_s, was_slow};
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

impl Due {
    /// The same when it starts so many seconds after it was planned, with `left_s` seconds left then: a final run is ended at the same time where
    /// that is the deadline, and has the same part of the time left where others may follow.
    #[must_use]
    pub(crate) fn after_s(self, seconds: f64, left_s: f64) -> Self {
        let part = if self.plan.strategy == Identity::FINAL { (self.limit_s / left_s).min(1.0) } else { 0.0 };
        Self { limit_s: self.limit_s - part * seconds, ..self }
    }
}

/// Failures in a row after which something is wrong with the machine, not with a candidate.
pub const FAILURES_TO_GIVE_UP: usize = 8;

/// Whether the latest trials after the `earlier` ones all failed: what failed before a session was resumed may be mended. An early end is no
/// sign of that where another one has passed: a candidate can be slow.
pub fn nothing_works<R: Finished>(rows: &[R], earlier: usize) -> bool {
    let some_passed = rows.iter().any(Finished::passed);
    let is_no_sign = |row: &R| row.passed() || (some_passed && was_slow(row));
    let rows = rows.iter().skip(earlier);
    rows.rev().take_while(|row| !is_no_sign(row)).count() >= FAILURES_TO_GIVE_UP
}

impl<R: Finished> View<'_, R> {
    /// What is due: a trial of the search as long as the time of the final run is kept, then the final run, of an order among
    /// `final_n`, then what follows it; `None` at the end. [`View::left_s`] is all of the time left.
    pub fn due(&self, final_n: RangeInclusive<usize>) -> Option<Due> {
        let search = Self { left_s: self.left_s - self.final_reserve_s(), ..*self };
        let is_searching = self.rows.iter().all(|row| row.strategy() != Identity::FINAL)
            && !nothing_works(self.rows, self.setup.earlier_rows);
        if let Some(plan) = is_searching.then(|| search.next()).flatten() {
            let limit_s = search.limit_s(&plan);
            return Some(Due { plan, limit_s });
        }
        let after = Self { left_s: self.left_s - CLOSING_S, ..*self };
        after.final_due(final_n).or_else(|| {
            let plan = after.after_final()?;
            let limit_s = hopeless_s(after.rows, &plan).min(after.left_s);
            Some(Due { plan, limit_s })
        })
    }

    /// The final run `plan` as it is due now, of an order among `final_n`; `None` where it does not fit any more. What it was chosen by may have
    /// taken seconds.
    pub(crate) fn final_now(&self, plan: PlannedTrial, final_n: RangeInclusive<usize>) -> Option<Due> {
        Self { left_s: self.left_s - CLOSING_S, ..*self }.final_of(plan, final_n)
    }

    /// The final run, if it is still to be done and fits: the best configuration at the largest N that does.
    fn final_due(&self, final_n: RangeInclusive<usize>) -> Option<Due> {
        self.final_of(self.final_plan()?, final_n)
    }

    fn final_of(&self, mut plan: PlannedTrial, final_n: RangeInclusive<usize>) -> Option<Due> {
        let n = self.setup.domain.spec().n;
        plan.candidate.hpl.n = n;
        // A larger N may have had too little memory, or what else grows with it; where none has ended, it takes longer still.
        let larger_failed = self.rows.iter().any(|row| row.strategy() == Identity::FINAL && row.candidate().hpl.n > n);
        let none_ended = !self.rows.is_empty() && self.rows.iter().all(|row| !row.passed());
        let largest =
            if larger_failed || none_ended { n.clamp(*final_n.start(), *final_n.end()) } else { *final_n.end() };
        plan.candidate.hpl.n = self.final_order(&plan.candidate, *final_n.start()..=largest, self.left_s)?;
        plan.expected_s = self.cost.of(&plan.candidate, Extent::Whole);
        // One that hangs leaves time for another, where two fit.
        let twice = 2.0 * self.cost.at_most(&plan.candidate, Extent::Whole) <= self.left_s && self.comes_and_goes();
        let limit_s = if twice { self.left_s / 2.0 } else { self.left_s + CLOSING_S + GRACE_S };
        Some(Due { plan, limit_s })
    }
}

#[cfg(test)]
mod tests {
    use space::dims::Point;
    use space::domain::{HplDomain, Limits, default_candidate};

    use super::super::Setup;
    use super::super::tests::{look, predictor, session, spec};
    use super::*;
    use crate::record::arbitrary::row_of;
    use crate::record::{Objective, Outcome, Row};
    use crate::search::cost::model_s;
    use crate::search::history::{History, Trial, TrialResult};
    use crate::search::model_prior;
    use crate::search::strategy::{Ctx, Proposal, Strategy};

    /// What is due after the rows of a search, final runs that failed at these N and `more`.
    fn due(failed: &[usize], more: &[Row]) -> Option<PlannedTrial> {
        due_after(failed, more, None)
    }

    /// The same; with trials that were interrupted where the session was resumed.
    fn due_after(failed: &[usize], more: &[Row], resumed: Option<&[PlannedTrial]>) -> Option<PlannedTrial> {
        let done = session(|c| Some(20.0 + if c.hpl.nb == 128 { 0.0 } else { 1.0 }));
        let search = done.iter().filter(|(plan, _)| plan.strategy != Identity::FINAL);
        let mut rows: Vec<Row> = search.map(|(_, row)| row.clone()).collect();
        let n = rows[0].n;
        let final_run = done.last().unwrap().1.clone();
        for &larger in failed {
            let (trial, outcome) = (rows.len() as u64, Outcome::Crashed);
            rows.push(Row { trial, passed: false, outcome, rate_gflops: None, n: n + larger, ..final_run.clone() });
        }
        rows.extend_from_slice(more);
        let earlier_rows = if resumed.is_some() { rows.len() } else { 0 };
        look(&rows, 1e5, |view| {
            let setup = Setup { earlier_rows, ..view.setup };
            View { setup, interrupted: resumed.unwrap_or_default(), ..*view }.due(n..=2 * n).map(|due| due.plan)
        })
    }

    #[test]
    fn a_final_run_that_failed_is_tried_at_the_order_of_the_search_and_then_of_the_second_best() {
        let second = due(&[512], &[]).unwrap();
        let third = due(&[512, 0], &[]).unwrap();
        let n = look(&[], 0.0, |view| view.setup.domain.spec().n);
        assert_eq!(
            [&second, &third].map(|plan| (plan.strategy.as_str(), plan.candidate.hpl.n)),
            [(Identity::FINAL, n); 2]
        );
        assert_ne!(second.candidate, third.candidate);
        assert_eq!(due(&[512, 0, 0], &[]), None);
    }

    /// The time of the fastest was kept, though the best by another objective takes longer.
    #[test]
    fn time_is_kept_for_the_final_run_of_the_best_by_the_objective() {
        let run = |nb: usize, times: f64, watts: f64| {
            let mut candidate = default_candidate(&spec());
            candidate.hpl.nb = nb;
            let (rate_gflops, run_power_w) = (Some(20.0 / times), Some(watts));
            Row { rate_gflops, run_power_w, wall_s: 2.0 * times, ..row_of(nb as u64, &candidate) }
        };
        let rows = [run(128, 1.0, 200.0), run(192, 2.0, 50.0)];
        let of = |objective: Objective| {
            look(&rows, 0.0, |view| View { setup: Setup { objective, ..view.setup }, ..*view }.final_run_s())
        };
        let within = Objective::GflopsWithin { power_limit_w: 100 };
        let kept_s = [Objective::Gflops, Objective::GflopsPerWatt, within].map(of);
        assert!(kept_s[1] > 1.9 * kept_s[0] && kept_s[2] == kept_s[1], "{kept_s:?}");
    }

    /// What the search says of its choice takes its time between plan and start.
    #[test]
    fn a_final_run_that_starts_late_ends_at_the_deadline() {
        let done = session(|_| Some(20.0));
        let rows: Vec<Row> = done.iter().map(|(_, row)| row.clone()).collect();
        let limits = |count: usize, left_s: f64| {
            let due = look(&rows[..count], left_s, |view| view.due(1000..=1000)).unwrap();
            (due.plan.strategy.clone(), [due.clone().after_s(0.0, left_s).limit_s, due.after_s(0.5, left_s).limit_s])
        };
        let (search, [at_once, late]) = limits(3, 1e5);
        assert!(search != Identity::FINAL && at_once == late, "{search}");
        let (choice, [at_once, late]) = limits(rows.len() - 1, 2.0);
        assert_eq!(choice, Identity::FINAL);
        assert!((at_once - 2.0 - GRACE_S).abs() < 1e-9 && (at_once - late - 0.5).abs() < 1e-9, "{at_once} {late}");
        // Another one may follow.
        let half = |due: Due| Due { limit_s: 10.0, ..due }.after_s(0.5, 20.0).limit_s;
        let due = look(&rows[..rows.len() - 1], 2.0, |view| view.due(1000..=1000)).unwrap();
        assert!((half(due) - 9.75).abs() < 1e-9);
    }

    #[test]
    fn a_final_run_that_was_chosen_for_long_has_an_order_that_still_fits() {
        let done = session(|_| Some(20.0));
        let rows: Vec<Row> = done[..done.len() - 1].iter().map(|(_, row)| row.clone()).collect();
        let plan = look(&rows, 5.0, |view| view.due(1000..=4000)).unwrap().plan;
        let order = |left_s: f64| {
            let now = look(&rows, left_s, |view| view.final_now(plan.clone(), 1000..=4000));
            now.map(|due| due.plan.candidate.hpl.n)
        };
        assert_eq!((plan.candidate.hpl.n, order(5.0)), (4000, Some(4000)));
        assert!(order(0.9).is_some_and(|n| (1000..4000).contains(&n)) && order(0.1).is_none());
    }

    /// Where half of the budget is enough for it: the time of the rounds is not kept then, nor that of a second final run.
    #[test]
    fn the_final_run_has_the_n_that_the_user_has_chosen() {
        let windows = |extent: Extent| {
            move |row: Row| Row { extent, rate_gflops: None, estimated_rate_gflops: row.rate_gflops, ..row }
        };
        let done = session(|c| Some(20.0 + if c.hpl.nb == 128 { 0.0 } else { 1.0 }));
        let search = done.iter().filter(|(plan, _)| plan.strategy != Identity::FINAL);
        let mut rows: Vec<Row> = search.map(|(_, row)| row.clone()).map(windows(Extent::Windows)).collect();
        // One that has passed fails, too.
        let failed = Row { passed: false, outcome: Outcome::Crashed, estimated_rate_gflops: None, ..rows[0].clone() };
        rows.push(Row { trial: rows.len() as u64, ..failed });
        let n_of = |n_is_chosen: bool| {
            look(&rows, 0.0, |view| {
                let whole_s = view.cost.at_most(view.setup.baseline, Extent::Whole);
                let setup = Setup { extent: Extent::Windows, n_is_chosen, ..view.setup };
                let n = view.setup.domain.spec().n;
                let view = View { setup, total_s: 2.5 * whole_s, left_s: 1.3 * whole_s, ..*view };
                let planned = view.final_due(128..=n).unwrap().plan.candidate.hpl.n;
                (view.final_runs(), view.final_reserve_s() >= whole_s / 1.5, planned == n)
            })
        };
        assert_eq!((n_of(true), n_of(false)), ((1, true, true), (2, true, false)));
    }

    /// Time for a second one was kept, and there was none.
    #[test]
    fn where_a_candidate_comes_and_goes_and_one_final_run_fits_it_is_made_and_has_all_of_the_time() {
        let done = session(|_| Some(20.0));
        let mut rows: Vec<Row> = done[..done.len() - 1].iter().map(|(_, row)| row.clone()).collect();
        let failed = Row { passed: false, outcome: Outcome::Crashed, rate_gflops: None, ..rows[1].clone() };
        rows.push(Row { trial: rows.len() as u64, ..failed });
        let part = |runs: f64, n_is_chosen: bool| {
            look(&rows, 0.0, |view| {
                let n = view.setup.domain.spec().n;
                let plan = view.final_plan().unwrap();
                let left_s = runs * view.cost.at_most(&plan.candidate, Extent::Whole);
                let setup = Setup { n_is_chosen, ..view.setup };
                let due = View { setup, left_s, ..*view }.final_of(plan, n..=n).unwrap();
                assert_eq!((view.final_runs(), due.plan.candidate.hpl.n), (2, n));
                due.limit_s / left_s
            })
        };
        assert!(part(1.3, false) > 1.0 && part(1.3, true) > 1.0);
        assert!((part(2.1, false) - 0.5).abs() < 1e-9 && (part(2.1, true) - 0.5).abs() < 1e-9);
    }

    /// Memory, a node or a program may have been mended between the two sittings.
    #[test]
    fn final_runs_that_failed_before_a_resume_are_made_again() {
        let first = due(&[512], &[]).unwrap();
        let again = due_after(&[512, 0, 0], &[], Some(&[])).unwrap();
        assert_eq!((again.strategy.as_str(), &again.candidate), (Identity::FINAL, &first.candidate));
    }

    /// It was the best again that was run.
    #[test]
    fn a_final_run_that_was_interrupted_after_others_had_failed_is_made_on_resume() {
        let second = PlannedTrial { trial: Some(99), ..due(&[512, 0], &[]).unwrap() };
        let on_resume = due_after(&[512, 0], &[], Some(std::slice::from_ref(&second))).unwrap();
        assert_eq!((on_resume.trial, on_resume.candidate), (second.trial, second.candidate));
    }

    /// They were taken for broken, and the session ended with most of its time.
    #[test]
    fn after_runs_that_were_all_ended_at_their_limits_a_final_run_is_tried() {
        let usual = session(|_| Some(20.0))[0].1.clone();
        let due = |outcome: Outcome| {
            let failed = |trial| Row { trial, passed: false, outcome, rate_gflops: None, ..usual.clone() };
            look(&[0, 1].map(failed), 0.0, |view| {
                let n = view.setup.domain.spec().n;
                let left_s = 1.5 * view.cost.at_most(view.setup.baseline, Extent::Whole) + CLOSING_S;
                View { left_s, ..*view }.due(n..=2 * n).map(|due| (due.plan.strategy, due.plan.candidate.hpl.n == n))
            })
        };
        assert_eq!(due(Outcome::TimedOut), Some((Identity::FINAL.to_owned(), true)));
        assert_eq!(due(Outcome::Crashed), None);
    }

    /// What failed before a session was resumed may be mended: the default is tried again, and then the search goes on.
    #[test]
    fn failures_of_an_earlier_sitting_do_not_end_this_one() {
        let failed = |trial: usize| Row {
            trial: trial as u64,
            passed: false,
            outcome: Outcome::Launch,
            rate_gflops: None,
            ..session(|_| Some(20.0))[0].1.clone()
        };
        let rows: Vec<Row> = (0..FAILURES_TO_GIVE_UP).map(failed).collect();
        let strategy = |earlier_rows: usize| {
            look(&rows, 1e5, |view| {
                let view = View { setup: Setup { earlier_rows, ..view.setup }, ..*view };
                view.due(1000..=1000).map(|due| due.plan.strategy)
            })
        };
        assert_eq!((strategy(0), strategy(rows.len()).as_deref()), (None, Some(Identity::BASELINE)));
    }

    #[test]
    fn an_interrupted_trial_that_does_not_fit_any_more_does_not_end_the_search() {
        let rows: Vec<Row> = session(|_| Some(20.0)).into_iter().map(|(_, row)| row).take(3).collect();
        let next_s = |expected_s: f64| {
            look(&rows, 30.0, |view| {
                let plan = PlannedTrial { expected_s, ..view.next().unwrap() };
                View { interrupted: std::slice::from_ref(&plan), ..*view }.next().map(|next| next.expected_s)
            })
        };
        assert_eq!(next_s(0.7), Some(0.7));
        assert!(next_s(1e3).is_some_and(|other_s| other_s < 30.0));
    }

    /// Proposes the first of two points, and where that takes longer than the time left by the model, the other.
    struct FirstThatFits([Point; 2]);

    impl Strategy for FirstThatFits {
        fn name(&self) -> &'static str {
            "first that fits"
        }

        fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
            let [first, other] = &self.0;
            let point = if ctx.prior.cost_s(first) <= ctx.budget_left_s { first } else { other }.clone();
            Some(Proposal { point, repeat_of: None, reference: None, why: String::new(), predicted: None })
        }
    }

    #[test]
    fn a_proposal_whose_own_runs_took_longer_than_the_time_left_does_not_end_the_search() {
        let [dear, cheap] = look(&[], 0.0, |view| {
            let points = view.setup.domain.points().iter();
            let by_cost = |a: &&Point, b: &&Point| view.prior.cost_s(a).total_cmp(&view.prior.cost_s(b));
            [points.clone().max_by(by_cost), points.min_by(by_cost)].map(|point| point.unwrap().clone())
        });
        let mut rows: Vec<Row> = session(|_| Some(20.0)).into_iter().map(|(_, row)| row).take(3).collect();
        let [slow, quick] = look(&[], 0.0, |view| [&dear, &cheap].map(|point| view.setup.domain.candidate(point)));
        rows.push(Row { wall_s: 2.0 * model_s(&predictor(), &slow, Extent::Whole), ..row_of(3, &slow) });
        let next = look(&rows, 0.0, |view| {
            let left_s = view.rounds_reserve_s() + 1.5 * view.prior.cost_s(&dear);
            let strategy = FirstThatFits([dear.clone(), cheap.clone()]);
            View { setup: Setup { strategy: &strategy, ..view.setup }, left_s, ..*view }.next()
        });
        assert_eq!(next.map(|plan| plan.candidate), Some(quick));
    }

    /// There was none.
    #[test]
    fn where_the_usual_one_is_left_out_the_design_is_about_the_nearest_one() {
        let limits = Limits::parse("[nb]\nvalues = [192, 240, 256]\n").unwrap();
        let (predictor, domain) = (predictor(), HplDomain::within(&spec(), &limits).unwrap());
        let prior = model_prior::table(&domain, &predictor, Extent::Whole);
        let usual = Row { strategy: Identity::BASELINE.to_owned(), ..row_of(0, &default_candidate(&spec())) };
        let history = History::from_rows(std::slice::from_ref(&usual), &domain, Objective::Gflops);
        let next = look(std::slice::from_ref(&usual), 50.0, |view| {
            let setup = Setup { domain: &domain, designed: true, ..view.setup };
            View { setup, prior: &prior, history: &history, ..*view }.next().unwrap()
        });
        assert_eq!((next.strategy.as_str(), next.candidate.hpl.nb), (Identity::DESIGN, 192));
    }

    #[test]
    fn a_passed_run_whose_power_was_not_read_keeps_no_time_for_a_second_final_run() {
        let rows: Vec<Row> = session(|_| Some(20.0)).into_iter().map(|(_, row)| row).take(3).collect();
        let runs = |outcome: TrialResult| {
            look(&rows, 0.0, |view| {
                let mut history = view.history.clone();
                history.trials.push(Trial { outcome, ..history.trials[0].clone() });
                View { history: &history, ..*view }.final_runs()
            })
        };
        assert_eq!([TrialResult::Unread, TrialResult::Failed].map(runs), [1, 2]);
    }

    /// It is the machine that fails then, and what has passed may still be verified.
    #[test]
    fn after_many_failures_in_a_row_the_final_run_is_due() {
        let of = |outcome: Outcome| {
            let failed = |trial: u64| Row {
                trial: 900 + trial,
                passed: false,
                outcome,
                rate_gflops: None,
                ..session(|_| Some(20.0))[0].1.clone()
            };
            due(&[], &(0..FAILURES_TO_GIVE_UP as u64).map(failed).collect::<Vec<_>>()).unwrap().strategy
        };
        assert_eq!(of(Outcome::Crashed), Identity::FINAL);
        assert_ne!(of(Outcome::TimedOut), Identity::FINAL);
    }

    /// Nothing shows that these are slow candidates.
    #[test]
    fn where_nothing_has_passed_runs_that_were_ended_at_their_limit_are_failures() {
        let passed = session(|_| Some(20.0))[0].1.clone();
        let ended = Row { passed: false, outcome: Outcome::TimedOut, rate_gflops: None, ..passed.clone() };
        let mut rows = vec![ended; FAILURES_TO_GIVE_UP];
        assert!(nothing_works(&rows, 0) && !nothing_works(&rows[1..], 0));
        rows.insert(0, passed);
        assert!(!nothing_works(&rows, 0));
    }
}
