//! What a session found, computed once from its record; every report prints this.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use objectives::real::Extent;
use serde::Serialize;
use serde_json::Value;
use space::Candidate;
use space::result::PhaseTime;

use super::importance::{Importance, importance};
use super::stats::{Ratio, median, paired_ratio};
use crate::challenge;
use crate::history::{offset, offset_sd};
use crate::record::{Fidelity, Identity, Outcome, Row};
use crate::session::Session;

/// Version of the JSON report's schema.
///
/// Version 2 added `estimate` and the `fidelity` of a score; since version 3 candidates of another engine have no parameters
/// that only ours has. Since version 4 the interval of a ratio is exact, and its `level` is beside it.
pub const REPORT_SCHEMA: u32 = 4;

/// Candidates in the list of the best.
const TOP: usize = 5;

/// What a session found. Numbers come from finished trials only; what was predicted says so in its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// [`REPORT_SCHEMA`].
    pub schema_version: u32,
    /// What was asked.
    pub session: Session,
    /// Wall-clock seconds used of the budget.
    pub used_s: f64,
    /// Finished trials, failures and repeats included.
    pub trials: usize,
    /// Different candidates that really ran.
    pub distinct_candidates: usize,
    /// Failed trials by kind.
    pub failures: BTreeMap<Outcome, usize>,
    /// The candidate of the final run at the target N, else at that of the final run; without a passed one, the winner of
    /// the pairs, else the candidate with the highest median. Always whole runs.
    pub best: Option<Score>,
    /// What windows say of the best at the target N; `None` where the search goes by whole runs.
    pub estimate: Option<Estimate>,
    /// The final run, whatever came of it. It may have a larger N than the search.
    pub final_run: Option<Row>,
    /// The baseline configuration.
    pub baseline: Option<Score>,
    /// Best by baseline, from runs measured one right after the other once the best was chosen.
    pub best_by_baseline: Option<Ratio>,
    /// How far the machine drifted: every repeat by the first trial of the same candidate, N and fidelity.
    pub drift: Option<Ratio>,
    /// Largest share of a trial's processor time that the hypervisor gave to others.
    pub most_stolen: Option<f64>,
    /// Lowest and highest clock seen during trials, in Hz.
    pub clock_hz: Option<[f64; 2]>,
    /// What made the difference between the trials of the search.
    pub importance: Vec<Importance>,
    /// Where the time of the final run, else of the best one, went; `None` where its engine does not tell.
    pub phases: Option<PhaseTotals>,
    /// The candidates with the highest medians at the target N, by whole runs or by windows as the search goes.
    pub top: Vec<Score>,
}

/// What windows say of a whole run that nobody has made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// What was sampled, with its N.
    pub candidate: Candidate,
    /// Median of the estimated rates, brought to whole runs by the candidates that have both.
    pub estimated_rate_gflops: f64,
    /// Standard deviation of its logarithm: scatter of the samples, and doubt whether windows and whole runs agree.
    pub estimated_sd: f64,
    /// Trial numbers of the samples.
    pub trials: Vec<u64>,
}

/// One candidate's passed runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// What ran.
    pub candidate: Candidate,
    /// Whole runs, whose rates are measured, or windows, whose rates are estimated.
    pub fidelity: Fidelity,
    /// Number of passed runs.
    pub runs: usize,
    /// Median of their rates.
    pub rate_gflops: f64,
    /// Lowest and highest of their rates.
    pub range_gflops: [f64; 2],
    /// Largest of their scaled residuals.
    pub residual: Option<f64>,
    /// The rate predicted before the first of them.
    pub predicted_rate_gflops: Option<f64>,
    /// Their trial numbers.
    pub trials: Vec<u64>,
}

impl Summary {
    /// The findings of `session` with the finished trials `rows`.
    pub fn new(session: &Session, rows: &[Row]) -> Self {
        let scores = scores(rows, Fidelity::Full);
        let searched = match session.search_by {
            Extent::Whole => scores.clone(),
            Extent::Windows => self::scores(rows, Fidelity::Window),
        };
        let final_run = rows.iter().rfind(|row| row.strategy == Identity::FINAL);
        let score_of = |candidate: Candidate| scores.iter().find(|score| score.candidate == candidate).cloned();
        let at_target = |row: &Row| at_target_n(&row.candidate(), session);
        let passed = final_run.filter(|row| row.passed);
        let verified = passed.and_then(|row| score_of(at_target(row)).or_else(|| score_of(row.candidate())));
        let baseline = rows.iter().find(|row| row.strategy == Identity::BASELINE).map(Row::candidate);
        // Pairs compare what ran before the machine's speed changed with what ran after it; medians do not.
        let winner = || challenge::winner(rows, baseline.as_ref()?).and_then(score_of);
        let best = verified.or_else(winner);
        let best = best.or_else(|| scores.iter().find(|score| Some(score.candidate.hpl.n) == session.n).cloned());
        let best = best.or_else(|| scores.first().cloned());
        let baseline = baseline.and_then(|baseline| searched.iter().find(|score| score.candidate == baseline).cloned());
        let at_search_n = best.as_ref().map(|best| at_target_n(&best.candidate, session));
        let pairs = match (&at_search_n, &baseline) {
            (Some(best), Some(baseline)) => challenge::pairs(rows, best, &baseline.candidate),
            _ => Vec::new(),
        };
        let n = session.n.or(best.as_ref().map(|best| best.candidate.hpl.n));
        let mut failures = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.passed) {
            *failures.entry(row.outcome).or_default() += 1;
        }
        Self {
            schema_version: REPORT_SCHEMA,
            session: session.clone(),
            used_s: session.used_s(rows),
            trials: rows.len(),
            distinct_candidates: by_candidate(rows.iter().filter(|row| row.outcome.ran())).len(),
            failures,
            best_by_baseline: paired_ratio(&pairs),
            final_run: final_run.cloned(),
            drift: drift(rows),
            most_stolen: rows.iter().filter_map(|row| row.steal_share).reduce(f64::max),
            clock_hz: clock_hz(rows),
            importance: importance(&of_search(session, rows)),
            phases: None,
            estimate: at_search_n.and_then(|candidate| estimate(&candidate, rows)),
            top: searched.into_iter().filter(|score| Some(score.candidate.hpl.n) == n).take(TOP).collect(),
            best,
            baseline,
        }
    }

    /// Whether the search ended where it began: at the baseline.
    pub fn default_is_best(&self) -> bool {
        let candidate =
            |score: &Option<Score>| score.as_ref().map(|score| at_target_n(&score.candidate, &self.session));
        self.best.is_some() && candidate(&self.best) == candidate(&self.baseline)
    }

    /// The report for programs: this value as JSON, one line feed at its end.
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
    /// The passed final run, else the last trial of the best.
    pub fn shown_trial(&self) -> Option<u64> {
        let last = self.final_run.as_ref().filter(|row| row.passed).map(|row| row.trial);
        last.or_else(|| self.best.as_ref()?.trials.last().copied())
    }
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

/// Seconds of each phase of a run, mean over its ranks' first threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseTotals {
    /// The trial.
    pub trial: u64,
    /// Panel factorization.
    pub fact_s: f64,
    /// Panel broadcast, waiting included.
    pub lbcast_s: f64,
    /// Row exchange, waiting included.
    pub rs_s: f64,
    /// Triangular solve and DGEMM.
    pub update_s: f64,
    /// Back substitution.
    pub trsv_s: f64,
}

impl PhaseTotals {
    /// The totals of what a trial's phases say; `None` where they say nothing.
    pub fn new(trial: u64, phases: &[PhaseTime]) -> Option<Self> {
        let ranks = phases.iter().map(|phase| phase.rank).max()? as f64 + 1.0;
        let mean = |of: fn(&PhaseTime) -> f64| phases.iter().map(of).sum::<f64>() / ranks;
        Some(Self {
            trial,
            fact_s: mean(|p| p.fact_s),
            lbcast_s: mean(|p| p.lbcast_s),
            rs_s: mean(|p| p.rs_s),
            update_s: mean(|p| p.update_s),
            trsv_s: mean(|p| p.trsv_s),
        })
    }

    /// The phases with HPL's names, in the order of a step.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("FACT", self.fact_s),
            ("LBCAST", self.lbcast_s),
            ("RS", self.rs_s),
            ("UPDATE", self.update_s),
            ("TRSV", self.trsv_s),
        ]
    }
}

/// Every repeat by the first trial of the same candidate, N and fidelity.
fn drift(rows: &[Row]) -> Option<Ratio> {
    let mut firsts = HashMap::new();
    let mut pairs = Vec::new();
    for (row, rate) in rows.iter().filter_map(|row| Some((row, row.figure_gflops()?))) {
        match firsts.entry((row.fidelity, row.candidate())) {
            Entry::Occupied(first) => pairs.push((rate, *first.get())),
            Entry::Vacant(none) => {
                none.insert(rate);
            }
        }
    }
    paired_ratio(&pairs)
}

fn clock_hz(rows: &[Row]) -> Option<[f64; 2]> {
    let clocks = || rows.iter().filter_map(|row| row.clock_hz);
    Some([clocks().reduce(f64::min)?, clocks().reduce(f64::max)?])
}

/// The trials that the search compares: its N, its fidelity.
pub(super) fn of_search<'a>(session: &Session, rows: &'a [Row]) -> Vec<&'a Row> {
    let fidelity = Fidelity::from(session.search_by);
    rows.iter().filter(|row| row.fidelity == fidelity && session.n.is_none_or(|n| n == row.n)).collect()
}

/// The candidate at the N that is searched.
fn at_target_n(candidate: &Candidate, session: &Session) -> Candidate {
    let n = session.n.unwrap_or(candidate.hpl.n);
    Candidate { hpl: space::HplParams { n, ..candidate.hpl }, engine: candidate.engine.clone() }
}

/// What the windows of a candidate say of its whole run; `None` where it has none.
fn estimate(candidate: &Candidate, rows: &[Row]) -> Option<Estimate> {
    let at_n: Vec<&Row> = rows.iter().filter(|row| row.n == candidate.hpl.n).collect();
    let own = at_n.iter().filter(|row| row.fidelity == Fidelity::Window && row.candidate() == *candidate);
    let own: Vec<&&Row> = own.filter(|row| row.figure_gflops().is_some()).collect();
    let logs: Vec<f64> = own.iter().filter_map(|row| row.figure_gflops()).map(f64::ln).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let scatter = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
    let inner = own.iter().filter_map(|row| row.estimated_sd).fold(0.0, f64::max);
    Some(Estimate {
        candidate: candidate.clone(),
        estimated_rate_gflops: (median(&logs)? + offset(&at_n)).exp(),
        estimated_sd: (scatter.max(inner) / count.sqrt()).hypot(offset_sd(&at_n)),
        trials: own.iter().map(|row| row.trial).collect(),
    })
}

/// The scores of all candidates that passed at this fidelity, highest median first.
fn scores(rows: &[Row], fidelity: Fidelity) -> Vec<Score> {
    let groups = by_candidate(rows.iter().filter(|row| row.fidelity == fidelity && row.figure_gflops().is_some()));
    let mut scores: Vec<Score> = groups.into_iter().filter_map(|(candidate, runs)| score(candidate, &runs)).collect();
    scores.sort_by(|a, b| b.rate_gflops.total_cmp(&a.rate_gflops));
    scores
}

fn score(candidate: Candidate, runs: &[&Row]) -> Option<Score> {
    let rates: Vec<f64> = runs.iter().filter_map(|row| row.figure_gflops()).collect();
    let fold = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
    Some(Score {
        candidate,
        fidelity: runs.first()?.fidelity,
        runs: rates.len(),
        rate_gflops: median(&rates)?,
        range_gflops: [fold(f64::min)?, fold(f64::max)?],
        residual: runs.iter().filter_map(|row| row.residual).reduce(f64::max),
        predicted_rate_gflops: runs.first().and_then(|row| row.predicted_rate_gflops),
        trials: runs.iter().map(|row| row.trial).collect(),
    })
}

/// The rows of each candidate, in the order of first appearance.
fn by_candidate<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<(Candidate, Vec<&'a Row>)> {
    let mut groups: Vec<(Candidate, Vec<&Row>)> = Vec::new();
    let mut places = HashMap::new();
    for row in rows {
        let candidate = row.candidate();
        let place = *places.entry(candidate.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(row),
            None => groups.push((candidate, vec![row])),
        }
    }
    groups
}

#[cfg(test)]
pub(crate) mod tests {
    use space::{HplParams, KernelChoice};

    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::session::SESSION_SCHEMA;

    pub(crate) fn session() -> Session {
        Session {
            schema_version: SESSION_SCHEMA,
            name: "host-20261120-070000".into(),
            version: "0.1.0".into(),
            host: "host".into(),
            started_utc: "2026-11-20T07:00:00Z".into(),
            command: "hpl-tune --budget 2m".into(),
            budget_s: 120.0,
            elapsed_s: 12.5,
            seed: 1,
            engine: Session::OURS.into(),
            search_by: Extent::Whole,
            strategy: "bayes".into(),
            cores: vec![0, 1],
            memory_bytes: 8 << 30,
            kernels: Some(KernelChoice::Builtin),
            ranks: None,
            threads: None,
            n: Some(1000),
            n_fixed: false,
            n_memory: Some(20_000),
            n_limited_by_budget: true,
            notes: Vec::new(),
            unequal: space::Unequal::default(),
        }
    }

    /// Trial `number` of the candidate with this NB.
    fn run(number: u64, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
        Row { trial: number, nb, rate_gflops: Some(rate), paired_with, ..row(0) }
    }

    fn confirm(number: u64, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
        Row { strategy: Identity::CONFIRM.into(), ..run(number, nb, rate, paired_with) }
    }

    fn failed(number: u64, outcome: Outcome) -> Row {
        let row = run(number, 256, 99.0, None);
        Row { outcome, passed: false, ..row }
    }

    #[test]
    fn the_best_is_what_the_final_run_verified_not_the_luckiest() {
        let mut rows =
            vec![run(0, 128, 10.0, None), run(1, 64, 12.0, None), run(2, 192, 11.0, None), run(3, 192, 11.2, None)];
        assert_eq!(Summary::new(&session(), &rows).best.unwrap().candidate.hpl.nb, 64);
        rows.push(Row { strategy: Identity::FINAL.into(), ..run(4, 192, 11.1, None) });
        let summary = Summary::new(&session(), &rows);
        let best = summary.best.unwrap();
        assert_eq!((best.candidate.hpl.nb, best.runs, best.rate_gflops), (192, 3, 11.1));
        assert_eq!(best.range_gflops, [11.0, 11.2]);
        assert_eq!(summary.top.iter().map(|score| score.candidate.hpl.nb).collect::<Vec<_>>(), [64, 192, 128]);
    }

    #[test]
    fn a_failed_residual_never_ranks() {
        let rows = [run(0, 128, 10.0, None), failed(1, Outcome::Residual), failed(2, Outcome::Infeasible)];
        let summary = Summary::new(&session(), &rows);
        assert_eq!(summary.best.unwrap().rate_gflops, 10.0);
        assert_eq!(summary.top.len(), 1);
        assert_eq!((summary.trials, summary.distinct_candidates), (3, 2));
        assert_eq!(summary.failures, [(Outcome::Infeasible, 1), (Outcome::Residual, 1)].into());
    }

    #[test]
    fn the_ratio_is_that_of_the_best_at_the_target_n() {
        let baseline = HplParams::baseline(1000, 1, 2).nb;
        let mut rows = vec![Row { strategy: Identity::BASELINE.into(), ..run(0, baseline, 10.0, None) }];
        rows.push(run(1, 192, 20.0, None));
        rows.push(confirm(2, baseline, 10.0, None));
        rows.push(confirm(3, 192, 11.0, Some(2)));
        // The final run is larger: it names the best, and is no pair.
        rows.push(Row { strategy: Identity::FINAL.into(), n: 1200, ..run(4, 192, 12.0, Some(2)) });
        let ratio = Summary::new(&session(), &rows).best_by_baseline.unwrap();
        assert_eq!((ratio.pairs, ratio.median), (1, 1.1));
    }

    #[test]
    fn drift_is_every_repeat_by_the_first() {
        let rows = [run(0, 128, 10.0, None), run(1, 64, 20.0, None), run(2, 128, 9.0, None), run(3, 64, 18.0, None)];
        let drift = Summary::new(&session(), &rows).drift.unwrap();
        assert_eq!((drift.median, drift.pairs), (0.9, 2));
        assert_eq!(Summary::new(&session(), &rows[..2]).drift, None);
    }

    #[test]
    fn phases_are_means_over_ranks() {
        let phase = |rank, fact_s| PhaseTime { rank, fact_s, ..PhaseTime::default() };
        let totals = PhaseTotals::new(3, &[phase(0, 1.0), phase(1, 3.0), phase(0, 1.0), phase(1, 1.0)]).unwrap();
        assert_eq!((totals.fact_s, totals.trial), (3.0, 3));
        assert_eq!(PhaseTotals::new(3, &[]), None);
    }

    #[test]
    fn where_windows_search_the_whole_run_is_measured_and_the_target_estimated() {
        let session = Session { search_by: Extent::Windows, ..session() };
        let baseline = HplParams::baseline(1000, 1, 2).nb;
        let rows = [
            Row { strategy: Identity::BASELINE.into(), ..windows(0, baseline, 20.0) },
            windows(1, 192, 22.0),
            Row { strategy: Identity::CONFIRM.into(), ..windows(2, baseline, 20.0) },
            Row { strategy: Identity::CONFIRM.into(), paired_with: Some(2), ..windows(3, 192, 22.4) },
            Row { strategy: Identity::FINAL.into(), n: 800, ..run(4, 192, 19.0, None) },
        ];
        let summary = Summary::new(&session, &rows);
        let best = summary.best.as_ref().unwrap();
        assert_eq!((best.candidate.hpl.n, best.rate_gflops, best.fidelity), (800, 19.0, Fidelity::Full));
        let estimate = summary.estimate.as_ref().unwrap();
        assert_eq!((estimate.candidate.hpl.n, &estimate.trials), (1000, &vec![1, 3]));
        assert!((22.0..22.4).contains(&estimate.estimated_rate_gflops), "{estimate:?}");
        assert!((0.01..0.03).contains(&estimate.estimated_sd), "{estimate:?}");
        assert_eq!(summary.baseline.as_ref().unwrap().fidelity, Fidelity::Window);
        assert_eq!(summary.best_by_baseline.as_ref().map(|ratio| ratio.pairs), Some(1));
        assert_eq!(summary.top[0].candidate.hpl.nb, 192);
        let text = super::super::table::summary(&summary);
        assert!(text.contains("19.00 GFLOP/s at N = 800") && text.contains("at N = 1000"), "{text}");
    }

    #[test]
    fn nothing_recorded_is_no_best_and_the_json_says_its_version() {
        let summary = Summary::new(&session(), &[]);
        assert_eq!((summary.best.clone(), summary.best_by_baseline.clone()), (None, None));
        let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
        assert_eq!(json["schema_version"], REPORT_SCHEMA);
        assert!(json["best"].is_null());
        let full = Summary::new(&session(), &[run(0, 64, 2.0, None), failed(1, Outcome::TimedOut)]).json().unwrap();
        let full: serde_json::Value = serde_json::from_str(&full).unwrap();
        assert_eq!(full["best"]["candidate"]["engine"]["kernels"], "builtin");
        let foreign = Session { engine: "netlib".into(), kernels: None, ..session() };
        let other: serde_json::Value =
            serde_json::from_str(&Summary::new(&foreign, &[run(0, 64, 2.0, None)]).json().unwrap()).unwrap();
        assert!(other["best"]["candidate"]["engine"]["kernels"].is_null(), "{other}");
        assert_eq!(other["best"]["candidate"]["engine"]["threads"], 1);
        assert_eq!((&full["best"]["rate_gflops"], &full["failures"]["timed-out"]), (&2.0.into(), &1.into()));
    }
}
