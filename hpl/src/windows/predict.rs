//! From the steps of some windows to the time of the whole run.

use space::HplParams;

use super::{WindowTimes, WindowsReport};

/// What the windows predict of the whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Time of factorization and back substitution, in seconds.
    pub time_s: f64,
    /// One standard error of it, in seconds, from what remains when the measured steps are left out in turn.
    pub spread_s: f64,
}

/// One measured step.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Order of the trailing matrix.
    order: f64,
    /// Time in seconds.
    step_s: f64,
}

/// Predicts the time of the run that was sampled: what was measured as it was measured, the other steps from a
/// quadratic in the order of the trailing matrix.
pub fn predict(hpl: &HplParams, report: &WindowsReport) -> Prediction {
    let order = |k: usize| (hpl.n - hpl.n.min(k * hpl.nb)) as f64;
    let steps = hpl.n.div_ceil(hpl.nb);
    let mut points = Vec::new();
    let mut known = vec![None; steps];
    for WindowTimes { window, step_s, .. } in &report.windows {
        // The first step of a window meets caches that no steps before it have filled; that of a run does, too.
        let cold = usize::from(window.first > 0 && window.steps > 1);
        for (at, &step_s) in step_s.iter().enumerate().skip(cold) {
            known[window.first + at] = Some(step_s);
            points.push(Point { order: order(window.first + at), step_s });
        }
    }
    let rest: Vec<f64> = (0..steps).filter(|&k| known[k].is_none()).map(order).collect();
    let of_rest = |points: &[Point]| {
        let fit = fit(points);
        rest.iter().map(|&m| fit[0] * m * m + fit[1] * m + fit[2]).sum::<f64>()
    };
    let prologue_s = report.windows.iter().min_by_key(|times| times.window.first).map_or(0.0, |times| times.prologue_s);
    let time_s = known.iter().flatten().sum::<f64>() + of_rest(&points) + prologue_s + report.trsv_s;
    Prediction { time_s, spread_s: jackknife(&points, of_rest) }
}

/// Standard error of `estimate` by leaving out one point at a time.
fn jackknife(points: &[Point], estimate: impl Fn(&[Point]) -> f64) -> f64 {
    let without = |left_out: usize| {
        let rest = points.iter().enumerate().filter(|&(at, _)| at != left_out).map(|(_, &point)| point);
        estimate(&rest.collect::<Vec<_>>())
    };
    let estimates: Vec<f64> = (0..points.len()).map(without).collect();
    let count = estimates.len().max(1) as f64;
    let mean = estimates.iter().sum::<f64>() / count;
    ((count - 1.0) / count * estimates.iter().map(|one| (one - mean).powi(2)).sum::<f64>()).sqrt()
}

/// a, b, c ≥ 0 of step times a·m² + b·m + c that minimise the squares of the relative errors: of all subsets of the
/// terms that which fits best, so that there is nothing to converge.
fn fit(points: &[Point]) -> [f64; 3] {
    // One unit for all terms: orders from 0 to 1.
    let unit = points.iter().map(|point| point.order).fold(1.0, f64::max);
    let rows: Vec<[f64; 3]> = points
        .iter()
        .map(|&Point { order, step_s }| {
            let m = order / unit;
            [m * m / step_s, m / step_s, 1.0 / step_s]
        })
        .collect();
    let mut best = (f64::INFINITY, [0.0; 3]);
    for subset in 1..8_usize {
        let terms: Vec<usize> = (0..3).filter(|term| subset >> term & 1 == 1).collect();
        let Some(found) = least_squares(&rows, &terms) else { continue };
        if found.iter().all(|&value| value >= 0.0) {
            let error = rows.iter().map(|row| (row.iter().zip(found).map(|(x, c)| x * c).sum::<f64>() - 1.0).powi(2));
            let error = error.sum::<f64>();
            if error < best.0 {
                best = (error, found);
            }
        }
    }
    let [a, b, c] = best.1;
    [a / unit / unit, b / unit, c]
}

/// The coefficients of some terms with rows·c nearest to 1, the others 0; `None` where the rows do not determine them.
fn least_squares(rows: &[[f64; 3]], terms: &[usize]) -> Option<[f64; 3]> {
    let mut system: Vec<Vec<f64>> = terms
        .iter()
        .map(|&i| {
            let products = terms.iter().map(|&j| rows.iter().map(|row| row[i] * row[j]).sum());
            products.chain([rows.iter().map(|row| row[i]).sum()]).collect()
        })
        .collect();
    let size = terms.len();
    for i in 0..size {
        let scale = rows.iter().map(|row| row[terms[i]].powi(2)).sum::<f64>();
        // The square of the sine of an angle: what is left of this term beside the terms before it.
        if system[i][i] <= 1e-9 * scale {
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
