//! A machine's measured runs compared with what a model predicts for them.

use std::fmt::Write;

use objectives::runs;
use objectives::scenario::Choices;
use serde::Serialize;
use space::machine::{Machine, Measured};

use super::question::usual_nb;
use super::{Model, Question, WantedRun};
use crate::exit::bad_input;
use crate::report::digits;

/// One measured run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    nodes: Option<usize>,
    p: usize,
    q: usize,
    n: usize,
    /// Whether N is not stated and taken to fill the memory as the first run whose N is.
    n_assumed: bool,
    nb: usize,
    measured_gflops: f64,
    predicted_gflops: f64,
    published_model_gflops: Option<f64>,
}

/// All measured runs that could be predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredComparison {
    schema_version: u32,
    machine: String,
    model: String,
    parameters: Vec<String>,
    rows: Vec<ComparedRun>,
    /// Runs whose ranks or N are not known.
    left_out: usize,
    mean_error_percent: f64,
    /// Mean difference to the publication's own model, where it states one.
    mean_difference_percent: Option<f64>,
}

impl MeasuredComparison {
    /// Every measured run, predicted by `model` on its own nodes and ranks, with what else is `wanted`.
    ///
    /// # Errors
    /// Bad input: no run can be predicted, or the model lacks a figure.
    pub fn of(machine: &Machine, model: Model, choices: &Choices, wanted: &WantedRun) -> anyhow::Result<Self> {
        let nb = wanted.nb.or_else(|| usual_nb(machine));
        let mut rows = Vec::new();
        let mut parameters = Vec::new();
        for measured in &machine.measured {
            let assumed = measured.n.is_none();
            let Some(question) = Question::of_measured(measured, nb, filled(machine, measured, nb)) else { continue };
            let question = question.with(wanted);
            let answer = model.answer(machine, &question, choices)?;
            let hpl = &question.hpl;
            rows.push(ComparedRun {
                predicted_gflops: answer.rate_gflops(hpl.n),
                n_assumed: assumed,
                ..row(measured, &question)
            });
            // Those of the last run: the largest grid, with all layers.
            parameters =
                answer.parameters.iter().map(|(name, value)| format!("{name}: {value}")).chain(answer.notes).collect();
        }
        Self::new(machine, model.name(), parameters, rows)
    }

    /// Every measured run, predicted by three rates fitted to all others.
    ///
    /// # Errors
    /// Bad input: fewer than two runs of known N, ranks and nodes.
    pub fn leave_one_out(machine: &Machine, nb: Option<usize>) -> anyhow::Result<Self> {
        let nb = nb.or_else(|| usual_nb(machine)).unwrap_or(128);
        let runs = runs::of_machine(machine, nb);
        if runs.len() < 2 {
            return Err(bad_input("--leave-one-out needs two [[measured]] runs with n, nodes and ranks at least"));
        }
        let known =
            machine.measured.iter().filter(|run| run.n.is_some() && run.grid().is_some() && run.nodes.is_some());
        let questions = known.filter_map(|measured| Some((measured, Question::of_measured(measured, Some(nb), None)?)));
        let rows = questions.zip(runs::leave_one_out(&runs)).map(|((measured, question), time_s)| ComparedRun {
            predicted_gflops: space::flops::rate_gflops(question.hpl.n, time_s),
            ..row(measured, &question)
        });
        let all = runs::FittedRates::of(&runs);
        let rates = all.map(|rates| {
            format!(
                "3 fitted rates; to all runs: {:.3e} s per flop, {:.3e} s per word of a panel, {:.3e} s more between nodes",
                rates.gamma_s, rates.panel_s_per_word, rates.network_s_per_word
            )
        });
        Self::new(machine, "leave one out", rates.into_iter().collect(), rows.collect())
    }

    fn new(machine: &Machine, model: &str, parameters: Vec<String>, rows: Vec<ComparedRun>) -> anyhow::Result<Self> {
        if rows.is_empty() {
            return Err(bad_input("no [[measured]] run states ranks and N; predict one run with --n, --p and --q"));
        }
        let mean = |of: &dyn Fn(&ComparedRun) -> Option<f64>| {
            let all: Vec<f64> = rows.iter().filter_map(of).map(f64::abs).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        Ok(Self {
            schema_version: super::text::SCHEMA,
            machine: machine.host.name.clone(),
            model: model.to_owned(),
            parameters,
            left_out: machine.measured.len() - rows.len(),
            mean_error_percent: mean(&|row| Some(error(row))).unwrap_or_default(),
            mean_difference_percent: mean(&difference),
            rows,
        })
    }

    /// Predicted GFLOP/s of each run.
    pub fn predicted_gflops(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.predicted_gflops).collect()
    }

    /// The document for programs.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The table for people.
    pub fn text(&self) -> String {
        let published = self.mean_difference_percent.is_some();
        let mut text = format!("{}, model: {}\n", self.machine, self.model);
        for parameter in &self.parameters {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {parameter}");
        }
        let _ = write!(text, "\n{:>5} {:>9} {:>9} {:>5}", "nodes", "P×Q", "N", "NB");
        let _ = write!(text, " {:>14} {:>15} {:>8}", "measured GF/s", "predicted GF/s", "error");
        text.push_str(if published { "  published model  difference\n" } else { "\n" });
        for row in &self.rows {
            let nodes = row.nodes.map_or("-".to_owned(), |nodes| nodes.to_string());
            let mark = if row.n_assumed { "*" } else { "" };
            let (grid, n) = (format!("{}×{}", row.p, row.q), format!("{}{mark}", row.n));
            let [measured, predicted] = [row.measured_gflops, row.predicted_gflops].map(whole);
            let _ = write!(
                text,
                "{nodes:>5} {grid:>9} {n:>9} {:>5} {measured:>14} {predicted:>15} {:>+6.1} %",
                row.nb,
                error(row)
            );
            if let (Some(published), Some(off)) = (row.published_model_gflops, difference(row)) {
                let _ = write!(text, "  {:>15}  {off:>+8.1} %", whole(published));
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "\nmean |error| against {} measured runs: {:.2} %",
            self.rows.len(),
            self.mean_error_percent
        );
        if let Some(mean) = self.mean_difference_percent {
            let _ = writeln!(text, "mean |difference| to the published model: {mean:.2} %");
        }
        if self.rows.iter().any(|row| row.n_assumed) {
            text.push_str("* N not stated: taken to fill the memory of the nodes as the first run whose N is known\n");
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "{} more runs do not state their ranks or N", self.left_out);
        }
        text
    }
}

/// GFLOP/s for a column: whole above 1000.
fn whole(gflops: f64) -> String {
    if gflops >= 1e3 { format!("{gflops:.0}") } else { digits(gflops) }
}

fn row(measured: &Measured, question: &Question) -> ComparedRun {
    let hpl = &question.hpl;
    ComparedRun {
        nodes: measured.nodes,
        p: hpl.p,
        q: hpl.q,
        n: hpl.n,
        n_assumed: false,
        nb: hpl.nb,
        measured_gflops: measured.rate_gflops,
        predicted_gflops: f64::NAN,
        published_model_gflops: measured.published_model_gflops,
    }
}

/// Predicted against measured, in percent.
fn error(row: &ComparedRun) -> f64 {
    100.0 * (row.predicted_gflops / row.measured_gflops - 1.0)
}

/// Predicted against the publication's model, in percent.
fn difference(row: &ComparedRun) -> Option<f64> {
    row.published_model_gflops.map(|published| 100.0 * (row.predicted_gflops / published - 1.0))
}

/// N of a run that fills the memory of its nodes as the first run does whose N is stated, a multiple of NB.
fn filled(machine: &Machine, measured: &Measured, nb: Option<usize>) -> Option<usize> {
    let (n, of) = machine.measured.iter().find_map(|run| run.n.zip(run.nodes))?;
    let nb = measured.nb.or(nb).unwrap_or(1);
    let n = n as f64 * (measured.nodes? as f64 / of as f64).sqrt();
    Some((n as usize / nb * nb).max(1))
}

#[cfg(test)]
mod tests {
    use space::machine::Node;

    use super::*;

    /// A rank of one thread has a quarter of a node of four cores.
    #[test]
    fn measured_runs_have_the_threads_that_are_wanted() {
        let node = Node { name: "node".into(), count: 1, cores: 4, rate_gflops: 100.0, ..Node::default() };
        let (n, nb, p, q) = (Some(20_000), Some(128), Some(1), Some(1));
        let run = Measured { n, nb, p, q, nodes: Some(1), rate_gflops: 90.0, ..Measured::default() };
        let machine = Machine { nodes: vec![node], measured: vec![run], ..Machine::default() };
        let predicted = |threads| {
            let wanted = WantedRun { threads, ..WantedRun::default() };
            let compared = MeasuredComparison::of(&machine, Model::Mcl, &Choices::default(), &wanted).unwrap();
            compared.rows[0].predicted_gflops
        };
        assert!((predicted(Some(4)) / predicted(None) - 4.0).abs() < 1e-9);
    }
}
