//! What one more run is expected to gain.

use std::f64::consts::{PI, SQRT_2};

/// ln E[max(0, z + X)] for a standard normal X: expected improvement in units of the standard deviation.
///
/// Stable far below zero, where the improvement underflows but candidates still differ.
pub(crate) fn log_improvement(z: f64) -> f64 {
    let log_density = -0.5 * z * z - 0.5 * (2.0 * PI).ln();
    if z > -1.0 {
        (log_density.exp() + z * normal_cdf(z)).ln()
    } else {
        // φ(z) + zΦ(z) = φ(z) (1 − t m(t)), t = −z, with Mills' ratio m; 1 − t m(t) ≈ t⁻² cancels for large t.
        let t = -z;
        let rest = if t < 30.0 { 1.0 - t * mills_ratio(t) } else { (1.0 - 3.0 / (t * t)) / (t * t) };
        log_density + rest.ln()
    }
}

/// Standard normal distribution function, by its series near 0 and Mills' ratio in the tails.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    if z.abs() > 3.0 {
        let tail = (-0.5 * z * z).exp() / (SQRT_2 * PI.sqrt()) * mills_ratio(z.abs());
        return if z < 0.0 { tail } else { 1.0 - tail };
    }
    let (mut term, mut sum, mut k) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        k += 2.0;
        term *= z * z / k;
        sum += term;
    }
    0.5 + sum * (-0.5 * z * z).exp() / (SQRT_2 * PI.sqrt())
}

/// (1 − Φ(t)) / φ(t) for t ≥ 1, by Laplace's continued fraction to 1e-9: the farther out, the fewer of its terms are needed.
fn mills_ratio(t: f64) -> f64 {
    const TERMS: f64 = 120.0;
    let terms = (TERMS / (t * t)).ceil() as u32 + 10;
    1.0 / (1..=terms).rev().fold(t, |below, k| t + f64::from(k) / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_function_at_tabulated_values() {
        for (z, value) in
            [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (-2.0, 0.022_750_131_948_179), (4.0, 0.999_968_328_758_167)]
        {
            assert!((normal_cdf(z) - value).abs() < 1e-12, "{z}");
        }
    }

    #[test]
    fn improvement_is_continuous_and_rises() {
        let mut before = log_improvement(-60.0);
        for i in 1..7000 {
            let z = -60.0 + f64::from(i) * 0.01;
            let now = log_improvement(z);
            assert!(now > before && now - before < 0.7, "{z}: {before} {now}");
            before = now;
        }
        assert!((log_improvement(5.0) - 5.0_f64.ln()).abs() < 1e-6);
    }
}
