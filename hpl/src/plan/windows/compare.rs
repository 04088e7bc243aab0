//! The ratio of the rates of two runs, from alternately measured windows.
//!
//! Two runs of the same order have the same trailing matrices, so that their windows can be compared one by one: each pair
//! gives a ratio of rates, weighted by the windows' part of the whole run. Only this ratio is extrapolated, and a disturbance
//! of the machine that lasts longer than a window slows both runs.

use space::HplParams;
use space::stats::{mean, squared_deviations};

use super::choose::paired;
use super::{Window, WindowTimes};

/// The ratio of the rates of two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRatio {
    /// Natural logarithm of (rate of the first run ÷ rate of the second).
    pub log_ratio: f64,
    /// Standard error of `log_ratio`, from the differences between the visits of the same window.
    pub sd: f64,
}

/// Both runs' times of one window, visit by visit.
type Visits = Vec<[WindowTimes; 2]>;

/// How often each window of a pair is measured: once before and once after its counterpart, so that a steady drift cancels.
const VISITS: usize = 2;

/// Measures windows of two runs of the same order in turn by `measure(side, window)`, and compares their rates. `None` for an order of 0.
///
/// # Errors
/// Those of `measure`, at once.
pub fn in_turn<E>(
    hpl: [&HplParams; 2],
    mut measure: impl FnMut(usize, Window) -> Result<WindowTimes, E>,
) -> Result<Option<RateRatio>, E> {
    let mut windows = Vec::new();
    for [a, b] in paired(hpl[0], hpl[1]) {
        let mut visits = Visits::new();
        for visit in 0..VISITS {
            // a b b a
            visits.push(if visit.is_multiple_of(2) {
                let first = measure(0, a)?;
                [first, measure(1, b)?]
            } else {
                let first = measure(1, b)?;
                [measure(0, a)?, first]
            });
        }
        windows.push(visits);
    }
    Ok(compare(hpl, &windows))
}

/// The ratio of the rate of the first run to that of the second. `visits`: the visits of each window, largest window first.
/// `None` without a window.
fn compare(hpl: [&HplParams; 2], visits: &[Visits]) -> Option<RateRatio> {
    let log = |times: &[WindowTimes; 2]| {
        let [a, b] = [0, 1].map(|side| rate(hpl[side], &times[side]));
        (a / b).ln()
    };
    let logs: Vec<Vec<f64>> = visits.iter().map(|visits| visits.iter().map(log).collect()).collect();
    let orders: Vec<f64> = visits.iter().map(|visits| middle(hpl[0], visits[0][0].window)).collect();
    let weights = weights(&orders);
    let means: Vec<f64> = logs.iter().map(|logs| mean(logs)).collect();
    let log_ratio = weights.iter().zip(&means).map(|(weight, mean)| weight * mean).sum();

    // The noise of a window grows as its time: `unit` is the variance scaled to the largest order, pooled over all windows.
    let scale = |at: usize| (orders[at] / orders[0]).powi(2);
    let squares = |at: usize| squared_deviations(&logs[at]) * scale(at);
    let free: usize = logs.iter().map(|logs| logs.len() - 1).sum();
    let unit = (0..logs.len()).map(squares).sum::<f64>() / free as f64;
    let variance = |at: usize| weights[at].powi(2) * unit / scale(at) / logs[at].len() as f64;
    let sd = (0..logs.len()).map(variance).sum::<f64>().sqrt();
    (!logs.is_empty()).then_some(RateRatio { log_ratio, sd })
}

/// Weights of windows on trailing matrices of these orders, falling: the part of a run's flops nearest to each window, by the
/// ratio of orders.
fn weights(orders: &[f64]) -> Vec<f64> {
    let bound = |at: usize| (orders[at] * orders[at + 1]).powf(1.5);
    let weight = |at: usize| {
        let above = if at == 0 { 1.0 } else { bound(at - 1) };
        above - if at + 1 < orders.len() { bound(at) } else { 0.0 }
    };
    (0..orders.len()).map(weight).collect()
}

/// Order of the trailing matrix at step `k`, as fraction of N.
fn part(hpl: &HplParams, k: usize) -> f64 {
    1.0 - hpl.n.min(k * hpl.nb) as f64 / hpl.n as f64
}

/// Order of the trailing matrix in the middle of a window, as fraction of N.
fn middle(hpl: &HplParams, window: Window) -> f64 {
    (part(hpl, window.first) + part(hpl, window.first + window.steps)) / 2.0
}

/// Rate of the steps of a window, in fractions of the whole run's flops per second.
fn rate(hpl: &HplParams, times: &WindowTimes) -> f64 {
    let &WindowTimes { window: Window { first, steps }, ref step_s, prologue_s, .. } = times;
    // Only the first window includes the panels before the first step.
    let extra_s = if first == 0 { prologue_s } else { 0.0 };
    (part(hpl, first).powi(3) - part(hpl, first + steps).powi(3)) / (extra_s + step_s.iter().sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of two simulated machines. `rates`: GFLOP/s of a step on a trailing matrix of order f·N; `noise`: the factor of
    /// each visit's times.
    fn visits(hpl: [&HplParams; 2], rates: [fn(f64) -> f64; 2], noise: impl Fn(usize, usize) -> f64) -> Vec<Visits> {
        let times = |side: usize, window: Window, factor: f64| {
            let step = |k: usize| {
                let (above, below) = (part(hpl[side], k), part(hpl[side], k + 1));
                factor * (above.powi(3) - below.powi(3)) / rates[side]((above + below) / 2.0)
            };
            let step_s = (window.first..window.first + window.steps).map(step).collect();
            WindowTimes { window, prologue_s: 0.0, step_s, residual: None }
        };
        let visit = |at: usize, windows: [Window; 2]| {
            (0..2)
                .map(|visit| {
                    [0, 1].map(|side| times(side, windows[side], if side == 0 { noise(at, visit) } else { 1.0 }))
                })
                .collect()
        };
        paired(hpl[0], hpl[1]).into_iter().enumerate().map(|(at, windows)| visit(at, windows)).collect()
    }

    fn params(nb: usize, q: usize) -> HplParams {
        HplParams { nb, ..HplParams::baseline(20_000, 1, q) }
    }

    #[test]
    fn a_ratio_is_recovered_for_unequal_nb_and_grids() {
        let (a, b) = (params(128, 2), params(384, 1));
        let found = compare([&a, &b], &visits([&a, &b], [|_| 102.0, |_| 100.0], |_, _| 1.0)).unwrap();
        assert!((found.log_ratio - 1.02_f64.ln()).abs() < 1e-12 && found.sd < 1e-12, "{found:?}");
        // Where small matrices are slower, equally on both sides, unequal NB has little effect.
        let slower = |f: f64| 100.0 / (1.0 + 0.02 / f);
        let found = compare([&a, &b], &visits([&a, &b], [slower, slower], |_, _| 1.0)).unwrap();
        assert!(found.log_ratio.abs() < 0.001, "{found:?}");
    }

    #[test]
    fn the_ratio_of_the_largest_matrices_counts_most() {
        let hpl = params(128, 1);
        let rates: [fn(f64) -> f64; 2] = [|f| if f > 0.3 { 103.0 } else { 90.0 }, |_| 100.0];
        let found = compare([&hpl, &hpl], &visits([&hpl, &hpl], rates, |_, _| 1.0)).unwrap();
        // f³ = 0.027 of the flops are below 0.3.
        let truth = 1.03_f64.ln() * 0.973 + 0.9_f64.ln() * 0.027;
        assert!((found.log_ratio - truth).abs() < 0.003, "{found:?} {truth}");
    }

    #[test]
    fn the_standard_error_follows_the_differences_between_visits() {
        let hpl = params(128, 1);
        let noise = |size: f64| {
            move |at: usize, visit: usize| if (at + visit).is_multiple_of(2) { 1.0 + size } else { 1.0 - size }
        };
        let sd = |size| compare([&hpl, &hpl], &visits([&hpl, &hpl], [|_| 1.0, |_| 1.0], noise(size))).unwrap().sd;
        let (small, large) = (sd(0.01), sd(0.02));
        assert!(small > 0.002 && small < 0.02 && (large / small - 2.0).abs() < 0.01, "{small} {large}");
    }

    #[test]
    fn weights_sum_to_the_whole_run() {
        for orders in [&[0.8][..], &[0.9, 0.5, 0.2], &[0.5, 0.3]] {
            let weights = weights(orders);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && weights.iter().all(|&weight| weight > 0.0));
        }
        assert_eq!(compare([&params(128, 1); 2], &[]), None);
    }
}
