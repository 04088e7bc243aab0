//! The rates of the search over the values of each dimension.

use maud::html;
use serde_json::{Value, json};
use space::stats::median;

use super::dimension::DimensionAxis;
use super::figure::{InteractivePlot, needs_script, plain};
use super::trials::{SearchTrial, points, rate_name, thinned};
use crate::report::Summary;

/// Trials from which on a plot shows a part of them.
const MOST: usize = 800;

/// Values with a name on an axis.
const TICKS: usize = 9;

/// A plot for each dimension that was varied, those that explain most first.
pub(super) fn slices(summary: &Summary, all: &[SearchTrial<'_>]) -> Vec<InteractivePlot> {
    let axes = DimensionAxis::varied(summary, all);
    axes.iter().enumerate().map(|(at, axis)| slice(summary, all, axis, at)).collect()
}

fn slice(summary: &Summary, all: &[SearchTrial<'_>], axis: &DimensionAxis, at: usize) -> InteractivePlot {
    let places: std::collections::HashMap<u64, f64> =
        all.iter().enumerate().map(|(index, trial)| (trial.row.trial, axis.place(index))).collect();
    let place = |trial: &SearchTrial<'_>| Some((*places.get(&trial.row.trial)?, trial.rate_gflops));
    let mut traces = points(thinned(all, MOST).into_iter(), place);
    let [first, last] = axis.ends();
    if !axis.is_by_size() {
        traces.push(medians(axis, all));
    }
    let margin = 0.06 * (last - first).max(1.0);
    let (ticks, names): (Vec<f64>, Vec<String>) = axis.ticks(TICKS).into_iter().unzip();
    let x = json!({
        "title": { "text": plain(&axis.name) }, "tickvals": ticks, "ticktext": names, "range": [first - margin, last + margin],
    });
    InteractivePlot {
        name: format!("slice-{at}"),
        caption: html! {},
        traces,
        layout: json!({ "xaxis": x, "yaxis": { "title": { "text": rate_name(summary) } }, "showlegend": false, "height": 270 }),
        still: html! { p { strong { (axis.name) } } (needs_script()) },
        is_wide: false,
    }
}

/// The median of the rates at each value. It says nothing under a pointer: its long dash would hide the trials next to it.
fn medians(axis: &DimensionAxis, all: &[SearchTrial<'_>]) -> Value {
    let of = |(place, trials): (f64, Vec<usize>)| {
        let rates: Vec<f64> = trials.iter().map(|&index| all[index].rate_gflops).collect();
        Some((place, median(&rates)?))
    };
    let (x, y): (Vec<f64>, Vec<f64>) = axis.groups().into_iter().filter_map(of).unzip();
    json!({
        "name": "median of a value", "mode": "markers", "x": x, "y": y, "hoverinfo": "skip",
        "marker": { "color": "--text", "symbol": "line-ew", "size": 22, "line": { "color": "--text", "width": 2 } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row;
    use crate::report::html::plots::trials::search_trials;
    use crate::report::summary::tests::session;

    #[test]
    fn each_varied_dimension_has_a_slice_with_all_trials_and_the_medians() {
        let rows: Vec<Row> = (0..6)
            .map(|trial| Row { nb: [64, 128][trial as usize % 2], ndiv: [2, 3, 4][trial as usize % 3], ..row(trial) })
            .collect();
        let summary = Summary::new(&session(), &rows);
        let found = slices(&summary, &search_trials(&summary, &rows));
        let names: Vec<&Value> = found.iter().map(|plot| &plot.layout["xaxis"]["title"]["text"]).collect();
        assert_eq!(names, ["NB", "NDIV"]);
        let trials = |plot: &InteractivePlot| -> usize {
            plot.traces.iter().filter_map(|trace| trace["trials"].as_array()).map(Vec::len).sum()
        };
        assert_eq!((trials(&found[0]), trials(&found[1])), (6, 6));
        assert_eq!(found[0].layout["xaxis"]["ticktext"], json!(["64", "128"]));
        let medians = found[0].traces.last().unwrap();
        assert_eq!((&medians["x"], &medians["y"]), (&json!([0.0, 1.0]), &json!([22.0, 23.0])));
    }
}
