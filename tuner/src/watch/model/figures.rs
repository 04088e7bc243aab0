//! Best, default, and how they compare, in the words of the report.

use objectives::real::Extent;

use crate::record::now::on_one_line;
use crate::report::sentences::{choice, estimated, final_by_estimate, in_pairs, objective};
use crate::report::{Comparison, Score, Summary, digits};
use crate::watch::look::Tone;
use crate::watch::work::Work;

/// A named figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub value: String,
    /// How it is to be seen.
    pub tone: Tone,
}

impl Figure {
    fn new(name: &'static str, value: String, tone: Tone) -> Self {
        Self { name, value, tone }
    }
}

/// What a stop at this moment leaves, or what a session that is over has left: verified, measured, or estimated.
pub(super) fn outcome(summary: &Summary, work: Work) -> Figure {
    let name = if work == Work::Over { "Result" } else { "If stopped" };
    if let Some((row, rate)) = summary.verified_run().and_then(|row| Some((row, row.rate_gflops?))) {
        let said = format!("{} GFLOP/s at N = {}, verified by the final run", digits(rate), row.n);
        return Figure::new(name, said, Tone::Good);
    }
    if let Some(best) = &summary.best {
        let (rate, n, runs) = (digits(best.rate_gflops), best.candidate.hpl.n, best.runs);
        let runs = if runs == 1 { "1 whole run".to_owned() } else { format!("{runs} whole runs") };
        let said = format!("{rate} GFLOP/s at N = {n}, by {runs}; {}", final_run(summary, work));
        return Figure::new(name, said, Tone::Strong);
    }
    match summary.top.first() {
        Some(leader) => {
            let (rate, n) = (digits(leader.rate_gflops), leader.candidate.hpl.n);
            Figure::new(name, format!("no score, only an estimate: {rate} GFLOP/s at N = {n}"), Tone::Doubt)
        }
        None => Figure::new(name, "no score: no trial has passed".to_owned(), Tone::Doubt),
    }
}

/// What there is of a final run, where the best has no passed one.
fn final_run(summary: &Summary, work: Work) -> String {
    match &summary.final_run {
        Some(row) if row.passed => "the final run was of the candidate chosen before".to_owned(),
        Some(row) => {
            let why = row.failure_detail.as_deref().and_then(|detail| detail.lines().next());
            format!("the final run failed: {}", why.unwrap_or(row.outcome.name()))
        }
        None if work == Work::Over => "no final run".to_owned(),
        None => "no final run yet".to_owned(),
    }
}

/// The figures, the most important first.
pub(super) fn figures(summary: &Summary, work: Work) -> Vec<Figure> {
    let plain = |name, value| Figure::new(name, value, Tone::Plain);
    let best_n = summary.best.as_ref().map(|best| best.candidate.hpl.n);
    let estimate = summary.estimate.as_ref();
    // A final run at another N says nothing beside the default.
    let elsewhere = estimate.filter(|estimate| Some(estimate.candidate.hpl.n) != best_n);
    let best = match (&summary.best, elsewhere, summary.top.first()) {
        (Some(_), Some(estimate), _) => format!("estimated {}", estimated(estimate)),
        (Some(best), ..) => score(best),
        (None, _, Some(leader)) => score(leader),
        (None, _, None) => "none yet".to_owned(),
    };
    let shown = summary.best.as_ref().or(summary.top.first());
    let mut figures = vec![Figure::new("Best", best, Tone::Strong)];
    let default = summary.baseline.as_ref();
    figures.push(plain("Default", default.map_or_else(|| "has not passed a trial yet".to_owned(), score)));
    figures.push(plain("Best/default", compared(summary, &summary.best_by_baseline, work)));
    // Else a best that is slower than the default, and a ratio above 1, contradict each other.
    figures.extend(objective(summary).map(|said| plain("Objective", said)));
    figures.extend(shown.map(|score| plain("Candidate", on_one_line(&score.candidate))));
    if let Some(expert) = &summary.expert {
        figures.push(plain("Expert", score(expert)));
        figures.push(plain("Best/expert", compared(summary, &summary.best_by_expert, work)));
    }
    let same = estimate.filter(|estimate| Some(estimate.candidate.hpl.n) == best_n);
    figures.extend(same.map(|estimate| plain("Estimated", estimated(estimate))));
    figures.extend(summary.final_by_estimate.as_ref().map(|beside| plain("Final/est.", final_by_estimate(beside))));
    figures.extend(summary.left().map(|left| plain("Left", left.to_string())));
    figures.extend(choice(summary).into_iter().map(|said| plain("Choice", said)));
    figures
}

/// A comparison; pairs that there are not yet may still come.
fn compared(summary: &Summary, comparison: &Comparison, work: Work) -> String {
    match comparison {
        Comparison::NotMeasured { .. } if work != Work::Over => {
            "not measured: pairs of both follow the final run".to_owned()
        }
        comparison => in_pairs(summary, comparison),
    }
}

/// A score with the range of its runs, `100.5 GFLOP/s at N = 11520, estimated (97.95 … 102.7, 9 trials)`.
fn score(score: &Score) -> String {
    let [low, high] = score.range_gflops.map(digits);
    let several = if score.runs == 1 { "" } else { "s" };
    let (estimated, runs) = match score.extent {
        Extent::Whole => ("", "whole run"),
        Extent::Windows => (", estimated", "trial"),
    };
    let range = if score.runs == 1 { String::new() } else { format!("{low} … {high}, ") };
    let (rate, n) = (digits(score.rate_gflops), score.candidate.hpl.n);
    format!("{rate} GFLOP/s at N = {n}{estimated} ({range}{} {runs}{several})", score.runs)
}
