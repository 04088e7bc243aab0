//! The screen: a [`WatchModel`] into a buffer of any size.
//!
//! A screen is a stack of parts, or two stacks side by side where it is wide. Each part says how many rows it needs and how many it
//! can use; the most important ones get theirs first, so that a small screen has the result, the trial under way and
//! the time, and a large one everything.

mod parts;
mod plot;
mod table;
mod text;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Line;

use self::parts::{bottom, differences, doubts, figures, head, machine, nodes, outcome, running, title};
use super::look::{Look, Tone};
use super::model::WatchModel;

/// Columns and rows from which on there are two stacks.
const WIDE: (u16, u16) = (140, 24);

/// Figures that matter most.
const FIRST: usize = 3;

/// Trials in a text.
const PLAIN_TRIALS: usize = 10;

/// Rows that the curve takes at most, its title included.
const CURVE_ROWS: u16 = 24;

/// Draws the model; `late_s`: seconds since the run folder answered, where that is long ago.
pub fn draw(buffer: &mut Buffer, model: &WatchModel, look: Look, late_s: Option<f64>) {
    let area = buffer.area;
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let head = Part::text(head(model, width, look), 2, 0);
    let outcome = Part::text(outcome(model, width, look), 2, 1);
    let bottom = Part::text(vec![bottom(width, look, late_s)], 1, 4);
    let around = head.most.saturating_add(outcome.most).saturating_add(bottom.most);
    // The words of a failure may be long.
    if area.width >= WIDE.0 && area.height >= WIDE.1 && around <= area.height / 2 {
        let inside = area.height - around;
        let [top, middle, end] = split(area, [head.most + outcome.most, inside, bottom.most]);
        stack(buffer, top, vec![head, outcome], look);
        let left = Rect { width: area.width * 11 / 20, ..middle };
        let right = Rect { x: left.x + left.width + 2, width: area.width - left.width - 2, ..middle };
        stack(buffer, left, vec![Part::curve(model, left.width, look), Part::table(model, left.width, look)], look);
        stack(buffer, right, sides(model, usize::from(right.width), look, true).into(), look);
        stack(buffer, end, vec![bottom], look);
    } else {
        let [figures, running, differences, machine, nodes, doubts] = sides(model, width, look, false);
        let (curve, table) = (Part::curve(model, area.width, look), Part::table(model, area.width, look));
        let parts = vec![head, outcome, figures, curve, running, table, differences, machine, nodes, doubts, bottom];
        stack(buffer, area, parts, look);
    }
    look.clean(buffer);
}

/// The model as text, a line for each figure however long, and the latest trials.
pub fn plain(model: &WatchModel, look: Look) -> String {
    let width = usize::MAX / 2;
    let curve = model.curve.as_ref().map(|curve| format!("{}, {}", curve.unit, curve.words));
    let curve = curve.map(|words| title("Best so far", &words, width, look));
    let mut table = table::lines(&model.trials, width, look);
    table.truncate(PLAIN_TRIALS + 2);
    let parts = [
        head(model, width, look),
        outcome(model, width, look),
        figures(&model.figures, width, look),
        running(model, width, look),
        differences(model, width, look, false),
        machine(model, width, look),
        nodes(model, width, look),
        doubts(model, width, look),
        curve.into_iter().collect(),
        table,
    ];
    let lines = parts.iter().flatten().map(|line| look.text(line.to_string().trim_end()).into_owned() + "\n");
    lines.collect()
}

/// Figures, the trial under way and what is around, in this order.
fn sides(model: &WatchModel, width: usize, look: Look, bars: bool) -> [Part; 6] {
    let first = &model.figures[..FIRST.min(model.figures.len())];
    let first = figures(first, width, look).len() as u16;
    [
        Part { wanted: first, ..Part::text(figures(&model.figures, width, look), 1, 3) },
        Part::text(running(model, width, look), 1, 2),
        Part::text(differences(model, width, look, bars), 1, 8),
        Part { wanted: 1, ..Part::text(machine(model, width, look), 1, 9) },
        Part::text(nodes(model, width, look), 1, 10),
        Part::text(doubts(model, width, look), 1, 7),
    ]
}

/// A part of a stack.
struct Part {
    what: What,
    /// Rows without which it is left out, rows that it gets before others get more than they need, and rows that it can use.
    least: u16,
    wanted: u16,
    most: u16,
    /// Parts of low rank get their rows first.
    rank: u8,
}

enum What {
    Text(Vec<Line<'static>>),
    /// The title, and the curve below it.
    Curve(Vec<Line<'static>>, super::model::Curve),
    Table(Vec<Line<'static>>),
}

impl Part {
    fn text(lines: Vec<Line<'static>>, least: u16, rank: u8) -> Self {
        let most = lines.len() as u16;
        Self { what: What::Text(lines), least: least.min(most), wanted: most, most, rank }
    }

    fn curve(model: &WatchModel, width: u16, look: Look) -> Self {
        let Some(curve) = &model.curve else { return Self::text(Vec::new(), 0, 6) };
        let words = format!("{}, {}", curve.unit, curve.words);
        let title = vec![title("Best so far", &words, usize::from(width), look)];
        let least = plot::LEAST_ROWS + 2;
        Self { what: What::Curve(title, curve.clone()), least, wanted: least, most: CURVE_ROWS, rank: 6 }
    }

    fn table(model: &WatchModel, width: u16, look: Look) -> Self {
        let lines = table::lines(&model.trials, usize::from(width), look);
        let most = lines.len() as u16;
        Self { what: What::Table(lines), least: most.min(3), wanted: most.min(4), most, rank: 5 }
    }
}

/// Draws the parts one below the other.
fn stack(buffer: &mut Buffer, area: Rect, parts: Vec<Part>, look: Look) {
    let rows = rows_of(&parts, area.height);
    let mut y = area.y;
    for (part, rows) in parts.into_iter().zip(rows) {
        let place = Rect { y, height: rows, ..area };
        y += rows;
        match part.what {
            What::Text(lines) => {
                write(buffer, place, &lines);
                // A text that goes on below says so.
                let goes_on = lines.get(usize::from(rows)).is_some_and(|line| line.to_string().starts_with(' '));
                if goes_on && rows > 0 {
                    buffer.set_string(place.right() - 1, place.bottom() - 1, "…", look.style(Tone::Quiet));
                }
            }
            What::Table(lines) => write(buffer, place, &lines),
            What::Curve(title, curve) if rows > 0 => {
                write(buffer, Rect { height: 1, ..place }, &title);
                plot::draw(buffer, Rect { y: place.y + 1, height: rows - 1, ..place }, &curve, look);
            }
            What::Curve(..) => {}
        }
    }
}

fn write(buffer: &mut Buffer, area: Rect, lines: &[Line<'static>]) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// The rows of each part of a stack of this height.
fn rows_of(parts: &[Part], height: u16) -> Vec<u16> {
    let mut left = height;
    let mut rows = vec![0; parts.len()];
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| parts[at].rank);
    for &at in &order {
        // The first one is cut rather than left out.
        let least = if at == order[0] { parts[at].least.min(left) } else { parts[at].least };
        if least <= left {
            rows[at] = least;
            left -= least;
        }
    }
    // Where the part has a place at all; then all that they can use, in turn.
    for &at in &order {
        if rows[at] > 0 {
            let more = parts[at].wanted.saturating_sub(rows[at]).min(left);
            rows[at] += more;
            left -= more;
        }
    }
    let mut grown = true;
    while left > 0 && grown {
        grown = false;
        for &at in &order {
            if left > 0 && rows[at] > 0 && rows[at] < parts[at].most {
                rows[at] += 1;
                left -= 1;
                grown = true;
            }
        }
    }
    rows
}

/// Three areas one below the other.
fn split(area: Rect, heights: [u16; 3]) -> [Rect; 3] {
    let mut y = area.y;
    heights.map(|height| {
        let part = Rect { y, height, ..area };
        y += height;
        part
    })
}

#[cfg(test)]
mod tests;
