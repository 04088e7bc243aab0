//! The one flop count of the project.

/// Floating-point operations that HPL credits for order `n`: N²(2N/3 + 3/2).
///
/// Source: \[HPL\] `testing/ptest/HPL_pdtest.c`.
///
/// ```
/// assert_eq!(space::flops::hpl_flops(3), 9.0 * (2.0 + 1.5));
/// ```
pub fn hpl_flops(n: usize) -> f64 {
    let n = n as f64;
    n * n * (2.0 / 3.0 * n + 1.5)
}

/// The score of a run in GFLOP/s, from its order and its time in seconds; 0 at order 0, also in no time.
///
/// ```
/// assert_eq!(space::flops::rate_gflops(0, 0.0), 0.0);
/// ```
pub fn rate_gflops(n: usize, time_s: f64) -> f64 {
    if n == 0 { 0.0 } else { hpl_flops(n) / time_s * 1e-9 }
}
