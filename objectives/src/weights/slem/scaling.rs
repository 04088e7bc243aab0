//! Symmetric scaling of a non-negative matrix to a doubly stochastic one.

use super::Grouped;

/// Row sums this near to 1 are enough.
pub const TOLERANCE: f64 = 1e-3;
/// Most iterations.
const MOST: usize = 100;

/// A scaled matrix with the scaling that undoes it.
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
/// 100 times. A matrix with positive diagonal always gets there.
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

/// Factor by which an iteration (9) shrinks the error in the end, at the doubly stochastic `matrix`: (1 − λ)/2 with its
/// smallest eigenvalue λ. Ours: with row sums 1 + x the next ones are 1 + (x − Px)/2 to first order.
pub fn convergence(matrix: &Grouped) -> f64 {
    (1.0 - matrix.eigenvalues()[0]) / 2.0
}
