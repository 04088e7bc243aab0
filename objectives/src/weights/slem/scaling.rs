//! Symmetric scaling of a non-negative matrix to a doubly stochastic one.

use super::Grouped;

/// Maximum difference of the row sums to 1.
pub const TOLERANCE: f64 = 1e-3;
/// Maximum number of iterations.
const MOST: usize = 100;

/// A scaled matrix with its scaling factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaled {
    /// Doubly stochastic to [`row_error`](Self::row_error).
    pub matrix: Grouped,
    /// E with P₀ = E·P·E: the product of all sqrt(d).
    pub e: Vec<f64>,
    /// Iterations made.
    pub iterations: usize,
    /// Largest |row sum − 1|; NaN when a row is empty.
    pub row_error: f64,
}

/// Equation (9) of \[SLEM-HPL\]: P ← D^{-1/2} P D^{-1/2} with the row sums D, until they are within [`TOLERANCE`] of 1, or
/// 100 times. For a matrix with positive diagonal this always converges.
pub fn scale(matrix: &Grouped) -> Scaled {
    let (mut matrix, groups) = (matrix.clone(), matrix.counts.len());
    let mut e = vec![1.0; groups];
    for iterations in 0.. {
        let sums: Vec<f64> = (0..groups).map(|g| matrix.row_sum(g)).collect();
        let row_error =
            sums.iter().map(|sum| (sum - 1.0).abs()).fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
        if row_error < TOLERANCE || iterations == MOST || !row_error.is_finite() || sums.contains(&0.0) {
            return Scaled { matrix, e, iterations, row_error };
        }
        let d: Vec<f64> = sums.iter().map(|sum| sum.sqrt()).collect();
        for g in 0..groups {
            e[g] *= d[g];
            matrix.diagonal[g] /= d[g] * d[g];
            for h in 0..groups {
                matrix.between[g][h] /= d[g] * d[h];
            }
        }
    }
    unreachable!("the loop ends by its limit")
}

/// Asymptotic factor of the error per iteration (9) at the doubly stochastic `matrix`: (1 − λ)/2 with its
/// smallest eigenvalue λ. Ours: with row sums 1 + x the next ones are 1 + (x − Px)/2 to first order.
pub fn convergence(matrix: &Grouped) -> f64 {
    (1.0 - matrix.eigenvalues()[0]) / 2.0
}
