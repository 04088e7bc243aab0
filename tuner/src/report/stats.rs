//! The few statistics that reports use.

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Resamples of a bootstrap: the ends of its interval then have a standard error of 0.25 % in rank.
const RESAMPLES: usize = 4000;

/// A ratio of two configurations that were measured in turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// Median of the pairs' ratios.
    pub median: f64,
    /// Bootstrap interval of the median at 95 %; `None` for fewer than three pairs, where it would only
    /// repeat the extremes.
    pub interval: Option<[f64; 2]>,
    /// Number of pairs.
    pub pairs: usize,
}

/// Median of `values`; `None` when there are none. No value may be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&mut values.to_vec())
}

/// [`median`] of values that may be put in another order.
fn middle(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let is_odd = values.len() % 2 == 1;
    let (lower, &mut upper, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    // With an even count there is a lower half.
    let below = lower.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(below.map_or(upper, |below| (below + upper) / 2.0))
}

/// Median ratio of `pairs`, first by second, with its interval. The same pairs give the same interval.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
    let interval = (ratios.len() >= 3).then(|| bootstrap(&ratios));
    Some(Ratio { median: median(&ratios)?, interval, pairs: ratios.len() })
}

/// 2.5 % and 97.5 % points of the medians of resamples of `values`, which are not empty.
fn bootstrap(values: &[f64]) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut resample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            resample.fill_with(|| *values.choose(&mut rng).expect("not empty"));
            middle(&mut resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[(share * (RESAMPLES - 1) as f64).round() as usize];
    [at(0.025), at(0.975)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn equal_pairs_have_a_certain_ratio() {
        let ratio = paired_ratio(&[(2.2, 2.0); 5]).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-12);
        assert_eq!(ratio.interval, Some([ratio.median; 2]));
        assert_eq!(ratio.pairs, 5);
        assert_eq!(paired_ratio(&[(2.2, 2.0); 2]).unwrap().interval, None);
        assert_eq!(paired_ratio(&[]), None);
    }

    /// With n values in general position, the bootstrap interval of the median at 95 % holds the median of
    /// the population in about 95 % of experiments, fewer for small n; 15 values: at least 85 % here.
    #[test]
    fn the_interval_holds_the_true_ratio() {
        use rand::RngExt;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let held = (0..200).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..15).map(|_| (1.1 + 0.1 * (rng.random::<f64>() - 0.5), 1.0)).collect();
            let [low, high] = paired_ratio(&pairs).unwrap().interval.unwrap();
            low <= 1.1 && 1.1 <= high
        });
        assert!(held.count() >= 170);
    }
}
