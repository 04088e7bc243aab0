//! The hyperparameters that explain the observations best.
//!
//! Maximum of the log marginal likelihood (\[Rasmussen\], equation 5.8) plus weak log-normal priors, by L-BFGS from
//! a few starts with the analytic gradient (equation 5.9). All hyperparameters are positive: the search runs over their
//! logarithms. With no data the priors' medians are the answer, so that few observations change little.

use std::cell::{Ref, RefCell};
use std::f64::consts::TAU;

use super::data::Data;
use super::hyper::{Beliefs, Hyper, LogNormal};
use super::kernel::{Kernel, KernelDims};
use super::linalg::Factor;
use super::parts::{Covariance, CovarianceParts};
use crate::search::strategy::acquisition::normal_cdf;
use argmin::core::{CostFunction, Executor, Gradient};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;

/// Steps of a climb, at most, and of a chain to each draw.
const STEPS: usize = 25;

/// The most probable hyperparameters. Deterministic.
pub(crate) fn fit(axes: &KernelDims, beliefs: &Beliefs, data: &Data) -> Hyper {
    let priors = beliefs.priors(axes);
    let origin = vec![0.0; priors.len()];
    if data.len() < 2 {
        return Hyper::at(&priors, &origin);
    }
    // From the medians, and from where dimensions matter little and noise explains more.
    let of_dims = std::iter::repeat_n(-1.0, axes.dims.len()).chain(std::iter::repeat_n(0.0, axes.dims.len()));
    let smooth = [0.0, 1.0, 0.0, 0.0, 0.0].into_iter().chain(of_dims).collect();
    let parts = CovarianceParts::new(axes, beliefs, data);
    let problem = Climb { axes, beliefs, data, priors: &priors, parts: &parts };
    let best = [origin.clone(), smooth]
        .into_iter()
        .map(|start| problem.run(start))
        .min_by(|a, b| a.value.total_cmp(&b.value))
        .filter(|best| best.value.is_finite());
    Hyper::at(&priors, &best.map_or(origin, |best| best.at))
}

/// One evaluation of the negative log posterior.
#[derive(Debug, Clone)]
struct Evaluation {
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// A search over u = (ln θ − ln median) / spread, in which the priors are standard normal.
#[derive(Clone, Copy)]
struct Climb<'a> {
    axes: &'a KernelDims,
    beliefs: &'a Beliefs,
    data: &'a Data,
    priors: &'a [LogNormal],
    parts: &'a CovarianceParts<'a>,
}

impl Climb<'_> {
    fn run(self, start: Vec<f64>) -> Evaluation {
        let first = evaluate(self, &start);
        // L-BFGS takes its first step along the plain gradient: let that be at most 1 long.
        let steepness = first.gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let problem = FitProblem {
            climb: self,
            scale: 1.0 / steepness.max(1.0),
            last: RefCell::new(first.clone()),
            best: RefCell::new(first),
        };
        // The best point seen is kept by the problem: a line search that fails ends the climb, it does not spoil it.
        if let Ok(solver) =
            LBFGS::new(MoreThuenteLineSearch::new(), self.priors.len()).with_tolerance_cost(1e-2 * problem.scale)
        {
            let executor = Executor::new(&problem, solver);
            let _stopped = executor.configure(|state| state.param(start).max_iters(STEPS as u64)).ctrlc(false).run();
        }
        problem.best.into_inner()
    }
}

struct FitProblem<'a> {
    climb: Climb<'a>,
    scale: f64,
    /// Value and gradient come from one factorization, argmin asks for them one after the other.
    last: RefCell<Evaluation>,
    best: RefCell<Evaluation>,
}

impl FitProblem<'_> {
    fn at(&self, u: &[f64]) -> Ref<'_, Evaluation> {
        if self.last.borrow().at != u {
            let new = evaluate(self.climb, u);
            if new.value < self.best.borrow().value {
                *self.best.borrow_mut() = new.clone();
            }
            *self.last.borrow_mut() = new;
        }
        self.last.borrow()
    }
}

impl CostFunction for &FitProblem<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, u: &Self::Param) -> Result<f64, argmin::core::Error> {
        Ok(self.scale * self.at(u).value)
    }
}

impl Gradient for &FitProblem<'_> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, u: &Self::Param) -> Result<Vec<f64>, argmin::core::Error> {
        Ok(self.at(u).gradient.iter().map(|g| self.scale * g).collect())
    }
}

/// What the observations say of hyperparameters.
struct Explained {
    hyper: Hyper,
    kernel: Kernel,
    covariance: Covariance,
    factor: Factor,
    alpha: Vec<f64>,
    /// Negative log marginal likelihood, up to a constant.
    value: f64,
}

fn explained(climb: Climb<'_>, u: &[f64]) -> Option<Explained> {
    let Climb { axes, beliefs, data, priors, parts } = climb;
    let hyper = Hyper::at(priors, u);
    let kernel = hyper.kernel(axes);
    let covariance = parts.at(&hyper, &kernel);
    let factor = Factor::new(covariance.whole.as_ref())?;
    let residual: Vec<f64> = (0..data.len()).map(|i| data.y[i] - beliefs.slope_mean * data.basis[i]).collect();
    let alpha = factor.solve(&residual);
    // Repeats within points see the noise alone.
    let within = data.repeats() * hyper.noise.ln() + 0.5 * data.within / (hyper.noise * hyper.noise);
    let between = 0.5 * residual.iter().zip(&alpha).map(|(r, a)| r * a).sum::<f64>() + 0.5 * factor.log_det();
    let value = within + between;
    value.is_finite().then_some(Explained { hyper, kernel, covariance, factor, alpha, value })
}

/// Negative log posterior with its gradient. Of the logarithms in the order of [`Beliefs::priors`], each in units of its prior.
fn evaluate(climb: Climb<'_>, u: &[f64]) -> Evaluation {
    let Climb { data, priors, parts, .. } = climb;
    let Some(Explained { hyper, kernel, covariance, factor, alpha, mut value }) = explained(climb, u) else {
        return Evaluation { at: u.to_vec(), value: f64::INFINITY, gradient: u.to_vec() };
    };
    // ∂/∂θ = ½ tr((K⁻¹ − α αᵀ) ∂K/∂θ).
    let mut weight = factor.inverse();
    for j in 0..data.len() {
        for i in j..data.len() {
            weight[(i, j)] -= alpha[i] * alpha[j];
        }
    }
    let mut gradient = parts.slopes(&covariance, &hyper, &kernel, &weight);
    // The noise is the second of the priors.
    gradient[1] += data.repeats() - data.within / (hyper.noise * hyper.noise);
    for ((slope, &u), prior) in gradient.iter_mut().zip(u).zip(priors) {
        value += 0.5 * u * u;
        *slope = *slope * prior.spread + u;
    }
    Evaluation { at: u.to_vec(), value, gradient }
}

/// Hyperparameters drawn from their posterior, by elliptical slice sampling (Murray, Adams & MacKay, 2010), from the most probable
/// ones, `start`; `normal` gives standard normal numbers.
pub(crate) fn draws(
    axes: &KernelDims,
    beliefs: &Beliefs,
    data: &Data,
    start: &Hyper,
    count: usize,
    normal: &mut dyn FnMut() -> f64,
) -> Vec<Hyper> {
    let priors = beliefs.priors(axes);
    let parts = CovarianceParts::new(axes, beliefs, data);
    let climb = Climb { axes, beliefs, data, priors: &priors, parts: &parts };
    let mut u = start.place(&priors);
    let Some(first) = explained(climb, &u) else { return vec![start.clone(); count] };
    let mut value = first.value;
    let mut draws = Vec::with_capacity(count);
    let mut step: usize = 0;
    while draws.len() < count {
        let across: Vec<f64> = u.iter().map(|_| normal()).collect();
        let level = value - normal_cdf(normal()).ln();
        let mut angle = TAU * normal_cdf(normal());
        let mut bracket = (angle - TAU, angle);
        // It closes in on u itself, which is below the level.
        loop {
            let moved: Vec<f64> = u.iter().zip(&across).map(|(u, v)| u * angle.cos() + v * angle.sin()).collect();
            if let Some(new) = explained(climb, &moved).filter(|new| new.value <= level) {
                (u, value) = (moved, new.value);
                break;
            }
            if angle < 0.0 {
                bracket.0 = angle
            } else {
                bracket.1 = angle
            }
            angle = bracket.0 + (bracket.1 - bracket.0) * normal_cdf(normal());
        }
        step += 1;
        if step.is_multiple_of(STEPS) {
            draws.push(Hyper::at(&priors, &u));
        }
    }
    draws
}

#[cfg(test)]
mod tests;
