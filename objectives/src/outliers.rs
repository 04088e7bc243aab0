//! Outliers among equal ranks or nodes, beyond the noise of their repeats.

use space::stats::{MedianSpread, summary};

/// Minimum relative difference of an outlier to the typical rate.
pub const LEAST: f64 = space::unequal::ALIKE;

/// An outlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its index in the list.
    pub index: usize,
    /// Median of its repeats.
    pub rate: f64,
    /// This median divided by the typical rate: below 1 for a slow one, for which the others wait, above 1 for a fast one.
    pub ratio: f64,
}

/// The outliers: their rate differs from the typical rate by more than [`LEAST`] and by more than the sum of the spread of
/// its repeats and the typical spread. Typical is the median; for an even number the better of the two in the middle, so
/// that of two the slower one is the outlier.
pub fn outliers(rates: &[MedianSpread]) -> Vec<Outlier> {
    let middle = |of: fn(&MedianSpread) -> f64| summary(&rates.iter().map(of).collect::<Vec<_>>()).median;
    let (typical, usual) = (middle(|rate| rate.median), middle(|rate| rate.spread));
    let outlier = |(index, rate): (usize, &MedianSpread)| {
        let ratio = rate.median / typical;
        let stands_out = (ratio - 1.0).abs() > LEAST.max(rate.spread + usual);
        stands_out.then_some(Outlier { index, rate: rate.median, ratio })
    };
    rates.iter().enumerate().filter_map(outlier).collect()
}

/// Share of all rates that is lost when every one gets the same work and waits for the slowest.
pub fn lost_by_equal_shares(rates: &[f64]) -> f64 {
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = rates.iter().sum();
    if sum > 0.0 { 1.0 - slowest * rates.len() as f64 / sum } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(rate: f64, noise: f64) -> MedianSpread {
        summary(&[-1.0, 0.5, 0.0, -0.5, 1.0].map(|step| rate * (1.0 + step * noise)))
    }

    #[test]
    fn one_hot_node_among_eight_is_named() {
        let mut rates: Vec<MedianSpread> = (0..8).map(|i| repeats(100.0 + f64::from(i % 3) * 0.3, 0.004)).collect();
        rates[5] = repeats(90.0, 0.004);
        let found = outliers(&rates);
        assert_eq!(found.len(), 1);
        assert!(found[0].index == 5 && (found[0].ratio - 0.9).abs() < 0.005 && found[0].rate == 90.0);
    }

    #[test]
    fn noise_gives_no_outlier() {
        let within: Vec<MedianSpread> = (0..8).map(|i| repeats(100.0 - f64::from(i) * 0.2, 0.001)).collect();
        assert_eq!(outliers(&within), []);
        // 4 % below, with repeats that spread by more.
        let noisy = [repeats(100.0, 0.05), repeats(96.0, 0.05), repeats(100.0, 0.05)];
        assert_eq!(outliers(&noisy), []);
        assert_eq!(outliers(&[]), []);
        assert_eq!(outliers(&[summary(&[5.0])]), []);
        assert_eq!(outliers(&[summary(&[]), summary(&[1.0, 1.0])]).len(), 1, "one that answers nothing");
    }

    #[test]
    fn a_slow_core_is_named_and_a_noisy_one_is_not() {
        let core = |median, spread| MedianSpread { median, spread };
        let cores = [core(50.0, 0.004), core(50.3, 0.004), core(44.0, 0.004), core(46.0, 0.2), core(50.2, 0.004)];
        let found: Vec<usize> = outliers(&cores).iter().map(|outlier| outlier.index).collect();
        assert_eq!(found, [2]);
        assert!((outliers(&cores)[0].ratio - 44.0 / 50.0).abs() < 1e-9);
        assert!(outliers(&cores[..2]).is_empty());
        assert_eq!(outliers(&[core(40.0, 0.004), core(50.0, 0.004)]).len(), 1);
    }

    /// Four nodes of 32 are a tenth slower: with equal shares nearly all of that tenth is lost everywhere.
    #[test]
    fn equal_shares_run_at_the_pace_of_the_slowest() {
        let rates: Vec<f64> = (0..32).map(|i| if i < 4 { 0.9 } else { 1.0 }).collect();
        assert!((lost_by_equal_shares(&rates) - 0.0886).abs() < 1e-4);
        assert_eq!(lost_by_equal_shares(&[]), 0.0);
    }
}
