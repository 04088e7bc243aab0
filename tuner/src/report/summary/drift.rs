//! How far the machine's speed changed over a session.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::super::stats::{Ratio, paired_ratio};
use super::score::by_candidate;
use crate::record::{Identity, Row};
use objectives::real::Extent;

/// Ratios of later by earlier runs within which the machine's speed is called steady.
const STEADY: std::ops::RangeInclusive<f64> = 0.97..=1.03;

/// Ratios beyond which a whole interval says so, too.
const SURELY_SLOWER: f64 = 0.99;
const SURELY_FASTER: f64 = 1.01;

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

/// Whether the machine surely became slower or faster: by its interval and more than a little.
pub(crate) fn direction(drift: &Ratio) -> Option<Ordering> {
    let [low, high] = drift.interval?;
    let is_far = !STEADY.contains(&drift.median);
    if high < SURELY_SLOWER || (high < 1.0 && is_far) {
        Some(Ordering::Less)
    } else if low > SURELY_FASTER || (low > 1.0 && is_far) {
        Some(Ordering::Greater)
    } else {
        None
    }
}

/// What a drift that makes runs of different times differ says, as a clause; `None` where there is none.
pub(super) fn shown(drift: Option<&Ratio>) -> Option<&'static str> {
    let drift = drift.filter(|drift| !STEADY.contains(&drift.median))?;
    Some(match direction(drift) {
        Some(_) => "the machine's speed changed",
        None => "the machine's speed may have changed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 0.96 the importances were not judged, as "the machine's speed changed", and the line of the machine did not say so.
    #[test]
    fn what_is_said_of_the_speed_agrees_in_all_places() {
        let drift = |median, interval| Ratio { median, interval: Some(interval), level: Some(0.97), pairs: 8 };
        for (ratio, expected) in [
            (drift(0.96, [0.93, 0.995]), Some(Ordering::Less)),
            (drift(0.985, [0.98, 0.988]), Some(Ordering::Less)),
            (drift(1.05, [1.001, 1.08]), Some(Ordering::Greater)),
            (drift(0.96, [0.93, 1.01]), None),
            (drift(0.985, [0.98, 0.995]), None),
        ] {
            assert_eq!(direction(&ratio), expected, "{ratio:?}");
            let changed = shown(Some(&ratio)) == Some("the machine's speed changed");
            assert!(!changed || expected.is_some(), "{ratio:?}");
        }
    }
}
