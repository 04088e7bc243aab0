//! What a session found, computed once from its record; every report prints this.

use std::collections::{BTreeMap, HashSet};

use objectives::launcher::short;
use objectives::real::Extent;
use serde::Serialize;
use serde_json::Value;
use space::Candidate;

use super::importance::{Importance, importance};
use super::stats::Ratio;
use crate::record::lead::Lead;
use crate::record::left::GainLeft;
use crate::record::session::Session;
use crate::record::{Identity, Outcome, Row};
use crate::search::rounds;

mod chosen;
mod claims;
mod drift;
mod final_run;
mod nodes_apart;
mod over;
mod pareto;
mod phases;
mod power;
mod score;
mod some_nodes;

use chosen::{Chosen, at_target_n};
pub use claims::{Comparison, Higher, TakenBack};
pub(crate) use claims::{Leads, in_spite_of_pairs};
pub(crate) use drift::direction;
pub use final_run::FinalByEstimate;
pub use nodes_apart::NodesApart;
pub(crate) use over::is_over;
pub use pareto::ParetoPoint;
pub use phases::PhaseTotals;
pub use power::{EnergyByWindows, ShownPower};
pub use score::{Estimate, Score};
use score::{estimate, scores};
pub use some_nodes::TrialsOnSomeNodes;
pub(crate) use some_nodes::by_kind;

/// Version of the JSON report's schema; raised by every release that changes a key.
pub const REPORT_SCHEMA: u32 = 1;

/// Candidates in the list of the best.
const TOP: usize = 5;

/// Seconds that a trial takes at least for its share of stolen time to count: it is told in ticks of 10 ms, of which a shorter one has few.
const STEAL_S: f64 = 1.0;

/// What a session found. Numbers come from finished trials only; what was predicted says so in its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// [`REPORT_SCHEMA`].
    pub schema_version: u32,
    /// What was asked.
    pub session: Session,
    /// Wall-clock seconds used of the budget.
    pub used_s: f64,
    /// Names of the hosts that passed trials ran on, in the order of the first on each, where the session names no nodes. Rates of several may not
    /// compare.
    pub hosts: Vec<String>,
    /// Finished trials, failures and repeats included.
    pub trials: usize,
    /// Different candidates that really ran, each at one N or several.
    pub distinct_candidates: usize,
    /// Failed trials by kind.
    pub failures: BTreeMap<Outcome, usize>,
    /// The candidate of the final run at the target N, else at that of the final run; the baseline where the pairs after that run
    /// have taken the choice back; without a passed one, the candidate with the highest median.
    /// Always whole runs.
    pub best: Option<Score>,
    /// What windows say of the best at the target N; `None` where the search goes by whole runs.
    pub estimate: Option<Estimate>,
    /// The final run of the best where one passed, else the last one, whatever came of it. It may have a larger N than the search.
    pub final_run: Option<Row>,
    /// That run divided by the prediction of the windows before it; `None` where none were of its candidate and N.
    pub final_by_estimate: Option<FinalByEstimate>,
    /// The baseline configuration.
    pub baseline: Option<Score>,
    /// Best by baseline.
    pub best_by_baseline: Comparison,
    /// The expert's configuration.
    pub expert: Option<Score>,
    /// Best by the expert's configuration.
    pub best_by_expert: Comparison,
    /// The watts of the best that are compared with a power limit, of its whole runs.
    pub limited_power_w: Option<f64>,
    /// Who has a higher median of its unpaired runs up to the choice than the best.
    pub higher: Option<Higher>,
    /// The choice that the final run verified, where the pairs after it have taken it back.
    pub taken_back: Option<TakenBack>,
    /// How far what the final run verified is ahead of the baseline by the search and the pairs after it; `None` without a pair.
    pub lead: Option<Lead>,
    /// Whether it is over, as no time is left for a run that is still missing, rather than stopped.
    #[serde(skip)]
    pub is_over: bool,
    /// Whether so many runs after the final one failed that no more were made.
    #[serde(skip)]
    pub rounds_failed: bool,
    /// How far the machine drifted: later by earlier runs of the same candidate, no run in two pairs.
    pub drift: Option<Ratio>,
    /// Largest share of a trial's processor time that the hypervisor gave to others, of trials of 1 s or more.
    pub most_stolen: Option<f64>,
    /// Lowest and highest clock seen during trials, in Hz.
    pub clock_hz: Option<[f64; 2]>,
    /// The same of the GPUs that the trials were on.
    pub gpu_clock_hz: Option<[f64; 2]>,
    /// The highest temperature of one of these, in °C.
    pub gpu_temperature_c: Option<f64>,
    /// Nodes that stood apart from the others of a trial.
    pub nodes_apart: Option<NodesApart>,
    /// Trials on some of the nodes, which are in none of the above; `None` where there were none, or before the record is split by nodes.
    pub on_some_nodes: Option<TrialsOnSomeNodes>,
    /// What made the difference between the trials of the search.
    pub importance: Vec<Importance>,
    /// Why that is not judged, as a clause.
    pub importance_not_judged: Option<&'static str>,
    /// Where the time of the final run, else of the best one, went; `None` where its engine does not report it.
    pub phases: Option<PhaseTotals>,
    /// Power and energy of that run; `None` where nothing of it was read.
    pub power: Option<ShownPower>,
    /// How the energies that windows predict compare with those of whole runs; `None` where no candidate has both.
    pub energy_by_windows: Option<EnergyByWindows>,
    /// The candidates at the target N that no other one beats in GFLOP/s and in GFLOPS/W of the core phase, the fastest first; empty
    /// where no power was read.
    pub pareto: Vec<ParetoPoint>,
    /// The candidates with the highest medians of the objective at the target N, by whole runs or by windows as the search goes.
    pub top: Vec<Score>,
    /// What was won, and what to try next; none before the run folder is known.
    pub closing: Vec<String>,
}

impl Summary {
    /// The findings of `session` with the finished trials `rows`.
    pub fn new(session: &Session, rows: &[Row]) -> Self {
        let objective = session.objective;
        let scores = scores(rows, Extent::Whole, objective);
        let searched = match session.extent {
            Extent::Whole => scores.clone(),
            Extent::Windows => self::scores(rows, Extent::Windows, objective),
        };
        let Chosen { baseline, lead, taken_back, best, found, expert } = Chosen::new(session, rows, &scores);
        let (found, usual) = (found.as_ref(), baseline.as_ref());
        let final_run = final_row(session, rows, found);
        let drift = drift::drift(rows);
        let importance_not_judged = drift::shown(drift.as_ref());
        let searched_rows = of_search(session, rows);
        let importance = if importance_not_judged.is_some() { Vec::new() } else { importance(&searched_rows) };
        let searched_score =
            |candidate: &Candidate| searched.iter().find(|score| score.candidate == *candidate).cloned();
        let power_w = |best: &Score| rounds::power_w(rows, &best.candidate).map(|(watts, _)| watts);
        let n = session.n.or(best.as_ref().map(|best| best.candidate.hpl.n));
        // What this host does says nothing of simulated nodes.
        let here = || rows.iter().filter(|row| row.engine != Row::SIMULATED);
        let mut summary = Self {
            schema_version: REPORT_SCHEMA,
            session: session.clone(),
            used_s: session.used_s(rows),
            hosts: hosts(session, rows),
            trials: rows.len(),
            distinct_candidates: distinct(session, rows),
            failures: failures(rows),
            is_over: is_over(session, rows),
            rounds_failed: rounds::have_failed(rounds::at_choice(rows).1),
            best_by_baseline: claims::by_baseline(rows, found, usual, session),
            best_by_expert: claims::by_expert(rows, found, expert.as_ref(), session),
            limited_power_w: best.as_ref().and_then(power_w),
            higher: found.filter(|_| objective.is_rate()).and_then(|found| Higher::find(rows, found, usual, session)),
            taken_back: usual
                .zip(taken_back)
                .and_then(|(usual, why)| TakenBack::new(rows, usual, why, found, objective)),
            lead,
            final_run: final_run.cloned(),
            final_by_estimate: final_run.and_then(|last| FinalByEstimate::new(last, rows)),
            most_stolen: here().filter(|row| row.wall_s >= STEAL_S).filter_map(|row| row.steal_share).reduce(f64::max),
            clock_hz: range(here(), |row| row.clock_hz),
            gpu_clock_hz: range(here(), |row| row.gpu_clock_hz),
            gpu_temperature_c: rows.iter().filter_map(|row| row.gpu_temperature_c).reduce(f64::max),
            nodes_apart: NodesApart::new(rows),
            on_some_nodes: None,
            drift,
            importance,
            importance_not_judged,
            phases: None,
            power: None,
            energy_by_windows: EnergyByWindows::new(rows),
            estimate: found.and_then(|candidate| estimate(candidate, rows)),
            baseline: usual.and_then(searched_score),
            expert: expert.as_ref().and_then(searched_score),
            pareto: pareto::front(scores.iter().filter(|score| Some(score.candidate.hpl.n) == n)),
            top: searched.into_iter().filter(|score| Some(score.candidate.hpl.n) == n).take(TOP).collect(),
            best,
            closing: Vec::new(),
        };
        let shown = summary.shown_trial();
        let row = shown.and_then(|shown| rows.iter().find(|row| row.trial == shown));
        summary.power = row.and_then(ShownPower::new);
        summary
    }

    /// The report for programs: this value as JSON, one line feed at its end.
    ///
    /// # Errors
    /// None that the fields of a summary can have.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        if self.session.engine == Session::OURS {
            return serde_json::to_string_pretty(self).map(|text| text + "\n");
        }
        let mut report = serde_json::to_value(self)?;
        without_ours(&mut report);
        serde_json::to_string_pretty(&report).map(|text| text + "\n")
    }
}

impl Summary {
    /// The passed final run of the best; `None` where that has none.
    pub fn verified_run(&self) -> Option<&Row> {
        let best = at_target_n(&self.best.as_ref()?.candidate, &self.session);
        self.final_run.as_ref().filter(|row| row.passed && at_target_n(&row.candidate(), &self.session) == best)
    }

    /// Whether the baseline is the best, in the place of what the final run verified.
    pub fn default_is_back(&self) -> bool {
        self.taken_back.as_ref().is_some_and(|back| back.default_is_best)
    }

    /// What the search left to gain over its choice; `None` where that was taken back.
    pub fn left(&self) -> Option<&GainLeft> {
        self.session.left.as_ref().filter(|_| !self.default_is_back())
    }

    /// What windows say of the best, where its whole run was at another N, which says nothing beside the default.
    pub fn estimate_at_other_n(&self) -> Option<&Estimate> {
        let n = self.best.as_ref()?.candidate.hpl.n;
        self.estimate.as_ref().filter(|estimate| estimate.candidate.hpl.n != n)
    }

    /// Whether another candidate than the best keeps the power limit of the session by its own runs, as far as the list of the best tells: those
    /// that keep it come first there.
    pub fn others_keep_limit(&self) -> bool {
        let best = self.best.as_ref().map(|best| &best.candidate);
        let keeps = |score: &Score| score.limited_power_w.is_some_and(|watts| self.session.objective.allows(watts));
        let is_other = |score: &Score| best.is_some_and(|best| best.at_n(score.candidate.hpl.n) != score.candidate);
        self.top.iter().any(|score| is_other(score) && keeps(score))
    }

    /// Its passed final run, else the last trial of the best.
    pub fn shown_trial(&self) -> Option<u64> {
        let last = self.verified_run().map(|row| row.trial);
        last.or_else(|| self.best.as_ref()?.trials.last().copied())
    }
}

/// The hosts of passed trials, each by its first name, with or without a domain; none of a session that names its nodes.
fn hosts(session: &Session, rows: &[Row]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.passed && session.hosts.is_empty()) {
        if !hosts.iter().any(|host| short(host) == short(&row.host)) {
            hosts.push(row.host.clone());
        }
    }
    hosts
}

/// How many different candidates really ran: one whose final run has another N than the search is one.
fn distinct(session: &Session, rows: &[Row]) -> usize {
    let ran = rows.iter().filter(|row| row.outcome.ran());
    ran.map(|row| at_target_n(&row.candidate(), session)).collect::<HashSet<Candidate>>().len()
}

/// Failed trials by kind.
fn failures(rows: &[Row]) -> BTreeMap<Outcome, usize> {
    let mut failures = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.passed) {
        *failures.entry(row.outcome).or_default() += 1;
    }
    failures
}

/// The passed final run of `best`, a candidate at the N of the search, else the last one.
fn final_row<'a>(session: &Session, rows: &'a [Row], best: Option<&Candidate>) -> Option<&'a Row> {
    let mut finals = rows.iter().filter(|row| row.strategy == Identity::FINAL);
    let of_best = |row: &&Row| row.passed && Some(&at_target_n(&row.candidate(), session)) == best;
    finals.clone().rfind(of_best).or_else(|| finals.next_back())
}

/// Takes the parameters that only our engine has out of every candidate of a report.
fn without_ours(report: &mut Value) {
    match report {
        Value::Array(values) => values.iter_mut().for_each(without_ours),
        Value::Object(fields) => {
            if let Some(Value::Object(engine)) = fields.get_mut("engine") {
                ["huge_pages", "kernels", "split"].iter().for_each(|name| drop(engine.remove(*name)));
            }
            fields.values_mut().for_each(without_ours);
        }
        _ => {}
    }
}

/// The lowest and the highest of what trials have.
fn range<'a>(rows: impl Iterator<Item = &'a Row> + Clone, of: fn(&Row) -> Option<f64>) -> Option<[f64; 2]> {
    let values = rows.filter_map(of);
    Some([values.clone().reduce(f64::min)?, values.reduce(f64::max)?])
}

/// The trials that the search compares: its N, its extent.
pub(crate) fn of_search<'a>(session: &Session, rows: &'a [Row]) -> Vec<&'a Row> {
    let extent = session.extent;
    rows.iter().filter(|row| row.extent == extent && session.n.is_none_or(|n| n == row.n)).collect()
}

#[cfg(test)]
pub(crate) mod tests;
