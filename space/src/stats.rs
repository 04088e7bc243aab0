//! The few statistics that several places need: middle and spread of values, agreement of orders.

/// Median and spread of repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianSpread {
    /// Median, of an even number the upper one of the two in the middle; 0 without repeats.
    pub median: f64,
    /// (third − first quartile) / median, quartiles: the value at the rounded position (n − 1)·p; 0 where the median is not positive.
    pub spread: f64,
}

/// Median and spread of some repeats.
pub fn summary(repeats: &[f64]) -> MedianSpread {
    let mut sorted = repeats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get((sorted.len().saturating_sub(1) as f64 * share).round() as usize).copied();
    let median = at(0.5).unwrap_or(0.0);
    let spread = at(0.75).zip(at(0.25)).map_or(0.0, |(high, low)| high - low);
    MedianSpread { median, spread: if median > 0.0 { spread / median } else { 0.0 } }
}

/// Median of `values`, of an even number the mean of the two in the middle; `None` when there are none. No value may be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    if values.is_empty() {
        return None;
    }
    let is_odd = values.len() % 2 == 1;
    let middle = values.len() / 2;
    let (lower, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    // With an even count there is a lower half.
    let below = lower.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(below.map_or(upper, |below| (below + upper) / 2.0))
}

/// Mean of `values`; 0 when there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sum of the squared deviations of `values` from their mean.
pub fn squared_deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Standard deviation of the population that `values` were drawn from, √(Σ(x − x̄)²/(n − 1)); 0 for fewer than two.
pub fn sample_sd(values: &[f64]) -> f64 {
    (squared_deviations(values) / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// Spearman's ρ of two lists of equal length: the correlation of their ranks. NaN where one list is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Ranks of the values, 0 for the smallest, ties sharing their mean. No value may be NaN.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut below) = (vec![0.0; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = below as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|&at| ranks[at] = rank);
        below += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_its_spread() {
        assert_eq!(summary(&[]), MedianSpread { median: 0.0, spread: 0.0 });
        assert_eq!(summary(&[3.0, 1.0]), MedianSpread { median: 3.0, spread: 2.0 / 3.0 });
        assert_eq!(summary(&[5.0, 4.0, 1.0, 2.0, 3.0]), MedianSpread { median: 3.0, spread: 2.0 / 3.0 });
        assert_eq!(summary(&[-1.0, -2.0]).spread, 0.0);
    }

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn deviations_from_the_mean() {
        assert_eq!((mean(&[]), sample_sd(&[]), sample_sd(&[7.0])), (0.0, 0.0, 0.0));
        assert_eq!((mean(&[1.0, 2.0, 6.0]), squared_deviations(&[1.0, 2.0, 6.0])), (3.0, 14.0));
        assert_eq!(sample_sd(&[1.0, 2.0, 6.0]), 7f64.sqrt());
    }

    #[test]
    fn the_ranks_of_many_values_take_no_time() {
        let ranks = ranks(&(0..200_000).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!((ranks[0], ranks[199_999]), (199_999.0, 0.0));
    }

    #[test]
    fn orders_agree_disagree_and_tie() {
        assert_eq!(ranks(&[2.0, 9.0, 2.0, 1.0]), [1.5, 3.0, 1.5, 0.0]);
        assert_eq!(ranks(&[0.0, -0.0, -1.0]), [1.5, 1.5, 0.0]);
        assert_eq!(spearman(&[1.0, 2.0, 4.0], &[10.0, 20.0, 21.0]), 1.0);
        assert_eq!(spearman(&[1.0, 2.0, 4.0], &[3.0, 2.0, 1.0]), -1.0);
        // Of ranks 0, 1, 2, 3 and 1, 0, 3, 2: 1 − 6 · 4 / (4 · 15).
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[6.0, 5.0, 8.0, 7.0]) - 0.6).abs() < 1e-12);
    }
}
