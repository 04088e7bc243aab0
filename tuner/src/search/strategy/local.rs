//! Climbing from neighbour to neighbour.
//!
//! All neighbours of a centre that fit the time left are run, then the best of them becomes the centre if it is better. At a local optimum the
//! search starts again from a random untried point. The climb is replayed from the record at every call, so that
//! it needs no state.

use std::collections::{HashMap, HashSet};

use rand::RngExt;
use space::dims::Point;
use space::draw::neighbours;

use super::context::{fits, most_expected, rng, untried};
use super::surrogate::log_rate;
use super::{Ctx, Proposal, Strategy};
use crate::search::history::History;

/// Best-improvement local search with restarts.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalSearch;

impl Strategy for LocalSearch {
    fn name(&self) -> &'static str {
        "local"
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        let propose = |point: &Point, why: &str| Proposal {
            point: point.clone(),
            repeat_of: None,
            reference: None,
            why: why.to_owned(),
            predicted: None,
        };
        let values = values(ctx.history);
        let mut covered: HashSet<Point> = HashSet::new();
        // Each trial that no earlier climb passed was a start.
        for trial in &ctx.history.trials {
            let mut centre = trial.point.clone();
            while covered.insert(centre.clone()) {
                let around = neighbours(ctx.space, &centre);
                let (known, fresh): (Vec<&Point>, Vec<&Point>) =
                    around.iter().partition(|point| values.contains_key(*point));
                let fitting = fresh.into_iter().filter(|point| fits(ctx, point)).collect();
                if let Some(point) = most_expected(ctx, fitting) {
                    return Some(propose(point, "neighbour of the current best"));
                }
                let best = known.into_iter().max_by(|a, b| values[*a].total_cmp(&values[*b])).cloned();
                covered.extend(around);
                match best {
                    Some(best) if values[&best] > values[&centre] => {
                        covered.remove(&best);
                        centre = best;
                    }
                    _ => break,
                }
            }
        }
        let untried = untried(ctx);
        if ctx.history.trials.is_empty() {
            return most_expected(ctx, untried).map(|point| propose(point, "best expected by the model"));
        }
        let restart = (!untried.is_empty()).then(|| untried[rng(ctx).random_range(0..untried.len())]);
        restart.map(|point| propose(point, "restart after a local optimum"))
    }
}

/// Mean log rate of every tried point; −∞ where no run passed in time.
pub(crate) fn values(history: &History) -> HashMap<Point, f64> {
    let mut sums: HashMap<Point, (f64, f64)> = HashMap::new();
    for trial in &history.trials {
        let (sum, count) = sums.entry(trial.point.clone()).or_default();
        if let Some(log) = log_rate(trial) {
            *sum += log;
            *count += 1.0;
        }
    }
    let mean = |(sum, count): (f64, f64)| if count > 0.0 { sum / count } else { f64::NEG_INFINITY };
    sums.into_iter().map(|(point, sums)| (point, mean(sums))).collect()
}
