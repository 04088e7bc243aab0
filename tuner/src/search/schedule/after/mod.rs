//! The final run and what follows the choice: rounds of baseline, expert and best, each one right after the other, or two of them in turn
//! in one process.
//!
//! The runs of the search choose, so their luck is the best's; the rounds after the final run are the ones that are reported.

use std::ops::RangeInclusive;

use objectives::real::Extent;
use space::Candidate;

use super::{FINAL_SHARE, Setup, View};
use crate::record::{Finished, Identity, Outcome, PlannedTrial};
use crate::search::cost::CostEstimate;
use crate::search::model_prior;
use crate::search::rounds::{self, PAIRS_TO_JUDGE, TakesBack};
use crate::search::strategy::bayes;

/// Share of the budget that is kept for rounds, at most: for as many as an interval needs, where they fit; and for rounds of pairs in one
/// process, which take longer and say more.
const ROUNDS_SHARE: f64 = 0.25;
const PAIRS_SHARE: f64 = FINAL_SHARE;

/// Final runs of the best, before that of the second best.
const FINALS_OF_BEST: usize = 2;

/// Trials after the final run, at most: more than these give nothing new.
const SPARE: usize = 24;

impl<R: Finished> View<'_, R> {
    /// The final run: of the best by posterior mean. `None` when it has been run, or nothing has passed. A failed final run is tried once
    /// more, then that of the second best, and again after a resume, which begins with the one that was interrupted. Where the budget has room for one run alone, or all were ended at
    /// their limits, it is the best by the model. Where the baseline is
    /// the best after all, only windows have seen it, and no further round fits or is of use, it gets a final run, too.
    pub fn final_plan(&self) -> Option<PlannedTrial> {
        let is_final = |row: &&R| row.strategy() == Identity::FINAL;
        let mut finals = self.rows.iter().filter(is_final);
        if finals.clone().any(|row| row.passed()) {
            let n = self.setup.domain.spec().n;
            let tried = finals.any(|row| row.candidate().at_n(n) == *self.setup.baseline);
            if self.setup.extent == Extent::Whole || tried {
                return None;
            }
            let why = match self.takes_back()? {
                TakesBack::Ahead(_) => "the default, better after the final run",
                TakesBack::WithinLimit(_) => "the default, as the choice takes more than the power limit",
            };
            let is_due = !self.compares_more(&rounds::verified(self.rows, n)?);
            return is_due.then(|| self.whole(self.setup.baseline.clone(), why));
        }
        // What failed in an earlier sitting may be mended.
        let failed = || self.rows.iter().skip(self.setup.earlier_rows).filter(is_final);
        let at_n = |row: &R| row.candidate().at_n(self.setup.domain.spec().n);
        if failed().count() > FINALS_OF_BEST {
            return None;
        }
        // Before the first of them has ended, the search may go on, and choose another one.
        if self.rows.iter().any(|row| is_final(&row))
            && failed().next().is_none()
            && let Some(PlannedTrial { trial, candidate, why, .. }) = self.interrupted_final()
        {
            let candidate = candidate.at_n(self.setup.domain.spec().n);
            return Some(PlannedTrial { trial: *trial, ..self.whole(candidate, why) });
        }
        if failed().count() == FINALS_OF_BEST {
            let tried: Vec<Candidate> = failed().map(at_n).collect();
            let mut others = self.leaders(FINALS_OF_BEST + 1).into_iter().map(|(candidate, _)| candidate);
            let second = others.find(|candidate| !tried.contains(candidate))?;
            return Some(self.whole(second, "the verified final run, of the second best, as that of the best failed"));
        }
        // The choice stands: its own failure would make another one the best.
        let chosen = self.rows.iter().find(is_final).map(at_n).or_else(|| self.chosen());
        // What was ended at its limit may be slow, and has more time now.
        let is_unseen = self.rows.iter().all(|row| row.outcome() == Outcome::TimedOut);
        let unseen = || is_unseen.then(|| model_prior::fastest(self.setup.domain, self.prior));
        let why = if failed().next().is_some() { "the verified final run once more" } else { "the verified final run" };
        Some(self.whole(chosen.or_else(unseen)?, why))
    }

    fn interrupted_final(&self) -> Option<&PlannedTrial> {
        self.interrupted.iter().find(|plan| plan.strategy == Identity::FINAL)
    }

    /// The order of the final run of `candidate`, if one fits in `left_s`: the largest of `orders`, in whole blocks or that of the search,
    /// whose run fits the memory and hardly exceeds its share, and the smallest where it is expected to fit. The rounds after it and a second final run are kept
    /// time for, but not where that leaves none for the run.
    pub fn final_order(&self, candidate: &Candidate, orders: RangeInclusive<usize>, left_s: f64) -> Option<usize> {
        let (smallest, largest, nb) = (*orders.start(), *orders.end(), candidate.hpl.nb);
        let fitting = |share_s: f64| {
            let whole_blocks: Vec<usize> = (smallest / nb + 1..=largest / nb).map(|blocks| blocks * nb).collect();
            let fits = |n: &usize| {
                let candidate = candidate.at_n(*n);
                self.setup.domain.has_memory_for(&candidate) && self.cost.at_most(&candidate, Extent::Whole) <= share_s
            };
            let searched = Some(candidate.hpl.n).filter(|n| orders.contains(n) && fits(n));
            // A larger one takes longer, and more memory.
            let in_time = &whole_blocks[..whole_blocks.partition_point(fits)];
            let larger = in_time.last().copied().max(searched);
            larger.or_else(|| (self.cost.of(&candidate.at_n(smallest), Extent::Whole) <= share_s).then_some(smallest))
        };
        let runs = f64::from(self.final_runs());
        // The N that the user has chosen is worth more than rounds and a second run.
        let chosen = Some(candidate.hpl.n).filter(|n| self.setup.n_is_chosen && orders.contains(n));
        let at_most = |n: &usize| self.cost.at_most(&candidate.at_n(*n), Extent::Whole);
        if let Some(n) = chosen.filter(|n| at_most(n) <= left_s) {
            return Some(n);
        }
        let one_of_several = fitting((left_s - self.rounds_reserve_s()) / runs).or_else(|| fitting(left_s / runs));
        one_of_several.or_else(|| fitting(left_s))
    }

    fn whole(&self, candidate: Candidate, why: &str) -> PlannedTrial {
        PlannedTrial { extent: Extent::Whole, ..self.plan(candidate, Identity::FINAL, why) }
    }

    /// Seconds to keep for the rounds after the final run; 0 once the choice is made.
    pub fn rounds_reserve_s(&self) -> f64 {
        match rounds::verified(self.rows, self.setup.domain.spec().n) {
            _ if self.baseline_never_passes() => 0.0,
            Some(_) => 0.0,
            None => {
                let Setup { baseline, expert, extent, .. } = self.setup;
                rounds_s(self.cost, (baseline, expert), (extent, self.setup.pairs_with_usual()), self.total_s)
            }
        }
    }

    /// What the time after the final run is used for: rounds of baseline, expert and what was verified, and where no round
    /// fits, the verified one once more alone. `None` when nothing fits for sure, the final run has not passed, there are
    /// enough rounds, or too many of them failed.
    pub fn after_final(&self) -> Option<PlannedTrial> {
        let verified = rounds::verified(self.rows, self.setup.domain.spec().n)?;
        let after = rounds::at_choice(self.rows).1;
        if self.ends_rounds(&verified, after) {
            return None;
        }
        let round = RoundState::new(self, &verified, after);
        let next = if self.baseline_never_passes() { None } else { round.next() };
        next.or_else(|| {
            let why = "time is left: the verified one again";
            self.fits(round.verified_s).then(|| self.again(&verified, Identity::RACE, why))
        })
    }

    /// Whether every attempt of the baseline failed: nothing can be compared with it.
    fn baseline_never_passes(&self) -> bool {
        let mut tries = self.rows.iter().filter(|row| row.strategy() == Identity::BASELINE).peekable();
        tries.peek().is_some() && tries.all(|row| !row.passed())
    }

    /// Whether search and rounds take the choice back.
    fn takes_back(&self) -> Option<TakesBack> {
        rounds::takes_back(self.rows, self.setup.baseline, self.setup.objective, self.lead_of_search)
    }

    /// Whether one more round, or the rest of the one under way, can come before a whole run of the baseline, and is of use.
    fn compares_more(&self, verified: &Candidate) -> bool {
        let pairs = rounds::in_turn(self.rows, verified, self.setup.baseline, self.setup.objective).len();
        let after = rounds::at_choice(self.rows).1;
        let round = RoundState::new(self, verified, after);
        let whole_s = self.cost.at_most(self.setup.baseline, Extent::Whole);
        pairs < PAIRS_TO_JUDGE && !self.ends_rounds(verified, after) && self.fits(round.rest_s() + whole_s)
    }

    /// Whether there are enough rounds, or too many of their runs failed.
    fn ends_rounds(&self, verified: &Candidate, after: &[R]) -> bool {
        after.len() >= SPARE || rounds::have_failed(after) || self.has_rounds(verified)
    }

    /// Whether there are the rounds that an interval needs, in a session that ends as soon as it can, or whose choice they clearly take back.
    fn has_rounds(&self, verified: &Candidate) -> bool {
        let other = if verified == self.setup.baseline { self.setup.expert } else { Some(self.setup.baseline) };
        let rounds = other
            .map_or(PAIRS_TO_JUDGE, |other| rounds::in_turn(self.rows, verified, other, self.setup.objective).len());
        let is_clear = || match self.takes_back() {
            Some(TakesBack::Ahead(lead)) => lead.mean < -lead.sd,
            Some(TakesBack::WithinLimit(_)) => true,
            None => false,
        };
        rounds >= PAIRS_TO_JUDGE && (self.setup.until_gain.is_some() || is_clear())
    }

    /// Whether rounds are pairs of `verified` and `others`, the first of `pair_s` seconds: where these say more in the same time, and as many as an
    /// interval needs fit; once rounds have begun, as they have.
    fn compares_by_pairs(
        &self,
        after: &[R],
        (verified, others): (&Candidate, [Option<&Candidate>; 2]),
        pair_s: f64,
    ) -> bool {
        let compared = |row: &&R| [Identity::CONFIRM, Identity::EXPERT].contains(&row.strategy());
        if let Some(first) = after.iter().find(compared) {
            return first.reference_trial().is_some();
        }
        self.has_room_for_pairs((verified, others), pair_s) && bayes::sd_of_paying_pair(&self.ctx()).is_some()
    }

    /// Whether `verified` can be measured in turn with all `others`, and as many pairs of `pair_s` seconds as an interval needs fit.
    fn has_room_for_pairs(&self, (verified, others): (&Candidate, [Option<&Candidate>; 2]), pair_s: f64) -> bool {
        others.into_iter().flatten().all(|other| self.setup.pairs.allows([verified, other]))
            && self.setup.pairs_with_usual()
            && self.first_trial_of(self.setup.baseline).is_some()
            && self.fits(PAIRS_TO_JUDGE as f64 * pair_s)
    }

    /// Standard deviation of the log ratio of a round, where those after the final run `best` are expected to be pairs in one process.
    pub(super) fn sd_of_paired_round(&self, best: &Candidate) -> Option<f64> {
        let Setup { baseline, expert, extent, .. } = self.setup;
        let verified = best.at_n(self.setup.domain.spec().n);
        let pair_s =
            self.cost.of_pairs() * (self.cost.at_most(&verified, extent) + self.cost.at_most(baseline, extent));
        let after = Self { left_s: self.left_s - self.cost.at_most(best, Extent::Whole), ..*self };
        let is_paired = after.has_room_for_pairs((&verified, [Some(baseline), expert]), pair_s);
        is_paired.then(|| bayes::sd_of_paying_pair(&self.ctx()))?
    }

    pub(super) fn again(&self, candidate: &Candidate, strategy: &str, why: &str) -> PlannedTrial {
        let mut plan = self.plan(candidate.clone(), strategy, why);
        plan.repeat_of = self.first_trial_of(candidate);
        plan
    }
}

/// What as many rounds as an interval needs hardly exceed, in seconds: of pairs in one process where that is a small share of the budget,
/// else of runs one after the other, with the expert or without, or of fewer of them.
pub fn rounds_s(
    cost: &CostEstimate<'_>,
    (baseline, expert): (&Candidate, Option<&Candidate>),
    (extent, pairs): (Extent, bool),
    total_s: f64,
) -> f64 {
    // The best takes about as long as the baseline.
    let one_s = cost.at_most(baseline, extent);
    let expert_s = expert.map(|expert| cost.at_most(expert, extent));
    let pairs_s = pairs.then(|| {
        let pair_s = cost.of_pairs() * 2.0 * one_s;
        [pair_s + expert_s.map_or(0.0, |expert_s| cost.of_pairs() * (expert_s + one_s)), pair_s]
    });
    let runs_s = [2.0 * one_s + expert_s.unwrap_or(0.0), 2.0 * one_s];
    let within = |rounds_s: [f64; 2], share: f64| {
        rounds_s.map(|s| PAIRS_TO_JUDGE as f64 * s).into_iter().find(|&s| s <= share * total_s)
    };
    let of_pairs = pairs_s.and_then(|pairs_s| within(pairs_s, PAIRS_SHARE));
    let fewer = || (ROUNDS_SHARE * total_s / runs_s[1]).floor() * runs_s[1];
    of_pairs.or_else(|| within(runs_s, ROUNDS_SHARE)).unwrap_or_else(fewer)
}

/// The rounds of a session, and how far the last one is.
struct RoundState<'a, R> {
    view: &'a View<'a, R>,
    after: &'a [R],
    verified: &'a Candidate,
    /// What is neither baseline nor verified, and has not failed.
    expert: Option<&'a Candidate>,
    is_other: bool,
    /// Whether two are measured in turn in one process. The seconds below are then those of pairs with the verified one, of the pair with
    /// the baseline those of the verified one.
    by_pairs: bool,
    baseline_s: f64,
    expert_s: f64,
    verified_s: f64,
}

impl<'a, R: Finished> RoundState<'a, R> {
    fn new(view: &'a View<'a, R>, verified: &'a Candidate, after: &'a [R]) -> Self {
        let failed = after.iter().any(|row| row.strategy() == Identity::EXPERT && !row.passed());
        let expert = view.setup.expert.filter(|&expert| expert != verified && expert != view.setup.baseline && !failed);
        let hardly_s = |candidate: &Candidate| view.cost.at_most(candidate, view.setup.extent);
        let (baseline_s, verified_s) = (hardly_s(view.setup.baseline), hardly_s(verified));
        let (is_other, expert_s) = (verified != view.setup.baseline, expert.map_or(0.0, hardly_s));
        let pair_s = |other_s: f64| view.cost.of_pairs() * (other_s + verified_s);
        let others = [is_other.then_some(view.setup.baseline), expert];
        let by_pairs =
            view.compares_by_pairs(after, (verified, others), pair_s(if is_other { baseline_s } else { expert_s }));
        let [baseline_s, expert_s, verified_s] = match by_pairs {
            true => [0.0, pair_s(expert_s), pair_s(baseline_s)],
            false => [baseline_s, expert_s, verified_s],
        };
        Self { view, after, verified, expert, is_other, by_pairs, baseline_s, expert_s, verified_s }
    }

    /// The next pair in one process: the verified one with the baseline, and the expert's configuration with the verified one.
    fn next_pair(&self) -> Option<PlannedTrial> {
        let pair = |candidate: &Candidate, reference: &Candidate, strategy, why| {
            let mut plan = self.view.again(candidate, strategy, why);
            self.view.pair_with(&mut plan, reference.clone());
            plan
        };
        let with_expert = |expert: &Candidate| {
            pair(expert, self.verified, Identity::EXPERT, "the expert's configuration in turn with the verified one")
        };
        let begun = self.after.last().filter(|last| last.strategy() == Identity::CONFIRM && last.passed());
        if let (Some(first), Some(expert)) = (begun, self.expert)
            && self.takes_expert(0.0)
        {
            return Some(PlannedTrial { paired_with: Some(first.trial()), ..with_expert(expert) });
        }
        if !self.is_other {
            return self.expert.filter(|_| self.takes_expert(0.0)).map(with_expert);
        }
        let why = "time is left: the verified one in turn with the baseline";
        self.view.fits(self.verified_s).then(|| pair(self.verified, self.view.setup.baseline, Identity::CONFIRM, why))
    }

    /// The next run of the round under way, or the first of another one.
    fn next(&self) -> Option<PlannedTrial> {
        if self.by_pairs {
            return self.next_pair();
        }
        let begun = self.begun();
        let rest_s = if self.is_other { self.verified_s } else { 0.0 };
        if let Some((first, last)) = begun {
            let goes_on = |candidate, strategy, why| {
                let mut plan = self.view.again(candidate, strategy, why);
                plan.paired_with = Some(first);
                plan
            };
            let expert = self.expert.filter(|_| last.strategy() == Identity::CONFIRM && self.takes_expert(rest_s));
            if let Some(expert) = expert {
                return Some(goes_on(expert, Identity::EXPERT, "the expert's configuration, right after the baseline"));
            }
            if self.is_other && self.view.fits(self.verified_s) {
                return Some(goes_on(self.verified, Identity::CONFIRM, "the verified one, right after the baseline"));
            }
        }
        let rest_s = self.baseline_s + rest_s;
        let worth =
            if self.is_other { self.view.fits(rest_s) } else { self.expert.is_some() && self.takes_expert(rest_s) };
        let why = "time is left: the baseline, right before the others";
        worth.then(|| self.view.again(self.view.setup.baseline, Identity::CONFIRM, why))
    }

    /// Seconds that the round under way still takes, or else another one.
    fn rest_s(&self) -> f64 {
        let expert_s = |last: &R| if last.strategy() == Identity::CONFIRM { self.expert_s } else { 0.0 };
        match self.begun() {
            Some((_, last)) if !self.by_pairs => expert_s(last) + self.verified_s,
            Some((_, last)) if last.strategy() == Identity::CONFIRM => self.expert_s,
            _ => self.baseline_s + self.expert_s + self.verified_s,
        }
    }

    /// The first trial of the round under way, and its last row; `None` when none is. Runs one after the other are a round only where one
    /// follows the other at once: what an earlier sitting has begun is left.
    fn begun(&self) -> Option<(u64, &R)> {
        let is_of_sitting = self.view.rows.len() > self.view.setup.earlier_rows;
        let last = self.after.last().filter(|_| self.by_pairs || is_of_sitting)?;
        match last.strategy() {
            Identity::CONFIRM if last.passed() && last.paired_with().is_none() => Some((last.trial(), last)),
            Identity::EXPERT => Some((last.paired_with()?, last)),
            _ => None,
        }
    }

    /// Whether the expert takes part in a round of which `rest_s` is left without it: not where it takes the time of pairs
    /// that an interval of best by baseline needs.
    fn takes_expert(&self, rest_s: f64) -> bool {
        let done =
            rounds::in_turn(self.view.rows, self.verified, self.view.setup.baseline, self.view.setup.objective).len();
        // In one process that of this round is done already, else it is the rest.
        let needed = if self.by_pairs { PAIRS_TO_JUDGE } else { PAIRS_TO_JUDGE - 1 };
        let missing = if self.is_other { needed.saturating_sub(done) } else { 0 };
        let more_s = missing as f64 * (self.baseline_s + self.verified_s);
        let kept_s = if self.view.fits(rest_s + more_s) { more_s } else { 0.0 };
        self.view.fits(rest_s + self.expert_s + kept_s)
    }
}

#[cfg(test)]
mod tests;
