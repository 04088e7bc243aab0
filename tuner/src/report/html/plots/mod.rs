//! The plots of a page: each has a file, which makes data of the record; `plots.js` draws them by plotly.js in the browser.
//!
//! [`figure`] is what a plot is, [`trials`] which trials plots show and what is said of each, [`dimension`] an axis of one dimension.
//! Without a script a page shows pictures, tables or a sentence in their place.

mod dimension;
mod figure;
mod history;
mod importance;
mod nodes;
mod parallel;
mod pareto;
mod predicted;
mod slices;
mod still;
mod timeline;
mod trials;

use serde_json::{Value, json};
use space::result::PhaseTime;

use crate::record::Row;
use crate::report::Summary;
use figure::InteractivePlot;

/// plotly.js 4.1.1, its bundle `basic` (scatter and bar), unchanged; MIT, see `plotly/LICENSE`.
pub(super) const PLOTLY: &str = include_str!("../plotly/plotly-basic.min.js");
/// Draws the plots of a page.
pub(super) const SCRIPT: &str = include_str!("plots.js");

/// The plots that a record has data for.
pub(super) struct ReportPlots {
    /// Rates trial by trial, against predictions, and against efficiency.
    pub(super) search: Vec<InteractivePlot>,
    /// What made the difference between the trials.
    pub(super) importance: Option<InteractivePlot>,
    /// Rates over each dimension.
    pub(super) slices: Vec<InteractivePlot>,
    /// Trials over all dimensions at once.
    pub(super) parallel: Option<InteractivePlot>,
    /// Phases along the best run.
    pub(super) timeline: Option<InteractivePlot>,
    /// Speeds of the nodes.
    pub(super) nodes: Option<InteractivePlot>,
}

impl ReportPlots {
    /// The plots of a session; `times`: the phases of the trial that [`Summary::phases`] is of.
    pub(super) fn new(summary: &Summary, rows: &[Row], times: &[PhaseTime]) -> Self {
        let trials = trials::search_trials(summary, rows);
        let history = history::history(summary, rows, &trials);
        let timeline = summary
            .phases
            .as_ref()
            .and_then(|phases| timeline::timeline(phases.trial, times, summary.session.is_simulated()));
        Self {
            search: history
                .into_iter()
                .chain(predicted::predicted(summary, &trials))
                .chain(pareto::pareto(summary, rows))
                .collect(),
            importance: importance::importance(summary),
            slices: slices::slices(summary, &trials),
            parallel: parallel::parallel(summary, &trials),
            timeline,
            nodes: nodes::nodes(summary),
        }
    }

    fn all(&self) -> impl Iterator<Item = &InteractivePlot> {
        let single = self.importance.iter().chain(&self.parallel).chain(&self.timeline).chain(&self.nodes);
        self.search.iter().chain(&self.slices).chain(single)
    }

    /// What the script draws, with the labels of the trials in it.
    pub(super) fn data(&self, summary: &Summary, rows: &[Row]) -> Value {
        let traces = self.all().flat_map(|plot| &plot.traces);
        let shown = traces.filter_map(|trace| trace["trials"].as_array()).flatten().filter_map(Value::as_u64).collect();
        let plots: Vec<Value> = self.all().map(InteractivePlot::data).collect();
        json!({ "labels": trials::labels(summary, rows, &shown), "plots": plots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sha256;

    /// docs/supply-chain.md names it.
    #[test]
    fn the_library_is_the_one_that_was_looked_at() {
        let hash = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba";
        assert_eq!(sha256::of_bytes(PLOTLY.as_bytes()), hash);
    }

    /// They stand in the page as they are.
    #[test]
    fn no_script_ends_before_its_end() {
        for script in [PLOTLY, SCRIPT] {
            assert!(["</script", "<script", "<!--", "\r"].iter().all(|word| !script.contains(word)));
        }
    }
}
