//! The record itself: every trial in order, and what the session was asked.

use maud::{Markup, html};

use super::tables::{table, words};
use crate::record::Row;
use crate::report::Summary;
use crate::report::format::{cut, digits};
use crate::report::sentences::telling_columns;

/// Trials that are listed.
const MOST_TRIALS: usize = 3000;
/// Longest reason in the list, in characters.
const LONGEST: usize = 200;

/// The trials, folded where they are many; of thousands the last ones.
pub(super) fn trials(summary: &Summary, rows: &[Row]) -> Markup {
    let listed = &rows[rows.len().saturating_sub(MOST_TRIALS)..];
    let candidates: Vec<_> = listed.iter().map(Row::candidate).collect();
    let telling = telling_columns(&candidates.iter().collect::<Vec<_>>());
    let names = telling.iter().map(|(name, _)| name.as_str());
    let gflops = format!("{} GFLOP/s", summary.session.how());
    let header =
        ["trial", "chosen by", gflops.as_str(), "estimated GFLOP/s", "residual", "predicted GFLOP/s", "wall s"];
    let header = header.into_iter();
    let lines = listed.iter().enumerate().map(|(index, row)| {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), digits);
        let rate = if row.passed { number(row.score_gflops()) } else { row.outcome.name().to_owned() };
        let fixed = [
            row.trial.to_string(),
            row.strategy.clone(),
            rate,
            number(row.estimated_rate_gflops),
            number(row.residual),
            number(row.predicted_rate_gflops),
            digits(row.wall_s),
        ];
        let cells = telling.iter().map(|(_, cells)| cells[index].clone());
        let why = cut(row.failure_detail.as_ref().unwrap_or(&row.why), LONGEST);
        fixed.into_iter().chain(cells).chain([why]).collect()
    });
    html! {
        h2 { "Trials" }
        details open[rows.len() <= 40] {
            summary {
                @if listed.len() < rows.len() {
                    "The last " (listed.len()) " of " (rows.len()) " trials; trials.parquet has all"
                } @else if rows.len() == 1 { "The only trial" } @else { "All " (rows.len()) " trials, in order" }
            }
            (table(header.chain(names).chain(["why"]), lines))
        }
    }
}

/// Command, version, machine and notes.
pub(super) fn session(summary: &Summary) -> Markup {
    let session = &summary.session;
    let cores: Vec<String> = session.cores.iter().map(usize::to_string).collect();
    let memory = match session.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    };
    let facts = [
        ("command", session.command.clone()),
        ("version", session.version.clone()),
        ("seed", session.seed.to_string()),
        ("strategy", session.strategy.clone()),
        ("cores", cores.join(" ")),
        ("memory for HPL", memory),
    ];
    let kernels = session.kernels.iter().map(|kernels| ("kernels", kernels.to_string()));
    let notes = session.notes.iter().map(|note| ("note", note.clone()));
    let facts: Vec<(&str, String)> = facts.into_iter().chain(kernels).chain(notes).collect();
    html! {
        h2 { "The session" }
        (words(&facts))
    }
}
