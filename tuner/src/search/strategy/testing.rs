//! Spaces and landscapes for tests.

use std::collections::HashMap;

use space::dims::{Dim, DimKind, Level, Point, Space};

use super::{Prior, Proposal, Strategy};
use crate::replay::play::search;
use crate::search::hashed::normal;
use crate::search::history::{History, TrialResult};

pub(super) fn categorical(name: &str, labels: &[&str]) -> Dim {
    let levels = labels.iter().enumerate().map(|(i, label)| Level { label: (*label).to_owned(), feature: i as f64 });
    Dim { name: name.to_owned(), kind: DimKind::Categorical, levels: levels.collect() }
}

pub(crate) fn ordered(name: &str, features: &[f64]) -> Dim {
    let levels = features.iter().map(|&feature| Level { label: feature.to_string(), feature });
    Dim { name: name.to_owned(), kind: DimKind::Ordered, levels: levels.collect() }
}

/// A prior given as a table of log rates.
pub(super) struct TablePrior(pub(super) HashMap<Point, f64>);

impl Prior for TablePrior {
    fn log_rate(&self, point: &Point) -> f64 {
        self.0[point]
    }

    fn cost_s(&self, _: &Point) -> f64 {
        1.0
    }
}

/// Each level of the first dimension is faster than the one below it, and takes ten times as long.
pub(super) struct Dear;

impl Prior for Dear {
    fn log_rate(&self, point: &Point) -> f64 {
        f64::from(point.0[0])
    }

    fn cost_s(&self, point: &Point) -> f64 {
        10.0_f64.powi(i32::from(point.0[0]))
    }
}

/// What a run of a point gives, the `k`-th time it is run.
pub(super) type RunPoint<'a> = &'a dyn Fn(&Point, usize) -> TrialResult;

/// Asks `strategy` and answers by `run`, until it has enough or `stop` says so.
pub(super) fn session(
    strategy: &dyn Strategy,
    space: &dyn Space,
    prior: &dyn Prior,
    seed: u64,
    run: RunPoint<'_>,
    mut stop: impl FnMut(&History, &Proposal) -> bool,
    limit: usize,
) -> History {
    search(strategy, (space, prior), seed, limit, &mut |point, repeat| run(point, repeat), &mut stop).0
}

/// A normal number that depends on its arguments alone, so that each strategy meets the same noise.
pub(super) fn noise(seed: u64, point: &Point, repeat: usize) -> f64 {
    let place = point.0.iter().fold(0, |hash: u64, &level| hash.wrapping_mul(1009).wrapping_add(u64::from(level)));
    normal(seed, place, repeat as u64)
}
