use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::weights::WeightSearch;
use super::*;

/// A host that takes `slow_s` for everything, an accelerator that takes 1, and `transfer_s` for all transfers.
struct Pair {
    slow_s: f64,
    transfer_s: f64,
    /// The host is this much faster on at most 1/28 of the work, which stays in its cache.
    cached: f64,
}

const HARBOR: Pair = Pair { slow_s: 4.22, transfer_s: 0.58, cached: 1.0 };
const DENSE: Pair = Pair { slow_s: 7.0, transfer_s: 0.36, cached: 1.35 };

impl Pair {
    fn times(&self, share: f64, noise: [f64; 2]) -> Times {
        let cached = if share <= 1.0 / 28.0 { self.cached } else { 1.0 };
        let (slow_s, fast_s) = (self.slow_s * share / cached * noise[0], (1.0 - share) * noise[1]);
        Times { slow_s, fast_s, whole_s: slow_s.max(fast_s) + (1.0 - share) * self.transfer_s }
    }

    /// Ratios and times of all iterations, and the balance at the end.
    fn six_states(&self) -> (Vec<u32>, Vec<f64>, SixState) {
        let mut balance = SixState::new(28.4);
        let (mut ratios, mut times) = (Vec::new(), Vec::new());
        while !balance.is_final() {
            let time = self.times(balance.share(), [1.0; 2]);
            ratios.push(balance.ratio());
            times.push(time.whole_s);
            balance.observe(&time);
        }
        (ratios, times, balance)
    }

    /// Excess of the final share's true time over the optimum, mean over `runs` noisy runs.
    fn excess(&self, balance: impl Fn() -> Balance, noise: f64, runs: u64) -> f64 {
        let optimum = self.times(1.0 / (1.0 + self.slow_s), [1.0; 2]).whole_s;
        let one = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            // The sum of twelve uniform numbers is nearly normal.
            let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            let mut balance = balance();
            while !balance.is_final() {
                let factors = [1.0 + noise * normal(), 1.0 + noise * normal()];
                balance.observe(&self.times(balance.share(), factors));
            }
            self.times(balance.share(), [1.0; 2]).whole_s / optimum - 1.0
        };
        (0..runs).map(one).sum::<f64>() / runs as f64
    }
}

fn near(found: &[f64], wanted: &[f64]) {
    assert!(found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 6e-4), "{found:?} is not {wanted:?}");
}

#[test]
fn harbor_stops_with_5_at_iteration_5() {
    let (ratios, times, balance) = HARBOR.six_states();
    assert_eq!((ratios, balance.ratio(), balance.state()), (vec![28, 4, 5, 6], 5, BalanceState::Stop2));
    near(&times, &[1.524, 1.490, 1.308, 1.317]);
    let accelerator_only = HARBOR.times(0.0, [1.0; 2]).whole_s;
    near(&[1.0 - times[2] / times[0]], &[0.1417]);
    assert!((accelerator_only / times[2] - 1.21).abs() < 0.005 && (times[0] / times[2] - 1.165).abs() < 0.001);
}

#[test]
fn dense_stops_with_8_at_iteration_7() {
    let (ratios, times, balance) = DENSE.six_states();
    assert_eq!((ratios, balance.ratio()), (vec![28, 5, 6, 7, 8, 9], 8));
    assert!((DENSE.times(0.0, [1.0; 2]).whole_s / times[4] - 1.14).abs() < 0.005);
}

#[test]
fn a_host_that_is_too_slow_gets_no_work() {
    let mut balance = SixState::new(4.0);
    balance.observe(&Times { slow_s: 2.0, fast_s: 1.0, whole_s: 2.0 });
    assert_eq!((balance.state(), balance.share(), balance.is_final()), (BalanceState::Stop1, 0.0, true));
    balance.observe(&Times { slow_s: 0.0, fast_s: 1.0, whole_s: 1.0 });
    assert_eq!(balance.state(), BalanceState::Stop1);
}

#[test]
fn decreasing_ratios_end_with_all_work_on_the_host() {
    let mut balance = SixState::new(2.0);
    let mut whole_s = 4.0;
    while !balance.is_final() {
        // The host is always faster, the accelerator always slower, and the time falls in every iteration.
        balance.observe(&Times { slow_s: 0.5, fast_s: 1.0, whole_s });
        whole_s *= 0.9;
    }
    assert_eq!((balance.ratio(), balance.state()), (1, BalanceState::Stop2));
}

/// With noise the fixed point is nearer to the optimum than the six states, unless the optimum is at a whole ratio, as that of
/// Dense at 8.
#[test]
fn the_fixed_point_is_near_the_optimum_in_spite_of_noise() {
    for (pair, whole_ratio) in [(HARBOR, false), (DENSE, true)] {
        let fixed = || Balance::FixedPoint(FixedPoint::new(1.0 / 28.0));
        let mut balance = fixed();
        let mut iterations = 0;
        while !balance.is_final() {
            balance.observe(&pair.times(balance.share(), [1.0; 2]));
            iterations += 1;
        }
        assert!(iterations <= 4 && (balance.share() - 1.0 / (1.0 + pair.slow_s)).abs() < 2e-3, "{}", balance.share());
        for (noise, allowed) in [(0.01, 0.01), (0.03, 0.02), (0.05, 0.03)] {
            let fixed = pair.excess(fixed, noise, 400);
            let six = pair.excess(|| Balance::SixState(SixState::new(28.0)), noise, 400);
            println!(
                "noise {noise}: fixed point {:.2} %, six states {:.2} % from the optimum",
                100.0 * fixed,
                100.0 * six
            );
            assert!(fixed < allowed && (whole_ratio || fixed < six), "{noise} {fixed} {six}");
        }
    }
}

/// Blocks are moved even when the second update was no better than the first.
#[test]
fn between_two_ranks_a_block_is_moved_before_the_end() {
    let mut search = WeightSearch::new(vec![0.5, 0.5], 50);
    search.observe(&[1.0, 2.0], 2.0);
    let first = search.weights()[0];
    assert!((first - 2.0 / 3.0).abs() < 1e-12);
    search.observe(&[1.0, 1.1], 1.1);
    search.observe(&[1.2, 1.0], 1.2);
    assert!(!search.is_final() && (search.weights()[0] - (first + 0.02)).abs() < 1e-12, "{search:?}");
    search.observe(&[1.3, 1.0], 1.3);
    assert!(search.is_final() && search.weights()[0] == first, "{search:?}");
}

proptest! {
    #[test]
    fn the_share_stays_a_share(
        times in proptest::collection::vec((0.0..9.0f64, 0.0..9.0f64, 0.0..20.0f64), 1..30),
        start in 0.0..1.0f64,
        peak in 0.0..60.0f64,
    ) {
        for mut balance in [Balance::FixedPoint(FixedPoint::new(start)), Balance::SixState(SixState::new(peak))] {
            for &(slow_s, fast_s, whole_s) in &times {
                balance.observe(&Times { slow_s, fast_s, whole_s });
                prop_assert!((0.0..=1.0).contains(&balance.share()));
            }
        }
    }

    /// Ranks of any speeds, timed exactly: with the final weights all take the same time, within a block.
    #[test]
    fn weights_find_the_speeds(speeds in proptest::collection::vec(0.5..8.0f64, 2..7)) {
        let blocks = 200;
        let time = |w: &f64, speed: &f64| (w * blocks as f64).round() / speed;
        let equal = vec![1.0 / speeds.len() as f64; speeds.len()];
        let mut search = WeightSearch::new(equal.clone(), blocks);
        let longest = |weights: &[f64]| weights.iter().zip(&speeds).map(|(w, s)| time(w, s)).fold(0.0, f64::max);
        let mut runs = 0;
        while !search.is_final() {
            let times: Vec<f64> = search.weights().iter().zip(&speeds).map(|(w, s)| time(w, s)).collect();
            let whole_s = longest(search.weights());
            search.observe(&times, whole_s);
            runs += 1;
            prop_assert!(runs < 60);
        }
        let optimum = blocks as f64 / speeds.iter().sum::<f64>();
        let slack = 2.0 / speeds.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!(longest(search.weights()) <= optimum + slack && longest(search.weights()) <= longest(&equal));
        prop_assert!((search.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn weights_survive_any_times(times in proptest::collection::vec(0.0..5.0f64, 3), zero in any::<bool>()) {
        let start = if zero { vec![0.0, 0.4, 0.6] } else { vec![0.2, 0.3, 0.5] };
        let mut search = WeightSearch::new(start, 50);
        for round in 0..10 {
            search.observe(&times, 10.0 - f64::from(round));
            prop_assert!(search.weights().iter().all(|w| w.is_finite() && *w >= 0.0));
            prop_assert!(!zero || search.weights()[0] == 0.0 || round > 1);
        }
    }
}
