//! `report.html`: one page that needs nothing else.
//!
//! [`ReportPage`] puts it together: first the numbers (`head`), then the plots (`plots`, drawn in the browser), the best (`best`), every trial
//! and the session (`record`). `tables` is what tables look like, `frame` the page around all, which lets a browser fetch nothing.

use maud::{Markup, html};
use space::result::PhaseTime;

use super::format::digits;
use super::{Exports, Summary};
use crate::record::Row;

mod best;
mod frame;
mod head;
mod plots;
mod record;
mod tables;

pub(crate) use frame::frame;
use plots::{PLOTLY, ReportPlots, SCRIPT};

/// What a page shows of a session.
pub struct ReportPage<'a> {
    /// What it found.
    pub summary: &'a Summary,
    /// Its trials, in order.
    pub rows: &'a [Row],
    /// The files that repeat the best.
    pub exports: Option<&'a Exports>,
    /// The phases of the trial that [`Summary::phases`] is of; none where its engine does not report them.
    pub phases: &'a [PhaseTime],
}

impl<'a> ReportPage<'a> {
    /// A page of the record alone.
    pub fn new(summary: &'a Summary, rows: &'a [Row]) -> Self {
        Self { summary, rows, exports: None, phases: &[] }
    }

    /// The page.
    pub fn html(&self) -> String {
        let Self { summary, rows, exports, phases } = *self;
        let plots = ReportPlots::new(summary, rows, phases);
        let body = html! {
            (head::head(summary))
            div.figures { @for plot in &plots.search { (plot.figure()) } }
            (best::best(summary, exports))
            (best::top(summary))
            (differences(summary, &plots))
            (time(summary, &plots))
            @if let Some(nodes) = &plots.nodes { h2 { "Nodes" } (nodes.figure()) }
            (record::trials(summary, rows))
            (record::session(summary))
        };
        let data = frame::json("plots", &plots.data(summary, rows));
        frame::scripted(&format!("hpl-tune: {}", summary.session.name), &body, &[PLOTLY, SCRIPT], &data)
    }
}

/// What made the difference between the trials: by dimension, all dimensions at once, and rates over each.
fn differences(summary: &Summary, plots: &ReportPlots) -> Markup {
    html! {
        @if summary.importance_not_judged.is_some() || plots.importance.is_some() || !plots.slices.is_empty() {
            h2 { "What made the difference" }
        }
        @if let Some(why) = summary.importance_not_judged { p { "Which dimension did is not judged: " (why) "." } }
        @if let Some(importance) = &plots.importance { (importance.figure()) }
        @if !plots.slices.is_empty() {
            h3 { "Rates over the values of each dimension" }
            p { "Those that explain more come first. Dashes are the medians of a value; trials of other values differ in other dimensions, too." }
            div.slices { @for slice in &plots.slices { (slice.figure()) } }
        }
        @if let Some(parallel) = &plots.parallel { h3 { "Trials over all dimensions" } (parallel.figure()) }
    }
}

/// Where the time of the best run went: each phase in all, and along the run.
fn time(summary: &Summary, plots: &ReportPlots) -> Markup {
    let Some(totals) = &summary.phases else { return html! {} };
    let all = totals.all_s();
    let rows = totals.named().map(|(name, seconds)| (name.to_owned(), seconds / all, format!("{} s", digits(seconds))));
    html! {
        h2 { "Time per phase of trial " (totals.trial) }
        (tables::bars(&rows))
        @if let Some(timeline) = &plots.timeline { (timeline.figure()) }
    }
}

#[cfg(test)]
mod tests;
