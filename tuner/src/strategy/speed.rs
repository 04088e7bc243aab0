//! How long a suggestion takes: `cargo test --release -p hpl-tune suggestions -- --ignored --nocapture`.

use std::time::Instant;

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use space::dims::{Point, Space};
use space::listed::Listed;

use super::prior::PriorTable;
use super::testing::{categorical, noise, ordered};
use super::{Ctx, Prior, Strategy, bayes};
use crate::history::{History, Outcome, Trial};

/// Nine dimensions as in the HPL domain, 103 680 points.
fn large() -> Listed {
    let range = |count: u16| (0..count).map(f64::from).collect::<Vec<_>>();
    let three = ["a", "b", "c"];
    let dims = vec![
        ordered("grid", &range(3)),
        ordered("nb", &range(20)),
        categorical("pfact", &three),
        categorical("rfact", &three),
        ordered("nbmin", &range(4)),
        ordered("ndiv", &range(2)),
        categorical("bcast", &["a", "b", "c", "d"]),
        ordered("depth", &range(2)),
        categorical("swap", &three),
    ];
    Listed::product(dims, |_| true)
}

fn log_rate(point: &Point) -> f64 {
    let at = |dim: usize| f64::from(point.0[dim]);
    5.0 - 0.002 * (at(1) - 12.0).powi(2) - 0.05 * at(0) - 0.02 * at(6) * at(7) + 0.01 * at(8) - 0.01 * at(4)
}

struct Rough;

impl Prior for Rough {
    fn log_rate(&self, point: &Point) -> f64 {
        log_rate(point) + 0.03 * (f64::from(point.0[1]) * 0.7 + f64::from(point.0[6])).sin()
    }

    fn cost_s(&self, point: &Point) -> f64 {
        100.0 / self.log_rate(point).exp()
    }
}

/// `count` trials at random points, every tenth failed: the dearest kind of record, with two processes to fit.
fn history(space: &Listed, count: usize, seed: u64) -> History {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let trial = |(number, point): (usize, &Point)| {
        let rate = (log_rate(point) + 0.01 * noise(seed, point, 0)).exp();
        let outcome = if number % 10 == 9 { Outcome::Failed } else { Outcome::Rate(rate) };
        Trial { number: number as u64, point: point.clone(), outcome, wall_s: 1.0 }
    };
    History { trials: space.points().sample(&mut rng, count).enumerate().map(trial).collect() }
}

#[test]
#[ignore = "measures time: run it alone"]
fn suggestions_are_fast() {
    let space = large();
    let prior = PriorTable::new(&space, &Rough);
    println!("{} points", space.points().len());
    for (count, target_ms) in [(50, 20.0), (100, 50.0), (500, 500.0)] {
        let time_ms = |seed| {
            let history = history(&space, count, seed);
            let (budget_left_s, budget_total_s) = (50.0, 100.0);
            let trial = count as u64;
            let ctx =
                Ctx { space: &space, history: &history, prior: &prior, budget_left_s, budget_total_s, trial, seed };
            let start = Instant::now();
            assert!(bayes::Bayes.ask(&ctx).is_some());
            start.elapsed().as_secs_f64() * 1e3
        };
        let mut times_ms: Vec<f64> = (0..40).map(time_ms).collect();
        times_ms.sort_by(f64::total_cmp);
        println!("n = {count}: median {:.1} ms, p95 {:.1} ms (target {target_ms})", times_ms[19], times_ms[37]);
        assert!(times_ms[37] <= target_ms, "{times_ms:?}");
    }
}
