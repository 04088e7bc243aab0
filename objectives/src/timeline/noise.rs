//! Noise of calls with equal work, and pseudo-random numbers.
//!
//! A call takes 1 + spread·d times its mean, where d is half-normal, shifted and scaled to mean 0 and deviation 1.

/// Mean and standard deviation of the absolute value of a standard normal number.
const HALF_NORMAL: (f64, f64) = (0.797_884_560_802_865, 0.602_810_274_989_087);

/// Mean d of the slowest of `n` calls: the largest of n half-normal numbers is the largest of 2n normal ones, for which the
/// limit law of large n is used.
pub(super) fn slowest_of(n: usize) -> f64 {
    let (mean, deviation) = HALF_NORMAL;
    if n < 2 {
        return 0.0;
    }
    let log = (2.0 * n as f64).ln();
    let scale = (2.0 * log).sqrt();
    let largest =
        scale - (log.ln() + (4.0 * std::f64::consts::PI).ln()) / (2.0 * scale) + 0.577_215_664_901_533 / scale;
    (largest - mean) / deviation
}

/// d of one call, a function of `seed`.
pub(super) fn one(seed: u64) -> f64 {
    let (mean, deviation) = HALF_NORMAL;
    (normal(seed).abs() - mean) / deviation
}

/// A standard normal number, a function of `seed`.
pub(crate) fn normal(seed: u64) -> f64 {
    let [radius, angle] = [0, 1].map(|part| uniform(seed.wrapping_mul(2).wrapping_add(part)));
    // The radius is below 1, so the argument of the logarithm is positive.
    (-2.0 * (1.0 - radius).ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
}

/// A number from 0 to below 1, a function of `seed`.
pub(crate) fn uniform(seed: u64) -> f64 {
    (mix(seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// The finalizer of splitmix64: close seeds give unrelated numbers.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_stated_mean_and_deviation() {
        let calls: Vec<f64> = (0..100_000).map(one).collect();
        let mean = calls.iter().sum::<f64>() / 1e5;
        let variance = calls.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "mean {mean}, variance {variance}");
    }

    #[test]
    fn the_slowest_of_many_is_where_the_limit_says() {
        for n in [4, 32, 500] {
            let groups = 2000;
            let slowest = |group: u64| (0..n).map(|i| one(group * n + i)).fold(f64::MIN, f64::max);
            let mean = (0..groups).map(slowest).sum::<f64>() / groups as f64;
            let limit = slowest_of(n as usize);
            assert!((mean - limit).abs() < 0.15, "{n}: {mean} and {limit}");
        }
    }
}
