//! How far the machine's speed changed over a session.

use std::collections::HashSet;

use super::super::stats::{Ratio, paired_ratio};
use super::score::by_candidate;
use crate::record::{Identity, Row};
use objectives::real::Extent;

/// Ratios of later by earlier runs within which the machine's speed is called steady.
const STEADY: std::ops::RangeInclusive<f64> = 0.97..=1.03;

/// Later by earlier runs of the same candidate, N and extent: the first run of the second half of its runs by the first of the
/// first half, and so on (the pairs of Cox and Stuart's test for a trend). Each run is in one pair only, so that pairs are
/// independent. A run that the search explored is left out: its luck had a part in that its candidate was run again.
pub(super) fn drift(rows: &[Row]) -> Option<Ratio> {
    let explored = explored(rows);
    let mut pairs = Vec::new();
    for extent in [Extent::Whole, Extent::Windows] {
        let of = |row: &&Row| {
            row.extent == extent && row.comparable_rate_gflops().is_some() && !explored.contains(&row.trial)
        };
        for (_, runs) in by_candidate(rows.iter().filter(of)) {
            let half = runs.len() / 2;
            let rates: Vec<f64> = runs.iter().filter_map(|row| row.comparable_rate_gflops()).collect();
            pairs.extend(rates[rates.len() - half..].iter().copied().zip(rates.iter().copied()).take(half));
        }
    }
    paired_ratio(&pairs)
}

/// The trials that first saw a candidate because the search asked for it.
fn explored(rows: &[Row]) -> HashSet<u64> {
    let usual = [Identity::BASELINE, Identity::EXPERT, Identity::CONFIRM];
    let first =
        |runs: &Vec<&Row>| runs.first().filter(|row| !usual.contains(&row.strategy.as_str())).map(|row| row.trial);
    by_candidate(rows.iter()).iter().filter_map(|(_, runs)| first(runs)).collect()
}

/// What a drift that makes runs of different times differ says, as a clause; `None` where there is none.
pub(super) fn shown(drift: Option<&Ratio>) -> Option<&'static str> {
    let drift = drift.filter(|drift| !STEADY.contains(&drift.median))?;
    Some(match drift.interval {
        Some([low, high]) if !(low..=high).contains(&1.0) => "the machine's speed changed",
        _ => "the machine's speed may have changed",
    })
}
