//! Which of several runs met a slower machine.
//!
//! What slows a machine from outside, others on its memory, its caches or the second thread of its cores, lasts for seconds and
//! only ever slows. So the quicker runs say what the machine does when it is left alone.

/// Fewer runs do not tell which of them were slowed.
const FEW: usize = 8;

/// How much longer than the quicker runs, in proportion, a run takes that was slowed.
const SLOWED: f64 = 0.1;

/// Marks runs that took more than a tenth longer than the lower quartile did, each by its time against what was expected of
/// it. Some are always left: the quicker quarter.
pub(super) fn slowed(ratios: &[f64]) -> Vec<bool> {
    let mut sorted: Vec<f64> = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quick = sorted.get(sorted.len() / 4).copied().unwrap_or(f64::INFINITY);
    ratios.iter().map(|&ratio| ratios.len() >= FEW && ratio > (1.0 + SLOWED) * quick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasted_longer_than_the_quick_ones_was_slowed() {
        assert_eq!(slowed(&[]), Vec::<bool>::new());
        assert_eq!(slowed(&[1.0, 9.0, 9.0]), [false; 3]);
        let ratios = [1.0, 1.04, 0.97, 1.3, 1.02, 1.5, 0.98, 1.01, 1.0];
        assert_eq!(slowed(&ratios), ratios.map(|ratio| ratio > 1.1));
        assert_eq!(slowed(&ratios.map(|ratio| 2.0 * ratio)), slowed(&ratios));
    }
}
