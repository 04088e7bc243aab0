//! Prediction of the time of the whole run from the steps of some windows.
//!
//! A step takes about a·m·n + b·(m + n) + c, with the m rows and n columns of the trailing matrix on the rank with the most
//! work: the matrix product, the panel and the messages along rows and columns, and a constant. On large grids the columns of
//! that rank fall rarely and by a whole block: with 64 process columns, 1000 blocks and half of them left, by a tenth of its
//! columns. The owner of the panel changes from step to step and ranks can be ahead of each other for some steps, so that
//! steps are averaged over whole cycles of panel owners.

use space::least_squares::non_negative;
use space::stats::{mean, squared_deviations};
use space::{Candidate, Share};

use super::{WindowTimes, WindowsReport, owner_cycle};
use crate::plan::layout::{Distribution, Layout};

/// Prediction of the whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WholeRunPrediction {
    /// Time of factorization and back substitution, in seconds.
    pub time_s: f64,
    /// Standard error of `time_s`, in seconds: jackknife over the measured cycles of panel owners. One cycle alone does not say how
    /// far it is off: then all the time that is extrapolated.
    pub spread_s: f64,
}

/// m·n, (m + n)/2 and 1 with the rows m and the columns n of the trailing matrix, as fractions of N; see [`terms`].
type Regressors = [f64; 3];

/// The mean of some consecutive steps.
#[derive(Debug, Clone, Copy)]
struct MeanStep {
    terms: Regressors,
    /// Mean time in seconds.
    step_s: f64,
    /// Weight of its error, squared.
    weight: f64,
}

/// Predicts the time of the sampled run: measured steps with their measured times, the other steps by a fit of
/// a·m·n + b·(m + n) + c.
pub fn predict(candidate: &Candidate, report: &WindowsReport) -> WholeRunPrediction {
    let hpl = &candidate.hpl;
    let terms = terms(candidate);
    let (steps, cycle) = (terms.len(), owner_cycle(hpl));
    let mut points = Vec::new();
    let mut known = vec![None; steps];
    let weights = weights(report, steps, cycle);
    for (WindowTimes { window, step_s, .. }, weight) in report.windows.iter().zip(weights) {
        // Steps beyond whole cycles are left out.
        let spare = if window.first > 0 && window.steps > cycle { window.steps % cycle } else { 0 };
        for (at, times) in step_s[spare..].chunks(cycle).enumerate() {
            let first = window.first + spare + at * cycle;
            let of_steps = &terms[first..first + times.len()];
            let terms = [0, 1, 2].map(|term| mean(&of_steps.iter().map(|terms| terms[term]).collect::<Vec<_>>()));
            points.push(MeanStep { terms, step_s: mean(times), weight });
            known[first..].iter_mut().zip(times).for_each(|(known, &time)| *known = Some(time));
        }
    }
    let rest: Vec<Regressors> = (0..steps).filter(|&k| known[k].is_none()).map(|k| terms[k]).collect();
    let of_rest = |points: &[MeanStep]| {
        let found = fit(points);
        rest.iter().flat_map(|terms| terms.iter().zip(&found)).map(|(term, factor)| term * factor).sum::<f64>()
    };
    // The time of the panels is proportional to their rows.
    let left = |k: usize| 1.0 - (k * hpl.nb) as f64 / hpl.n as f64;
    let prologue = |times: &WindowTimes| times.prologue_s / left(times.window.begin(hpl));
    let prologue_s = report.windows.iter().min_by_key(|times| times.window.first).map_or(0.0, prologue);
    let time_s = known.iter().flatten().sum::<f64>() + of_rest(&points) + prologue_s + report.trsv_s;
    WholeRunPrediction { time_s, spread_s: jackknife(&points, of_rest) }
}

/// Weight of the error of each window's cycles: the square of the number of steps that the window represents, those nearer to
/// it than to another window. The few windows of large steps thus determine the fit there, and small steps, whose panels no
/// update hides, have little influence on it.
fn weights(report: &WindowsReport, steps: usize, cycle: usize) -> Vec<f64> {
    let middle = |times: &WindowTimes| times.window.first as f64 + times.step_s.len() as f64 / 2.0;
    let mut middles: Vec<f64> = report.windows.iter().map(middle).collect();
    middles.sort_by(f64::total_cmp);
    let cycles = |times: &WindowTimes| times.step_s.len().div_ceil(cycle).max(1);
    let of = |times: &WindowTimes| {
        let at = middle(times);
        let before = middles.iter().rev().find(|&&other| other < at).map_or(0.0, |other| (other + at) / 2.0);
        let after = middles.iter().find(|&&other| other > at).map_or(steps as f64, |other| (other + at) / 2.0);
        // Windows with the same middle share the steps they represent.
        let alike: usize = report.windows.iter().filter(|other| middle(other) == at).map(cycles).sum();
        (after - before).powi(2) / alike.max(1) as f64
    };
    report.windows.iter().map(of).collect()
}

/// Terms of each step.
fn terms(candidate: &Candidate) -> Vec<Regressors> {
    let Candidate { hpl, engine } = candidate;
    let layout = Layout::of(hpl, &engine.weights);
    let of = |k: usize| {
        // The columns of the panels in flight have been updated before.
        let columns = left(&layout.cols, &engine.weights.columns, (k + hpl.depth.max(1)) * hpl.nb);
        let rows = left(&layout.rows, &engine.weights.rows, (k + 1) * hpl.nb);
        [rows * columns, (rows + columns) / 2.0, 1.0]
    };
    (0..hpl.n.div_ceil(hpl.nb)).map(of).collect()
}

/// Indices from `first` on as fraction of the axis, if every process owned as many, relative to its share, as the process
/// with the most. Without shares, all shares are equal.
fn left(axis: &Distribution, shares: &[Share], first: usize) -> f64 {
    let share = |process: usize| shares.get(process).map_or(1.0, |share| share.get());
    let whole: f64 = (0..axis.procs()).map(share).sum();
    let has = |process: usize| axis.local_len(process) - axis.local_from(process, first);
    let by_share = |process: usize| has(process) as f64 * whole / share(process);
    let working = (0..axis.procs()).filter(|&process| share(process) > 0.0);
    working.map(by_share).fold(0.0, f64::max) / axis.len().max(1) as f64
}

/// Standard error of `estimate` by leaving out one point at a time; the whole estimate where there is no other point.
fn jackknife(points: &[MeanStep], estimate: impl Fn(&[MeanStep]) -> f64) -> f64 {
    if points.len() == 1 {
        return estimate(points).abs();
    }
    let without = |left_out: usize| {
        let rest = points.iter().enumerate().filter(|&(at, _)| at != left_out).map(|(_, &point)| point);
        estimate(&rest.collect::<Vec<_>>())
    };
    let estimates: Vec<f64> = (0..points.len()).map(without).collect();
    let count = estimates.len().max(1) as f64;
    // The sum of no deviations is -0.
    ((count - 1.0) / count * squared_deviations(&estimates)).sqrt().abs()
}

/// a, b, c ≥ 0 of the step times a·m·n + b·(m + n)/2 + c by weighted least squares; none where there are no points.
///
/// The errors are absolute and weighted: relative errors would let the small steps, which contribute little time and follow the
/// formula worst, distort the fit of the large ones.
fn fit(points: &[MeanStep]) -> Vec<f64> {
    let row = |point: &MeanStep| point.terms.map(|term| term * point.weight.sqrt()).to_vec();
    let rows: Vec<Vec<f64>> = points.iter().map(row).collect();
    let values: Vec<f64> = points.iter().map(|point| point.step_s * point.weight.sqrt()).collect();
    non_negative(&rows, &values)
}

#[cfg(test)]
mod tests;
