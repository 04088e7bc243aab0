//! What a session does next, as a pure function of its record and the time left.
//!
//! Stages: the baseline; for an engine that no model was made for a design; the strategy's proposals, every third refined by
//! Nelder–Mead; repeats of the leaders; then
//! pairs of baseline and best that choose, the final verified run, and rounds of baseline, expert and best (`schedule/after.rs`) that
//! say what the choice gains. Where whole runs at the target N are dear, all but the last
//! are windows, and the leaders get a whole run each before the pairs, if that fits. Nothing but the record and the
//! clock decide, so a resumed session goes on where it stopped.

mod after;

use std::collections::HashSet;

pub use after::rounds_s;
use objectives::real::Extent;
use space::dims::Point;
use space::{Candidate, Candidates};

use crate::budget::CLOSING_S;
use crate::challenge::{self, PAIRS_TO_LOSE};
use crate::cost::CostEstimate;
use crate::history::{History, Outcome, Trial};
use crate::record::{Identity, Outcome as Ended, Row};
use crate::strategy::left::{self, Left, Next};
use crate::strategy::nelder_mead::NelderMead;
use crate::strategy::{Ctx, Prediction, Prior, Strategy, bayes, design};

/// Share of the budget that is kept for what comes after the search, and the runs that are enough for it.
const AFTER_SEARCH: (f64, usize) = (0.45, RACE_RUNS + PAIRED_RUNS);

/// Share of the budget that is kept for what comes after the race, and the runs that are enough for it.
const AFTER_RACE: (f64, usize) = (0.33, PAIRED_RUNS);

/// Repeats of the leaders that are enough to tell them apart, and runs in pairs with the baseline that are enough to choose.
const RACE_RUNS: usize = 4 * LEADERS;
const PAIRED_RUNS: usize = 2 * 4 * PAIRS_TO_LOSE;

/// Times that a baseline which does not pass is tried.
const BASELINE_TRIES: usize = 2;

/// Trials before every third proposal comes from Nelder–Mead.
const TRIALS_BEFORE_REFINING: usize = 6;

/// Leaders that take part in the race.
const LEADERS: usize = 3;

/// Leaders that get a whole run where the search goes by windows, and the share of the budget that each may take.
const PROMOTED: usize = 2;
const PROMOTION_SHARE: f64 = 0.1;

/// Share of the budget that is kept for the final run where the search goes by windows.
pub const FINAL_SHARE: f64 = 0.15;

/// What to run next.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
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

/// Seconds that are kept for the stages after the search, the final run's reserve excluded: shares of the budget, but no more
/// than what is enough of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Later {
    /// What is kept when the search ends.
    pub after_search_s: f64,
    /// What is kept when the race of the leaders ends.
    pub after_race_s: f64,
}

impl Later {
    /// Of a budget of `total_s`, by runs of `run_s`, where the runs that are not by `run_s` take `others_s`.
    pub fn new(total_s: f64, run_s: f64, others_s: f64) -> Self {
        let kept_s = |(share, runs): (f64, usize)| (share * total_s).min(runs as f64 * run_s + others_s);
        Self { after_search_s: kept_s(AFTER_SEARCH), after_race_s: kept_s(AFTER_RACE) }
    }
}

/// What the next step depends on.
pub struct View<'a> {
    /// The searched domain at the target N.
    pub domain: &'a dyn Candidates,
    /// The model's word on its points.
    pub prior: &'a dyn Prior,
    /// The strategy that explores.
    pub strategy: &'a dyn Strategy,
    /// Whether a design comes before it: the model was made for another engine.
    pub designed: bool,
    /// The record.
    pub rows: &'a [Row],
    /// The same as strategies see it.
    pub history: &'a History,
    /// The configuration that users start from.
    pub baseline: &'a Candidate,
    /// The expert's configuration, where it is another one.
    pub expert: Option<&'a Candidate>,
    /// Whether the search goes by whole runs or by windows.
    pub search_by: Extent,
    /// What runs cost, by what they really took.
    pub cost: &'a CostEstimate<'a>,
    /// Seconds of the budget left for trials, the final run's reserve excluded.
    pub left_s: f64,
    /// Seconds of the whole budget.
    pub total_s: f64,
    /// Seed of the session.
    pub seed: u64,
    /// The relative gain at which the search ends, where one was given: no more is expected to be left.
    pub until_gain: Option<f64>,
}

impl View<'_> {
    /// The next trial, `None` when nothing more fits before the final run.
    pub fn next(&self) -> Option<Plan> {
        let baselines = || self.rows.iter().filter(|row| row.strategy == Identity::BASELINE);
        if !baselines().any(|row| row.passed) && baselines().count() < BASELINE_TRIES {
            let plan = self.plan(self.baseline.clone(), Identity::BASELINE, "the usual HPL.dat, to compare with");
            return self.fits(plan.expected_s).then_some(plan);
        }
        let later = self.later();
        let next = self.until_gain.map_or(Next::Search, |gain| left::next(&self.ctx(), gain));
        // Comparisons that have begun go on, whatever their runs let expect.
        let searches = self.until_gain.is_none() || self.rows.iter().all(|row| row.strategy != Identity::CONFIRM);
        let new = match &next {
            Next::Search if searches && self.left_s > later.after_search_s => self.explore(),
            Next::Again(leader) if searches => {
                let leader = self.domain.candidate(leader);
                Some(self.again(&leader, Identity::RACE, "the leader, which may be lucky"))
            }
            _ => None,
        };
        let again =
            || if searches && self.left_s > later.after_race_s && next != Next::End { self.race() } else { None };
        // Where the search has ended, comparisons that have nobody to compare do not go on with it.
        let compare = || match next {
            Next::End if self.is_decided() => None,
            Next::End => self.confirm().filter(|plan| plan.strategy == Identity::CONFIRM),
            _ => self.confirm(),
        };
        new.or_else(again)
            .or_else(|| self.promote())
            .or_else(|| compare().filter(|plan| self.fits(plan.expected_s + self.rounds_reserve_s())))
            .filter(|plan| self.fits(plan.expected_s))
    }

    /// What is kept for the stages after the search.
    fn later(&self) -> Later {
        let whole_s = self.cost.at_most(self.baseline, Extent::Whole);
        let promotes = self.search_by == Extent::Windows && whole_s <= PROMOTION_SHARE * self.total_s;
        let promotions_s = if promotes { PROMOTED as f64 * whole_s } else { 0.0 };
        let run_s = self.cost.of(self.baseline, self.search_by);
        Later::new(self.total_s - self.lost_s(), run_s, promotions_s + self.rounds_reserve_s())
    }

    /// Whether a challenger has won enough pairs, or enough of them have lost.
    fn is_decided(&self) -> bool {
        let won = challenge::current(self.rows, self.baseline)
            .is_some_and(|now| challenge::pairs(self.rows, &now, self.baseline).len() >= PAIRS_TO_LOSE);
        won || challenge::challengers(self.rows, self.baseline).len() > LEADERS
    }

    /// What the runs so far let expect that better points gain.
    pub fn left(&self) -> Option<Left> {
        left::left(&self.ctx())
    }

    /// Seconds of runs that were ended at their limit before anything had passed: no stage has had them.
    fn lost_s(&self) -> f64 {
        let before = self.rows.iter().take_while(|row| !row.passed);
        before.filter(|row| row.outcome == Ended::TimedOut).map(|row| row.wall_s).sum()
    }

    /// Final runs that time is kept for: a second one where a candidate that passed has failed, too, until the first of
    /// them has.
    pub fn final_runs(&self) -> u32 {
        let passed = |trial: &&Trial| matches!(trial.outcome, Outcome::Rate(_));
        let trials = &self.history.trials;
        let good: HashSet<&Point> = trials.iter().filter(passed).map(|trial| &trial.point).collect();
        let comes_and_goes = trials.iter().any(|trial| !passed(&trial) && good.contains(&trial.point));
        let tried = self.rows.iter().any(|row| row.strategy == Identity::FINAL);
        if comes_and_goes && !tried { 2 } else { 1 }
    }

    /// Seconds to keep for the final runs and the closing of the session: what the fastest candidate so far hardly exceeds,
    /// where the search goes by windows at most a share of the budget.
    pub fn final_reserve_s(&self) -> f64 {
        let rate = |row: &&Row| row.figure_gflops().unwrap_or(0.0);
        let fastest = self.rows.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).filter(|row| row.passed);
        let candidate = fastest.map_or_else(|| self.baseline.clone(), Row::candidate);
        let whole_s = self.cost.at_most(&candidate, Extent::Whole);
        let kept_s = match self.search_by {
            Extent::Whole => whole_s,
            Extent::Windows => whole_s.min(FINAL_SHARE * self.total_s),
        };
        f64::from(self.final_runs()) * kept_s + CLOSING_S
    }

    /// The best candidate: who won the pairs with the baseline; before there are any, the best by posterior mean.
    fn chosen(&self) -> Option<Candidate> {
        let leader = || self.leaders(1).into_iter().next().map(|(candidate, _)| candidate);
        let passed = || self.rows.iter().find(|row| row.passed).map(Row::candidate);
        challenge::winner(self.rows, self.baseline).or_else(leader).or_else(passed)
    }

    /// The best tried candidates by posterior mean, best first.
    fn leaders(&self, count: usize) -> Vec<(Candidate, Prediction)> {
        let leaders = bayes::leaders(&self.ctx(), count).into_iter();
        leaders.map(|(point, predicted)| (self.domain.candidate(&point), predicted)).collect()
    }

    fn fits(&self, cost_s: f64) -> bool {
        cost_s <= self.left_s
    }

    fn ctx(&self) -> Ctx<'_> {
        Ctx {
            space: self.domain,
            history: self.history,
            prior: self.prior,
            budget_left_s: self.left_s,
            budget_total_s: self.total_s,
            trial: self.rows.len() as u64,
            seed: self.seed,
        }
    }

    fn plan(&self, candidate: Candidate, strategy: &str, why: &str) -> Plan {
        let expected_s = self.cost.of(&candidate, self.search_by);
        let (strategy, why) = (strategy.to_owned(), why.to_owned());
        Plan {
            candidate,
            extent: self.search_by,
            strategy,
            why,
            repeat_of: None,
            paired_with: None,
            predicted: None,
            expected_s,
        }
    }

    /// A point that was never run.
    fn explore(&self) -> Option<Plan> {
        let ctx = self.ctx();
        if self.designed
            && let Some(point) = self.domain.point(self.baseline).and_then(|usual| design::next(&ctx, &usual))
        {
            let why = "the usual one with one thing changed, whatever the model says";
            return Some(self.plan(self.domain.candidate(&point), Identity::DESIGN, why));
        }
        let tried = self.history.trials.len();
        let refine = self.strategy.name() == "bayes" && tried >= TRIALS_BEFORE_REFINING && tried.is_multiple_of(3);
        let asked: &dyn Strategy = if refine { &NelderMead } else { self.strategy };
        let proposal = asked.ask(&ctx)?;
        let mut plan = self.plan(self.domain.candidate(&proposal.point), asked.name(), &proposal.why);
        plan.repeat_of = proposal.repeat_of;
        plan.predicted = proposal.predicted;
        Some(plan)
    }

    /// A leader again: the one that could be the best by the upper end of its posterior, so that runs go where doubt is.
    fn race(&self) -> Option<Plan> {
        let upper = |p: &Prediction| p.rate_gflops.ln() + p.sd;
        let leaders = self.leaders(LEADERS).into_iter();
        let (candidate, predicted) = leaders.max_by(|a, b| upper(&a.1).total_cmp(&upper(&b.1)))?;
        if candidate == *self.baseline {
            // Nobody to race with it yet: look on.
            return self.explore();
        }
        let mut plan = self.plan(candidate, Identity::RACE, "a leader again");
        plan.repeat_of = self.first_trial_of(&plan.candidate);
        plan.predicted = Some(predicted);
        Some(plan)
    }

    /// A whole run of a leader that only windows have seen, where it fits: it shows whether windows and runs agree.
    fn promote(&self) -> Option<Plan> {
        if self.search_by == Extent::Whole {
            return None;
        }
        let whole = |candidate: &Candidate| {
            let tried = |row: &&Row| row.strategy == Identity::PROMOTE && row.candidate() == *candidate;
            self.rows.iter().any(|row| tried(&row))
        };
        let mut leaders = self.leaders(PROMOTED).into_iter();
        let (candidate, predicted) = leaders.find(|(candidate, _)| !whole(candidate))?;
        let whole_s = self.cost.at_most(&candidate, Extent::Whole);
        let mut plan = self.plan(candidate, Identity::PROMOTE, "a whole run of a leader");
        plan.extent = Extent::Whole;
        plan.expected_s = self.cost.of(&plan.candidate, Extent::Whole);
        plan.repeat_of = self.first_trial_of(&plan.candidate);
        plan.predicted = Some(predicted);
        (whole_s <= PROMOTION_SHARE * self.total_s && self.fits(whole_s)).then_some(plan)
    }

    /// Baseline and challenger in turn, each pair one right after the other.
    fn confirm(&self) -> Option<Plan> {
        let baseline_trial = self.first_trial_of(self.baseline);
        let challenger = challenge::current(self.rows, self.baseline).or_else(|| self.next_challenger());
        // No baseline to compare with, or nobody left who was tried: look on.
        let Some((challenger, baseline_trial)) = challenger.zip(baseline_trial) else { return self.explore() };
        let mut challenger = self.plan(challenger, Identity::CONFIRM, "a leader, right after the baseline");
        challenger.repeat_of = self.first_trial_of(&challenger.candidate);
        let mut baseline = self.plan(self.baseline.clone(), Identity::CONFIRM, "the baseline, right before a leader");
        baseline.repeat_of = Some(baseline_trial);
        let last = self.rows.last()?;
        if last.strategy == Identity::CONFIRM && last.candidate() == *self.baseline && last.passed {
            challenger.paired_with = Some(last.trial);
            return Some(challenger);
        }
        let pair_fits = self.fits(baseline.expected_s + challenger.expected_s + self.rounds_reserve_s());
        Some(if pair_fits { baseline } else { challenger })
    }

    /// The best by posterior mean that was not compared with the baseline yet.
    fn next_challenger(&self) -> Option<Candidate> {
        let met = challenge::challengers(self.rows, self.baseline);
        let new = |candidate: &Candidate| candidate != self.baseline && !met.contains(candidate);
        self.leaders(met.len() + 2).into_iter().map(|(candidate, _)| candidate).find(new)
    }

    fn first_trial_of(&self, candidate: &Candidate) -> Option<u64> {
        self.rows.iter().find(|row| row.passed && row.candidate() == *candidate).map(|row| row.trial)
    }
}

#[cfg(test)]
pub(crate) mod tests;
