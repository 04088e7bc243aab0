//! What was predicted of a trial, beside what came of it.

use maud::{PreEscaped, html};
use serde_json::json;

use super::figure::{InteractivePlot, titled};
use super::still::{MOST_DOTS, Mark, Plot};
use super::trials::{MOST, SearchTrial, points, rate_name, thinned};
use crate::report::Summary;

/// First trials of candidates that passed and were predicted, and the diagonal. `None` where there are none.
pub(super) fn predicted(summary: &Summary, trials: &[SearchTrial<'_>]) -> Option<InteractivePlot> {
    // A repeat was predicted by runs of its own candidate.
    let place = |trial: &SearchTrial<'_>| {
        let predicted = trial.row.predicted_rate_gflops.filter(|_| trial.row.repeat_of.is_none())?;
        Some((predicted, trial.rate_gflops))
    };
    let places = || trials.iter().filter_map(place);
    let values = || places().flat_map(|(x, y)| [x, y]);
    let ends = [values().reduce(f64::min)?, values().reduce(f64::max)?];
    let diagonal = json!({
        "name": "equal", "mode": "lines", "x": ends, "y": ends, "hoverinfo": "skip",
        "line": { "color": "--soft", "width": 1.5, "dash": "dash" },
    });
    let marks = thinned(trials, MOST_DOTS)
        .into_iter()
        .filter_map(|trial| Some(Mark::of(trial.row, place(trial)?, "GFLOP/s", trial.kind.name())));
    let (x_name, y_name) = ("predicted, GFLOP/s", rate_name(summary));
    let line = ends.map(|end| (end, end)).to_vec();
    let still = Plot { x_name, y_name, description: "Rates against predictions", points: marks.collect(), line };
    Some(InteractivePlot {
        name: "predicted".to_owned(),
        caption: html! { "The rate of the first trial of each candidate against the rate that was predicted before it; on the line both are equal." },
        traces: std::iter::once(diagonal).chain(points(thinned(trials, MOST).into_iter(), place)).collect(),
        layout: json!({ "xaxis": titled(x_name), "yaxis": titled(y_name) }),
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
    fn it_has_the_trials_that_were_predicted() {
        let unpredicted = Row { predicted_rate_gflops: None, ..row(1) };
        let rows = [row(0), unpredicted.clone(), row(2)];
        let summary = Summary::new(&session(), &rows);
        let plot = predicted(&summary, &search_trials(&summary, &rows)).unwrap();
        assert_eq!(plot.traces[0]["x"], json!([20.0, 22.0]), "the diagonal");
        let others: Vec<_> = plot.traces[1..].iter().map(|trace| (&trace["name"], &trace["x"], &trace["y"])).collect();
        let (x, first, second) = (json!([20.5]), json!([20.0]), json!([22.0]));
        assert_eq!(others, [(&json!("other"), &x, &first), (&json!("best"), &x, &second)]);
        let rows = [unpredicted];
        assert!(predicted(&summary, &search_trials(&summary, &rows)).is_none());
    }
}
