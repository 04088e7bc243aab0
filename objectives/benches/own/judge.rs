//! The model compared with the rows: error, order, and what the noise allows.

use std::collections::BTreeMap;
use std::time::Instant;

use objectives::predict::Predictor;
use objectives::timeline::own::OwnModel;
use space::dims::Space;
use space::machine::Machine;
use space::params::Coded;
use space::stats::spearman;
use space::{Candidate, EngineParams, HplParams, RunResult};

use crate::Flags;
use crate::draws::read;

/// Seconds of factorization, broadcast, rows, update and substitution, means over the ranks.
fn phases(row: &RunResult) -> [f64; 5] {
    let ranks = row.candidate.hpl.ranks() as f64;
    let mut sums = [0.0; 5];
    for time in &row.phases {
        let of = [time.fact_s, time.lbcast_s, time.rs_s, time.update_s, time.trsv_s];
        sums.iter_mut().zip(of).for_each(|(sum, s)| *sum += s / ranks);
    }
    sums
}

/// All runs of one candidate.
pub(crate) struct Case {
    /// The quickest.
    pub(crate) row: RunResult,
    times_s: Vec<f64>,
}

impl Case {
    /// Quickest of the odd runs, and of the even ones.
    fn halves(&self) -> Option<(f64, f64)> {
        let half = |first: usize| self.times_s.iter().skip(first).step_by(2).copied().reduce(f64::min);
        half(0).zip(half(1))
    }
}

/// The candidates of a file, in their order.
pub(crate) fn cases(path: &std::path::Path) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for row in read(path) {
        match cases.iter_mut().find(|case| case.row.candidate == row.candidate) {
            Some(case) => {
                case.times_s.push(row.time_s);
                if row.time_s < case.row.time_s {
                    case.row = row;
                }
            }
            None => cases.push(Case { times_s: vec![row.time_s], row }),
        }
    }
    cases
}

/// A candidate's value in a dimension.
type Value = fn(&Candidate) -> String;

/// Mean error of the candidates that have a dimension's value in common.
fn residuals(cases: &[Case], errors: &[f64]) {
    let dimensions: [(&str, Value); 10] = [
        ("grid", |c| format!("{}x{}x{}", c.hpl.p, c.hpl.q, c.engine.threads)),
        ("NB", |c| format!("{:3}", 1 << c.hpl.nb.ilog2())),
        ("NBMIN", |c| format!("{:2}", c.hpl.nbmin)),
        ("NDIV", |c| c.hpl.ndiv.to_string()),
        ("PFACT", |c| c.hpl.pfact.name().to_owned()),
        ("RFACT", |c| c.hpl.rfact.name().to_owned()),
        ("DEPTH", |c| c.hpl.depth.to_string()),
        ("SWAP", |c| c.hpl.swap.name().to_owned()),
        ("split", |c| c.engine.split.to_string()),
        ("BCAST", |c| c.hpl.bcast.name().to_owned()),
    ];
    for (name, value) in dimensions {
        let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (case, error) in cases.iter().zip(errors) {
            groups.entry(value(&case.row.candidate)).or_default().push(*error);
        }
        let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
        let words = groups.iter().map(|(value, list)| format!("{value} {:+.1} ({})", mean(list), list.len()));
        println!("  by {name}: {}", words.collect::<Vec<_>>().join(", "));
    }
}

fn short(c: &Candidate) -> String {
    let (h, e) = (&c.hpl, &c.engine);
    format!(
        "{}x{}x{} NB {:3} NBMIN {:2} NDIV {} {:5} {:5} DEPTH {} {:8} split {}",
        h.p,
        h.q,
        e.threads,
        h.nb,
        h.nbmin,
        h.ndiv,
        h.pfact.name(),
        h.rfact.name(),
        h.depth,
        h.swap.name(),
        e.split
    )
}

/// Mean |error| of predictions, in per cent of the measured times, and Spearman's ρ with them.
pub(crate) fn score(name: &str, measured: &[f64], predicted: &[f64]) {
    let errors = measured.iter().zip(predicted).map(|(real, model)| (model / real - 1.0).abs());
    let mean = 100.0 * errors.sum::<f64>() / measured.len() as f64;
    let best = (0..measured.len()).min_by(|&a, &b| measured[a].total_cmp(&measured[b])).expect("rows");
    let ahead = predicted.iter().filter(|&&s| s < predicted[best]).count();
    let chosen = (0..measured.len()).min_by(|&a, &b| predicted[a].total_cmp(&predicted[b])).expect("rows");
    println!(
        "{name}: mean error {mean:.2} %, Spearman {:.3}; {ahead} of {} predicted before the true best; the predicted \
         best is {:.1} % slower than it",
        spearman(measured, predicted),
        measured.len(),
        100.0 * (measured[chosen] / measured[best] - 1.0)
    );
}

/// What predictions cost: of all candidates of the space, and of one whole run on two cores at N = 40000.
fn speed(machine: &Machine, n: usize) {
    let domain = crate::draws::domain(n);
    let predictor = Predictor::new(machine).expect("rates");
    let clock = Instant::now();
    let best = domain.points().iter().map(|point| predictor.time_s(&domain.candidate(point))).fold(f64::MAX, f64::min);
    let (count, s) = (domain.points().len(), clock.elapsed().as_secs_f64());
    println!(
        "{count} candidates in {s:.2} s, {:.1} µs each; the best is predicted to take {best:.4} s",
        1e6 * s / count as f64
    );
    let model = OwnModel::new(machine).expect("phases");
    for (p, q, threads) in [(1, 2, 1), (2, 1, 1), (1, 1, 2)] {
        let engine = EngineParams { threads, ..EngineParams::default() };
        let candidate = Candidate { hpl: HplParams::baseline(40_000, p, q), engine };
        let clock = Instant::now();
        let whole = model.timeline(&candidate);
        let (whole_s, clock) = (clock.elapsed().as_secs_f64(), Instant::now());
        let thinned = model.time_s(&candidate);
        println!(
            "N=40000 NB=128 {p}x{q}x{threads}: {} steps in {:.2} ms, thinned {:.2} ms and {:+.2} % of the time",
            whole.steps.len(),
            1e3 * whole_s,
            1e3 * clock.elapsed().as_secs_f64(),
            100.0 * (thinned / whole.total_s - 1.0)
        );
    }
}

/// Prints every row and the summary.
pub(crate) fn judge(flags: &Flags) {
    let text = std::fs::read_to_string(flags.path("--machine")).expect("a machine");
    let machine = Machine::parse(&text).expect("a machine");
    let cases = cases(&flags.path("--rows"));
    let model = OwnModel::new(&machine).expect("a machine with phases");
    let without = Machine { phases: Vec::new(), ..machine.clone() };
    let (own, steps) = (Predictor::new(&machine).expect("rates"), Predictor::new(&without).expect("rates"));
    println!("per cent of the run: model minus measured, in factorization, broadcast, rows, update, substitution");
    for row in cases.iter().map(|case| &case.row) {
        let timeline = model.timeline(&row.candidate);
        let sums = timeline.sums();
        let predicted = [sums.fact_s, sums.lbcast_s, sums.rs_s, sums.update_s, timeline.trsv_s];
        let parts: Vec<String> = predicted
            .iter()
            .zip(phases(row))
            .map(|(model, real)| format!("{:+5.1}", 100.0 * (model - real) / row.time_s))
            .collect();
        let time_s = own.time_s(&row.candidate);
        println!(
            "{:.4} s {:+5.1} % [{}] {}",
            row.time_s,
            100.0 * (time_s / row.time_s - 1.0),
            parts.join(" "),
            short(&row.candidate)
        );
    }
    let measured: Vec<f64> = cases.iter().map(|case| case.row.time_s).collect();
    let of =
        |predictor: &Predictor| cases.iter().map(|case| predictor.time_s(&case.row.candidate)).collect::<Vec<f64>>();
    let exact: Vec<f64> = cases.iter().map(|case| model.timeline(&case.row.candidate).total_s).collect();
    let errors: Vec<f64> = measured.iter().zip(&exact).map(|(real, model)| 100.0 * (model / real - 1.0)).collect();
    println!("mean error in per cent, with its sign, and number of candidates:");
    residuals(&cases, &errors);
    score("timeline, all steps", &measured, &exact);
    score("timeline, as the tuner asks", &measured, &of(&own));
    score("step sum of kernels", &measured, &of(&steps));
    speed(&machine, cases[0].row.candidate.hpl.n);
    let (odd, even): (Vec<f64>, Vec<f64>) = cases.iter().filter_map(Case::halves).unzip();
    if !odd.is_empty() {
        score(&format!("noise: quickest of odd and of even runs of {}", odd.len()), &odd, &even);
    }
}
