//! The event simulation: every rank, every message, over windows of a run.
//!
//! Ranks execute the operations of Netlib's program in order: they exchange rows pair by pair, poll for the
//! panel between messages and slabs, and forward it with blocking sends ([`Schedule::Netlib`]) or non-blocking ones
//! ([`Schedule::Ours`]). A message starts when both ranks are ready and the links of both nodes are free. Three windows
//! of [`WINDOW`] steps represent the run, by Gauss–Legendre quadrature over the steps; a short run is simulated whole.
//!
//! This is the reference for [`recursion`](super::recursion), which has one clock for all rows of a column; the costs are
//! the same. A look-ahead deeper than 1 is computed as 1.

mod exchange;
mod rank;
mod window;

use space::{HplParams, Weights};

use super::recursion::trsv_s;
use super::{Platform, Schedule};
use window::WindowSimulation;

/// Steps of a window: 18 until the time lags between the columns are steady, then those that are counted.
pub const WINDOW: usize = 50;

/// Steps of a window before those that are counted.
const WARM: usize = 18;

/// Minimum steps of a run that is simulated by windows: a shorter run is simulated whole, as windows are up to 2 % off there.
const LEAST_STEPS: usize = 1000;

/// Centres of the counted steps of the windows, as fractions of all steps, with their weights.
const GAUSS: [(f64, f64); 3] = [(0.112_701_665, 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.887_298_335, 5.0 / 18.0)];

/// Predicted time of the run in seconds: factorization and back substitution.
///
/// # Panics
/// When N, NB, P or Q is 0, or the platform fails its [check](Platform::check).
pub fn time_s(hpl: &HplParams, platform: &Platform, profile: Schedule) -> f64 {
    weighted_time_s(hpl, &Weights::default(), platform, profile)
}

/// The time in seconds with rows and columns dealt by `weights`, as our engine does it.
///
/// # Panics
/// As [`time_s`], and when weights are there but not one per process row or column.
pub fn weighted_time_s(hpl: &HplParams, weights: &Weights, platform: &Platform, profile: Schedule) -> f64 {
    let panels = hpl.n.div_ceil(hpl.nb);
    let mut window = WindowSimulation::new(hpl, weights, platform, profile);
    if panels < LEAST_STEPS {
        return whole(&mut window, hpl, platform);
    }
    let mut mean_s = 0.0;
    for (centre, weight) in GAUSS {
        // The counted steps lie around the centre.
        let first = (centre * panels as f64) as usize - usize::midpoint(WARM, WINDOW);
        let ends = window.run(first..first + WINDOW);
        mean_s += weight * (ends[WINDOW - 1] - ends[WARM - 1]) / (WINDOW - WARM) as f64;
    }
    mean_s * panels as f64 + trsv_s(hpl, platform)
}

/// The time in seconds from every step, of blocks that are dealt block-cyclically.
///
/// # Panics
/// As [`time_s`].
pub fn whole_s(hpl: &HplParams, platform: &Platform, profile: Schedule) -> f64 {
    whole(&mut WindowSimulation::new(hpl, &Weights::default(), platform, profile), hpl, platform)
}

fn whole(window: &mut WindowSimulation<'_>, hpl: &HplParams, platform: &Platform) -> f64 {
    window.run(0..hpl.n.div_ceil(hpl.nb)).last().copied().unwrap_or_default() + trsv_s(hpl, platform)
}
