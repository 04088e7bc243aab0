//! The summary on the terminal.

use std::fmt::Write;

use space::Candidate;

use super::folded::folded;
use super::format::{counted, digits};
use super::sentences::{
    NOT_VERIFIED, choice, estimated, failures, final_by_estimate, final_run, importances, in_pairs, limit_of_n,
    objective, pareto, phases, power, power_columns, rate_heading, several_hosts, spread, steadiness, telling_columns,
    watts, words_of,
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
    let mut lines = Lines { text: String::new(), width };
    if summary.session.is_simulated() {
        lines.line("Simulated", ["all of the following: no HPL has run, and nothing is measured".to_owned()]);
    }
    lines.line("Objective", objective(summary));
    lines.best(summary);
    lines.runs(summary);
    lines.claims(summary);
    lines.trials(summary);
    let mut text = lines.text;
    if !summary.top.is_empty() {
        text.push('\n');
        text.push_str(&top(summary, width));
    }
    text
}

/// The lines of the summary so far.
struct Lines {
    text: String,
    width: Option<usize>,
}

impl Lines {
    /// Adds a line for each of the values, with the name before it.
    fn line(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        for value in values {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{}", folded(&format!("{name:<NAMES$}{value}"), self.width, NAMES));
        }
    }

    /// The best with its parameters, else what leads the search.
    fn best(&mut self, summary: &Summary) {
        let by = summary.session.objective;
        let candidate = match (&summary.best, summary.top.first()) {
            (Some(best), _) => {
                let other_n = summary.estimate_at_other_n();
                let shown = other_n.map(|estimate| format!("estimated {}", estimated(estimate)));
                self.line("Best", [shown.unwrap_or_else(|| score(best, by))]);
                // The parameters are those of the line above, with its N.
                other_n.map_or(&best.candidate, |estimate| &estimate.candidate)
            }
            (None, Some(leader)) => {
                self.line("Best", [format!("{NOT_VERIFIED}: {}", score(leader, by))]);
                &leader.candidate
            }
            (None, None) => return self.line("Best", ["none: no trial has passed".to_owned()]),
        };
        self.line("", parameters(summary, candidate, self.width));
    }

    /// The final run, and the scores beside that of the best.
    fn runs(&mut self, summary: &Summary) {
        let by = summary.session.objective;
        self.line("Final run", summary.final_run.as_ref().map(|row| final_run(summary, row)));
        self.line("Final/est.", summary.final_by_estimate.as_ref().map(final_by_estimate));
        let best_n = summary.best.as_ref().map(|best| best.candidate.hpl.n);
        let estimate = summary.estimate.as_ref().filter(|estimate| best_n == Some(estimate.candidate.hpl.n));
        self.line("Estimated", estimate.map(estimated));
        self.line("Default", summary.baseline.as_ref().map(|baseline| score(baseline, by)));
        self.line("Expert", summary.expert.as_ref().map(|expert| score(expert, by)));
    }

    /// What is claimed of the best, and predicted.
    fn claims(&mut self, summary: &Summary) {
        self.line("Best/default", [in_pairs(summary, &summary.best_by_baseline)]);
        self.line("Best/expert", [in_pairs(summary, &summary.best_by_expert)]);
        self.line("Choice", choice(summary));
        self.line("Left", summary.left().map(ToString::to_string));
        let predicted = summary.best.as_ref().and_then(|best| best.predicted_rate_gflops).map(digits);
        let words = |rate: String| format!("{rate} GFLOP/s for the best, before its first whole run");
        self.line("Predicted", predicted.map(words));
    }

    /// The trials, what they say of the machine, the time that they took, and what there is to note.
    fn trials(&mut self, summary: &Summary) {
        let different = counted(summary.distinct_candidates, "different candidate");
        let (trials, failed) = (summary.trials, failures(summary));
        self.line("Trials", [format!("{trials}, of {different}; failed: {failed}")]);
        self.line("Some nodes", summary.on_some_nodes.as_ref().map(|on_some| on_some.words()));
        self.line("Phases", phases(summary));
        self.line("Power", power(summary));
        self.line("Pareto", pareto(summary));
        self.line("Differences", importances(summary));
        self.line("Machine", steadiness(summary));
        self.line("Time", [format!("{:.1} s of {:.1} s", summary.used_s, summary.session.budget_s)]);
        self.line("Note", limit_of_n(summary));
        self.line("Note", summary.session.lost_nodes());
        self.line("Note", several_hosts(summary));
    }
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
    let rates: Vec<String> = summary.top.iter().map(|s| digits(s.rate_gflops)).collect();
    let mut columns = vec![named(rate_heading(summary), rates)];
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
