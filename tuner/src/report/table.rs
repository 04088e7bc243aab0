//! The summary on the terminal.

use std::fmt::Write;

use space::Candidate;

use super::folded::folded;
use super::format::digits;
use super::sentences::{
    NOT_VERIFIED, choice, estimated, failures, final_by_estimate, final_run, importances, in_pairs, limit_of_n,
    objective, pareto, phases, power, power_columns, spread, steadiness, telling_columns, watts, words_of,
};
use super::{Score, Summary};
use crate::record::Objective;

/// Columns of the names before what is said of them.
const NAMES: usize = 14;

/// Most characters in a cell of the table of the best.
const LONG_CELL: usize = 24;

/// The summary as plain text, one line feed at its end; in lines of at most `width` columns, where words allow it and one is given, but for the
/// table of the best, whose long cells are below it.
pub fn summary(summary: &Summary, width: Option<usize>) -> String {
    let (mut text, by) = (String::new(), summary.session.objective);
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", folded(&format!("{name:<NAMES$}{value}"), width, NAMES));
    };
    if summary.session.is_simulated() {
        line("Simulated", "all of the following: no HPL has run, and nothing is measured".to_owned());
    }
    if let Some(objective) = objective(summary) {
        line("Objective", objective);
    }
    match &summary.best {
        None => match summary.top.first() {
            Some(leader) => {
                line("Best", format!("{NOT_VERIFIED}: {}", score(leader, by)));
                parameters(summary, &leader.candidate, width).into_iter().for_each(|words| line("", words));
            }
            None => line("Best", "none: no trial has passed".to_owned()),
        },
        Some(best) => {
            let other_n = summary.estimate_at_other_n();
            match other_n {
                Some(estimate) => line("Best", format!("estimated {}", estimated(estimate))),
                None => line("Best", score(best, by)),
            }
            // The parameters are those of the line above, with its N.
            let candidate = other_n.map_or(&best.candidate, |estimate| &estimate.candidate);
            parameters(summary, candidate, width).into_iter().for_each(|words| line("", words));
        }
    }
    if let Some(row) = &summary.final_run {
        line("Final run", final_run(summary, row));
    }
    if let Some(beside) = &summary.final_by_estimate {
        line("Final/est.", final_by_estimate(beside));
    }
    let best_n = summary.best.as_ref().map(|best| best.candidate.hpl.n);
    if let Some(estimate) = summary.estimate.as_ref().filter(|estimate| best_n == Some(estimate.candidate.hpl.n)) {
        line("Estimated", estimated(estimate));
    }
    if let Some(baseline) = &summary.baseline {
        line("Default", score(baseline, by));
    }
    if let Some(expert) = &summary.expert {
        line("Expert", score(expert, by));
    }
    line("Best/default", in_pairs(summary, &summary.best_by_baseline));
    line("Best/expert", in_pairs(summary, &summary.best_by_expert));
    choice(summary).into_iter().for_each(|said| line("Choice", said));
    if let Some(left) = summary.left() {
        line("Left", left.to_string());
    }
    if let Some(predicted) = summary.best.as_ref().and_then(|best| best.predicted_rate_gflops) {
        line("Predicted", format!("{} GFLOP/s for the best, before its first whole run", digits(predicted)));
    }
    line(
        "Trials",
        format!(
            "{}, of {} different candidates; failed: {}",
            summary.trials,
            summary.distinct_candidates,
            failures(summary)
        ),
    );
    if let Some(on_some) = &summary.on_some_nodes {
        line("Some nodes", on_some.words());
    }
    if let Some(phases) = phases(summary) {
        line("Phases", phases);
    }
    if let Some(power) = power(summary) {
        line("Power", power);
    }
    if let Some(pareto) = pareto(summary) {
        line("Pareto", pareto);
    }
    if let Some(importances) = importances(summary) {
        line("Differences", importances);
    }
    if let Some(steadiness) = steadiness(summary) {
        line("Machine", steadiness);
    }
    line("Time", format!("{:.1} s of {:.1} s", summary.used_s, summary.session.budget_s));
    if let Some(limit) = limit_of_n(summary) {
        line("Note", limit);
    }
    if let Some(lost) = summary.session.lost_nodes() {
        line("Note", lost);
    }
    if !summary.top.is_empty() {
        text.push('\n');
        text.push_str(&top(summary, width));
    }
    text
}

fn score(score: &Score, objective: Objective) -> String {
    let residual = score.residual.map_or(String::new(), |residual| format!(", residual at most {}", digits(residual)));
    let (rate, n) = (digits(score.rate_gflops), score.candidate.hpl.n);
    format!("{rate} GFLOP/s at N = {n} ({}){residual}{}", spread(score), watts(score, objective))
}

/// The parameters of a candidate in lines.
fn parameters(summary: &Summary, candidate: &Candidate, width: Option<usize>) -> Vec<String> {
    let width = width.map_or(86, |width| width.saturating_sub(NAMES));
    wrapped(words_of(summary, candidate).into_iter().map(|(name, value)| format!("{name} {value}")), width)
}

/// The words in lines of at most `width` characters, or of one word.
fn wrapped(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + word.chars().count() <= width => *line += &format!("  {word}"),
            _ => lines.push(word),
        }
    }
    lines
}

/// The best candidates, one line each, with the columns in which they differ; what is too long for a cell is numbered, and below.
fn top(summary: &Summary, width: Option<usize>) -> String {
    let named = |name: &str, cells| (name.to_owned(), cells);
    let mut columns = vec![named("GFLOP/s", summary.top.iter().map(|s| digits(s.rate_gflops)).collect::<Vec<_>>())];
    columns.push(named("runs", summary.top.iter().map(|s| s.runs.to_string()).collect()));
    columns.push(named("min", summary.top.iter().map(|s| digits(s.range_gflops[0])).collect()));
    columns.push(named("max", summary.top.iter().map(|s| digits(s.range_gflops[1])).collect()));
    columns.push(named("residual", summary.top.iter().map(|s| s.residual.map_or("-".to_owned(), digits)).collect()));
    columns.extend(power_columns(summary));
    columns.extend(telling_columns(&summary.top.iter().map(|score| &score.candidate).collect::<Vec<_>>()));
    let mut lines = vec![String::new(); summary.top.len() + 1];
    let mut below = Vec::new();
    for (name, mut cells) in columns {
        if cells.iter().any(|cell| cell.chars().count() > LONG_CELL) {
            below.extend(numbered(&name, &mut cells));
        }
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(name.len());
        for (line, cell) in lines.iter_mut().zip(std::iter::once(name.as_str()).chain(cells.iter().map(String::as_str)))
        {
            let _ = write!(line, "{cell:>width$}  ");
        }
    }
    let below = below.iter().map(|line| folded(line, width, NAMES));
    lines.iter().map(|line| line.trim_end().to_owned()).chain(below).map(|line| line + "\n").collect()
}

/// Puts numbers in place of the different cells, from 1 in their order; what each stands for.
fn numbered(name: &str, cells: &mut [String]) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    for cell in cells {
        let at = different.iter().position(|other| other == cell).unwrap_or_else(|| {
            different.push(cell.clone());
            different.len() - 1
        });
        *cell = format!("[{}]", at + 1);
    }
    different.iter().enumerate().map(|(at, cell)| format!("{name} [{}]: {cell}", at + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_are_numbered_in_their_order() {
        let mut cells = ["rows 0.5:0.5", "equal", "rows 0.5:0.5"].map(str::to_owned);
        assert_eq!(numbered("weights", &mut cells), ["weights [1]: rows 0.5:0.5", "weights [2]: equal"]);
        assert_eq!(cells, ["[1]", "[2]", "[1]"]);
    }
}
