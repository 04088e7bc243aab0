//! How a machine's speed changes during a session: in steps.
//!
//! Another program that starts, a fan that fails, a clock that falls: all runs from one on are slower by one factor. Such a
//! change is a hypothesis like any other, and is accepted when it explains the runs much better than none does (see
//! [`super::surrogate`]). Rates are brought to the speed of the last run; what is left uncertain of a change is a part of
//! the process's covariance.

/// The accepted changes, by rising time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Drift(Vec<SpeedStep>);

/// One change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SpeedStep {
    /// Place among the trials of the first run after it.
    pub(crate) at: usize,
    /// Logarithm of the new speed over the old one.
    pub(crate) size: f64,
}

impl Drift {
    /// Number of changes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of changes before a trial.
    pub(crate) fn before(&self, trial: usize) -> usize {
        self.0.iter().filter(|step| step.at <= trial).count()
    }

    /// What is added to a trial's log rate to bring it to the speed of the last one.
    pub(crate) fn correction(&self, trial: usize) -> f64 {
        self.0.iter().filter(|step| step.at > trial).map(|step| step.size).sum()
    }

    pub(crate) fn add(&mut self, step: SpeedStep) {
        self.0.push(step);
        self.0.sort_by_key(|step| step.at);
    }

    pub(crate) fn adjust(&mut self, by: &[f64]) {
        self.0.iter_mut().zip(by).for_each(|(step, by)| step.size += by);
    }
}
