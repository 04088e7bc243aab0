//! The few statistics that several places need: middle and spread of repeats, agreement of orders.

/// Repeats in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Median, of an even number the upper one of the two in the middle; 0 without repeats.
    pub median: f64,
    /// (third − first quartile) / median, quartiles by the nearest rank; 0 where the median is not positive.
    pub spread: f64,
}

/// Median and spread of some repeats.
pub fn summary(repeats: &[f64]) -> Summary {
    let mut sorted = repeats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get((sorted.len().saturating_sub(1) as f64 * share).round() as usize).copied();
    let median = at(0.5).unwrap_or(0.0);
    let spread = at(0.75).zip(at(0.25)).map_or(0.0, |(high, low)| high - low);
    Summary { median, spread: if median > 0.0 { spread / median } else { 0.0 } }
}

/// Spearman's ρ of two lists of equal length: the correlation of their ranks. NaN where one list is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Ranks of the values, 0 for the smallest, ties sharing their mean.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|&&other| other == value).count() as f64;
    values.iter().map(|&value| below(value) + (equal(value) - 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_its_spread() {
        assert_eq!(summary(&[]), Summary { median: 0.0, spread: 0.0 });
        assert_eq!(summary(&[3.0, 1.0]), Summary { median: 3.0, spread: 2.0 / 3.0 });
        assert_eq!(summary(&[5.0, 4.0, 1.0, 2.0, 3.0]), Summary { median: 3.0, spread: 2.0 / 3.0 });
        assert_eq!(summary(&[-1.0, -2.0]).spread, 0.0);
    }

    #[test]
    fn orders_agree_disagree_and_tie() {
        assert_eq!(ranks(&[2.0, 9.0, 2.0, 1.0]), [1.5, 3.0, 1.5, 0.0]);
        assert_eq!(spearman(&[1.0, 2.0, 4.0], &[10.0, 20.0, 21.0]), 1.0);
        assert_eq!(spearman(&[1.0, 2.0, 4.0], &[3.0, 2.0, 1.0]), -1.0);
        // Of ranks 0, 1, 2, 3 and 1, 0, 3, 2: 1 − 6 · 4 / (4 · 15).
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[6.0, 5.0, 8.0, 7.0]) - 0.6).abs() < 1e-12);
    }
}
