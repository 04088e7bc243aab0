use space::{EngineParams, HplParams};

use super::*;
use crate::Residual;
use crate::program::CompletedRun;

/// A completed run with this info and scaled residual.
fn run(info: usize, scaled: Option<f64>) -> CompletedRun {
    let candidate = Candidate { hpl: HplParams::baseline(100, 1, 1), engine: EngineParams::default() };
    let watch = &();
    let options = RunOptions { threshold: 16.0, force: false, watch };
    let mut run = Runner::new(&KernelChoice::Builtin).unwrap().run(&candidate, &options).unwrap();
    run.result.info = info;
    run.residual = scaled.map(|scaled| Residual { scaled, ..run.residual.unwrap() });
    (run.result.residual, run.result.passed) = (scaled, scaled.is_some_and(|scaled| scaled < 16.0));
    run
}

#[test]
fn a_singular_matrix_is_skipped_as_netlib_does() {
    let mut tally = Tally::default();
    let text = report(&run(7, None), 16.0, &mut tally);
    assert!(text.contains("Error code returned by solve is 7, skip"), "{text}");
    assert!(!text.contains("PASSED") && !text.contains("FAILED"), "{text}");
    assert_eq!(tally, Tally { skipped: 1, ..Tally::default() });
    let footer = out::footer(&tally, 16.0);
    assert!(footer.contains("      1 tests skipped because of illegal input values."), "{footer}");
    let line = json(&run(7, None).result);
    assert!(line.contains("\"info\":7,") && line.contains("\"residual\":null,\"passed\":false"), "{line}");
}

#[test]
fn a_residual_that_is_no_number_fails() {
    let mut tally = Tally::default();
    let text = report(&run(0, Some(f64::NAN)), 16.0, &mut tally);
    assert!(text.contains("nan ...... FAILED"), "{text}");
    assert_eq!(tally, Tally { failed: 1, ..Tally::default() });
    let line = json(&run(0, Some(f64::NAN)).result);
    assert!(line.contains("\"residual\":null,\"passed\":false"), "{line}");
    serde_json::from_str::<space::RunResult>(&line).unwrap();
}
