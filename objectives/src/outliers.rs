//! Which of several equal things are slower than they should be, beyond the noise of their own repeats.

use space::stats::{Summary, summary};

/// A rate below the others by less than this share is none to speak of.
pub const LEAST: f64 = 0.02;

/// One that is too slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place in the list.
    pub index: usize,
    /// Median of its repeats.
    pub rate: f64,
    /// Share by which that is below the typical one.
    pub below: f64,
}

/// Those whose median is below the typical one by more than [`LEAST`] and by more than the spread of any repeats. The
/// typical one is the median of all, of an even number the better of the two in the middle.
pub fn outliers(rates: &[Vec<f64>]) -> Vec<Outlier> {
    let all: Vec<Summary> = rates.iter().map(|repeats| summary(repeats)).collect();
    let typical = summary(&all.iter().map(|summary| summary.median).collect::<Vec<_>>()).median;
    let noise = all.iter().map(|summary| summary.spread).fold(LEAST, f64::max);
    let outlier = |(index, summary): (usize, &Summary)| {
        let below = 1.0 - summary.median / typical;
        (below > noise).then_some(Outlier { index, rate: summary.median, below })
    };
    all.iter().enumerate().filter_map(outlier).collect()
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

    fn repeats(rate: f64, noise: f64) -> Vec<f64> {
        [-1.0, 0.5, 0.0, -0.5, 1.0].iter().map(|step| rate * (1.0 + step * noise)).collect()
    }

    #[test]
    fn one_hot_node_among_eight_is_named() {
        let mut rates: Vec<Vec<f64>> = (0..8).map(|i| repeats(100.0 + f64::from(i % 3) * 0.3, 0.004)).collect();
        rates[5] = repeats(90.0, 0.004);
        let found = outliers(&rates);
        assert_eq!(found.len(), 1);
        assert!(found[0].index == 5 && (found[0].below - 0.1).abs() < 0.005 && found[0].rate == 90.0);
    }

    #[test]
    fn noise_names_nobody() {
        let within: Vec<Vec<f64>> = (0..8).map(|i| repeats(100.0 - f64::from(i) * 0.2, 0.001)).collect();
        assert_eq!(outliers(&within), []);
        // 4 % below, with repeats that spread by more.
        let noisy = [repeats(100.0, 0.05), repeats(96.0, 0.05), repeats(100.0, 0.05)];
        assert_eq!(outliers(&noisy), []);
        assert_eq!(outliers(&[]), []);
        assert_eq!(outliers(&[vec![5.0]]), []);
        assert_eq!(outliers(&[Vec::new(), vec![1.0, 1.0]]).len(), 1, "one that answers nothing");
    }

    /// Four nodes of 32 are a tenth slower: with equal shares nearly all of that tenth is lost everywhere.
    #[test]
    fn equal_shares_run_at_the_pace_of_the_slowest() {
        let rates: Vec<f64> = (0..32).map(|i| if i < 4 { 0.9 } else { 1.0 }).collect();
        assert!((lost_by_equal_shares(&rates) - 0.0886).abs() < 1e-4);
        assert_eq!(lost_by_equal_shares(&[]), 0.0);
    }
}
