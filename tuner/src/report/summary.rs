//! What a session found, computed once from its record; every report prints this.

use std::collections::BTreeMap;

use serde::Serialize;
use space::Candidate;

use super::stats::{Ratio, median, paired_ratio};
use crate::challenge;
use crate::record::{Identity, Outcome, Row};
use crate::session::Session;

/// Version of the JSON report's schema.
pub const REPORT_SCHEMA: u32 = 1;

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
    /// The candidate of the final run at the target N; without a passed one, the candidate with the highest median.
    pub best: Option<Score>,
    /// The final run, whatever came of it. It may have a larger N than the search.
    pub final_run: Option<Row>,
    /// The baseline configuration.
    pub baseline: Option<Score>,
    /// Best by baseline, from runs measured one right after the other once the best was chosen.
    pub best_by_baseline: Option<Ratio>,
    /// The candidates with the highest medians at the best's N.
    pub top: Vec<Score>,
}

/// One candidate's passed runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// What ran.
    pub candidate: Candidate,
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
        let scores = scores(rows);
        let final_run = rows.iter().rfind(|row| row.strategy == Identity::FINAL);
        let score_of = |candidate: Candidate| scores.iter().find(|score| score.candidate == candidate).cloned();
        let at_target = |row: &Row| {
            let mut candidate = row.candidate();
            candidate.hpl.n = session.n.unwrap_or(candidate.hpl.n);
            candidate
        };
        let verified = final_run.filter(|row| row.passed).and_then(|row| score_of(at_target(row)));
        let best = verified.or_else(|| scores.iter().find(|score| Some(score.candidate.hpl.n) == session.n).cloned());
        let best = best.or_else(|| scores.first().cloned());
        let baseline =
            rows.iter().find(|row| row.strategy == Identity::BASELINE).and_then(|row| score_of(row.candidate()));
        let pairs = match (&best, &baseline) {
            (Some(best), Some(baseline)) => challenge::pairs(rows, &best.candidate, &baseline.candidate),
            _ => Vec::new(),
        };
        let n = best.as_ref().map(|best| best.candidate.hpl.n);
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
            top: scores.into_iter().filter(|score| Some(score.candidate.hpl.n) == n).take(TOP).collect(),
            best,
            baseline,
        }
    }

    /// Whether the search ended where it began: at the baseline.
    pub fn default_is_best(&self) -> bool {
        let candidate = |score: &Option<Score>| score.as_ref().map(|score| score.candidate.clone());
        self.best.is_some() && candidate(&self.best) == candidate(&self.baseline)
    }

    /// The report for programs: this value as JSON, one line feed at its end.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// The scores of all candidates that passed, highest median first.
fn scores(rows: &[Row]) -> Vec<Score> {
    let groups = by_candidate(rows.iter().filter(|row| row.score_gflops().is_some()));
    let mut scores: Vec<Score> = groups.into_iter().filter_map(|(candidate, runs)| score(candidate, &runs)).collect();
    scores.sort_by(|a, b| b.rate_gflops.total_cmp(&a.rate_gflops));
    scores
}

fn score(candidate: Candidate, runs: &[&Row]) -> Option<Score> {
    let rates: Vec<f64> = runs.iter().filter_map(|row| row.score_gflops()).collect();
    let fold = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
    Some(Score {
        candidate,
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
    let mut places = std::collections::HashMap::new();
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
    use crate::record::arbitrary::row;
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
            strategy: "bayes".into(),
            cores: vec![0, 1],
            memory_bytes: 8 << 30,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
            n: Some(1000),
            n_fixed: false,
            n_memory: Some(20_000),
            n_limited_by_budget: true,
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
    fn nothing_recorded_is_no_best_and_the_json_says_its_version() {
        let summary = Summary::new(&session(), &[]);
        assert_eq!((summary.best.clone(), summary.best_by_baseline.clone()), (None, None));
        let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
        assert_eq!(json["schema_version"], REPORT_SCHEMA);
        assert!(json["best"].is_null());
        let full = Summary::new(&session(), &[run(0, 64, 2.0, None), failed(1, Outcome::TimedOut)]).json().unwrap();
        let full: serde_json::Value = serde_json::from_str(&full).unwrap();
        assert_eq!((&full["best"]["rate_gflops"], &full["failures"]["timed-out"]), (&2.0.into(), &1.into()));
    }
}
