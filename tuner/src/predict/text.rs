//! A prediction in words and as JSON.

use std::fmt::Write;

use serde::Serialize;
use space::machine::{Machine, Measured};

use super::parts::{self, StepGroup};
use super::{Answer, Model, Question, Term};
use crate::report::digits;

/// Version of the JSON document.
pub const SCHEMA: u32 = 2;

/// A prediction with all that it depends on.
#[derive(Debug, Serialize)]
pub struct PredictionText<'a> {
    schema_version: u32,
    machine: &'a str,
    origin: &'a str,
    model: Model,
    n: usize,
    nb: usize,
    p: usize,
    q: usize,
    threads: usize,
    nodes: Option<usize>,
    predicted_time_s: f64,
    predicted_rate_gflops: f64,
    /// Scores of measured runs of the same N, ranks and nodes.
    measured_rate_gflops: Vec<f64>,
    terms: &'a [Term],
    /// The run in parts, of models that see steps.
    parts: Vec<StepGroup>,
    parameters: Vec<Parameter<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct Parameter<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> PredictionText<'a> {
    /// The prediction of a run with what was measured of it.
    pub fn new(machine: &'a Machine, model: Model, question: &Question, answer: &'a Answer) -> Self {
        let hpl = &question.hpl;
        let parameters = answer.parameters.iter().map(|(name, value)| Parameter { name, value });
        Self {
            schema_version: SCHEMA,
            machine: &machine.host.name,
            origin: &machine.host.origin,
            model,
            n: hpl.n,
            nb: hpl.nb,
            p: hpl.p,
            q: hpl.q,
            threads: question.threads,
            nodes: question.nodes,
            predicted_time_s: answer.time_s,
            predicted_rate_gflops: answer.rate_gflops(hpl.n),
            measured_rate_gflops: measured(machine, question).map(|run| run.rate_gflops).collect(),
            terms: &answer.terms,
            parts: answer.timeline.as_ref().map(parts::parts).unwrap_or_default(),
            parameters: parameters.collect(),
            notes: &answer.notes,
        }
    }

    /// The document for programs.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The lines for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<18}{value}");
        };
        line("Machine", &format!("{} ({})", self.machine, self.origin));
        let nodes = match self.nodes {
            Some(1) => "  on 1 node".to_owned(),
            Some(nodes) => format!("  on {nodes} nodes"),
            None => String::new(),
        };
        let threads = if self.threads > 1 { format!("  threads {}", self.threads) } else { String::new() };
        line("Run", &format!("N {}  NB {}  P {}  Q {}{threads}{nodes}", self.n, self.nb, self.p, self.q));
        line("Model", self.model.name());
        for parameter in &self.parameters {
            line(&format!("  {}", parameter.name), parameter.value);
        }
        let time_s = digits(self.predicted_time_s);
        line("Predicted", &format!("{} in {time_s} s", rate(self.predicted_rate_gflops)));
        for measured in &self.measured_rate_gflops {
            let off = 100.0 * (self.predicted_rate_gflops / measured - 1.0);
            line("Measured", &format!("{}; the prediction differs by {off:+.1} %", rate(*measured)));
        }
        text.push('\n');
        text.push_str(&terms(self.terms, self.predicted_time_s));
        if !self.parts.is_empty() {
            text.push('\n');
            text.push_str(&parts::table(&self.parts));
        }
        for note in self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

/// A rate in a unit of its size.
pub(crate) fn rate(gflops: f64) -> String {
    let (unit, size) = rate_unit(gflops);
    format!("{} {unit}", digits(gflops / size))
}

/// A unit for rates up to `highest` GFLOP/s: its name and its size in GFLOP/s.
pub(super) fn rate_unit(highest: f64) -> (&'static str, f64) {
    match highest {
        h if h >= 1e6 => ("PFLOP/s", 1e6),
        h if h >= 1e4 => ("TFLOP/s", 1e3),
        _ => ("GFLOP/s", 1.0),
    }
}

/// Measured runs of the same order, ranks and nodes.
fn measured<'a>(machine: &'a Machine, question: &Question) -> impl Iterator<Item = &'a Measured> {
    let question = *question;
    machine.measured.iter().filter(move |run| run.n == Some(question.hpl.n) && is_as_placed(run, &question))
}

/// Whether a measured run had as many ranks, and as many nodes where both are known.
pub(super) fn is_as_placed(run: &Measured, question: &Question) -> bool {
    let nodes = question.nodes;
    run.ranks() == Some(question.hpl.ranks()) && (nodes.is_none() || run.nodes.is_none() || run.nodes == nodes)
}

/// The terms with their share of the time.
fn terms(terms: &[Term], time_s: f64) -> String {
    let width = |of: fn(&Term) -> &str| terms.iter().map(|term| of(term).chars().count()).max().unwrap_or(0);
    let (layers, names) = (width(|term| &term.layer).max(5), width(|term| term.term).max(4));
    let mut text = format!("{:<layers$}  {:<names$}  {:>10}  {:>7}\n", "where", "what", "s", "share");
    for term in terms {
        let share = 100.0 * term.time_s / time_s;
        let seconds = digits(term.time_s);
        let _ = writeln!(text, "{:<layers$}  {:<names$}  {seconds:>10}  {share:>5.1} %", term.layer, term.term);
    }
    text
}
