//! From the steps of some windows to the time of the whole run.
//!
//! A step takes about a·m·n + b·(m + n) + c, with m rows and n columns that the rank with most to do has of the trailing
//! matrix: the product, the panel with what goes along rows and columns, and what is paid once. On large grids what that
//! rank has falls by a block at once, seldom and far: 2 % of N when 64 process columns share 1000 blocks and half of them are left,
//! a tenth of its columns. Panels change their owners from step to step and one rank is ahead of the others now and then,
//! so that whole turns of the owners compare best: the times of a turn are averaged.

use space::stats::{mean, squared_deviations};
use space::{Candidate, Share};

use super::choose::turn;
use super::{WindowTimes, WindowsReport};
use crate::plan::layout::{Axis, Layout};

/// What the windows predict of the whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Time of factorization and back substitution, in seconds.
    pub time_s: f64,
    /// One standard error of it, in seconds, from what remains when the measured turns are left out one by one.
    pub spread_s: f64,
}

/// m·n, (m + n)/2 and 1 with the rows m and the columns n of the trailing matrix, as parts of N; see [`terms`].
type Terms = [f64; 3];

/// The mean of some consecutive steps.
#[derive(Debug, Clone, Copy)]
struct Point {
    terms: Terms,
    /// Mean time in seconds.
    step_s: f64,
    /// Weight of its error, squared.
    weight: f64,
}

/// Predicts the time of the run that was sampled: what was measured as it was measured, the other steps from a
/// quadratic in what is left of the matrix.
pub fn predict(candidate: &Candidate, report: &WindowsReport) -> Prediction {
    let hpl = &candidate.hpl;
    let terms = terms(candidate);
    let (steps, turn) = (terms.len(), turn(hpl));
    let mut points = Vec::new();
    let mut known = vec![None; steps];
    let weights = weights(report, steps, turn);
    for (WindowTimes { window, step_s, .. }, weight) in report.windows.iter().zip(weights) {
        // Steps beyond whole turns are those at the start, which meet caches that nobody has filled.
        let spare = if window.first > 0 && window.steps > turn { window.steps % turn } else { 0 };
        for (at, times) in step_s[spare..].chunks(turn).enumerate() {
            let first = window.first + spare + at * turn;
            let of_steps = &terms[first..first + times.len()];
            let terms = [0, 1, 2].map(|term| mean(&of_steps.iter().map(|terms| terms[term]).collect::<Vec<_>>()));
            points.push(Point { terms, step_s: mean(times), weight });
            known[first..].iter_mut().zip(times).for_each(|(known, &time)| *known = Some(time));
        }
    }
    let rest: Vec<Terms> = (0..steps).filter(|&k| known[k].is_none()).map(|k| terms[k]).collect();
    let of_rest = |points: &[Point]| {
        let found = fit(points);
        rest.iter().flat_map(|terms| terms.iter().zip(found)).map(|(term, factor)| term * factor).sum::<f64>()
    };
    // Its length is that of a panel.
    let left = |k: usize| 1.0 - (k * hpl.nb) as f64 / hpl.n as f64;
    let prologue = |times: &WindowTimes| times.prologue_s / left(times.window.first);
    let prologue_s = report.windows.iter().min_by_key(|times| times.window.first).map_or(0.0, prologue);
    let time_s = known.iter().flatten().sum::<f64>() + of_rest(&points) + prologue_s + report.trsv_s;
    Prediction { time_s, spread_s: jackknife(&points, of_rest) }
}

/// Weights of the turns of each window: its error counts as often as there are steps for which it stands, those nearer to it than to
/// another window. So the windows of large steps, of which there are few, say how the large steps go on, whatever small ones do
/// whose panels no update hides.
fn weights(report: &WindowsReport, steps: usize, turn: usize) -> Vec<f64> {
    let middle = |times: &WindowTimes| times.window.first as f64 + times.step_s.len() as f64 / 2.0;
    let mut middles: Vec<f64> = report.windows.iter().map(middle).collect();
    middles.sort_by(f64::total_cmp);
    let turns = |times: &WindowTimes| times.step_s.len().div_ceil(turn).max(1);
    let of = |times: &WindowTimes| {
        let at = middle(times);
        let before = middles.iter().rev().find(|&&other| other < at).map_or(0.0, |other| (other + at) / 2.0);
        let after = middles.iter().find(|&&other| other > at).map_or(steps as f64, |other| (other + at) / 2.0);
        // Windows at the same place share its steps.
        let alike: usize = report.windows.iter().filter(|other| middle(other) == at).map(turns).sum();
        (after - before).powi(2) / alike.max(1) as f64
    };
    report.windows.iter().map(of).collect()
}

/// Terms of each step.
fn terms(candidate: &Candidate) -> Vec<Terms> {
    let Candidate { hpl, engine } = candidate;
    let layout = Layout::of(hpl, &engine.weights);
    let of = |k: usize| {
        // The panels in flight have what is left of their columns already.
        let columns = left(&layout.cols, &engine.weights.columns, (k + hpl.depth.max(1)) * hpl.nb);
        let rows = left(&layout.rows, &engine.weights.rows, (k + 1) * hpl.nb);
        [rows * columns, (rows + columns) / 2.0, 1.0]
    };
    (0..hpl.n.div_ceil(hpl.nb)).map(of).collect()
}

/// Part of the indices from `first` on, if all processes had as much as that which has most for its share, all alike where
/// there are no shares.
fn left(axis: &Axis, shares: &[Share], first: usize) -> f64 {
    let share = |process: usize| shares.get(process).map_or(1.0, |share| share.get());
    let whole: f64 = (0..axis.procs()).map(share).sum();
    let has = |process: usize| axis.local_len(process) - axis.local_from(process, first);
    let by_share = |process: usize| has(process) as f64 * whole / share(process);
    let working = (0..axis.procs()).filter(|&process| share(process) > 0.0);
    working.map(by_share).fold(0.0, f64::max) / axis.len().max(1) as f64
}

/// Standard error of `estimate` by leaving out one point at a time.
fn jackknife(points: &[Point], estimate: impl Fn(&[Point]) -> f64) -> f64 {
    let without = |left_out: usize| {
        let rest = points.iter().enumerate().filter(|&(at, _)| at != left_out).map(|(_, &point)| point);
        estimate(&rest.collect::<Vec<_>>())
    };
    let estimates: Vec<f64> = (0..points.len()).map(without).collect();
    let count = estimates.len().max(1) as f64;
    ((count - 1.0) / count * squared_deviations(&estimates)).sqrt()
}

/// a, b, c ≥ 0 of step times a·m² + b·m + c: of all subsets of the terms that which fits best, so that there is nothing
/// to converge.
///
/// Squares of errors count by their weights: with relative errors small steps, which matter little and follow the quadratic
/// worst, would tilt the large ones.
fn fit(points: &[Point]) -> [f64; 3] {
    let row = |&Point { terms: [a, b, c], step_s, weight }: &Point| [a, b, c, step_s].map(|of| of * weight.sqrt());
    let rows: Vec<[f64; 4]> = points.iter().map(row).collect();
    let mut best = (f64::INFINITY, [0.0; 3]);
    for subset in 1..8_usize {
        let terms: Vec<usize> = (0..3).filter(|term| subset >> term & 1 == 1).collect();
        let Some(found) = least_squares(&rows, &terms).filter(|found| found.iter().all(|&value| value >= 0.0)) else {
            continue;
        };
        let miss = |row: &[f64; 4]| row.iter().zip(found).map(|(x, c)| x * c).sum::<f64>() - row[3];
        let error = rows.iter().map(|row| miss(row).powi(2)).sum::<f64>();
        if error < best.0 {
            best = (error, found);
        }
    }
    best.1
}

/// The coefficients of some terms with row[..3]·c nearest to row[3], the others 0; `None` where the rows do not
/// determine them.
fn least_squares(rows: &[[f64; 4]], terms: &[usize]) -> Option<[f64; 3]> {
    let size = terms.len();
    let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
    let mut system: Vec<Vec<f64>> =
        terms.iter().map(|&i| terms.iter().chain(&[3]).map(|&j| product(i, j)).collect()).collect();
    for i in 0..size {
        // The square of the sine of an angle: what is left of this term beside the terms before it.
        if system[i][i] <= 1e-9 * product(terms[i], terms[i]) {
            return None;
        }
        let pivot = system[i].clone();
        for row in &mut system[i + 1..] {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let mut found = [0.0; 3];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| system[i][j] * found[terms[j]]).sum();
        found[terms[i]] = (system[i][size] - known) / system[i][i];
    }
    Some(found)
}

#[cfg(test)]
mod tests;
