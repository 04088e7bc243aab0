//! The table of the trials that have ended.

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::parts::title;
use super::text::{cut, padded};
use crate::watch::look::{Look, Tone};
use crate::watch::model::{TrialLine, TrialList};

/// Columns behind the parameters without which the reason of a failure comes before them, and without which nothing else is said.
const REASON: usize = 60;
const WHY: usize = 20;

/// Columns before the parameters: number, rate, kind.
const PLACE: usize = 25;

/// The table: a title, names of the columns, and the trials, the latest first.
pub(super) fn lines(trials: &TrialList, width: usize, look: Look) -> Vec<Line<'static>> {
    let mut lines = vec![title("Trials", &trials.words, width, look)];
    if trials.lines.is_empty() {
        return lines;
    }
    let widths = widths(trials);
    let room = width.saturating_sub(PLACE + widths.iter().map(|columns| columns + 1).sum::<usize>());
    let names = cells(trials.names.iter().copied(), &widths, look);
    let names = format!("{:>5} {:>10} {:<8}{names}", "trial", "GFLOP/s", "");
    lines.push(Line::styled(cut(names.trim_end(), width), look.style(Tone::Quiet)));
    for trial in &trials.lines {
        let TrialLine { trial: number, result, kind, tone, parameters, why } = trial;
        let in_columns = cells(parameters.iter().map(String::as_str), &widths, look);
        let rest = match tone {
            // Of a failure the reason comes first where there is no room for both.
            Tone::Bad if room < REASON => format!("{why} ({})", parameters.join(" ").trim_end()),
            _ if room < WHY => in_columns,
            _ => in_columns + why,
        };
        // A long name of a failure takes the place of the kind.
        let [begin, result] = [format!("{number:>5} "), format!("{result:>10}")].map(|text| cut(&text, width));
        let kind = if *tone == Tone::Bad { "" } else { *kind };
        let kind = padded(&format!(" {kind}"), PLACE.saturating_sub(begin.width() + result.width()));
        let taken = begin.width() + result.width();
        let rest = cut(look.text(&format!("{kind}{rest}")).trim_end(), width.saturating_sub(taken));
        lines.push(Line::from(vec![
            Span::styled(begin, look.style(Tone::Plain)),
            Span::styled(result, look.style(*tone)),
            Span::styled(rest, look.style(Tone::Plain)),
        ]));
    }
    lines
}

/// The cells of a line in their columns.
fn cells<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize], look: Look) -> String {
    cells.zip(widths).map(|(cell, &width)| padded(&look.text(cell), width) + " ").collect()
}

/// Columns of each parameter.
fn widths(trials: &TrialList) -> Vec<usize> {
    let cells =
        |at: usize| trials.lines.iter().filter_map(move |line| line.parameters.get(at)).map(|cell| cell.width());
    let of = |(at, name): (usize, &&str)| cells(at).chain([name.width()]).max().unwrap_or(0);
    trials.names.iter().enumerate().map(of).collect()
}
