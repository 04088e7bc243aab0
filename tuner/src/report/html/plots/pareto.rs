//! Speed and efficiency of each trial, with the front of the candidates that no other one beats in both.

use maud::{PreEscaped, html};
use serde_json::json;

use super::figure::{InteractivePlot, titled};
use super::still::{MOST_DOTS, Mark, Plot};
use super::trials::{MOST, SearchTrial, points, thinned, whole_trials};
use crate::record::Row;
use crate::report::Summary;

const X_NAME: &str = "GFLOP/s";
const Y_NAME: &str = "GFLOPS/W of the core phase";

/// Whole runs whose power was read, and the front. `None` where there are none. Where the search goes by windows they are those that were made
/// beside it.
pub(super) fn pareto(summary: &Summary, rows: &[Row]) -> Option<InteractivePlot> {
    let trials = whole_trials(summary, rows);
    let place = |trial: &SearchTrial<'_>| Some((trial.rate_gflops, trial.row.gflops_per_w?));
    trials.iter().find_map(place)?;
    let front: Vec<(f64, f64)> = summary.pareto.iter().map(|point| (point.rate_gflops, point.gflops_per_w)).collect();
    let (x, y): (Vec<f64>, Vec<f64>) = front.iter().copied().unzip();
    let trace = json!({
        "name": "not beaten in both, by medians", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": { "color": "--soft", "width": 1.5, "dash": "dash" },
    });
    let marks = thinned(&trials, MOST_DOTS)
        .into_iter()
        .filter_map(|trial| Some(Mark::of(trial.row, place(trial)?, "GFLOPS/W", trial.kind.name())));
    let description = "Efficiency against speed";
    let still = Plot { x_name: X_NAME, y_name: Y_NAME, description, points: marks.collect(), line: front };
    Some(InteractivePlot {
        name: "pareto".to_owned(),
        caption: html! { "Efficiency of each whole run against its rate; the line joins the candidates that no other one beats in both." },
        traces: std::iter::once(trace).chain(points(thinned(&trials, MOST).into_iter(), place)).collect(),
        layout: json!({ "xaxis": titled(X_NAME), "yaxis": titled(Y_NAME) }),
        still: html! { @if let Some(svg) = still.draw() { (PreEscaped(svg)) } },
        is_wide: false,
    })
}

#[cfg(test)]
mod tests {
    use objectives::real::Extent;

    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::record::session::Session;
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
        let plot = pareto(&summary, &rows).unwrap();
        assert_eq!((&plot.traces[0]["x"], &plot.traces[0]["y"]), (&json!([22.0, 21.0]), &json!([0.2, 0.3])));
        let shown: usize = plot.traces[1..].iter().map(|trace| trace["x"].as_array().unwrap().len()).sum();
        assert_eq!(shown, 3);
        let still = &plot.still.0;
        assert!(still.contains(" GFLOPS/W, NB 72") && !still.contains(" GFLOP/s, NB"), "{still}");
        let rows = [run(0, 20.0, None)];
        let summary = Summary::new(&session(), &rows);
        assert!(pareto(&summary, &rows).is_none());
    }

    /// As the terminal's line `Pareto` does.
    #[test]
    fn a_session_by_windows_shows_the_whole_runs_beside_its_search() {
        let whole = |number: u64, n: usize, rate: f64, per_w: f64| Row {
            n,
            rate_gflops: Some(rate),
            gflops_per_w: Some(per_w),
            ..row(number)
        };
        let rows = [windows(0, 64, 23.0), windows(1, 128, 24.0), whole(2, 1000, 20.0, 0.3), whole(3, 900, 19.0, 0.4)];
        let session = Session { extent: Extent::Windows, ..session() };
        let summary = Summary::new(&session, &rows);
        assert_eq!(summary.pareto.len(), 1);
        let plot = pareto(&summary, &rows).unwrap();
        let shown: Vec<_> = plot.traces.iter().map(|trace| (&trace["x"], &trace["y"])).collect();
        assert_eq!(shown, [(&json!([20.0]), &json!([0.3])); 2]);
        assert!(pareto(&summary, &rows[..2]).is_none(), "of windows there is no such power");
    }
}
