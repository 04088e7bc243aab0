//! What the groups of nodes of a session run next, each by itself and all at the same time.
//!
//! Every group runs the reference first, and again before each [`EVERY`] other trials. The others are proposed by the strategy one
//! after the other; what is under way is believed to reach what is expected of it.

use objectives::real::Extent;
use space::{Candidate, Candidates};

use super::group::{MOST_GROUPS, NodeGroup};
use super::speed::{cancelled, fit, in_typical_time, speeds};
use crate::record::{Identity, Objective, PlannedTrial, Row};
use crate::search::cost::CostEstimate;
use crate::search::history::{History, Trial, TrialResult};
use crate::search::schedule::{Due, hopeless_s};
use crate::search::strategy::{Ctx, Prior, Strategy};

/// Trials of a group for each of its references.
pub const EVERY: usize = 3;

/// Trials of a stage besides the references, at most: as many as groups, so that each may have one.
pub const MOST: usize = MOST_GROUPS;

/// Share of the budget for the trials of a stage.
pub const SHARE: f64 = 0.08;

/// Part of the time left for them that a trial may take, and how many times as long as expected at least.
const LONGEST: f64 = 0.25;
const SLOW: f64 = 3.0;

/// What groups of nodes are searched for.
#[derive(Clone, Copy)]
pub struct NodeSetup<'a> {
    /// The groups, all of the same number of nodes.
    pub groups: &'a [NodeGroup],
    /// The domain of a group.
    pub domain: &'a dyn Candidates,
    /// The usual configuration of a group, by which its speed is known.
    pub reference: &'a Candidate,
    /// Trials besides the references, at most.
    pub most: usize,
    /// What proposes.
    pub strategy: &'a dyn Strategy,
    /// Whether trials are whole runs or windows.
    pub extent: Extent,
    /// Seed of the session.
    pub seed: u64,
}

/// What the next batch depends on.
pub struct NodesView<'a> {
    /// What is searched.
    pub setup: NodeSetup<'a>,
    /// The model's predictions of the domain's points.
    pub prior: &'a dyn Prior,
    /// Trials on groups of this size that have ended.
    pub rows: &'a [Row],
    /// Proposals that were interrupted; those for these groups come first.
    pub interrupted: &'a [PlannedTrial],
    /// What runs on a group cost.
    pub cost: &'a CostEstimate<'a>,
    /// The number that the next trial gets.
    pub next_trial: u64,
    /// Seconds of the budget left.
    pub left_s: f64,
    /// Seconds of the whole budget.
    pub total_s: f64,
}

impl NodesView<'_> {
    /// A trial for each group that can take one; none when the time for them is used, or nothing is left to try.
    pub fn next(&self) -> Vec<Due> {
        let groups = fit(self.setup.groups, self.rows);
        // One group alone says nothing of the others.
        if groups.len() < 2 || !self.fits() {
            return Vec::new();
        }
        let speeds = speeds(self.rows, self.setup.reference);
        let cancelled = cancelled(self.rows, self.setup.reference);
        let in_typical_time = in_typical_time(&cancelled, &speeds);
        let mut history = History::from_rows(&in_typical_time, self.setup.domain, Objective::Gflops);
        let of_group = |plan: &&PlannedTrial| groups.iter().any(|group| plan.nodes == group.hosts);
        let mut plans: Vec<PlannedTrial> = self.interrupted.iter().filter(of_group).cloned().collect();
        plans.iter().for_each(|plan| self.believe(&mut history, plan, self.next_trial));
        let done = self.rows.iter().filter(|row| row.strategy != Identity::REFERENCE).count();
        for group in groups {
            if plans.iter().any(|plan| plan.nodes == group.hosts) {
                continue;
            }
            let is_known = speeds.contains_key(group.name.as_str());
            let of_search = plans.iter().filter(|plan| plan.strategy != Identity::REFERENCE).count();
            let plan = if self.is_due_a_reference(&group.name) {
                Some(self.reference())
            } else if is_known && done + of_search < self.setup.most {
                self.proposed(&mut history, self.next_trial + plans.len() as u64)
            } else {
                None
            };
            plans.extend(plan.map(|plan| PlannedTrial { nodes: group.hosts.clone(), ..plan }));
        }
        // The reference alone teaches nothing new.
        let teaches = self.rows.is_empty() || plans.iter().any(|plan| plan.strategy != Identity::REFERENCE);
        if !teaches && done >= self.setup.most {
            return Vec::new();
        }
        // A run that hangs keeps all groups waiting.
        let part_s = LONGEST * (SHARE * self.total_s - self.used_s());
        let limit_s = |plan: &PlannedTrial| hopeless_s(&cancelled, plan).min(part_s.max(SLOW * plan.expected_s));
        let due = |plan: PlannedTrial| Due { limit_s: limit_s(&plan).min(self.left_s), plan };
        plans.into_iter().map(due).collect()
    }

    /// Whether another batch fits: the first one only with a second, as references alone say little.
    fn fits(&self) -> bool {
        let batches = if self.rows.is_empty() { 2.0 } else { 1.0 };
        let batch_s = batches * self.cost.at_most(self.setup.reference, self.setup.extent);
        self.used_s() + batch_s <= SHARE * self.total_s && batch_s <= self.left_s
    }

    /// Seconds from the start of the first trial to the end of the last one.
    fn used_s(&self) -> f64 {
        let begun = self.rows.iter().map(|row| row.budget_left_s + row.wall_s).fold(f64::NEG_INFINITY, f64::max);
        let ended = self.rows.iter().map(|row| row.budget_left_s).fold(f64::INFINITY, f64::min);
        if self.rows.is_empty() { 0.0 } else { begun - ended }
    }

    fn is_due_a_reference(&self, group: &str) -> bool {
        let of_group = || self.rows.iter().filter(|row| row.nodes.as_deref() == Some(group));
        let references = of_group().filter(|row| row.strategy == Identity::REFERENCE && row.passed).count();
        let others = of_group().filter(|row| row.strategy != Identity::REFERENCE).count();
        references * EVERY <= others
    }

    fn reference(&self) -> PlannedTrial {
        let first = self.rows.iter().find(|row| row.strategy == Identity::REFERENCE && row.passed);
        let is_single = self.setup.groups.iter().all(|group| group.hosts.len() == 1);
        let each = if is_single { "node" } else { "group of nodes" };
        let why = format!("on every {each}, so that its speed cancels");
        self.plan(self.setup.reference.clone(), Identity::REFERENCE, &why, first)
    }

    /// What the strategy proposes besides what is under way; as trial `number` it is under way then.
    fn proposed(&self, history: &mut History, number: u64) -> Option<PlannedTrial> {
        // In the model's seconds, which the prior's costs are.
        let model_s = |wall_s: f64| wall_s / self.cost.usual_ratio(self.setup.extent);
        let ctx = Ctx {
            space: self.setup.domain,
            history,
            prior: self.prior,
            budget_left_s: model_s(SHARE * self.total_s - self.used_s()),
            budget_total_s: model_s(SHARE * self.total_s),
            pairs: None,
            trial: number,
            seed: self.setup.seed,
        };
        let proposal = self.setup.strategy.ask(&ctx)?;
        let candidate = self.setup.domain.candidate(&proposal.point);
        let plan = PlannedTrial {
            repeat_of: proposal.repeat_of,
            predicted: proposal.predicted,
            ..self.plan(candidate, self.setup.strategy.name(), &proposal.why, None)
        };
        self.believe(history, &plan, number);
        Some(plan)
    }

    /// Takes what is under way as if it had reached what is expected of it.
    fn believe(&self, history: &mut History, plan: &PlannedTrial, number: u64) {
        let Some(point) = self.setup.domain.point(&plan.candidate) else { return };
        let expected = plan.predicted.map_or_else(|| self.prior.log_rate(&point).exp(), |of| of.rate_gflops);
        let number = plan.trial.unwrap_or(number);
        history.trials.push(Trial {
            number,
            point,
            outcome: TrialResult::Rate(expected),
            wall_s: plan.expected_s,
            pair: None,
        });
    }

    fn plan(&self, candidate: Candidate, strategy: &str, why: &str, first: Option<&Row>) -> PlannedTrial {
        PlannedTrial {
            reference: None,
            trial: None,
            expected_s: self.cost.of(&candidate, self.setup.extent),
            candidate,
            extent: self.setup.extent,
            strategy: strategy.to_owned(),
            why: why.to_owned(),
            repeat_of: first.map(|row| row.trial),
            paired_with: None,
            predicted: None,
            nodes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use space::domain::{HplDomain, default_candidate};

    use super::super::group::groups;
    use super::super::speed::tests::hosts;
    use super::*;
    use crate::record::Outcome;
    use crate::record::arbitrary::row_of;
    use crate::search::model_prior;
    use crate::search::schedule::tests::{TOTAL_S, predictor, spec};
    use crate::search::strategy::bayes::Bayes;

    /// The next batch of four nodes after `rows`, within `budgets` of the usual budget.
    fn next(rows: &[Row], interrupted: &[PlannedTrial], budgets: f64) -> Vec<Due> {
        next_of(&groups(&hosts(4), 1), MOST, rows, interrupted, budgets)
    }

    /// The next batch of these groups, which make at most so many trials besides the references.
    fn next_of(
        groups: &[NodeGroup],
        most: usize,
        rows: &[Row],
        interrupted: &[PlannedTrial],
        budgets: f64,
    ) -> Vec<Due> {
        let predictor = predictor();
        let domain = HplDomain::new(&spec()).unwrap();
        let (extent, seed) = (Extent::Whole, 1);
        let (prior, reference) = (model_prior::table(&domain, &predictor, extent), default_candidate(&spec()));
        let setup = NodeSetup { groups, domain: &domain, reference: &reference, most, strategy: &Bayes, extent, seed };
        let view = NodesView {
            setup,
            prior: &prior,
            rows,
            interrupted,
            cost: &CostEstimate::new(rows, &predictor),
            next_trial: rows.len() as u64,
            left_s: budgets * TOTAL_S,
            total_s: budgets * TOTAL_S,
        };
        assert_eq!(view.next(), view.next(), "the record decides, nothing else");
        view.next()
    }

    /// The rows of a batch of which each run took two seconds.
    fn run(rows: &mut Vec<Row>, batch: &[Due], budgets: f64) {
        let left_s = budgets * TOTAL_S - 2.0 * (rows.len() / 4 + 1) as f64;
        for due in batch {
            let row = row_of(rows.len() as u64, &due.plan.candidate);
            let (strategy, nodes) = (due.plan.strategy.clone(), Some(due.plan.nodes.join(" ")));
            rows.push(Row { strategy, nodes, wall_s: 2.0, budget_left_s: left_s, ..row });
        }
    }

    fn strategies(batch: &[Due]) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        batch.iter().for_each(|due| *counts.entry(due.plan.strategy.as_str()).or_default() += 1);
        counts
    }

    #[test]
    fn each_node_runs_the_reference_and_then_another_candidate_than_the_others() {
        let budgets = 20.0;
        let mut rows = Vec::new();
        let mut tried = BTreeSet::new();
        for batch in 0..9 {
            let due = next(&rows, &[], budgets);
            let nodes: Vec<&String> = due.iter().flat_map(|due| &due.plan.nodes).collect();
            assert_eq!(nodes, hosts(4).iter().collect::<Vec<_>>(), "batch {batch}: one trial for each node");
            assert!(due.iter().all(|due| due.limit_s > 2.0 && due.plan.expected_s > 0.0));
            let expected = if batch % (EVERY + 1) == 0 { Identity::REFERENCE } else { "bayes" };
            assert_eq!(strategies(&due), BTreeMap::from([(expected, 4)]), "batch {batch}");
            let new = due.iter().filter(|due| due.plan.repeat_of.is_none());
            let new: Vec<String> = new.map(|due| format!("{:?}", due.plan.candidate)).collect();
            if batch % (EVERY + 1) != 0 {
                assert!(new.iter().all(|candidate| tried.insert(candidate.clone())), "batch {batch}: one is run twice");
            }
            run(&mut rows, &due, budgets);
        }
        assert!(tried.len() >= 12, "{}", tried.len());
    }

    #[test]
    fn groups_of_nodes_run_as_single_ones_do_up_to_their_number_of_trials() {
        let (groups, budgets) = (groups(&hosts(9), 2), 40.0);
        let (mut rows, mut batches) = (Vec::new(), Vec::new());
        loop {
            let due = next_of(&groups, 12, &rows, &[], budgets);
            if due.is_empty() {
                break;
            }
            let nodes: Vec<String> = due.iter().map(|due| due.plan.nodes.join(" ")).collect();
            assert_eq!(nodes, ["n1 n2", "n3 n4", "n5 n6", "n7 n8"]);
            batches.push(strategies(&due).into_keys().map(str::to_owned).collect::<String>());
            run(&mut rows, &due, budgets);
        }
        assert_eq!(batches, [Identity::REFERENCE, "bayes", "bayes", "bayes"]);
    }

    #[test]
    fn the_time_for_single_nodes_is_a_share_of_the_budget() {
        assert!(next(&[], &[], 0.5).is_empty(), "references alone say nothing");
        let budgets = 20.0;
        let mut rows = Vec::new();
        loop {
            let due = next(&rows, &[], budgets);
            if due.is_empty() {
                break;
            }
            run(&mut rows, &due, budgets);
        }
        let used_s = 2.0 * (rows.len() / 4) as f64;
        assert!(used_s <= SHARE * budgets * TOTAL_S, "{used_s}");
        let others = rows.iter().filter(|row| row.strategy != Identity::REFERENCE).count();
        assert!(used_s > 0.8 * SHARE * budgets * TOTAL_S || others >= MOST, "{used_s} s, {others}");
    }

    #[test]
    fn what_was_interrupted_comes_first_and_a_node_that_fails_takes_nothing() {
        let budgets = 20.0;
        let mut rows = Vec::new();
        run(&mut rows, &next(&[], &[], budgets), budgets);
        let before = next(&rows, &[], budgets);
        let left = PlannedTrial { trial: Some(77), ..before[2].plan.clone() };
        let other = PlannedTrial { nodes: Vec::new(), ..left.clone() };
        let after = next(&rows, &[other, left.clone()], budgets);
        assert_eq!(after[0].plan, left);
        let nodes: Vec<&str> = after.iter().flat_map(|due| &due.plan.nodes).map(String::as_str).collect();
        assert_eq!(nodes, ["n3", "n1", "n2", "n4"]);
        let same = after[1..].iter().filter(|due| due.plan.candidate == left.candidate).count();
        assert_eq!(same, 0, "it is believed to run");
        for _ in 0..2 {
            let row = Row { passed: false, outcome: Outcome::Crashed, rate_gflops: None, ..rows[1].clone() };
            rows.push(Row { trial: rows.len() as u64, ..row });
        }
        let nodes: Vec<String> = next(&rows, &[], budgets).into_iter().flat_map(|due| due.plan.nodes).collect();
        assert_eq!(nodes, ["n1", "n3", "n4"]);
    }
}
