//! How good predictions are: errors, order, and what the predicted best loses.

use space::stats::spearman;

use crate::runs::Run;

/// A run with its prediction.
pub(crate) struct Case<'a> {
    run: &'a Run,
    predicted_s: f64,
}

impl<'a> Case<'a> {
    pub(crate) fn new(run: &'a Run, predicted_s: f64) -> Self {
        Self { run, predicted_s }
    }
}

/// One set's figures; with `rows` every run's.
pub(crate) fn print(name: &str, cases: &[Case], rows: bool) {
    let predicted: Vec<f64> = cases.iter().map(|case| case.predicted_s).collect();
    let real: Vec<f64> = cases.iter().map(|case| case.run.real_s).collect();
    println!("{name:24} {}", figures(&predicted, &real));
    if let Some(large) = cases.iter().position(|case| case.run.hpl.n >= 100_000).filter(|at| *at > 0) {
        println!(
            "{:24} {}",
            format!("  N from {}", cases[large].run.hpl.n),
            figures(&predicted[large..], &real[large..])
        );
    }
    if let Some(simgrid) = cases.iter().map(|case| case.run.simgrid_s).collect::<Option<Vec<f64>>>() {
        println!("{:24} {}", "  SimGrid on the same", figures(&simgrid, &real));
    }
    for Case { run, predicted_s } in cases.iter().filter(|_| rows) {
        let off = |time_s: f64| format!("{:+5.1} %", 100.0 * (time_s / run.real_s - 1.0));
        let simgrid = run.simgrid_s.map_or_else(String::new, |time_s| format!("   SimGrid {}", off(time_s)));
        println!("  {:26} {:8.2} s, predicted {predicted_s:8.2} {}{simgrid}", run.name, run.real_s, off(*predicted_s));
    }
}

fn figures(predicted: &[f64], real: &[f64]) -> String {
    let errors: Vec<f64> = predicted.iter().zip(real).map(|(p, r)| 100.0 * (p / r - 1.0).abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let near = errors.iter().filter(|error| **error <= 5.0).count();
    let best = (0..real.len()).min_by(|&a, &b| predicted[a].total_cmp(&predicted[b])).unwrap_or_default();
    let loss = 100.0 * (real[best] / real.iter().copied().fold(f64::INFINITY, f64::min) - 1.0);
    let (count, order) = (errors.len(), spearman(predicted, real));
    format!(
        "mean error {mean:5.2} %, {near:2} of {count:2} within 5 %, Spearman {order:.3}, predicted best loses {loss:.2} %"
    )
}
