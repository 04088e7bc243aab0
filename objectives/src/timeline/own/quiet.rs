//! Runs that were slowed by other load on the machine.
//!
//! Other load on the memory, the caches or the second hardware thread of a core lasts for seconds and always slows a run. So
//! the faster runs show the speed of the idle machine.

/// Minimum number of runs to detect slowed ones.
const FEW: usize = 8;

/// A slowed run takes longer than the faster runs by at least this fraction.
const SLOWED: f64 = 0.1;

/// Marks the runs whose ratio of measured to expected time exceeds the lower quartile by more than a tenth. The faster quarter
/// is never marked.
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
    fn runs_that_took_longer_than_the_fast_ones_are_slowed() {
        assert_eq!(slowed(&[]), Vec::<bool>::new());
        assert_eq!(slowed(&[1.0, 9.0, 9.0]), [false; 3]);
        let ratios = [1.0, 1.04, 0.97, 1.3, 1.02, 1.5, 0.98, 1.01, 1.0];
        assert_eq!(slowed(&ratios), ratios.map(|ratio| ratio > 1.1));
        assert_eq!(slowed(&ratios.map(|ratio| 2.0 * ratio)), slowed(&ratios));
    }
}
