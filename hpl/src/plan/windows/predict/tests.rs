use space::{EngineParams, HplParams};

use super::*;
use crate::plan::windows::{Window, Windows};

/// A simulated machine: step times of a run that are longer and shorter by turns.
struct Machine {
    abc: [f64; 3],
    alternation: f64,
}

impl Machine {
    fn step_s(&self, hpl: &HplParams, k: usize) -> f64 {
        let m = hpl.n.saturating_sub((k + 1) * hpl.nb) as f64;
        let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        (self.abc[0] * m * m + self.abc[1] * m + self.abc[2]) * (1.0 + sign * self.alternation)
    }

    fn run_s(&self, hpl: &HplParams) -> f64 {
        (0..hpl.n.div_ceil(hpl.nb)).map(|k| self.step_s(hpl, k)).sum()
    }

    fn report(&self, hpl: &HplParams, windows: &[Window], noise: impl Fn(usize) -> f64) -> WindowsReport {
        let times = |&window: &Window| WindowTimes {
            window,
            prologue_s: 0.0,
            step_s: (window.first..window.first + window.steps)
                .map(|k| self.step_s(hpl, k) * (1.0 + noise(k)))
                .collect(),
            residual: None,
        };
        let windows = windows.iter().map(times).collect();
        WindowsReport { windows, trsv_s: 0.0, generate_s: 0.0, check_s: 0.0, phases: Vec::new() }
    }
}

fn hpl(n: usize, p: usize, q: usize) -> HplParams {
    HplParams { nb: 192, ..HplParams::baseline(n, p, q) }
}

fn run(hpl: &HplParams) -> Candidate {
    Candidate { hpl: *hpl, engine: EngineParams::default() }
}

#[test]
fn a_quadratic_is_recovered() {
    let machine = Machine { abc: [3e-9, 2e-6, 1e-4], alternation: 0.0 };
    for n in [5000, 16_000, 30_000] {
        let hpl = hpl(n, 1, 1);
        let found = predict(&run(&hpl), &machine.report(&hpl, &Windows::Auto.of(&hpl).unwrap(), |_| 0.0));
        // The column of b and a last block that is not full are not in the quadratic.
        let ratio = found.time_s / machine.run_s(&hpl);
        assert!((ratio - 1.0).abs() < 1e-4 && found.spread_s < 1e-6, "{found:?} {ratio}");
    }
}

/// The times of a cycle of panel owners are averaged, wherever a window starts.
#[test]
fn alternating_steps_do_not_matter() {
    let machine = Machine { abc: [3e-9, 2e-6, 1e-4], alternation: 0.1 };
    let hpl = hpl(16_000, 1, 2);
    for windows in [Windows::Auto, "20:2,41:2,60:2".parse().unwrap(), "19:3,40:5,61:4".parse().unwrap()] {
        let report = machine.report(&hpl, &windows.of(&hpl).unwrap(), |_| 0.0);
        let error = predict(&run(&hpl), &report).time_s / machine.run_s(&hpl) - 1.0;
        assert!(error.abs() < 0.01, "{windows:?} {error}");
    }
}

/// With 64 process columns and a thousand blocks, the columns of a rank fall rarely and by a whole block, which a short window
/// may not contain.
#[test]
fn columns_that_fall_by_a_whole_block_are_predicted() {
    let (nb, steps) = (384, 1000);
    let hpl = HplParams { nb, ..HplParams::baseline(nb * steps, 1, 64) };
    let step_s = |k: usize| 1e-10 * ((steps - 1 - k) * nb * (steps - 1 - k).div_ceil(64) * nb) as f64;
    let measured = |window: Window| WindowTimes {
        window,
        prologue_s: 0.0,
        step_s: (window.first..window.first + window.steps).map(step_s).collect(),
        residual: None,
    };
    let windows = Windows::Auto.of(&hpl).unwrap().into_iter().map(measured).collect();
    let report = WindowsReport { windows, trsv_s: 0.0, generate_s: 0.0, check_s: 0.0, phases: Vec::new() };
    let ratio = predict(&run(&hpl), &report).time_s / (0..steps).map(step_s).sum::<f64>();
    assert!((ratio - 1.0).abs() < 0.001, "{ratio}");
}

/// The remaining part is relative to the shares; a process of share 0 is left out.
#[test]
fn the_remaining_part_is_that_of_the_process_with_most_for_its_share() {
    let shares = [2.0, 1.0, 0.0].map(|share| Share::new(share).unwrap());
    let axis = Distribution::weighted(900, 10, &[2.0, 1.0, 0.0]);
    assert!((left(&axis, &shares, 0) - 1.0).abs() < 0.02, "{}", left(&axis, &shares, 0));
    assert!((left(&axis, &shares, 450) - 0.5).abs() < 0.02);
    let equal = Distribution::block_cyclic(640, 10, 64);
    assert_eq!([0, 10, 640].map(|first| left(&equal, &[], first)), [1.0, 1.0, 0.0]);
}

/// With noisy step times, the predicted spread is of the size of the actual error.
#[test]
fn the_spread_matches_the_errors() {
    let machine = Machine { abc: [3e-9, 2e-6, 1e-4], alternation: 0.0 };
    let hpl = hpl(16_000, 1, 1);
    let windows = Windows::Auto.of(&hpl).unwrap();
    let (mut errors, mut spreads) = (0.0, 0.0);
    for seed in 0..400_usize {
        // Uniform in ±3.4 %, a standard deviation of 2 %.
        let noise = |k: usize| {
            let mixed = ((seed * 1000 + k) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed ^ (mixed >> 32)) as f64 / u64::MAX as f64 - 0.5) * 0.068
        };
        let found = predict(&run(&hpl), &machine.report(&hpl, &windows, noise));
        errors += (found.time_s / machine.run_s(&hpl) - 1.0).powi(2);
        spreads += (found.spread_s / machine.run_s(&hpl)).powi(2);
    }
    let (error, spread) = ((errors / 400.0).sqrt(), (spreads / 400.0).sqrt());
    // The error is below the noise of a single step.
    assert!(error < 0.015, "{error}");
    assert!((0.5..2.0).contains(&(spread / error)), "{spread} {error}");
}

#[test]
fn auto_is_cheap_where_it_matters() {
    for (n, q, most) in [(16_000, 1, 0.11), (16_000, 2, 0.11), (30_000, 1, 0.07), (30_000, 2, 0.07), (100_000, 4, 0.04)]
    {
        for depth in 0..3 {
            let hpl = HplParams { depth, ..hpl(n, 1, q) };
            let machine = Machine { abc: [3e-9, 0.0, 0.0], alternation: 0.0 };
            let windows = Windows::Auto.of(&hpl).unwrap();
            // After the last step of a window, the panels in flight, except the last, update the rest.
            let steps = |window: &Window| window.begin(&hpl)..window.first + window.steps + depth.saturating_sub(1);
            let spent_s = windows.iter().flat_map(steps).map(|k| machine.step_s(&hpl, k)).sum::<f64>();
            let cost = spent_s / machine.run_s(&hpl);
            assert!(cost < most && windows.len() >= 3, "{hpl:?} {cost} {windows:?}");
            assert!(windows.iter().all(|window| window.steps == q.max(2)));
        }
    }
}

/// It was 0, as if the prediction were exact.
#[test]
fn the_spread_of_one_cycle_is_all_that_is_extrapolated() {
    let machine = Machine { abc: [3e-9, 2e-6, 1e-4], alternation: 0.0 };
    let one = |hpl: &HplParams| {
        let report = machine.report(hpl, &[Window { first: 0, steps: 1 }], |_| 0.0);
        let measured_s: f64 = report.windows[0].step_s.iter().sum();
        (predict(&run(hpl), &report), measured_s)
    };
    let (found, measured_s) = one(&hpl(16_000, 1, 1));
    assert!(found.time_s > 2.0 * measured_s, "{found:?}");
    assert!((found.spread_s / (found.time_s - measured_s) - 1.0).abs() < 1e-9, "{found:?}");
    // All steps are measured.
    let (found, measured_s) = one(&hpl(192, 1, 1));
    assert_eq!(found, WholeRunPrediction { time_s: measured_s, spread_s: 0.0 });
    assert!(found.spread_s.is_sign_positive(), "{found:?}");
}

#[test]
fn no_step_and_one_step_are_predicted() {
    let machine = Machine { abc: [1e-9, 1e-6, 1e-4], alternation: 0.0 };
    let nothing = predict(&run(&hpl(0, 1, 1)), &machine.report(&hpl(0, 1, 1), &[], |_| 0.0));
    assert_eq!(nothing, WholeRunPrediction { time_s: 0.0, spread_s: 0.0 });
    assert!(nothing.time_s.is_sign_positive() && nothing.spread_s.is_sign_positive(), "{nothing:?}");
    let hpl = hpl(1000, 2, 2);
    let one = predict(&run(&hpl), &machine.report(&hpl, &[Window { first: 2, steps: 1 }], |_| 0.0));
    assert!(one.time_s > 0.0 && one.spread_s.is_finite());
}
