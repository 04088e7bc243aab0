//! Ratios of configurations that were measured in turn, with exact intervals.

use serde::Serialize;
use space::stats::median;

/// Level that an interval reaches at least.
const LEVEL: f64 = 0.95;

/// A ratio of two configurations that were measured in turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// Median of the pairs' ratios.
    pub median: f64,
    /// Exact interval of the median, of the level [`level`](Self::level); `None` for fewer than six pairs.
    pub interval: Option<[f64; 2]>,
    /// Probability, whatever the distribution of the ratios, that such an interval holds their true median: at least 0.95.
    pub level: Option<f64>,
    /// Number of pairs.
    pub pairs: usize,
}

/// Median ratio of `pairs`, first by second, with its interval. Pairs must be independent of each other.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let mut ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
    let median = median(&ratios)?;
    ratios.sort_by(f64::total_cmp);
    let exact = order_statistics(ratios.len());
    Some(Ratio {
        median,
        interval: exact.map(|(k, _)| [ratios[k - 1], ratios[ratios.len() - k]]),
        level: exact.map(|(_, level)| level),
        pairs: ratios.len(),
    })
}

/// The narrowest interval x₍ₖ₎ … x₍ₙ₊₁₋ₖ₎ of `n` sorted values that holds the median of their distribution with probability
/// 1 − 2·P(Bin(n, ½) ≤ k − 1) of at least [`LEVEL`], by the sign test: k and that probability. `None` below six values.
fn order_statistics(n: usize) -> Option<(usize, f64)> {
    // Logarithms: 2⁻ⁿ is 0 in doubles from n = 1075 on.
    let mut log_probability = -(n as f64) * std::f64::consts::LN_2;
    let (mut below, mut best) = (0.0, None);
    for k in 1..=n / 2 {
        below += log_probability.exp();
        let level = 1.0 - 2.0 * below;
        if level < LEVEL {
            break;
        }
        best = Some((k, level));
        log_probability += ((n + 1 - k) as f64 / k as f64).ln();
    }
    best
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn equal_pairs_have_a_certain_ratio_and_few_have_no_interval() {
        let ratio = paired_ratio(&[(2.2, 2.0); 6]).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-12);
        assert_eq!(ratio.interval, Some([ratio.median; 2]));
        assert_eq!((ratio.level, ratio.pairs), (Some(0.96875), 6));
        let few = paired_ratio(&[(2.2, 2.0); 5]).unwrap();
        assert_eq!((few.interval, few.level, few.pairs), (None, None, 5));
        assert_eq!(paired_ratio(&[]), None);
    }

    /// k and the levels of published tables of the sign test's interval of a median.
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        let published = [(6, 1, 0.9688), (7, 1, 0.9844), (8, 1, 0.9922), (9, 2, 0.9609), (10, 2, 0.9785)];
        for (n, k, level) in published.into_iter().chain([(15, 4, 0.9648), (20, 6, 0.9586), (25, 8, 0.9567)]) {
            let found = order_statistics(n).unwrap();
            assert_eq!(found.0, k, "{n} values");
            assert!((found.1 - level).abs() < 1e-4, "{n} values: {}", found.1);
        }
        assert_eq!(order_statistics(5), None);
        // By the normal distribution k is near n/2 − 0.98·√n.
        let (k, level) = order_statistics(10_000).unwrap();
        assert!(k.abs_diff(5000 - 98) <= 1 && (0.95..0.952).contains(&level), "{k} {level}");
    }

    /// Whatever the ratios are distributed like, the interval holds their true median as often as its level says.
    #[test]
    fn the_interval_holds_the_true_ratio_as_often_as_it_says() {
        const DRAWS: usize = 10_000;
        let uniform = |rng: &mut ChaCha8Rng| rng.random::<f64>().max(1e-300);
        let normal = |rng: &mut ChaCha8Rng| {
            let (a, b) = (uniform(rng), uniform(rng));
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        let cauchy = |rng: &mut ChaCha8Rng| (std::f64::consts::PI * (uniform(rng) - 0.5)).tan();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n in [6, 7, 11, 15, 25] {
            for shape in ["normal", "heavy tails", "skewed"] {
                let mut ratio = || match shape {
                    "normal" => 1.1 + 0.02 * normal(&mut rng),
                    "heavy tails" => 1.1 + 0.02 * cauchy(&mut rng),
                    _ => 1.1 * (0.8 * normal(&mut rng)).exp(),
                };
                let (mut held, mut level) = (0, 0.0);
                for _ in 0..DRAWS {
                    let pairs: Vec<(f64, f64)> = (0..n).map(|_| (ratio(), 1.0)).collect();
                    let found = paired_ratio(&pairs).unwrap();
                    let [low, high] = found.interval.unwrap();
                    held += usize::from((low..=high).contains(&1.1));
                    level = found.level.unwrap();
                }
                let share = held as f64 / DRAWS as f64;
                assert!(share >= level - 0.01, "{n} pairs, {shape}: {share} of {level}");
            }
        }
    }
}
