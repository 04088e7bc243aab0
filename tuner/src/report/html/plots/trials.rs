//! The trials that plots show: those of the search that passed, and what is said of each under the pointer.

use std::collections::{BTreeMap, BTreeSet};

use objectives::real::Extent;
use serde_json::{Value, json};
use space::Candidate;

use super::figure::plain;
use crate::record::Row;
use crate::record::now::on_one_line;
use crate::report::Summary;
use crate::report::format::{cut, digits};
use crate::report::summary::of_search;

/// Longest line under the pointer, in characters.
const LINE: usize = 64;
/// Longest text of the record under the pointer, in characters.
const LONGEST: usize = 160;

/// Trials from which on a plot of all trials shows a part of them.
pub(super) const MOST: usize = 2000;

/// Which candidate a trial is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialKind {
    /// Neither of the two below.
    Other,
    /// The usual HPL.dat.
    Default,
    /// The best.
    Best,
}

impl TrialKind {
    /// In the order in which they are drawn: what comes later lies on top.
    pub(super) const ALL: [Self; 3] = [Self::Other, Self::Default, Self::Best];

    /// The name in a legend, which is the class of the style sheet too.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Default => "default",
            Self::Best => "best",
        }
    }

    /// The colour of the style sheet.
    pub(super) fn color(self) -> String {
        format!("--{}", self.name())
    }

    /// A sign for each, so that colours are not needed.
    fn marker(self) -> Value {
        let (symbol, size, opacity) = match self {
            Self::Other => ("circle", 7, 0.7),
            Self::Default => ("square", 8, 1.0),
            Self::Best => ("diamond", 10, 1.0),
        };
        json!({ "color": self.color(), "symbol": symbol, "size": size, "opacity": opacity })
    }
}

/// A passed trial of the search.
pub(super) struct SearchTrial<'a> {
    pub(super) row: &'a Row,
    pub(super) rate_gflops: f64,
    pub(super) kind: TrialKind,
}

/// The passed trials that the search compares, in order. Rates at different N, or of whole runs and of windows, do not compare.
pub(super) fn search_trials<'a>(summary: &Summary, rows: &'a [Row]) -> Vec<SearchTrial<'a>> {
    of_kinds(summary, of_search(&summary.session, rows).into_iter())
}

/// The passed whole runs at the N of the search, in order.
pub(super) fn whole_trials<'a>(summary: &Summary, rows: &'a [Row]) -> Vec<SearchTrial<'a>> {
    let is_at_n = |row: &&Row| summary.session.n.is_none_or(|n| n == row.n);
    of_kinds(summary, rows.iter().filter(|row| row.extent == Extent::Whole).filter(is_at_n))
}

/// Those of the rows that have a rate, each with what it is of.
fn of_kinds<'a>(summary: &Summary, rows: impl Iterator<Item = &'a Row>) -> Vec<SearchTrial<'a>> {
    let n = summary.session.n;
    let at_n = |candidate: &Candidate| candidate.at_n(n.unwrap_or(candidate.hpl.n));
    let best = summary.best.as_ref().map(|best| at_n(&best.candidate));
    let default = summary.baseline.as_ref().map(|default| at_n(&default.candidate));
    let kind = |row: &Row| match Some(row.candidate()) {
        of if of == best => TrialKind::Best,
        of if of == default => TrialKind::Default,
        _ => TrialKind::Other,
    };
    let trial = |row: &'a Row| Some(SearchTrial { row, rate_gflops: row.comparable_rate_gflops()?, kind: kind(row) });
    rows.filter_map(trial).collect()
}

/// At most about `most` of the trials: each k-th one, and all runs of the best and of the default.
pub(super) fn thinned<'a, 'b>(trials: &'b [SearchTrial<'a>], most: usize) -> Vec<&'b SearchTrial<'a>> {
    let each = trials.len().div_ceil(most).max(1);
    let kept = |(at, trial): &(usize, &SearchTrial<'_>)| at % each == 0 || trial.kind != TrialKind::Other;
    trials.iter().enumerate().filter(kept).map(|(_, trial)| trial).collect()
}

/// A trace of points for each kind of trial that has some; `place` gives their coordinates, or none.
pub(super) fn points<'a, 'b: 'a>(
    trials: impl Iterator<Item = &'a SearchTrial<'b>> + Clone,
    place: impl Fn(&SearchTrial<'_>) -> Option<(f64, f64)>,
) -> Vec<Value> {
    let trace = |kind: TrialKind| {
        let of_kind = trials.clone().filter(|trial| trial.kind == kind);
        let (trials, places): (Vec<u64>, Vec<(f64, f64)>) =
            of_kind.filter_map(|trial| Some((trial.row.trial, place(trial)?))).unzip();
        let (x, y): (Vec<f64>, Vec<f64>) = places.into_iter().unzip();
        (!trials.is_empty()).then(|| {
            json!({ "name": kind.name(), "mode": "markers", "x": x, "y": y, "trials": trials, "marker": kind.marker() })
        })
    };
    TrialKind::ALL.into_iter().filter_map(trace).collect()
}

/// What the rates of the search are.
pub(super) fn rate_name(summary: &Summary) -> &'static str {
    match summary.session.extent {
        _ if summary.session.is_simulated() => "simulated, GFLOP/s",
        Extent::Whole => "measured, GFLOP/s",
        Extent::Windows => "estimated by windows, GFLOP/s",
    }
}

/// What is said of each of the trials that are `shown` under the pointer, by its number.
pub(super) fn labels(summary: &Summary, rows: &[Row], shown: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let shown = rows.iter().filter(|row| shown.contains(&row.trial));
    shown.map(|row| (row.trial, label(summary, row))).collect()
}

/// Number and rate of a trial, its candidate, who chose it and why, or how it failed.
fn label(summary: &Summary, row: &Row) -> String {
    let how = match row.extent {
        _ if summary.session.is_simulated() => "simulated",
        Extent::Whole => "measured",
        Extent::Windows => "estimated by windows",
    };
    let rate = row.comparable_rate_gflops();
    let result = rate.map_or(row.outcome.name().to_owned(), |rate| format!("{} GFLOP/s, {how}", digits(rate)));
    let predicted = row.predicted_rate_gflops.map(|rate| format!("predicted {} GFLOP/s", digits(rate)));
    let detail = row.failure_detail.as_ref().filter(|_| !row.passed);
    let why = detail.cloned().unwrap_or_else(|| format!("{}: {}", row.strategy, row.why));
    let texts = [Some(on_one_line(&row.candidate())), predicted, Some(why)];
    let lines: Vec<String> = texts.into_iter().flatten().flat_map(|text| wrapped(&text)).collect();
    format!("<b>trial {}: {}</b><br>{}", row.trial, plain(&result), lines.join("<br>"))
}

/// A text of the record in lines of [`LINE`] characters or so, cut at [`LONGEST`].
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in cut(text, LONGEST).split_whitespace() {
        // A word may be longer than a line.
        let pieces = word.chars().collect::<Vec<_>>();
        for piece in pieces.chunks(LINE) {
            let piece: String = piece.iter().collect();
            let line = lines.last_mut().expect("there is one");
            if line.is_empty() {
                *line = piece;
            } else if line.chars().count() + 1 + piece.chars().count() <= LINE {
                *line += &format!(" {piece}");
            } else {
                lines.push(piece);
            }
        }
    }
    lines.iter().map(|line| plain(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::summary::tests::session;

    #[test]
    fn labels_say_what_ran_why_and_how_it_failed_and_are_text() {
        let failed = Row { passed: false, failure_detail: Some("<i>lost</i> ".repeat(100)), ..row(3) };
        let rows = [row(0), row(2), failed];
        let found = labels(&Summary::new(&session(), &rows), &rows, &[0, 3].into());
        assert!(
            found[&0].starts_with("<b>trial 0: 20.00 GFLOP/s, measured</b><br>N 1000 NB 64 1×2×1t"),
            "{}",
            found[&0]
        );
        assert!(found[&0].contains("bayes: expected improvement"), "{}", found[&0]);
        assert_eq!(found.len(), 2, "only those that are shown");
        assert!(found[&3].contains("&lt;i&gt;lost&lt;/i&gt;") && !found[&3].contains("<i>"), "{}", found[&3]);
        assert!(found[&3].contains('…') && found[&3].len() < 1000, "{}", found[&3]);
    }

    #[test]
    fn words_longer_than_a_line_are_cut() {
        let lines = wrapped(&format!("a {}", "x".repeat(150)));
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [1, 64, 64, 22]);
    }

    #[test]
    fn of_many_trials_some_are_shown_and_all_of_the_best() {
        let rows: Vec<Row> = (0..100).map(row).collect();
        let summary = Summary::new(&session(), &rows);
        let trials = search_trials(&summary, &rows);
        assert_eq!(trials.iter().filter(|trial| trial.kind == TrialKind::Best).count(), 1);
        let kept = thinned(&trials, 10);
        assert!(kept.len() == 11 && kept.iter().any(|trial| trial.kind == TrialKind::Best), "{}", kept.len());
        assert_eq!(thinned(&trials, 100).len(), 100);
    }
}
