//! Windows: some steps of the target-size problem, without the steps before them.
//!
//! A window of steps k₀ … k₀ + n − 1 runs on the trailing matrix of a step just before k₀ ([`Window::begin`]), filled with new
//! random numbers at its place in the local matrix: the same shapes, leading dimension, pages, messages and schedule as in
//! the whole run. With b = A·1 of the trailing matrix the solution stays the vector of ones, so that the matrix after the
//! window can be checked in O(n²).

mod choose;
mod compare;
mod predict;

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use space::HplParams;
use space::result::PhaseTime;

pub use self::choose::{Windows, covers_owner_cycle};
pub use self::compare::{RateRatio, in_turn};
pub use self::predict::{WholeRunPrediction, predict};

/// Some consecutive steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Index of the first step, from 0.
    pub first: usize,
    /// Number of steps, at least 1.
    pub steps: usize,
}

/// An invalid window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The text does not have the form FIRST:STEPS.
    #[error("'{0}' is not a window; write FIRST:STEPS with STEPS at least 1, as in 12:3, or auto for all windows")]
    Malformed(String),
    /// The window reaches beyond the run.
    #[error("window {first}:{steps} ends beyond the last of {of} steps (N/NB rounded up, counted from 0)")]
    Beyond {
        /// First step.
        first: usize,
        /// Requested steps.
        steps: usize,
        /// Steps of the run.
        of: usize,
    },
}

impl FromStr for Window {
    type Err = WindowError;

    /// Reads `FIRST:STEPS`.
    fn from_str(text: &str) -> Result<Self, WindowError> {
        let numbers = text.trim().split_once(':').map(|(first, steps)| (first.parse(), steps.parse()));
        match numbers {
            Some((Ok(first), Ok(steps @ 1..))) => Ok(Self { first, steps }),
            _ => Err(WindowError::Malformed(text.to_owned())),
        }
    }
}

impl Window {
    /// The step with which the window of a run of `hpl` begins; the steps before the first run without being timed. At the start
    /// the panels have just been factored, so that they are in cache, and the ranks begin together, whereas in the middle of a
    /// run some are ahead of others. One step changes both. On two process columns or rows two steps do, so that the same rank
    /// factors the last panel before the window and in it.
    pub fn begin(&self, hpl: &HplParams) -> usize {
        self.first.saturating_sub(lead(hpl))
    }

    /// Checks that the window lies in a run of `of` steps.
    ///
    /// # Errors
    /// [`WindowError::Beyond`].
    pub fn check(&self, of: usize) -> Result<(), WindowError> {
        let &Self { first, steps } = self;
        if first.checked_add(steps).is_some_and(|end| end <= of) {
            Ok(())
        } else {
            Err(WindowError::Beyond { first, steps, of })
        }
    }
}

/// Maximum steps of a window before those that are timed, see [`Window::begin`].
const LEAD: usize = 2;

/// Steps of a window before the first that is timed.
fn lead(hpl: &HplParams) -> usize {
    owner_cycle(hpl).min(LEAD)
}

/// Length of the cycle of panel owners in steps, lcm(P, Q), for a block-cyclic distribution.
pub fn owner_cycle(hpl: &HplParams) -> usize {
    let (mut a, mut b) = (hpl.p, hpl.q);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    hpl.p / a * hpl.q
}

/// Measured times of one window; the same on all ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowTimes {
    /// The steps.
    pub window: Window,
    /// Time of the panels that are factored before the first step, in seconds, without overlap. It is part of a whole run's
    /// time only for the first step of the run.
    pub prologue_s: f64,
    /// Time of each step in seconds: from the end of the step before to the end of this one, each on the last rank to end it.
    pub step_s: Vec<f64>,
    /// Scaled residual of the trailing matrix after the window, as [`crate::Residual::scaled`] with x = 1; `None` when
    /// the window ends with the last step.
    pub residual: Option<f64>,
}

/// Measured times of the windows of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowsReport {
    /// The windows in the order in which they ran.
    pub windows: Vec<WindowTimes>,
    /// Time of the back substitution of the whole run in seconds: measured on the trailing matrix of the largest window and
    /// scaled by the square of the order.
    pub trsv_s: f64,
    /// Time to generate the trailing matrices, in seconds.
    pub generate_s: f64,
    /// Time of the checks, in seconds.
    pub check_s: f64,
    /// Time of this rank's first thread in each phase of the timed steps, window by window.
    pub phases: Vec<PhaseTime>,
}

impl WindowsReport {
    /// Adds the times of later windows.
    pub(crate) fn add(&mut self, later: Self) {
        let Self { windows, trsv_s, generate_s, check_s, phases } = later;
        let first = |windows: &[WindowTimes]| windows.iter().map(|times| times.window.first).min();
        // The time of the largest trailing matrix.
        if first(&windows) < first(&self.windows) {
            self.trsv_s = trsv_s;
        }
        self.windows.extend(windows);
        self.generate_s += generate_s;
        self.check_s += check_s;
        self.phases.extend(phases);
    }
}
