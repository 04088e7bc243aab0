//! Random numbers that follow from their arguments by a hash, so that who asks, and how often, changes nothing.
//!
//! `tuner/benches/peers.py` computes the same numbers.

/// A number that follows from its arguments: splitmix64's finalizer, applied to one argument after the other.
pub(crate) fn hash(seed: u64, a: u64, b: u64, c: u64) -> u64 {
    let mix = |state: u64, next: u64| {
        let mut z = (state ^ next).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    [a, b, c].into_iter().fold(mix(0, seed), mix)
}

/// A standard normal number that follows from its arguments, by Box and Muller.
pub(crate) fn normal(seed: u64, point: u64, repeat: u64) -> f64 {
    let uniform = |c| (hash(seed, point, repeat, c) >> 11) as f64 / (1_u64 << 53) as f64;
    (-2.0 * (1.0 - uniform(0)).ln()).sqrt() * (std::f64::consts::TAU * uniform(1)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_peers_script() {
        assert_eq!(hash(1, 2, 3, 4), 15_374_388_949_593_934_587);
        assert!((normal(1, 2, 3) + 0.225_939_890_074_066_4).abs() < 1e-12);
    }

    #[test]
    fn noise_is_normal() {
        let draws: Vec<f64> = (0..4000).map(|k| normal(7, 3, k)).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let variance = draws.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.08, "{mean} {variance}");
    }
}
