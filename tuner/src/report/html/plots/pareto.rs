//! Speed and efficiency of each trial, with the front of the candidates that no other one beats in both.

use maud::{PreEscaped, html};
use serde_json::json;

use super::figure::{InteractivePlot, titled};
use super::still::{MOST_DOTS, Mark, Plot};
use super::trials::{MOST, SearchTrial, points, thinned};
use crate::report::Summary;

const X_NAME: &str = "GFLOP/s";
const Y_NAME: &str = "GFLOPS/W of the core phase";

/// Whole runs whose power was read, and the front. `None` where there are none.
pub(super) fn pareto(summary: &Summary, trials: &[SearchTrial<'_>]) -> Option<InteractivePlot> {
    let place = |trial: &SearchTrial<'_>| Some((trial.rate_gflops, trial.row.gflops_per_w?));
    trials.iter().find_map(place)?;
    let front: Vec<(f64, f64)> = summary.pareto.iter().map(|point| (point.rate_gflops, point.gflops_per_w)).collect();
    let (x, y): (Vec<f64>, Vec<f64>) = front.iter().copied().unzip();
    let trace = json!({
        "name": "not beaten in both, by medians", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": { "color": "--soft", "width": 1.5, "dash": "dash" },
    });
    let marks = thinned(trials, MOST_DOTS)
        .into_iter()
        .filter_map(|trial| Some(Mark::of(trial.row, place(trial)?, "GFLOPS/W", trial.kind.name())));
    let description = "Efficiency against speed";
    let still = Plot { x_name: X_NAME, y_name: Y_NAME, description, points: marks.collect(), line: front };
    Some(InteractivePlot {
        name: "pareto".to_owned(),
        caption: html! { "Efficiency of each trial against its rate; the line joins the candidates that no other one beats in both." },
        traces: std::iter::once(trace).chain(points(thinned(trials, MOST).into_iter(), place)).collect(),
        layout: json!({ "xaxis": titled(X_NAME), "yaxis": titled(Y_NAME) }),
        still: html! { @if let Some(svg) = still.draw() { (PreEscaped(svg)) } },
        is_wide: false,
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
    fn it_has_the_trials_whose_power_was_read_and_the_front() {
        let run = |number: u64, rate: f64, per_w: Option<f64>| Row {
            rate_gflops: Some(rate),
            gflops_per_w: per_w,
            nb: 64 + 8 * number as usize,
            ..row(number)
        };
        let rows = [run(0, 20.0, Some(0.1)), run(1, 22.0, Some(0.2)), run(2, 21.0, Some(0.3)), run(3, 30.0, None)];
        let summary = Summary::new(&session(), &rows);
        let plot = pareto(&summary, &search_trials(&summary, &rows)).unwrap();
        assert_eq!((&plot.traces[0]["x"], &plot.traces[0]["y"]), (&json!([22.0, 21.0]), &json!([0.2, 0.3])));
        let shown: usize = plot.traces[1..].iter().map(|trace| trace["x"].as_array().unwrap().len()).sum();
        assert_eq!(shown, 3);
        let still = &plot.still.0;
        assert!(still.contains(" GFLOPS/W, NB 72") && !still.contains(" GFLOP/s, NB"), "{still}");
        let rows = [run(0, 20.0, None)];
        let summary = Summary::new(&session(), &rows);
        assert!(pareto(&summary, &search_trials(&summary, &rows)).is_none());
    }
}
