//! Ratios of rates with exact intervals: of configurations that were measured in turn, and of runs that were not.

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
    let exact = order_statistics(ratios.len(), LEVEL);
    Some(Ratio {
        median,
        interval: exact.map(|(k, _)| [ratios[k - 1], ratios[ratios.len() - k]]),
        level: exact.map(|(_, level)| level),
        pairs: ratios.len(),
    })
}

/// A ratio of the medians of two sets of runs that were not made in turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MedianRatio {
    /// Median of the second set by that of the first.
    pub ratio: f64,
    /// Interval of the ratio of the true medians; `None` where a set has fewer than six runs.
    pub interval: Option<[f64; 2]>,
    /// Probability, whatever the two distributions are, that such an interval holds that ratio: at least this. It is 0.938 for
    /// six runs of each, 0.944 or more where one set has more, 0.95 or more from seven of each on.
    pub level: Option<f64>,
    /// Number of runs in each set.
    pub runs: [usize; 2],
}

/// Median of `b` by that of `a`. All runs must be independent of each other.
///
/// Each median has its exact interval. The smallest ratio of values in the two intervals and the largest one hold the true ratio
/// whenever both intervals hold their medians, which has the product of the two levels as its probability.
pub fn ratio_of_medians(a: &[f64], b: &[f64]) -> Option<MedianRatio> {
    let ratio = median(b)? / median(a)?;
    let exact = median_interval(a).zip(median_interval(b));
    Some(MedianRatio {
        ratio,
        interval: exact.map(|(([low_a, high_a], _), ([low_b, high_b], _))| [low_b / high_a, high_b / low_a]),
        level: exact.map(|((_, of_a), (_, of_b))| of_a * of_b),
        runs: [a.len(), b.len()],
    })
}

/// The interval of a median whose level is at least the root of [`LEVEL`], of six values the whole range; its level.
pub(super) fn median_interval(values: &[f64]) -> Option<([f64; 2], f64)> {
    // Six values have an interval of 0.969, and the root is 0.975.
    let (k, level) = order_statistics(values.len(), LEVEL.sqrt()).or_else(|| order_statistics(values.len(), LEVEL))?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(([sorted[k - 1], sorted[sorted.len() - k]], level))
}

/// The narrowest interval x₍ₖ₎ … x₍ₙ₊₁₋ₖ₎ of `n` sorted values that holds the median of their distribution with probability
/// 1 − 2·P(Bin(n, ½) ≤ k − 1) of at least `wanted`, by the sign test: k and that probability. For 0.95 `None` below six values.
fn order_statistics(n: usize, wanted: f64) -> Option<(usize, f64)> {
    // Logarithms: 2⁻ⁿ is 0 in doubles from n = 1075 on.
    let mut log_probability = -(n as f64) * std::f64::consts::LN_2;
    let (mut below, mut best) = (0.0, None);
    for k in 1..=n / 2 {
        below += log_probability.exp();
        let level = 1.0 - 2.0 * below;
        if level < wanted {
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
            let found = order_statistics(n, LEVEL).unwrap();
            assert_eq!(found.0, k, "{n} values");
            assert!((found.1 - level).abs() < 1e-4, "{n} values: {}", found.1);
        }
        assert_eq!(order_statistics(5, LEVEL), None);
        // By the normal distribution k is near n/2 − 0.98·√n.
        let (k, level) = order_statistics(10_000, LEVEL).unwrap();
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

    #[test]
    fn medians_have_an_interval_from_six_runs_of_each() {
        let six = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
        let found = ratio_of_medians(&six, &six.map(|rate| 2.0 * rate)).unwrap();
        assert_eq!((found.ratio, found.runs), (2.0, [6, 6]));
        // Both whole ranges, 0.96875 each.
        assert_eq!((found.interval, found.level), (Some([20.0 / 15.0, 30.0 / 10.0]), Some(0.96875 * 0.96875)));
        let few = ratio_of_medians(&six[..5], &six).unwrap();
        assert_eq!((few.ratio, few.interval, few.level), (12.5 / 12.0, None, None));
        assert_eq!(ratio_of_medians(&[], &six), None);
        for n in 7..40 {
            let runs: Vec<f64> = (0..n).map(f64::from).collect();
            assert!(ratio_of_medians(&runs, &runs).unwrap().level.unwrap() >= LEVEL, "{n}");
        }
    }

    /// Two machines whose runs scatter differently: the interval holds the ratio of their true medians as often as it says.
    #[test]
    fn the_interval_of_unpaired_runs_holds_as_often_as_it_says() {
        const DRAWS: usize = 10_000;
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for (of_a, of_b) in [(6, 6), (7, 12), (25, 8)] {
            // Medians 1 and 0.9: uniform around 1, and the exponential of an exponential.
            let (mut held, mut level) = (0, 0.0);
            for _ in 0..DRAWS {
                let a: Vec<f64> = (0..of_a).map(|_| 0.9 + 0.2 * rng.random::<f64>()).collect();
                let skewed = |u: f64| 0.9 * (-0.05 * (1.0 - u).ln() - 0.05 * std::f64::consts::LN_2).exp();
                let b: Vec<f64> = (0..of_b).map(|_| skewed(rng.random::<f64>())).collect();
                let found = ratio_of_medians(&a, &b).unwrap();
                let [low, high] = found.interval.unwrap();
                held += usize::from((low..=high).contains(&0.9));
                level = found.level.unwrap();
            }
            let share = held as f64 / DRAWS as f64;
            assert!(share >= level - 0.005, "{of_a} and {of_b} runs: {share} of {level}");
        }
    }
}
