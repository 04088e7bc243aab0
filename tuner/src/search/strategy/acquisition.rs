//! What one more run is expected to gain.

use std::f64::consts::TAU;

/// ln E[max(0, z + X)] for a standard normal X: expected improvement in units of the standard deviation.
///
/// Stable far below zero, where the improvement underflows but candidates still differ.
pub(crate) fn log_improvement(z: f64) -> f64 {
    let log_density = -0.5 * z * z - 0.5 * TAU.ln();
    if z > -1.0 {
        (log_density.exp() + z * normal_cdf(z)).ln()
    } else {
        // φ(z) + zΦ(z) = φ(z) (1 − t m), t = −z, and Mills' ratio is m = 1/(t + 1/f): 1 − t m = 1/(1 + t f).
        let t = -z;
        log_density - (t * fraction(t)).ln_1p()
    }
}

/// Standard normal distribution function, by its series near 0 and Mills' ratio in the tails.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    if z.abs() > 1.0 {
        let tail = density / (z.abs() + fraction(z.abs()).recip());
        return if z < 0.0 { tail } else { 1.0 - tail };
    }
    let (mut term, mut sum, mut k) = (z, z, 1.0);
    while (sum + term - sum).abs() > 0.0 {
        k += 2.0;
        term *= z * z / k;
        sum += term;
    }
    0.5 + sum * density
}

/// Its natural logarithm, finite also where the function underflows.
pub(crate) fn log_normal_cdf(z: f64) -> f64 {
    if z > -1.0 {
        return normal_cdf(z).ln();
    }
    let t = -z;
    -0.5 * z * z - 0.5 * TAU.ln() - (t + fraction(t).recip()).ln()
}

/// f of Mills' ratio (1 − Φ(t)) / φ(t) = 1/(t + 1/f) for t ≥ 1, by Laplace's continued fraction t + 2/(t + 3/(t + …)), whose error falls as
/// exp(−2 t √terms).
fn fraction(t: f64) -> f64 {
    let terms = (0.5 * f64::EPSILON.ln() / t).powi(2).ceil() as u32 + 10;
    (2..=terms).rev().fold(t, |below, k| t + f64::from(k) / below)
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
            assert!((log_normal_cdf(z) - value.ln()).abs() < 1e-11, "{z}");
        }
        // By the first terms of the series for large arguments.
        assert!((log_normal_cdf(-50.0) + 1250.0 + (50.0 * TAU.sqrt()).ln() - (-0.0004_f64).ln_1p()).abs() < 1e-6);
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
