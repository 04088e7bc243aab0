//! The hyperparameters of the process and what is assumed of them.

use std::f64::consts::LN_2;

use space::dims::Space;

use super::data::Data;
use super::kernel::{Kernel, KernelDim, KernelDims};

/// Log-normal prior of one hyperparameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogNormal {
    pub(crate) median: f64,
    /// Standard deviation of the logarithm.
    pub(crate) spread: f64,
}

impl LogNormal {
    /// Known to a factor of two.
    pub(crate) const fn about(median: f64) -> Self {
        Self { median, spread: LN_2 }
    }

    /// Of a standard deviation of what is not there.
    pub(crate) const NONE: Self = Self { median: 0.0, spread: 0.0 };
}

/// What is assumed before any run.
#[derive(Debug, Clone)]
pub(crate) struct Beliefs {
    /// Standard deviation of what dimensions do together.
    pub(crate) signal: LogNormal,
    /// Standard deviation of what each dimension does by itself.
    pub(crate) effects: Vec<LogNormal>,
    /// Standard deviation of one run.
    pub(crate) noise: LogNormal,
    /// Rate of a categorical dimension, divided by the number of dimensions.
    pub(crate) categorical: LogNormal,
    /// Rate (1 / length scale) of an ordered dimension.
    pub(crate) ordered: LogNormal,
    /// Standard deviation of the offset, about 0.
    pub(crate) offset_sd: f64,
    /// Mean of the slope.
    pub(crate) slope_mean: f64,
    /// Standard deviation of the slope.
    pub(crate) slope_sd: f64,
    /// Standard deviation of what each change of the machine's speed adds to the offset.
    pub(crate) change_sd: f64,
    /// Standard deviation of what a speed that wanders adds at each time; a median of 0 where it does not.
    pub(crate) wander: LogNormal,
    /// Time after which it correlates by 1/e with itself, in the length of a usual run.
    pub(crate) memory: LogNormal,
    /// Standard deviation of each of two that are measured in turn, besides what they have in common, which is that of one run; in parts of
    /// that.
    pub(crate) apart: LogNormal,
}

/// The hyperparameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hyper {
    pub(crate) signal: f64,
    pub(crate) noise: f64,
    /// See [`Beliefs::wander`] and [`Beliefs::memory`].
    pub(crate) wander: f64,
    pub(crate) memory: f64,
    /// See [`Beliefs::apart`].
    pub(crate) apart: f64,
    /// One rate per dimension.
    pub(crate) rates: Vec<f64>,
    /// One standard deviation per dimension.
    pub(crate) effects: Vec<f64>,
}

impl Hyper {
    /// `u`: distances from the medians in spreads, in the order of [`Beliefs::priors`].
    pub(super) fn at(priors: &[LogNormal], u: &[f64]) -> Self {
        let values: Vec<f64> = priors.iter().zip(u).map(|(prior, u)| prior.median * (prior.spread * u).exp()).collect();
        let &[signal, noise, wander, memory, apart, ref of_dims @ ..] = values.as_slice() else {
            unreachable!("see `priors`")
        };
        let (rates, effects) = of_dims.split_at(of_dims.len() / 2);
        Self { signal, noise, wander, memory, apart, rates: rates.to_vec(), effects: effects.to_vec() }
    }

    /// u of [`at`](Self::at); 0 where a prior leaves no choice.
    pub(super) fn place(&self, priors: &[LogNormal]) -> Vec<f64> {
        let common = [self.signal, self.noise, self.wander, self.memory, self.apart];
        let values = common.into_iter().chain(self.rates.iter().chain(&self.effects).copied());
        let place = |(value, prior): (f64, &LogNormal)| (value / prior.median).ln() / prior.spread;
        values.zip(priors).map(place).map(|u| if u.is_finite() { u } else { 0.0 }).collect()
    }

    /// Variance of the noise of the difference of two that are measured in turn.
    pub(crate) fn noise_of_pair(&self) -> f64 {
        2.0 * (self.apart * self.noise).powi(2)
    }

    /// The same of two runs one after the other, with what the machine's speed changes in between.
    pub(crate) fn noise_of_two_runs(&self) -> f64 {
        2.0 * (self.noise.powi(2) + self.wander.powi(2) - self.wandering(1.0))
    }

    /// Variance of the noise of an observation.
    pub(super) fn noise_of(&self, data: &Data, i: usize) -> f64 {
        self.noise * self.noise / data.count[i] + self.apart_of(data, i)
    }

    /// The part of it that one of a pair has by itself.
    pub(super) fn apart_of(&self, data: &Data, i: usize) -> f64 {
        if data.pair[i].is_some() { (self.apart * self.noise).powi(2) } else { 0.0 }
    }

    pub(crate) fn kernel(&self, axes: &KernelDims) -> Kernel {
        Kernel::new(axes, self.signal, &self.rates, &self.effects)
    }

    /// What runs have in common of a speed that wanders, with `time` between them: the process of Ornstein and Uhlenbeck.
    pub(crate) fn wandering(&self, time: f64) -> f64 {
        // Of many runs none is assumed, and the exponentials would be an eighth of the time of a suggestion.
        if self.wander == 0.0 { 0.0 } else { self.wander * self.wander * (-time / self.memory).exp() }
    }
}

impl Beliefs {
    /// Of logarithms of rates over `space`, whose dimensions do by themselves what it says; no offset, slope or change.
    pub(crate) fn of_rates(space: &dyn Space, signal: LogNormal, noise: LogNormal) -> Self {
        Self {
            signal,
            effects: space.effects().into_iter().map(|median| LogNormal { median, spread: 1.0 }).collect(),
            noise,
            categorical: LogNormal::about(2.0),
            ordered: LogNormal { median: 1.0, spread: 1.0 },
            offset_sd: 0.0,
            slope_mean: 0.0,
            slope_sd: 0.0,
            change_sd: 0.0,
            wander: LogNormal::NONE,
            memory: LogNormal { median: 1.0, spread: 0.0 },
            apart: LogNormal::about(0.5),
        }
    }

    /// Standard deviation of g before anything is seen.
    pub(crate) fn prior_sd(&self) -> f64 {
        self.effects.iter().map(|effect| effect.median).fold(self.signal.median, f64::hypot)
    }

    /// Priors in the order of the search: signal, noise, wander, memory, apart, rates, effects.
    pub(super) fn priors(&self, axes: &KernelDims) -> Vec<LogNormal> {
        let share = 1.0 / axes.dims.len().max(1) as f64;
        let rates = axes.dims.iter().map(|axis| match axis {
            KernelDim::Categorical(_) => LogNormal { median: self.categorical.median * share, ..self.categorical },
            KernelDim::Ordered(_) => self.ordered,
        });
        let effects = self.effects.iter().copied();
        [self.signal, self.noise, self.wander, self.memory, self.apart]
            .into_iter()
            .chain(rates)
            .chain(effects)
            .collect()
    }
}
