//! What the observations say about any point.

use faer::Mat;
use space::dims::Point;

use super::data::Data;
use super::fit::{Beliefs, Hyper, covariance, fit, signal_matrix};
use super::kernel::{Axes, Table, correlation};
use super::linalg::Factor;

/// Mean and standard deviation of y without noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Marginal {
    pub(crate) mean: f64,
    pub(crate) sd: f64,
}

/// A Gaussian process conditioned on data.
#[derive(Debug, Clone)]
pub(crate) struct Posterior {
    pub(crate) beliefs: Beliefs,
    pub(crate) hyper: Hyper,
    pub(crate) data: Data,
    pub(crate) tables: Vec<Table>,
    factor: Factor,
    /// K⁻¹ (y − prior mean).
    pub(crate) alpha: Vec<f64>,
}

/// Distinct points that the hyperparameters are fitted to, at most.
const FIT_POINTS: usize = 80;

/// Points predicted together: large enough for the triangular solve to run as matrix products.
const BLOCK: usize = 256;

impl Posterior {
    /// With hyperparameters fitted to the data.
    pub(crate) fn fitted(axes: &Axes, beliefs: Beliefs, data: Data) -> Option<Self> {
        let hyper = fit(axes, &beliefs, &data.thinned(FIT_POINTS));
        Self::new(axes, beliefs, hyper, data)
    }

    /// `None` when the covariance cannot be factored, which takes values that are not finite.
    pub(crate) fn new(axes: &Axes, beliefs: Beliefs, hyper: Hyper, data: Data) -> Option<Self> {
        let tables = hyper.tables(axes);
        let signal = signal_matrix(&tables, &hyper, &data);
        let factor = Factor::new(covariance(&signal, &beliefs, &hyper, &data).as_ref())?;
        let residual: Vec<f64> = (0..data.len()).map(|i| data.y[i] - beliefs.slope_mean * data.basis[i]).collect();
        let alpha = factor.solve(&residual);
        Some(Self { beliefs, hyper, data, tables, factor, alpha })
    }

    /// Marginals at `points` (\[Rasmussen\], equations 2.25 and 2.26); `basis`: their values of the linear basis.
    pub(crate) fn predict(&self, points: &[&Point], basis: &[f64]) -> Vec<Marginal> {
        let blocks = points.chunks(BLOCK).zip(basis.chunks(BLOCK));
        blocks.flat_map(|(points, basis)| self.predict_block(points, basis)).collect()
    }

    fn predict_block(&self, points: &[&Point], basis: &[f64]) -> Vec<Marginal> {
        let (offset, slope) = (self.beliefs.offset_sd.powi(2), self.beliefs.slope_sd.powi(2));
        let variance = self.hyper.signal * self.hyper.signal;
        let mut cross = Mat::from_fn(self.data.len(), points.len(), |i, j| {
            variance * correlation(&self.tables, &self.data.points[i], points[j])
                + offset
                + slope * self.data.basis[i] * basis[j]
        });
        let means: Vec<f64> = (0..points.len())
            .map(|j| {
                let known: f64 = cross.col(j).iter().zip(&self.alpha).map(|(k, alpha)| k * alpha).sum();
                self.beliefs.slope_mean * basis[j] + known
            })
            .collect();
        self.factor.solve_lower(&mut cross);
        let marginal = |j: usize| {
            let explained: f64 = cross.col(j).iter().map(|v| v * v).sum();
            let left = variance + offset + slope * basis[j] * basis[j] - explained;
            Marginal { mean: means[j], sd: left.max(0.0).sqrt() }
        };
        (0..points.len()).map(marginal).collect()
    }

    /// Log density of each distinct point's mean given all others (\[Rasmussen\], equation 5.12), summed.
    pub(crate) fn leave_one_out(&self) -> f64 {
        let inverse = self.factor.inverse();
        let score = |i: usize| {
            let precision = inverse[(i, i)];
            let error = self.alpha[i] / precision;
            0.5 * precision.ln() - 0.5 * error * error * precision
        };
        (0..self.data.len()).map(score).sum()
    }
}
