//! The dense factorisation below the Gaussian process, by faer.

use faer::linalg::solvers::Llt;
use faer::{Mat, MatRef, Side};

/// Cholesky factor of a covariance matrix.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    llt: Llt<f64>,
}

impl Factor {
    /// Factors a symmetric matrix, of which the lower triangle is read. A matrix that is only semidefinite in
    /// rounding gets its diagonal raised, by 1e-10 of its mean up to 1e-2; `None` when even that fails (NaN).
    pub(crate) fn new(matrix: MatRef<'_, f64>) -> Option<Self> {
        if let Ok(llt) = matrix.llt(Side::Lower) {
            return Some(Self { llt });
        }
        let size = matrix.nrows();
        let mean = (0..size).map(|i| matrix[(i, i)]).sum::<f64>() / size as f64;
        (-10..=-2).find_map(|exponent| {
            let mut raised = matrix.to_owned();
            for i in 0..size {
                raised[(i, i)] += mean * 10_f64.powi(exponent);
            }
            raised.llt(Side::Lower).ok().map(|llt| Self { llt })
        })
    }

    /// K⁻¹ b.
    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        use faer::linalg::solvers::Solve;
        let mut x = Mat::from_fn(b.len(), 1, |i, _| b[i]);
        self.llt.solve_in_place(x.as_mut());
        (0..b.len()).map(|i| x[(i, 0)]).collect()
    }

    /// L⁻¹ B in place of B.
    pub(crate) fn solve_lower(&self, b: &mut Mat<f64>) {
        self.llt.L().solve_lower_triangular_in_place(b.as_mut());
    }

    /// L of K = L Lᵀ.
    pub(crate) fn lower(&self) -> MatRef<'_, f64> {
        self.llt.L()
    }

    /// K⁻¹.
    pub(crate) fn inverse(&self) -> Mat<f64> {
        use faer::linalg::solvers::DenseSolveCore;
        self.llt.inverse()
    }

    /// ln det K.
    pub(crate) fn log_det(&self) -> f64 {
        let l = self.llt.L();
        (0..l.nrows()).map(|i| 2.0 * l[(i, i)].ln()).sum()
    }
}

/// Elements that sums are made of at a time, so that the compiler uses vector registers: it may not reorder a sum.
pub(crate) const LANES: usize = 8;

/// Σ a b, as far as both go.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_inverts() {
        let k = Mat::from_fn(5, 5, |i, j| (-(i as f64 - j as f64).abs()).exp() + f64::from(u8::from(i == j)));
        let factor = Factor::new(k.as_ref()).unwrap();
        let b = [1.0, -2.0, 0.5, 3.0, 0.0];
        let x = factor.solve(&b);
        let inverse = factor.inverse();
        for i in 0..5 {
            let back: f64 = (0..5).map(|j| k[(i, j)] * x[j]).sum();
            let direct: f64 = (0..5).map(|j| inverse[(i, j)] * b[j]).sum();
            assert!((back - b[i]).abs() < 1e-12 && (direct - x[i]).abs() < 1e-12);
        }
    }

    #[test]
    fn a_singular_matrix_gets_jitter_and_nan_gets_none() {
        let ones = Mat::from_fn(4, 4, |_, _| 1.0);
        assert!(Factor::new(ones.as_ref()).is_some());
        let nan = Mat::from_fn(2, 2, |_, _| f64::NAN);
        assert!(Factor::new(nan.as_ref()).is_none());
    }
}
