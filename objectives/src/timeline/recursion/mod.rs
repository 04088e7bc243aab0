//! The column recursion: one clock per process column, step after step.
//!
//! A process column has one clock, as all its rows wait for each other in every row exchange. The clocks of columns differ:
//! a column waits only for its panel and for the node's link, which serves the row exchanges of the node's columns in the
//! order in which they become ready. O(steps × Q); a step allocates memory only with row weights.
//!
//! A look-ahead deeper than 1 is computed as 1. PFACT, RFACT, NBMIN, NDIV, L1, U, EQUIL and ALIGN are part of the platform's
//! rates or ignored. Difference to \[HPL\]: at DEPTH 1 a panel is forwarded when the row exchange has begun, between slabs of
//! NB columns of the update, and at its end, not between every two messages.

mod run;
mod step;

use run::RunState;
pub(super) use run::ring;
use space::{HplParams, Weights};

use super::shape::{DealtDims, WORD};
use super::{Platform, Schedule, Timeline};

/// The predicted run.
///
/// # Panics
/// When N, NB, P or Q is 0, or the platform fails its [check](Platform::check).
pub fn timeline(hpl: &HplParams, platform: &Platform, profile: Schedule) -> Timeline {
    let mut run = RunState::new(hpl, platform, profile);
    let mut steps = Vec::with_capacity(run.cols.blocks());
    run.walk(|step| steps.push(step));
    let trsv_s = trsv_s(hpl, platform);
    Timeline { total_s: run.now_s() + trsv_s, steps, trsv_s }
}

/// Its time in seconds, without the steps.
///
/// # Panics
/// As [`timeline`].
pub fn time_s(hpl: &HplParams, platform: &Platform, profile: Schedule) -> f64 {
    let mut run = RunState::new(hpl, platform, profile);
    run.walk(|_| ());
    run.now_s() + trsv_s(hpl, platform)
}

/// The time in seconds with rows and columns dealt by `weights`, as our engine does it.
///
/// # Panics
/// As [`timeline`], and when weights are there but not one per process row or column.
pub fn weighted_time_s(hpl: &HplParams, weights: &Weights, platform: &Platform, profile: Schedule) -> f64 {
    let mut run = RunState::new(hpl, platform, profile);
    run.unequal = DealtDims::new(hpl, weights);
    run.walk(|_| ());
    run.now_s() + trsv_s(hpl, platform)
}

/// Back substitution: the matrix is read once from memory, and a piece of x is sent around the ring for every block.
pub(super) fn trsv_s(hpl: &HplParams, platform: &Platform) -> f64 {
    let (n, ranks) = (hpl.n as f64, hpl.ranks());
    let read = WORD * n * n / 2.0 / ranks as f64 * platform.copy_s.far;
    let link = if ranks <= platform.ranks_per_node { platform.inside } else { platform.between };
    let messages = if ranks > 1 { 2 * hpl.n.div_ceil(hpl.nb) } else { 0 };
    read + messages as f64 * link.latency_s
}
