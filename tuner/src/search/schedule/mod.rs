//! What a session does next, as a pure function of its record and the time left.
//!
//! The baseline and the expert's configuration; for an engine that no model was made for a design; then the strategy has the time: it
//! proposes a new point or runs one again, whichever is expected to raise the rate of the final answer more per second. Last come the
//! final verified run and rounds of baseline, expert and best (`schedule/after`), which say what the choice gains and can take it
//! back. Where whole runs at the target N take long, all but the last are windows, and the leaders get a whole run each before it, if
//! that fits. Nothing but the record and the clock decide, so a resumed session goes on where it stopped.

mod after;
mod due;
mod limits;

use std::collections::HashSet;

pub use after::rounds_s;
pub use due::{Due, FAILURES_TO_GIVE_UP, nothing_works};
pub(crate) use limits::hopeless_s;
use objectives::real::{Extent, PairRule};
use space::dims::Point;
use space::{Candidate, Candidates};

use crate::record::Prediction;
use crate::record::lead::Lead;
use crate::record::left::GainLeft;
use crate::record::{Finished, Identity, Objective, PlannedTrial, Reference, Row, limited_power_w};
use crate::search::budget::CLOSING_S;
use crate::search::cost::CostEstimate;
use crate::search::history::{History, NO_CHANCE, Trial, TrialResult};
use crate::search::near::nearest;
use crate::search::rounds;
use crate::search::strategy::left::{self, Next};
use crate::search::strategy::{Ctx, PairTrials, PointPairs, Prior, Proposal, Strategy, bayes, design, lead};

/// Times that a baseline which does not pass is tried.
const BASELINE_TRIES: usize = 2;

/// Leaders that get a whole run where the search goes by windows.
const PROMOTED: usize = 2;

/// Share of the budget that is kept for the final run where the search goes by windows, and that the whole runs of leaders may take together.
const FINAL_SHARE: f64 = 0.15;

/// Share of the budget that is kept for the final run of an N that the user has chosen: half, and something for what a run is expected to take as
/// the search goes on.
const CHOSEN_SHARE: f64 = 0.55;

/// Seconds to keep for the final run where the search goes by windows and a whole run is `expected` to take so many seconds, and `most` hardly
/// exceeded: a share of the budget at most, a larger one where that gives the run the N that the user has chosen.
pub fn kept_for_final_s([expected_s, most_s]: [f64; 2], total_s: f64, n_is_chosen: bool) -> f64 {
    let has_chosen = n_is_chosen && expected_s <= CHOSEN_SHARE * total_s;
    most_s.min(total_s * if has_chosen { CHOSEN_SHARE } else { FINAL_SHARE })
}

/// Seconds to keep for whole runs of the leaders that windows have found, where one hardly exceeds `whole_s`: none where that is too large a
/// share of the budget, or all trials are whole runs.
pub fn promotions_s(whole_s: f64, extent: Extent, total_s: f64) -> f64 {
    let all_s = PROMOTED as f64 * whole_s;
    if extent == Extent::Windows && all_s <= FINAL_SHARE * total_s { all_s } else { 0.0 }
}

/// What a session searches, and how; settled before its first trial.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The searched domain at the target N.
    pub domain: &'a dyn Candidates,
    /// The strategy that explores.
    pub strategy: &'a dyn Strategy,
    /// Whether a design comes before it: the model was made for another engine.
    pub designed: bool,
    /// The configuration that users start from.
    pub baseline: &'a Candidate,
    /// The expert's configuration, where it is another one.
    pub expert: Option<&'a Candidate>,
    /// Whether trials of the search are whole runs or windows.
    pub extent: Extent,
    /// Which two candidates can be measured in turn.
    pub pairs: PairRule,
    /// Whether N is the user's.
    pub n_is_chosen: bool,
    /// What is made as large as possible.
    pub objective: Objective,
    /// Seed of the session.
    pub seed: u64,
    /// The relative gain at which the search ends, where one was given: no more is expected to be left.
    pub until_gain: Option<f64>,
    /// Rows of earlier sittings, but the last ones that were killed with their session: what failed in them may be mended.
    pub earlier_rows: usize,
}

impl Setup<'_> {
    /// Whether the usual candidate can be measured in turn with another one.
    pub fn pairs_with_usual(&self) -> bool {
        self.pairs.allows([self.baseline; 2])
    }
}

impl PointPairs for Setup<'_> {
    fn allows(&self, points: [&Point; 2]) -> bool {
        let [a, b] = points.map(|point| self.domain.candidate(point));
        self.pairs.allows([&a, &b])
    }
}

/// What the next step depends on: the setup, and what is known at this moment.
pub struct View<'a, R = Row> {
    /// What is searched.
    pub setup: Setup<'a>,
    /// The model's predictions of the domain's points.
    pub prior: &'a dyn Prior,
    /// The record.
    pub rows: &'a [R],
    /// The record as strategies see it.
    pub history: &'a History,
    /// Trials that were interrupted: a proposal of the search among them comes before any other.
    pub interrupted: &'a [PlannedTrial],
    /// What runs cost, by what they really took.
    pub cost: &'a CostEstimate<'a>,
    /// How far the search has found its best to be ahead of the baseline, once it is chosen.
    pub lead_of_search: Option<Lead>,
    /// Seconds of the budget left for what is asked: all of it in [`due`](Self::due), which takes off what the final run needs.
    pub left_s: f64,
    /// Seconds of the whole budget.
    pub total_s: f64,
}

impl<R: Finished> View<'_, R> {
    /// The next trial, `None` when nothing more fits before the final run.
    pub fn next(&self) -> Option<PlannedTrial> {
        let baselines = || self.rows.iter().filter(|row| row.strategy() == Identity::BASELINE);
        // Where others have passed, what failed before will fail again.
        let earlier = if self.rows.iter().any(Finished::passed) { 0 } else { self.setup.earlier_rows };
        let tries = self.rows.iter().skip(earlier).filter(|row| row.strategy() == Identity::BASELINE).count();
        if !baselines().any(|row| row.passed()) && tries < BASELINE_TRIES {
            let plan = self.plan(self.setup.baseline.clone(), Identity::BASELINE, "the usual HPL.dat, to compare with");
            return self.fits(plan.expected_s).then_some(plan);
        }
        let kept_s = self.promotions_reserve_s() + self.rounds_reserve_s();
        let fitting = |plan: PlannedTrial| self.fitting(plan, kept_s);
        // What does not fit any more leaves its time to others.
        let interrupted = self.interrupted.iter().find(|plan| plan.is_of_search());
        interrupted
            .cloned()
            .and_then(fitting)
            .or_else(|| self.expert().and_then(fitting))
            .or_else(|| self.proposed(kept_s))
            .or_else(|| self.promote().filter(|plan| self.fits(plan.expected_s + self.rounds_reserve_s())))
    }

    /// The first run of the expert's configuration: what a rule of thumb finds, a search must not miss.
    fn expert(&self) -> Option<PlannedTrial> {
        let Setup { domain, expert, .. } = self.setup;
        let is_new =
            |expert: &&Candidate| domain.point(expert).is_some() && !self.rows.iter().any(|row| row.is_of(expert));
        let plan = self.plan(expert.filter(is_new)?.clone(), Identity::EXPERT, "the expert's configuration");
        self.fits(plan.expected_s + self.rounds_reserve_s()).then_some(plan)
    }

    /// `plan` where it fits with `kept_s` seconds to keep for what follows; where no time is left for a pair, there may be some for its candidate
    /// alone.
    fn fitting(&self, plan: PlannedTrial, kept_s: f64) -> Option<PlannedTrial> {
        let fits = |plan: &PlannedTrial| self.fits(plan.expected_s + kept_s);
        if fits(&plan) {
            return Some(plan);
        }
        plan.reference.as_ref()?;
        let expected_s = self.cost.of(&plan.candidate, plan.extent);
        Some(PlannedTrial { reference: None, expected_s, ..plan }).filter(fits)
    }

    /// What the search proposes and fits with `kept_s` seconds to keep for what follows it; `None` at its end, which does not come before that of
    /// the design.
    fn proposed(&self, kept_s: f64) -> Option<PlannedTrial> {
        if let Some(plan) = self.design().and_then(|plan| self.fitting(plan, kept_s)) {
            return Some(plan);
        }
        match self.setup.until_gain.map_or(Next::Search, |gain| left::next(&self.ctx(), gain)) {
            Next::Search => self.explore(kept_s),
            Next::Again(leader) => {
                let leader = self.setup.domain.candidate(&leader);
                let why = "the best so far again: its rate may be too high by chance";
                let again = self.fitting(self.again(&leader, Identity::RACE, why), kept_s);
                again.or_else(|| self.explore(kept_s))
            }
            Next::End => None,
        }
    }

    /// Seconds kept for the whole runs of leaders that windows have found.
    fn promotions_reserve_s(&self) -> f64 {
        let whole_s = self.cost.at_most(self.setup.baseline, Extent::Whole);
        promotions_s(whole_s, self.setup.extent, self.total_s)
    }

    /// The gain of better points that the runs so far predict.
    pub fn left(&self) -> Option<GainLeft> {
        left::left(&self.ctx())
    }

    /// Whether `plan` is the final run of what the search has chosen.
    pub fn is_choice(&self, plan: &PlannedTrial) -> bool {
        plan.strategy == Identity::FINAL && rounds::verified(self.rows, self.setup.domain.spec().n).is_none()
    }

    /// How far the runs so far show `best` to be ahead of the baseline.
    pub fn lead_of(&self, best: &Candidate) -> Option<Lead> {
        let domain = self.setup.domain;
        let point = domain.point(&best.at_n(domain.spec().n))?;
        let lead = lead::lead(&self.ctx(), &point, &domain.point(self.setup.baseline)?)?;
        Some(Lead { pair_sd: self.sd_of_paired_round(best).unwrap_or(lead.pair_sd), ..lead })
    }

    /// Final runs that time is kept for: a second one where a candidate that passed has failed, too, until the first of
    /// them has.
    pub fn final_runs(&self) -> u32 {
        // Two of a chosen N would leave too little for the search, or have a smaller one.
        let is_long = || {
            let Setup { n_is_chosen, extent, .. } = self.setup;
            n_is_chosen && extent == Extent::Windows && self.final_run_s() > CHOSEN_SHARE * self.total_s / 2.0
        };
        if self.comes_and_goes() && !is_long() { 2 } else { 1 }
    }

    /// Whether a candidate that passed has failed, too, and no final run was made.
    fn comes_and_goes(&self) -> bool {
        let passed = |trial: &&Trial| matches!(trial.outcome, TrialResult::Rate(_));
        let failed = |trial: &Trial| matches!(trial.outcome, TrialResult::TimedOut { .. } | TrialResult::Failed);
        let trials = &self.history.trials;
        let good: HashSet<&Point> = trials.iter().filter(passed).map(|trial| &trial.point).collect();
        let comes_and_goes = trials.iter().any(|trial| failed(trial) && good.contains(&trial.point));
        comes_and_goes && !self.rows.iter().any(|row| row.strategy() == Identity::FINAL)
    }

    /// Seconds to keep for a final run: what a whole run of the best candidate so far hardly exceeds, where the search goes by windows mostly
    /// a share of the budget at most.
    fn final_run_s(&self) -> f64 {
        // By another objective it may be slower than the fastest.
        let values = self.rows.iter().filter_map(|row| Some((self.setup.objective.value(row)?, row)));
        let best = values.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row).or_else(|| self.without_leader());
        let candidate = best.map_or_else(|| self.setup.baseline.clone(), Finished::candidate);
        let whole_s = [self.cost.of(&candidate, Extent::Whole), self.cost.at_most(&candidate, Extent::Whole)];
        match self.setup.extent {
            Extent::Whole => whole_s[1],
            Extent::Windows => kept_for_final_s(whole_s, self.total_s, self.setup.n_is_chosen),
        }
    }

    /// Seconds to keep for the final runs and the closing of the session.
    pub fn final_reserve_s(&self) -> f64 {
        f64::from(self.final_runs()) * self.final_run_s() + CLOSING_S
    }

    /// The best candidate by posterior mean.
    pub(crate) fn chosen(&self) -> Option<Candidate> {
        let leader = self.leaders(1).into_iter().next().map(|(candidate, _)| candidate);
        leader.or_else(|| self.without_leader().map(Finished::candidate))
    }

    /// What is taken where no candidate leads: what is nearest to a power limit that nothing keeps, else the first that has passed.
    fn without_leader(&self) -> Option<&R> {
        let mut passed = self.rows.iter().filter(|row| row.passed());
        let power = |row: &&R| limited_power_w(*row).unwrap_or(f64::INFINITY);
        match self.setup.objective {
            Objective::GflopsWithin { .. } => passed.min_by(|a, b| power(a).total_cmp(&power(b))),
            Objective::Gflops | Objective::GflopsPerWatt => passed.next(),
        }
    }

    /// The best tried candidates by posterior mean, best first.
    fn leaders(&self, count: usize) -> Vec<(Candidate, Prediction)> {
        let leaders = bayes::leaders(&self.ctx(), count).into_iter();
        leaders.map(|(point, predicted)| (self.setup.domain.candidate(&point), predicted)).collect()
    }

    fn fits(&self, cost_s: f64) -> bool {
        cost_s <= self.left_s
    }

    fn ctx(&self) -> Ctx<'_> {
        let pairs = PairTrials { cost: self.cost.of_pairs(), rule: &self.setup };
        Ctx {
            space: self.setup.domain,
            history: self.history,
            prior: self.prior,
            budget_left_s: self.left_s,
            budget_total_s: self.total_s,
            pairs: (self.setup.pairs != PairRule::Never).then_some(pairs),
            trial: self.rows.len() as u64,
            seed: self.setup.seed,
        }
    }

    fn plan(&self, candidate: Candidate, strategy: &str, why: &str) -> PlannedTrial {
        let expected_s = self.cost.of(&candidate, self.setup.extent);
        let (strategy, why) = (strategy.to_owned(), why.to_owned());
        PlannedTrial {
            trial: None,
            candidate,
            extent: self.setup.extent,
            reference: None,
            strategy,
            why,
            repeat_of: None,
            paired_with: None,
            predicted: None,
            expected_s,
            nodes: Vec::new(),
        }
    }

    /// The next run of the design, where there is one.
    fn design(&self) -> Option<PlannedTrial> {
        // Where the space leaves it out, about what is nearest to it.
        let usual = self.setup.designed.then(|| nearest(self.setup.domain, self.setup.baseline))??;
        let point = design::next(&self.ctx(), &usual)?;
        let why = "the usual HPL.dat with one parameter changed";
        Some(self.plan(self.setup.domain.candidate(&point), Identity::DESIGN, why))
    }

    /// What the strategy proposes and fits with `kept_s` seconds to keep: a new point, or one again. It knows what points take by the model, of
    /// some less than their own runs did: where one of these does not fit, it is asked for one that takes less.
    fn explore(&self, kept_s: f64) -> Option<PlannedTrial> {
        // In the model's seconds, which the prior's costs are.
        let model_s = |wall_s: f64| wall_s / self.cost.usual_ratio(self.setup.extent);
        let (mut budget_left_s, budget_total_s) = (model_s(self.left_s - kept_s), model_s(self.total_s));
        for _ in 0..NO_CHANCE {
            let proposal = self.setup.strategy.ask(&Ctx { budget_left_s, budget_total_s, ..self.ctx() })?;
            let proposed_s = self.prior.cost_s(&proposal.point);
            let fits_by_model = proposed_s <= budget_left_s;
            let fitting = self.fitting(self.of_proposal(proposal), kept_s);
            if fitting.is_some() || !fits_by_model {
                return fitting;
            }
            budget_left_s = proposed_s.next_down();
        }
        None
    }

    fn of_proposal(&self, proposal: Proposal) -> PlannedTrial {
        let mut plan =
            self.plan(self.setup.domain.candidate(&proposal.point), self.setup.strategy.name(), &proposal.why);
        plan.repeat_of = proposal.repeat_of;
        plan.predicted = proposal.predicted;
        if let Some(reference) = proposal.reference {
            self.pair_with(&mut plan, self.setup.domain.candidate(&reference));
        }
        plan
    }

    /// Lets `plan` measure its candidate in turn with `reference`, which has passed, where these two can be.
    fn pair_with(&self, plan: &mut PlannedTrial, reference: Candidate) {
        if !self.setup.pairs.allows([&plan.candidate, &reference]) {
            return;
        }
        let Some(trial) = self.first_trial_of(&reference) else { return };
        let alone_s = [&plan.candidate, &reference].map(|candidate| self.cost.of(candidate, plan.extent));
        plan.expected_s = self.cost.of_pairs() * alone_s.iter().sum::<f64>();
        plan.reference = Some(Reference { trial, candidate: reference });
    }

    /// A whole run of a leader that only windows have seen, where it fits: it shows whether windows and runs agree.
    fn promote(&self) -> Option<PlannedTrial> {
        if self.setup.extent == Extent::Whole {
            return None;
        }
        let whole = |candidate: &Candidate| {
            let tried = |row: &&R| row.strategy() == Identity::PROMOTE && row.is_of(candidate);
            self.rows.iter().any(|row| tried(&row))
        };
        let mut leaders = self.leaders(PROMOTED).into_iter();
        let (candidate, predicted) = leaders.find(|(candidate, _)| !whole(candidate))?;
        let whole_s = self.cost.at_most(&candidate, Extent::Whole);
        let mut plan = self.plan(candidate, Identity::PROMOTE, "a whole run of one of the best");
        plan.extent = Extent::Whole;
        plan.expected_s = self.cost.of(&plan.candidate, Extent::Whole);
        plan.repeat_of = self.first_trial_of(&plan.candidate);
        plan.predicted = Some(predicted);
        let is_kept = promotions_s(whole_s, self.setup.extent, self.total_s) > 0.0;
        (is_kept && self.fits(whole_s)).then_some(plan)
    }

    fn first_trial_of(&self, candidate: &Candidate) -> Option<u64> {
        self.rows.iter().find(|row| row.passed() && row.is_of(candidate)).map(Finished::trial)
    }
}

#[cfg(test)]
pub(crate) mod tests;
