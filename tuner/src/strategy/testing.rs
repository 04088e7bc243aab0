//! Spaces and landscapes for tests.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use space::dims::{Dim, Kind, Level, Point, Space};

use super::{Ctx, Prior, Proposal, Strategy};
use crate::history::{History, Outcome, Trial};

/// All combinations of levels that a rule lets pass.
pub(super) struct Grid {
    dims: Vec<Dim>,
    points: Vec<Point>,
}

impl Grid {
    pub(super) fn new(dims: Vec<Dim>, rule: impl Fn(&[u16]) -> bool) -> Self {
        let mut points = vec![Vec::new()];
        for dim in &dims {
            let grow =
                |head: Vec<u16>| (0..dim.levels.len() as u16).map(move |level| [head.clone(), vec![level]].concat());
            points = points.into_iter().flat_map(grow).collect();
        }
        let points = points.into_iter().filter(|point| rule(point)).map(Point).collect();
        Self { dims, points }
    }
}

impl Space for Grid {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        self.points.contains(point).then(|| point.clone())
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

pub(super) fn categorical(name: &str, labels: &[&str]) -> Dim {
    let levels = labels.iter().enumerate().map(|(i, label)| Level { label: (*label).to_owned(), feature: i as f64 });
    Dim { name: name.to_owned(), kind: Kind::Categorical, levels: levels.collect() }
}

pub(super) fn ordered(name: &str, features: &[f64]) -> Dim {
    let levels = features.iter().map(|&feature| Level { label: feature.to_string(), feature });
    Dim { name: name.to_owned(), kind: Kind::Ordered, levels: levels.collect() }
}

/// A prior given as a table of log rates.
pub(super) struct Table(pub(super) HashMap<Point, f64>);

impl Prior for Table {
    fn log_rate(&self, point: &Point) -> f64 {
        self.0[point]
    }

    fn cost_s(&self, _: &Point) -> f64 {
        1.0
    }
}

/// What a run of a point gives, the `k`-th time it is run.
pub(super) type Run<'a> = &'a dyn Fn(&Point, usize) -> Outcome;

/// Asks `strategy` and answers by `run`, until it has enough or `stop` says so.
pub(super) fn session(
    strategy: &dyn Strategy,
    space: &dyn Space,
    prior: &dyn Prior,
    seed: u64,
    run: Run<'_>,
    mut stop: impl FnMut(&History, &Proposal) -> bool,
    limit: usize,
) -> History {
    let mut history = History::default();
    let mut count: HashMap<Point, usize> = HashMap::new();
    for number in 0..limit as u64 {
        let ctx = Ctx {
            space,
            history: &history,
            prior,
            budget_left_s: (limit as u64 - number) as f64,
            budget_total_s: limit as f64,
            trial: number,
            seed,
        };
        let Some(proposal) = strategy.ask(&ctx) else { break };
        let times = count.entry(proposal.point.clone()).or_default();
        let outcome = run(&proposal.point, *times);
        *times += 1;
        history.trials.push(Trial { number, point: proposal.point.clone(), outcome, wall_s: 1.0 });
        if stop(&history, &proposal) {
            break;
        }
    }
    history
}

/// A normal number that depends on its arguments alone, so that each strategy meets the same noise.
pub(super) fn noise(seed: u64, point: &Point, repeat: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(point.0.iter().fold(repeat as u64, |hash, &level| hash * 1009 + u64::from(level)));
    // Irwin–Hall: the sum of twelve uniform numbers has variance 1.
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}
