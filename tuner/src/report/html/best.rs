//! What the session found to be best: its parameters, how to repeat it, and the candidates next to it.

use maud::{Markup, html};

use super::tables::{table, words};
use crate::record::Objective;
use crate::report::format::{counted, digits};
use crate::report::sentences::{NOT_VERIFIED, power_columns, rate_heading, telling_columns, words_of};
use crate::report::{Exports, Score, Summary};

/// The parameters of the best, else of the leader of the search, and the files that repeat it.
pub(super) fn best(summary: &Summary, exports: Option<&Exports>) -> Markup {
    let Some(best) = summary.best.as_ref().or(summary.top.first()) else { return html! {} };
    let words = words(&words_of(summary, &best.candidate));
    html! {
        h2 { "The best" @if summary.best.is_none() { ", " (NOT_VERIFIED) } }
        @if let Some(exports) = exports {
            div.pair {
                div { (words) }
                div { h3 { "HPL.dat" } pre { (exports.hpl_dat) } }
            }
            @if let Some(params) = &exports.engine_params {
                h3 { "engine-params.toml" }
                pre { (params) }
            }
            h3 { "How to repeat it" }
            p { "Run " code { "run.sh" } " in this folder. It says:" }
            pre { (exports.run_sh) }
        } @else {
            (words)
        }
    }
}

/// The best candidates with what they take, where that is known, and the columns in which they differ.
pub(super) fn top(summary: &Summary) -> Markup {
    if summary.top.is_empty() {
        return html! {};
    }
    let telling = telling_columns(&summary.top.iter().map(|score| &score.candidate).collect::<Vec<_>>());
    let columns: Vec<(String, Vec<String>)> = power_columns(summary).into_iter().chain(telling).collect();
    let names = columns.iter().map(|(name, _)| name.as_str());
    let header = [rate_heading(summary), "runs", "lowest", "highest", "residual"].into_iter().chain(names);
    let lines = summary.top.iter().enumerate().map(|(index, score)| {
        let cells = columns.iter().map(|(_, cells)| cells[index].clone());
        measured_cells(score).into_iter().chain(cells).collect()
    });
    let of = match summary.session.objective {
        Objective::Gflops => "",
        Objective::GflopsPerWatt => " of GFLOPS/W",
        Objective::GflopsWithin { .. } => ", those within the power limit first",
    };
    html! {
        h2 { "The " (counted(summary.top.len(), "highest median")) (of) }
        (table(header, lines))
    }
}

fn measured_cells(score: &Score) -> [String; 5] {
    let [low, high] = score.range_gflops.map(digits);
    let residual = score.residual.map_or("-".to_owned(), digits);
    [digits(score.rate_gflops), score.runs.to_string(), low, high, residual]
}
