//! The rates of the search, trial by trial, with the highest so far.

use maud::{PreEscaped, html};
use serde_json::{Value, json};

use super::figure::{InteractivePlot, titled};
use super::still::{MOST_DOTS, Mark, Plot};
use super::trials::{MOST, SearchTrial, TrialKind, points, rate_name, thinned};
use crate::record::Row;
use crate::report::Summary;
use crate::report::format::digits;
use crate::report::stats::median_interval;

/// Failures from which on a part of them is shown.
const MOST_FAILURES: usize = 500;

/// Passed trials, the highest rate so far, failed trials at the lower edge, and how sure the medians of the best and of the default
/// are. `None` until a trial has passed.
pub(super) fn history(summary: &Summary, rows: &[Row], trials: &[SearchTrial<'_>]) -> Option<InteractivePlot> {
    let (first, last) = (trials.first()?.row.trial as f64, rows.last()?.trial as f64);
    let bands: Vec<Band> =
        [TrialKind::Default, TrialKind::Best].into_iter().filter_map(|kind| Band::new(kind, trials)).collect();
    let so_far = highest_so_far(trials, last);
    let (x, y): (Vec<f64>, Vec<f64>) = so_far.iter().copied().unzip();
    let line = json!({
        "name": "highest so far", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": { "color": "--soft", "width": 1.5 },
    });
    let mut traces: Vec<Value> = bands.iter().map(|band| band.trace(first, last)).collect();
    traces.push(line);
    let failed = failures(rows, trials);
    traces.extend(failed.clone());
    traces.extend(points(thinned(trials, MOST).into_iter(), |trial| Some((trial.row.trial as f64, trial.rate_gflops))));
    let said: Vec<String> = bands.iter().map(Band::words).collect();
    let caption = html! {
        "Rates trial by trial; the line is the highest so far."
        @if failed.is_some() { " Crosses are failures: they have no rate." }
        @if !said.is_empty() { " Bands: " (said.join("; ")) "." }
        @if trials.len() > MOST { " Some of " (trials.len()) " trials are shown." }
        " Runs before the choice have luck in them: what is claimed is the ratio of the pairs above."
    };
    Some(InteractivePlot {
        name: "history".to_owned(),
        caption,
        traces,
        layout: json!({ "xaxis": titled("trial"), "yaxis": titled(rate_name(summary)) }),
        still: html! { @if let Some(svg) = still(summary, trials, so_far).draw() { (PreEscaped(svg)) } },
        is_wide: false,
    })
}

/// The corners of the steps of the highest rate so far, up to the trial `last`.
fn highest_so_far(trials: &[SearchTrial<'_>], last: f64) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for trial in trials {
        let (x, rate) = (trial.row.trial as f64, trial.rate_gflops);
        let highest = line.last().map_or(rate, |&(_, highest)| highest);
        line.extend([(x, highest), (x, highest.max(rate))]);
    }
    let end = line.last().map(|&(_, highest)| (last, highest));
    line.extend(end);
    line.dedup();
    line
}

/// Failed trials: they have no rate, and stand at the lowest one.
fn failures(rows: &[Row], trials: &[SearchTrial<'_>]) -> Option<Value> {
    let lowest = trials.iter().map(|trial| trial.rate_gflops).fold(f64::INFINITY, f64::min);
    let failed: Vec<u64> = rows.iter().filter(|row| !row.passed).map(|row| row.trial).collect();
    let each = failed.len().div_ceil(MOST_FAILURES).max(1);
    let failed: Vec<u64> = failed.into_iter().step_by(each).collect();
    (!failed.is_empty()).then(|| {
        json!({
            "name": "failed", "mode": "markers", "x": failed, "y": vec![lowest; failed.len()], "trials": failed,
            "marker": { "color": "--failed", "symbol": "x-thin", "size": 8, "line": { "color": "--failed", "width": 1.6 } },
        })
    })
}

/// Where the median rate of a candidate lies.
struct Band {
    kind: TrialKind,
    /// Rates of its runs.
    runs: usize,
    range: [f64; 2],
    /// Probability that the range holds the median; `None` where it is that of fewer than six runs.
    level: Option<f64>,
}

impl Band {
    /// The exact interval of the median from six runs on, the lowest and the highest run of two or more.
    fn new(kind: TrialKind, trials: &[SearchTrial<'_>]) -> Option<Self> {
        let of_kind = trials.iter().filter(|trial| trial.kind == kind);
        let rates: Vec<f64> = of_kind.map(|trial| trial.rate_gflops).collect();
        let fold = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
        let (low, high) = (fold(f64::min)?, fold(f64::max)?);
        let (range, level) = median_interval(&rates).map_or(([low, high], None), |(range, level)| (range, Some(level)));
        (rates.len() > 1).then_some(Self { kind, runs: rates.len(), range, level })
    }

    fn words(&self) -> String {
        let [low, high] = self.range.map(digits);
        let (name, runs) = (self.kind.name(), self.runs);
        match self.level {
            Some(level) => {
                format!("the median of the {name} is in {low} … {high} ({:.1} %, {runs} runs)", 100.0 * level)
            }
            None => format!("lowest and highest of {runs} runs of the {name}, {low} … {high}"),
        }
    }

    fn trace(&self, first: f64, last: f64) -> Value {
        let [low, high] = self.range;
        json!({
            "name": format!("{}: {}", self.kind.name(), if self.level.is_some() { "interval" } else { "range" }),
            "mode": "lines", "x": [first, last, last, first, first], "y": [low, low, high, high, low],
            "fill": "toself", "fillcolor": self.kind.color(), "opacity": 0.22, "line": { "width": 0 }, "hoverinfo": "skip",
        })
    }
}

/// The same without a script.
fn still(summary: &Summary, trials: &[SearchTrial<'_>], line: Vec<(f64, f64)>) -> Plot<'static> {
    let points = thinned(trials, MOST_DOTS)
        .into_iter()
        .map(|trial| Mark::of(trial.row, (trial.row.trial as f64, trial.rate_gflops), "GFLOP/s", trial.kind.name()));
    let y_name = rate_name(summary);
    Plot { x_name: "trial", y_name, description: "Rates trial by trial", points: points.collect(), line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::html::plots::trials::search_trials;
    use crate::report::summary::tests::session;

    fn drawn(rows: &[Row]) -> Option<InteractivePlot> {
        let summary = Summary::new(&session(), rows);
        history(&summary, rows, &search_trials(&summary, rows))
    }

    fn trace<'a>(plot: &'a InteractivePlot, name: &str) -> &'a Value {
        plot.traces.iter().find(|trace| trace["name"] == name).unwrap_or_else(|| panic!("{name}: {:?}", plot.traces))
    }

    #[test]
    fn it_has_every_trial_and_the_highest_so_far() {
        let mut rows: Vec<Row> = [20.0, 24.0, 22.0, 23.0]
            .iter()
            .zip(0..)
            .map(|(rate, trial)| Row { rate_gflops: Some(*rate), ..row(trial) })
            .collect();
        rows.push(Row { passed: false, ..row(4) });
        let plot = drawn(&rows).unwrap();
        assert_eq!(trace(&plot, "other")["trials"], json!([0, 2, 3]));
        assert_eq!((&trace(&plot, "best")["x"], &trace(&plot, "best")["y"]), (&json!([1.0]), &json!([24.0])));
        assert_eq!((&trace(&plot, "failed")["x"], &trace(&plot, "failed")["y"]), (&json!([4]), &json!([20.0])));
        let line = trace(&plot, "highest so far");
        assert_eq!(line["x"], json!([0.0, 1.0, 1.0, 2.0, 3.0, 4.0]));
        assert_eq!(line["y"], json!([20.0, 20.0, 24.0, 24.0, 24.0, 24.0]));
        assert!(drawn(&rows[4..]).is_none() && drawn(&[]).is_none());
    }

    #[test]
    fn bands_say_how_sure_they_are() {
        let runs = |count: u64| -> Vec<Row> {
            (0..count).map(|trial| Row { nb: 64, rate_gflops: Some(20.0 + trial as f64), ..row(trial) }).collect()
        };
        let caption = |count| drawn(&runs(count)).unwrap().caption.into_string();
        assert!(!caption(1).contains("Bands"));
        assert!(
            caption(5).contains("Bands: lowest and highest of 5 runs of the best, 20.00 … 24.00."),
            "{}",
            caption(5)
        );
        let seven = drawn(&runs(7)).unwrap();
        assert!(caption(7).contains("the median of the best is in 20.00 … 26.00 (98.4 %, 7 runs)"), "{}", caption(7));
        assert_eq!(trace(&seven, "best: interval")["y"], json!([20.0, 20.0, 26.0, 26.0, 20.0]));
    }
}
