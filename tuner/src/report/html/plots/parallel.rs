//! Parallel coordinates: each trial as a line through the values that it had in every dimension.

use maud::html;
use serde_json::{Value, json};

use super::dimension::DimensionAxis;
use super::figure::{InteractivePlot, needs_script, plain};
use super::trials::{SearchTrial, TrialKind, thinned};
use crate::report::Summary;
use crate::report::format::digits;

/// Dimensions that are shown, those that explain most.
const MOST_DIMENSIONS: usize = 10;
/// Trials from which on a part of them is shown.
const MOST_TRIALS: usize = 400;
/// Values with a name on an axis.
const TICKS: usize = 7;

/// The trials over the varied dimensions and the rate. `None` below two dimensions.
pub(super) fn parallel(summary: &Summary, all: &[SearchTrial<'_>]) -> Option<InteractivePlot> {
    let varied = DimensionAxis::varied(summary, all);
    let axes = &varied[..varied.len().min(MOST_DIMENSIONS)];
    if axes.len() < 2 {
        return None;
    }
    let rates = SortedRates::new(all);
    let shown: Vec<u64> = thinned(all, MOST_TRIALS).iter().map(|trial| trial.row.trial).collect();
    let group = |group: &LineGroup| {
        let of_group = (0..all.len()).filter(|&index| LineGroup::of(&rates, &all[index]) == *group);
        let of_group: Vec<usize> =
            of_group.filter(|&index| shown.binary_search(&all[index].row.trial).is_ok()).collect();
        (!of_group.is_empty()).then(|| lines(*group, &of_group, all, axes, &rates))
    };
    let mut traces: Vec<Value> = LineGroup::ALL.iter().filter_map(group).collect();
    traces.push(names_of_values(axes, &rates));
    let places: Vec<usize> = (0..=axes.len()).collect();
    let names: Vec<String> = axes.iter().map(|axis| plain(&axis.name)).chain(["GFLOP/s".to_owned()]).collect();
    let (left_out, hidden) = (all.len() - shown.len(), varied.len() - axes.len());
    Some(InteractivePlot {
        name: "parallel".to_owned(),
        caption: html! {
            "Each line is a trial: what it had in each dimension, and its rate. Dimensions that explain more stand further left. Point at a \
             line to see it alone."
            @if hidden > 0 { " Of " (varied.len()) " dimensions that were varied the first " (axes.len()) " are shown." }
            @if left_out > 0 { " Of " (all.len()) " trials " (shown.len()) " are shown." }
        },
        traces,
        layout: json!({
            "xaxis": {
                "tickvals": places, "ticktext": names, "side": "top", "range": [-0.25, axes.len() as f64 + 0.75],
                "showgrid": true, "gridcolor": "--soft", "zeroline": false,
            },
            "yaxis": { "visible": false, "range": [-0.06, 1.06], "fixedrange": true },
            "height": 440, "margin": { "t": 60 },
        }),
        still: needs_script(),
        is_wide: true,
    })
}

/// The rates in order.
struct SortedRates(Vec<f64>);

impl SortedRates {
    fn new(all: &[SearchTrial<'_>]) -> Self {
        let mut rates: Vec<f64> = all.iter().map(|trial| trial.rate_gflops).collect();
        rates.sort_by(f64::total_cmp);
        Self(rates)
    }

    /// The part of the rates that are lower.
    fn lower(&self, rate: f64) -> f64 {
        self.0.partition_point(|&other| other < rate) as f64 / self.0.len() as f64
    }

    fn ends(&self) -> [f64; 2] {
        [self.0.first(), self.0.last()].map(|rate| rate.copied().unwrap_or(0.0))
    }
}

/// What a line stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LineGroup {
    Slower,
    Faster,
    FastestTenth,
    Of(TrialKind),
}

impl LineGroup {
    /// In the order in which they are drawn.
    const ALL: [Self; 5] =
        [Self::Slower, Self::Faster, Self::FastestTenth, Self::Of(TrialKind::Default), Self::Of(TrialKind::Best)];

    fn of(rates: &SortedRates, trial: &SearchTrial<'_>) -> Self {
        match (trial.kind, rates.lower(trial.rate_gflops)) {
            (TrialKind::Best | TrialKind::Default, _) => Self::Of(trial.kind),
            (_, 0.9..) => Self::FastestTenth,
            (_, 0.5..) => Self::Faster,
            _ => Self::Slower,
        }
    }

    /// Name, colour of the style sheet, width and opacity.
    fn style(self) -> (&'static str, String, f64, f64) {
        match self {
            Self::Slower => ("slower half", "--soft".to_owned(), 1.0, 0.35),
            Self::Faster => ("faster half", "--other".to_owned(), 1.0, 0.5),
            Self::FastestTenth => ("fastest tenth", "--fast".to_owned(), 1.8, 0.9),
            Self::Of(kind) => (kind.name(), kind.color(), 2.4, 1.0),
        }
    }
}

/// One trace for all lines of a group, with gaps between the trials.
fn lines(
    group: LineGroup,
    of_group: &[usize],
    all: &[SearchTrial<'_>],
    axes: &[DimensionAxis],
    rates: &SortedRates,
) -> Value {
    let (mut x, mut y, mut trials) = (Vec::new(), Vec::new(), Vec::new());
    for &index in of_group {
        let trial = &all[index];
        let shares = axes.iter().map(|axis| share(axis.place(index), axis.ends()));
        for (at, share) in shares.chain([share(trial.rate_gflops, rates.ends())]).enumerate() {
            x.push(Some(at));
            y.push(Some(share));
            trials.push(Some(trial.row.trial));
        }
        x.push(None);
        y.push(None);
        trials.push(None);
    }
    let (name, color, width, opacity) = group.style();
    json!({
        "name": name, "mode": "lines+markers", "x": x, "y": y, "trials": trials, "opacity": opacity,
        "line": { "color": color, "width": width }, "marker": { "color": color, "size": 4 },
    })
}

/// Names of values, beside their axes.
fn names_of_values(axes: &[DimensionAxis], rates: &SortedRates) -> Value {
    let [low, high] = rates.ends();
    let of_axis = |(at, axis): (usize, &DimensionAxis)| {
        let ticks = axis.ticks(TICKS).into_iter();
        ticks.map(|(place, name)| (at, share(place, axis.ends()), name)).collect::<Vec<_>>()
    };
    let of_rates = [low, high].map(|rate| (axes.len(), share(rate, [low, high]), digits(rate)));
    let names: Vec<(usize, f64, String)> = axes.iter().enumerate().flat_map(of_axis).chain(of_rates).collect();
    let x: Vec<usize> = names.iter().map(|name| name.0).collect();
    let y: Vec<f64> = names.iter().map(|name| name.1).collect();
    // Room between an axis and its names.
    let text: Vec<String> = names.iter().map(|name| format!("&nbsp;&nbsp;{}", name.2)).collect();
    json!({
        "name": "values", "mode": "text", "x": x, "y": y, "text": text, "textposition": "middle right", "hoverinfo": "skip",
        "showlegend": false, "textfont": { "size": 11, "color": "--text" }, "cliponaxis": false,
    })
}

/// Where a value lies between two ends, 0 to 1; in the middle where they are equal.
fn share(value: f64, [low, high]: [f64; 2]) -> f64 {
    if high > low { (value - low) / (high - low) } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row;
    use crate::report::html::plots::trials::search_trials;
    use crate::report::summary::tests::session;

    fn drawn(rows: &[Row]) -> Option<InteractivePlot> {
        let summary = Summary::new(&session(), rows);
        parallel(&summary, &search_trials(&summary, rows))
    }

    #[test]
    fn each_trial_is_a_line_through_its_values_and_its_rate() {
        let vary =
            |trial: u64| Row { nb: [64, 128][trial as usize % 2], ndiv: [2, 3, 4][trial as usize % 3], ..row(trial) };
        let rows: Vec<Row> = (0..6).map(vary).collect();
        let plot = drawn(&rows).unwrap();
        let best = plot.traces.iter().find(|trace| trace["name"] == "best").unwrap();
        assert_eq!(best["trials"], json!([5, 5, 5, null]));
        assert_eq!((&best["x"], &best["y"]), (&json!([0, 1, 2, null]), &json!([1.0, 1.0, 1.0, null])));
        assert_eq!(plot.layout["xaxis"]["ticktext"], json!(["NB", "NDIV", "GFLOP/s"]));
        let lines: usize = plot.traces.iter().filter_map(|trace| trace["trials"].as_array()).map(Vec::len).sum();
        assert_eq!(lines, 6 * 4, "no trial twice, none left out");
        assert!(drawn(&[row(0)]).is_none() && drawn(&[row(0), row(1)]).is_none(), "one dimension");
    }

    #[test]
    fn of_many_trials_the_caption_says_how_many_are_shown() {
        let vary =
            |trial: u64| Row { nb: [64, 128][trial as usize % 2], ndiv: [2, 3, 4][trial as usize % 3], ..row(trial) };
        let rows: Vec<Row> = (0..1000).map(vary).collect();
        let caption = drawn(&rows).unwrap().caption.into_string();
        assert!(caption.contains("Of 1000 trials "), "{caption}");
    }
}
