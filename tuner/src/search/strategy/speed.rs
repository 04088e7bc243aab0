//! How long a suggestion takes: `cargo test --release -p hpl-tune suggestions -- --ignored --nocapture`.
//!
//! Records get long: a night of short runs has thousands of them, of as many points or of some hundreds again and again.

use std::time::Instant;

use nix::time::{ClockId, clock_gettime};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use space::dims::{Point, Space};
use space::listed::Listed;

use super::nelder_mead::NelderMead;
use super::prior::PriorTable;
use super::testing::{categorical, noise, ordered};
use super::{Ctx, Prior, Strategy, Surrogate, bayes};
use crate::search::history::{History, Trial, TrialResult};

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

/// `count` trials of a minute at random points, every tenth failed: the dearest kind of record, with two processes to fit, which take all of
/// the runs.
fn history(space: &Listed, count: usize, seed: u64) -> History {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let trial = |(number, point): (usize, &Point)| {
        let rate = (log_rate(point) + 0.01 * noise(seed, point, 0)).exp();
        let outcome = if number % 10 == 9 { TrialResult::Failed } else { TrialResult::Rate(rate) };
        Trial { number: number as u64, point: point.clone(), outcome, wall_s: 60.0, pair: None }
    };
    History { trials: space.points().sample(&mut rng, count).enumerate().map(trial).collect(), ..History::default() }
}

#[test]
#[ignore = "measures time: run it alone"]
fn suggestions_are_fast() {
    let space = large();
    let prior = PriorTable::new(&space, &Rough);
    println!("{} points", space.points().len());
    for (count, target_ms) in [(50, 20.0), (100, 50.0), (500, 250.0)] {
        let time_ms = |seed| {
            let history = history(&space, count, seed);
            let (budget_left_s, budget_total_s) = (50.0, 100.0);
            let trial = count as u64;
            let ctx = Ctx {
                space: &space,
                history: &history,
                prior: &prior,
                budget_left_s,
                budget_total_s,
                pairs: None,
                trial,
                seed,
            };
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

/// `count` trials of `distinct` points in turn. One in ten fails, one in thirty is ended at its limit, and after three fifths
/// of them the machine is 6 % slower.
fn long_history(space: &Listed, count: usize, distinct: usize, seed: u64) -> History {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let points: Vec<&Point> = space.points().sample(&mut rng, distinct).collect();
    let trial = |number: usize| {
        let (place, repeat) = (number % distinct, number / distinct);
        let slower = if 5 * number > 3 * count { 0.94_f64.ln() } else { 0.0 };
        let rate = (log_rate(points[place]) + slower + 0.01 * noise(seed, points[place], repeat)).exp();
        let outcome = match place {
            _ if place % 10 == 9 => TrialResult::Failed,
            _ if place % 30 == 7 => TrialResult::TimedOut { at_most_gflops: 1.02 * rate },
            _ => TrialResult::Rate(rate),
        };
        Trial { number: number as u64, point: points[place].clone(), outcome, wall_s: 1.0, pair: None }
    };
    History { trials: (0..count).map(trial).collect(), ..History::default() }
}

/// The context of the next suggestion.
fn after<'a>(space: &'a Listed, prior: &'a PriorTable<'a>, history: &'a History, seed: u64) -> Ctx<'a> {
    let trial = history.trials.len() as u64;
    Ctx { space, history, prior, budget_left_s: 50.0, budget_total_s: 100.0, pairs: None, trial, seed }
}

#[test]
fn a_record_of_5000_runs_leaves_a_suggestion_bounded() {
    let space = large();
    let prior = PriorTable::new(&space, &Rough);
    for distinct in [4900, 500] {
        let history = long_history(&space, 5000, distinct, 1);
        let ctx = after(&space, &prior, &history, 1);
        let start = Instant::now();
        let surrogate = Surrogate::new(&ctx);
        let proposal = bayes::Bayes.ask(&ctx).unwrap();
        // About a second on a core that is not shared; conditioned on all points it would be minutes.
        assert!(start.elapsed().as_secs() < 30, "{distinct} points: {:?}", start.elapsed());
        assert!(surrogate.conditioned_on() <= super::surrogate::most_runs(&history), "{}", surrogate.conditioned_on());
        // A search in its right mind is at the top by now.
        let best = space.points().iter().map(log_rate).fold(f64::NEG_INFINITY, f64::max);
        assert!(best - log_rate(&proposal.point) < 0.05, "{distinct} points: {proposal:?}");
    }
}

#[test]
#[ignore = "measures time: run it alone"]
fn suggestions_after_long_records_are_fast() {
    let space = large();
    let prior = PriorTable::new(&space, &Rough);
    let asked = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let seeds: u64 = asked("SEEDS", "20").parse().unwrap();
    println!(
        "{} points; processor seconds of {seeds} records: median and p95 of Bayes, of Nelder-Mead, median of the leaders",
        space.points().len()
    );
    for count in asked("TRIALS", "50 100 500 1000 2000 5000").split(' ').map(|count| count.parse::<usize>().unwrap()) {
        for distinct in [count * 49 / 50, count / 10] {
            let (mut bayes_s, mut simplex_s, mut leaders_s) = (Vec::new(), Vec::new(), Vec::new());
            for seed in 0..seeds {
                let history = long_history(&space, count, distinct, seed);
                let ctx = after(&space, &prior, &history, seed);
                let timed = |times: &mut Vec<f64>, ask: &dyn Fn()| {
                    let start_s = thread_s();
                    ask();
                    times.push(thread_s() - start_s);
                };
                timed(&mut bayes_s, &|| drop(bayes::Bayes.ask(&ctx)));
                timed(&mut simplex_s, &|| drop(NelderMead.ask(&ctx)));
                timed(&mut leaders_s, &|| drop(bayes::leaders(&ctx, 3)));
            }
            let at = |times: &mut Vec<f64>, share: f64| {
                times.sort_by(f64::total_cmp);
                times[(share * (times.len() - 1) as f64).round() as usize]
            };
            println!(
                "{count:5} trials of {distinct:4} points: {:.3} {:.3}, {:.3} {:.3}, {:.3}; {} MiB",
                at(&mut bayes_s, 0.5),
                at(&mut bayes_s, 0.95),
                at(&mut simplex_s, 0.5),
                at(&mut simplex_s, 0.95),
                at(&mut leaders_s, 0.5),
                peak_mib()
            );
        }
    }
}

/// Processor seconds of this thread: others may use the core too.
fn thread_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 + 1e-9 * time.tv_nsec() as f64
}

/// Largest resident memory of this process so far, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    peak.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}
