//! The runs of each candidate, and what they say of it.

use std::collections::HashMap;
use std::f64::consts::FRAC_PI_2;

use objectives::real::Extent;
use serde::Serialize;
use space::Candidate;
use space::stats::{median, sample_sd};

use crate::record::{Objective, Row, limited_power_w};
use crate::search::history::{offset, offset_sd};

/// The rate of a whole run as predicted from windows.
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
    pub extent: Extent,
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
    /// Median of the mean powers of their core phases in watts, of the runs that have GFLOPS/W: of others a part alone was read.
    pub power_w: Option<f64>,
    /// Median of the powers that are compared with a limit, in watts; `None` where none was read.
    #[serde(skip)]
    pub limited_power_w: Option<f64>,
    /// Median of their GFLOP/s per watt of the core phase.
    pub gflops_per_w: Option<f64>,
    /// Number of the runs that this is of.
    #[serde(skip)]
    pub runs_read: usize,
    /// Median of their GFLOP/s per watt of the whole run; of windows per watt that they predict for the core phase.
    pub run_gflops_per_w: Option<f64>,
    /// Their trial numbers.
    pub trials: Vec<u64>,
}

/// What the windows of a candidate say of its whole run; `None` where it has none.
pub(super) fn estimate(candidate: &Candidate, rows: &[Row]) -> Option<Estimate> {
    let at_n: Vec<&Row> = rows.iter().filter(|row| row.n == candidate.hpl.n).collect();
    let own = at_n.iter().filter(|row| row.extent == Extent::Windows && row.candidate() == *candidate);
    let own: Vec<&&Row> = own.filter(|row| row.comparable_rate_gflops().is_some()).collect();
    let logs: Vec<f64> = own.iter().filter_map(|row| row.comparable_rate_gflops()).map(f64::ln).collect();
    // The median of many scatters more than their mean.
    let of_median = if logs.len() > 2 { FRAC_PI_2 } else { 1.0 };
    let inner = own.iter().filter_map(|row| row.estimated_sd).fold(0.0, f64::max);
    Some(Estimate {
        candidate: candidate.clone(),
        estimated_rate_gflops: (median(&logs)? + offset(&at_n)).exp(),
        estimated_sd: (sample_sd(&logs).max(inner) * (of_median / logs.len() as f64).sqrt()).hypot(offset_sd(&at_n)),
        trials: own.iter().map(|row| row.trial).collect(),
    })
}

/// The scores of all candidates that passed at this extent, the highest median of the objective first.
pub(super) fn scores<'a>(rows: impl IntoIterator<Item = &'a Row>, extent: Extent, objective: Objective) -> Vec<Score> {
    let passed = |row: &&Row| row.extent == extent && row.comparable_rate_gflops().is_some();
    let groups = by_candidate(rows.into_iter().filter(passed));
    let mut scores: Vec<Score> = groups.into_iter().filter_map(|(candidate, runs)| score(candidate, &runs)).collect();
    // Without a reading there is no efficiency: such candidates come last.
    let value = |score: &Score| match objective {
        Objective::Gflops => score.rate_gflops,
        Objective::GflopsPerWatt => score.run_gflops_per_w.unwrap_or(0.0),
        // What is above the limit comes after all that keeps it, that of the least power first.
        Objective::GflopsWithin { .. } => {
            let watts = score.limited_power_w.unwrap_or(f64::INFINITY);
            if objective.allows(watts) { score.rate_gflops } else { -watts }
        }
    };
    scores.sort_by(|a, b| value(b).total_cmp(&value(a)).then(b.rate_gflops.total_cmp(&a.rate_gflops)));
    scores
}

fn score(candidate: Candidate, runs: &[&Row]) -> Option<Score> {
    let rates: Vec<f64> = runs.iter().filter_map(|row| row.comparable_rate_gflops()).collect();
    let fold = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
    Some(Score {
        candidate,
        extent: runs.first()?.extent,
        runs: rates.len(),
        rate_gflops: median(&rates)?,
        range_gflops: [fold(f64::min)?, fold(f64::max)?],
        residual: runs.iter().filter_map(|row| row.residual).reduce(f64::max),
        predicted_rate_gflops: runs.first().and_then(|row| row.predicted_rate_gflops),
        power_w: median_of(runs, |row| row.gflops_per_w.and(row.power_w)),
        limited_power_w: median_of(runs, limited_power_w),
        gflops_per_w: median_of(runs, |row| row.gflops_per_w),
        runs_read: runs.iter().filter(|row| row.gflops_per_w.is_some()).count(),
        run_gflops_per_w: median_of(runs, |row| Objective::GflopsPerWatt.value(row)),
        trials: runs.iter().map(|row| row.trial).collect(),
    })
}

fn median_of(runs: &[&Row], figure: fn(&Row) -> Option<f64>) -> Option<f64> {
    median(&runs.iter().filter_map(|row| figure(row)).collect::<Vec<_>>())
}

/// The rows of each candidate, in the order of first appearance.
pub(super) fn by_candidate<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<(Candidate, Vec<&'a Row>)> {
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
