//! The timeline picture: recorded spans, one lane per thread.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Span;
use super::kind::SpanKind;
use super::steps::StepRange;
use crate::observe::picture::{label, open, round_step};

/// A picture of some steps of one run.
pub struct TracePicture<'a> {
    /// The recorded spans, see [`crate::Report::spans`].
    pub spans: &'a [Span],
    /// Number of panels; the step after the last is the back substitution.
    pub steps: u32,
    /// The steps to show.
    pub shown: StepRange,
    /// The run.
    pub title: &'a str,
    /// Its result.
    pub subtitle: &'a str,
}

const WIDTH: f64 = 1280.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 86.0;
/// Height of a lane, and from one lane to the next.
const LANE: f64 = 26.0;
const PITCH: f64 = 29.0;
/// Above the lanes of a rank, where the steps are numbered.
const HEAD: f64 = 20.0;
/// Between ranks.
const GAP: f64 = 9.0;
const LEGEND_TOP: f64 = 68.0;
const LEGEND_ROW: f64 = 22.0;
/// Width of a character of the small text, a little more than the mean.
const CHAR: f64 = 6.6;
/// Spans of one kind with a gap below this are drawn as one: the gap would be invisible.
const JOIN: f64 = 0.25;

/// The sections differ by the lightness of blue.
const STYLE: &str = "\
.in{font-size:10px;text-anchor:middle;pointer-events:none}.on-dark{fill:#fff}.on-light{fill:#111}\
.lane{fill:#e9ebef}.step{stroke:#1b1f24;stroke-width:1;stroke-dasharray:3 2}.pack{fill:#7d8794}\
.ahead{fill:#1d4f9e}.left{fill:#4a90d9}.rest{fill:#a6cbee}.trsv{fill:#a3568a}\
@media(prefers-color-scheme:dark){.lane{fill:#262b33}.step{stroke:#e8eaed}.ahead{fill:#2b66c4}.on-light{fill:#111}.on-dark{fill:#fff}}";

impl TracePicture<'_> {
    /// The picture as an SVG document; `None` when no span falls into the steps to show.
    pub fn draw(&self) -> Option<String> {
        let lanes = self.lanes();
        let begins = self.begins(&lanes);
        let (start_s, end_s) = self.window(&begins)?;
        let kinds = SpanKind::ALL.into_iter().filter(|&kind| {
            self.spans.iter().any(|span| SpanKind::of(span) == kind && span.end_s > start_s && span.start_s < end_s)
        });
        let kinds: Vec<SpanKind> = kinds.collect();
        let (legend, legend_rows) = legend(&kinds);
        let top = LEGEND_TOP + legend_rows as f64 * LEGEND_ROW;
        let scale = (WIDTH - LEFT - RIGHT) / (end_s - start_s);
        let tops = tops(&lanes, top);
        let bottom = tops.last().map_or(top, |y| y + LANE);
        let svg = open((WIDTH, bottom + 52.0), LEFT, STYLE, self.title, self.subtitle);
        let mut drawing = Drawing { svg, start_s, end_s, scale };
        let Drawing { svg, .. } = &mut drawing;
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "{legend}<text class=\"dim\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">compute</text>",
            WIDTH - 16.0,
            top + HEAD - 6.0,
        );
        for y in &tops {
            let width = WIDTH - LEFT - RIGHT;
            let _ = writeln!(svg, "<rect class=\"lane\" x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"{LANE}\"/>");
        }
        drawing.axis(top + HEAD, bottom);
        for ((&(rank, thread), spans), &y) in lanes.iter().zip(&tops) {
            drawing.lane(rank, thread, spans, y);
        }
        for (rank, begins) in &begins {
            let of_rank = lanes.keys().zip(&tops).filter(|((of, _), _)| of == rank).map(|(_, &y)| y);
            let (first, last) = of_rank.fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
            drawing.steps(begins, self.steps, first, last + LANE);
        }
        drawing.svg.push_str("</svg>\n");
        Some(drawing.svg)
    }

    /// The spans of each (rank, thread), ordered by time.
    fn lanes(&self) -> BTreeMap<(u32, u32), Vec<Span>> {
        let mut lanes: BTreeMap<_, Vec<Span>> = BTreeMap::new();
        for &span in self.spans {
            lanes.entry((span.rank, span.thread)).or_default().push(span);
        }
        lanes.values_mut().for_each(|lane| lane.sort_by(|a, b| a.start_s.total_cmp(&b.start_s)));
        lanes
    }

    /// Start of the update by each panel on each rank: the first such work of the rank's first thread.
    fn begins(&self, lanes: &BTreeMap<(u32, u32), Vec<Span>>) -> BTreeMap<u32, BTreeMap<u32, f64>> {
        let mut begins: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (&(rank, _), spans) in lanes.iter().filter(|((_, thread), _)| *thread == 0) {
            let of_rank = begins.entry(rank).or_default();
            for span in spans.iter().filter(|span| SpanKind::of(span).applies_a_panel()) {
                of_rank.entry(span.step).or_insert(span.start_s);
            }
        }
        begins
    }

    /// The time to show: from the earliest start of the first step to the latest start of the step after the last one.
    fn window(&self, begins: &BTreeMap<u32, BTreeMap<u32, f64>>) -> Option<(f64, f64)> {
        if self.steps == 0 {
            return None;
        }
        let (first, last) = self.shown.of(self.steps);
        let all = || begins.values().flatten();
        let before = all().filter(|(step, _)| **step >= first).map(|(_, &at)| at).fold(f64::INFINITY, f64::min);
        let start_s =
            if first == 0 { self.spans.iter().map(|span| span.start_s).fold(before, f64::min) } else { before };
        let after = all().filter(|(step, _)| **step == last + 1).map(|(_, &at)| at).fold(f64::NEG_INFINITY, f64::max);
        let end = self.spans.iter().map(|span| span.end_s).fold(0.0, f64::max);
        let end_s = if last + 1 < self.steps && after.is_finite() { after } else { end };
        (start_s < end_s).then_some((start_s, end_s))
    }
}

/// Top of each lane.
fn tops(lanes: &BTreeMap<(u32, u32), Vec<Span>>, top: f64) -> Vec<f64> {
    let (mut y, mut last) = (top - GAP, None);
    let mut tops = Vec::with_capacity(lanes.len());
    for &(rank, _) in lanes.keys() {
        y += if last == Some(rank) { PITCH } else { HEAD + GAP + if last.is_some() { LANE } else { 0.0 } };
        last = Some(rank);
        tops.push(y);
    }
    tops
}

/// The legend with its number of rows.
fn legend(kinds: &[SpanKind]) -> (String, usize) {
    let (mut svg, mut x, mut row) = (String::new(), LEFT, 0);
    let items = kinds.iter().map(|kind| (kind.class(), kind.name())).chain([("lane", "idle")]);
    for (class, name) in items {
        let width = 20.0 + name.chars().count() as f64 * CHAR + 20.0;
        if x + width > WIDTH - 16.0 {
            (x, row) = (LEFT, row + 1);
        }
        let y = LEGEND_TOP + row as f64 * LEGEND_ROW;
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"12\" rx=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            y - 1.0,
            x + 20.0,
            y + 9.5
        );
        x += width;
    }
    (svg, row + 1)
}

/// The picture under construction.
struct Drawing {
    svg: String,
    start_s: f64,
    end_s: f64,
    /// Pixels per second.
    scale: f64,
}

impl Drawing {
    fn x(&self, at_s: f64) -> f64 {
        LEFT + (at_s.clamp(self.start_s, self.end_s) - self.start_s) * self.scale
    }

    /// The time axis under the lanes, with its grid behind them.
    fn axis(&mut self, top: f64, bottom: f64) {
        let (start_ms, end_ms) = (self.start_s * 1e3, self.end_s * 1e3);
        let step = round_step(end_ms - start_ms, 14.0);
        let mut tick = (start_ms / step).ceil() * step;
        while tick <= end_ms {
            let at = self.x(tick * 1e-3);
            let _ = writeln!(
                self.svg,
                "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{:.1}\"/><text class=\"num dim\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 5.0,
                bottom + 19.0,
                label(tick, step)
            );
            tick += step;
        }
        let _ = writeln!(
            self.svg,
            "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time since the start of the \
             factorization, ms</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            bottom + 40.0
        );
    }

    /// The lane of one thread: its name, its blocks, and its share of computing.
    fn lane(&mut self, rank: u32, thread: u32, spans: &[Span], y: f64) {
        let middle = y + LANE / 2.0 + 4.0;
        let rank = if thread == 0 { format!("rank {rank}") } else { String::new() };
        let _ = writeln!(
            self.svg,
            "<text x=\"16\" y=\"{middle:.1}\" font-weight=\"600\">{rank}</text>\
             <text class=\"dim\" x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">thread {thread}</text>",
            LEFT - 8.0
        );
        let inside: Vec<Span> =
            spans.iter().filter(|span| span.end_s > self.start_s && span.start_s < self.end_s).copied().collect();
        for block in self.joined(&inside) {
            self.block(&block, y);
        }
        let inside_s = |span: &Span| span.end_s.min(self.end_s) - span.start_s.max(self.start_s);
        let compute_s: f64 = inside.iter().filter(|span| SpanKind::of(span).computes()).map(inside_s).sum();
        let share = 100.0 * compute_s / (self.end_s - self.start_s);
        let _ = writeln!(
            self.svg,
            "<text class=\"num\" x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{share:.1} %</text>",
            WIDTH - 16.0
        );
    }

    /// The blocks of a lane: consecutive spans of one kind are joined.
    fn joined(&self, spans: &[Span]) -> Vec<Span> {
        let mut blocks: Vec<Span> = Vec::new();
        for span in spans {
            match blocks.last_mut() {
                Some(last) if self.are_one(last, span) => last.end_s = span.end_s,
                // Invisible, and must not separate two spans that are joined.
                _ if (span.end_s - span.start_s) * self.scale < JOIN / 2.0 => {}
                _ => blocks.push(*span),
            }
        }
        blocks
    }

    fn are_one(&self, last: &Span, span: &Span) -> bool {
        (SpanKind::of(last), last.step) == (SpanKind::of(span), span.step)
            && (span.start_s - last.end_s) * self.scale < JOIN
    }

    fn block(&mut self, span: &Span, y: f64) {
        let kind = SpanKind::of(span);
        let (left, right) = (self.x(span.start_s), self.x(span.end_s));
        let time_ms = (span.end_s - span.start_s) * 1e3;
        let what = if kind == SpanKind::Trsv { String::new() } else { format!(" of panel {}", span.step) };
        let _ = writeln!(
            self.svg,
            "<rect class=\"{}\" x=\"{left:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{LANE}\"><title>rank {} thread {}: \
             {}{what}, {time_ms:.3} ms</title></rect>",
            kind.class(),
            (right - left).max(JOIN),
            span.rank,
            span.thread,
            kind.name()
        );
        // With look-ahead a panel is factored in another step than its own: show its number.
        let text = span.step.to_string();
        if kind.is_of_one_panel() && right - left > text.len() as f64 * 6.0 + 4.0 {
            let _ = writeln!(
                self.svg,
                "<text class=\"in num {}\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                kind.ink(),
                (left + right) / 2.0,
                y + LANE / 2.0 + 3.5
            );
        }
    }

    /// Marks where a rank starts the update by each panel.
    fn steps(&mut self, begins: &BTreeMap<u32, f64>, steps: u32, top: f64, bottom: f64) {
        let mut free = LEFT;
        for (&step, &at_s) in begins.iter().filter(|(_, at_s)| (self.start_s..self.end_s).contains(*at_s)) {
            let at = self.x(at_s);
            let _ = writeln!(self.svg, "<path class=\"step\" d=\"M{at:.1} {:.1}V{bottom:.1}\"/>", top - 12.0);
            let long = if step == steps { "substitution".to_owned() } else { format!("step {step}") };
            let right = WIDTH - RIGHT + 10.0;
            let text = [long, step.to_string()].into_iter().find(|text| at + text.len() as f64 * CHAR + 4.0 < right);
            if let Some(text) = text.filter(|_| at >= free) {
                let _ = writeln!(
                    self.svg,
                    "<text class=\"num\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                    at + 4.0,
                    top - 5.0
                );
                free = at + text.len() as f64 * CHAR + 10.0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
