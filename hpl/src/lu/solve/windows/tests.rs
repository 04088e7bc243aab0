use std::thread;

use space::{Candidate, EngineParams, HplParams, Share, Swap};

use crate::backend::host::kernels::{Builtin, Kernels};
use crate::comm::threads;
use crate::mat::{Mat, MatMut};
use crate::measure_windows;
use crate::plan::windows::{Window, WindowsReport};

fn measure(candidate: &Candidate, windows: &[Window], kernels: &dyn Kernels) -> Vec<WindowsReport> {
    thread::scope(|scope| {
        let ranks = threads::world(candidate.hpl.ranks(), false).into_iter();
        let rank = |comm| scope.spawn(move || measure_windows(candidate, windows, &comm, &[], kernels).unwrap());
        let ranks: Vec<_> = ranks.map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn candidate(n: usize, nb: usize, (p, q): (usize, usize), depth: usize, split: f64) -> Candidate {
    let hpl = HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: EngineParams { threads: 2, split: Share::new(split).unwrap(), ..EngineParams::default() } }
}

#[test]
fn trailing_matrix_after_a_window_passes_the_check() {
    let mut checked = 0;
    for grid in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 5)] {
        for (depth, split) in [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.5), (1, 0.5), (0, 0.4), (9, 0.6)] {
            for (n, nb, swap) in [(300, 16, Swap::BinExch), (317, 24, Swap::Long)] {
                let mut candidate = candidate(n, nb, grid, depth, split);
                candidate.hpl.swap = swap;
                let steps = n.div_ceil(nb);
                let windows = [(0, 2), (3, 4), (8, 1), (steps - 2, 2)].map(|(first, steps)| Window { first, steps });
                let reports = measure(&candidate, &windows, &Builtin::best());
                for report in &reports {
                    for (times, window) in report.windows.iter().zip(windows) {
                        assert_eq!((times.window, times.step_s.len()), (window, window.steps));
                        assert!(times.step_s.iter().all(|&step_s| step_s > 0.0));
                        assert_eq!(times.residual, report.windows[0].residual.and(times.residual));
                        assert!(times.residual.is_none_or(|scaled| scaled < 16.0), "{times:?} {candidate:?}");
                        checked += usize::from(times.residual.is_some());
                    }
                    assert!(report.windows[3].residual.is_none(), "nothing is left at the end");
                    assert_eq!(report.phases.len(), 9);
                }
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

/// The steps before a window, and the last updates after it, may be steps of another one.
#[test]
fn phases_are_those_of_the_timed_steps_alone() {
    let candidate = candidate(600, 32, (1, 1), 1, 0.0);
    let windows = [(9, 2), (11, 2), (5, 4), (9, 2)].map(|(first, steps)| Window { first, steps });
    let report = measure(&candidate, &windows, &Builtin::best()).pop().unwrap();
    let step_s: Vec<f64> = report.windows.iter().flat_map(|times| times.step_s.clone()).collect();
    let steps: Vec<u32> = report.phases.iter().map(|phase| phase.step).collect();
    assert_eq!(steps, [9, 10, 11, 12, 5, 6, 7, 8, 9, 10]);
    for (phase, step_s) in report.phases.iter().zip(step_s) {
        let in_phases_s = phase.fact_s + phase.lbcast_s + phase.rs_s + phase.update_s;
        assert!(in_phases_s > 0.0 && in_phases_s <= step_s + 1e-9, "{phase:?} in {step_s} s");
    }
}

/// Kernels whose products are wrong in one element.
struct Wrong;

impl Kernels for Wrong {
    fn name(&self) -> String {
        "wrong".to_owned()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
        let first = (c.rows() > 60 && c.cols() > 60).then(|| c.at(50, 50));
        Builtin::best().gemm(a, b, c.reborrow());
        if let Some(value) = first {
            c.set(50, 50, value);
        }
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        Builtin::best().trsm(l, b);
    }
}

#[test]
fn a_wrong_update_fails_the_check() {
    let reports = measure(&candidate(400, 32, (1, 1), 1, 0.0), &[Window { first: 1, steps: 2 }], &Wrong);
    assert!(reports[0].windows[0].residual.unwrap() > 16.0, "{:?}", reports[0].windows);
}

#[test]
fn text_of_windows() {
    assert_eq!("12:3".parse(), Ok(Window { first: 12, steps: 3 }));
    for wrong in ["", "3", "3:", ":3", "3:0", "-1:2", "1:2:3", "a:b", "99999999999999999999:1"] {
        let error = wrong.parse::<Window>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{wrong}' is not a window")), "{error}");
    }
    assert!(Window { first: 8, steps: 2 }.check(10).is_ok());
    let error = Window { first: 9, steps: 2 }.check(10).unwrap_err();
    assert!(error.to_string().contains("beyond the last of 10 steps"));
    assert!(Window { first: usize::MAX, steps: 2 }.check(10).is_err());
}
