//! The timeline picture: recorded spans, one lane per thread.

use std::collections::BTreeMap;

use super::Span;
use super::kind::SpanKind;
use super::steps::StepRange;
use crate::observe::picture::{Anchor, Axis, Paint, Svg, in_rows};

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
.in{font-size:10px;pointer-events:none}.rank{font-weight:600}.on-dark{fill:#fff}.on-light{fill:#111}\
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
        let legend = legend_entries(&kinds);
        let legend_rows = legend.last().map_or(0, |entry| entry.row + 1);
        let top = LEGEND_TOP + legend_rows as f64 * LEGEND_ROW;
        let scale = (WIDTH - LEFT - RIGHT) / (end_s - start_s);
        let tops = tops(&lanes, top);
        let bottom = tops.last().map_or(top, |y| y + LANE);
        let mut svg = Svg::document((WIDTH, bottom + 52.0), LEFT, STYLE, self.title, self.subtitle);
        for LegendEntry { class, name, x, row } in legend {
            let y = LEGEND_TOP + row as f64 * LEGEND_ROW;
            svg.rect(Paint::Class(class), (x, y - 1.0), (14.0, 12.0));
            svg.text("", (x + 20.0, y + 9.5), Anchor::Start, name);
        }
        svg.text("dim", (WIDTH - 16.0, top + HEAD - 6.0), Anchor::End, "compute");
        for &y in &tops {
            svg.rect(Paint::Class("lane"), (LEFT, y), (WIDTH - LEFT - RIGHT, LANE));
        }
        let mut drawing = Drawing { svg, start_s, end_s, scale };
        drawing.axis(top + HEAD, bottom);
        for ((&(rank, thread), spans), &y) in lanes.iter().zip(&tops) {
            drawing.lane(rank, thread, spans, y);
        }
        for (rank, begins) in &begins {
            let of_rank = lanes.keys().zip(&tops).filter(|((of, _), _)| of == rank).map(|(_, &y)| y);
            let (first, last) = of_rank.fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
            drawing.steps(begins, self.steps, first, last + LANE);
        }
        Some(drawing.svg.end())
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

/// `thread 3`, or the stream of a device.
fn lane_name(thread: u32) -> String {
    match thread.checked_sub(Span::STREAMS) {
        None => format!("thread {thread}"),
        Some(stream) => format!("stream {}", ["Main", "Fact", "Copy"].get(stream as usize).unwrap_or(&"")),
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

/// An entry of the legend; rows count from 0.
struct LegendEntry {
    class: &'static str,
    name: &'static str,
    x: f64,
    row: usize,
}

fn legend_entries(kinds: &[SpanKind]) -> Vec<LegendEntry> {
    let names: Vec<_> = kinds.iter().map(|kind| (kind.class(), kind.name())).chain([("lane", "idle")]).collect();
    let widths = names.iter().map(|(_, name)| 40.0 + CHAR * name.chars().count() as f64);
    let places = in_rows(widths, LEFT, WIDTH - 16.0);
    names.into_iter().zip(places).map(|((class, name), (x, row))| LegendEntry { class, name, x, row }).collect()
}

/// The picture under construction.
struct Drawing {
    svg: Svg,
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
        let axis = Axis::exactly(self.start_s * 1e3, self.end_s * 1e3, 14.0);
        for (share, text) in axis.ticks() {
            let x = LEFT + share * (WIDTH - LEFT - RIGHT);
            self.svg.line("grid", (x, top), (x, bottom + 5.0));
            self.svg.text("tick", (x, bottom + 19.0), Anchor::Middle, &text);
        }
        let name = "time since the start of the factorization, ms";
        self.svg.text("dim", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 40.0), Anchor::Middle, name);
    }

    /// The lane of one thread: its name, its blocks, and its share of computing.
    fn lane(&mut self, rank: u32, thread: u32, spans: &[Span], y: f64) {
        let middle = y + LANE / 2.0 + 4.0;
        if thread == 0 {
            self.svg.text("rank", (16.0, middle), Anchor::Start, &format!("rank {rank}"));
        }
        self.svg.text("dim", (LEFT - 8.0, middle), Anchor::End, &lane_name(thread));
        let inside: Vec<Span> =
            spans.iter().filter(|span| span.end_s > self.start_s && span.start_s < self.end_s).copied().collect();
        for block in self.joined(&inside) {
            self.block(&block, y);
        }
        let inside_s = |span: &Span| span.end_s.min(self.end_s) - span.start_s.max(self.start_s);
        let compute_s: f64 = inside.iter().filter(|span| SpanKind::of(span).computes()).map(inside_s).sum();
        let share = 100.0 * compute_s / (self.end_s - self.start_s);
        self.svg.text("num", (WIDTH - 16.0, middle), Anchor::End, &format!("{share:.1} %"));
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
        let title = format!("rank {} {}: {}{what}, {time_ms:.3} ms", span.rank, lane_name(span.thread), kind.name());
        let width = (right - left).max(JOIN);
        self.svg.titled_rect(Paint::Class(kind.class()), (left, y), (width, LANE), &title);
        // With look-ahead a panel is factored in another step than its own: show its number.
        let text = span.step.to_string();
        if kind.is_of_one_panel() && right - left > text.len() as f64 * 6.0 + 4.0 {
            let at = ((left + right) / 2.0, y + LANE / 2.0 + 3.5);
            self.svg.text(&format!("in num {}", kind.ink()), at, Anchor::Middle, &text);
        }
    }

    /// Marks where a rank starts the update by each panel.
    fn steps(&mut self, begins: &BTreeMap<u32, f64>, steps: u32, top: f64, bottom: f64) {
        let mut free = LEFT;
        for (&step, &at_s) in begins.iter().filter(|(_, at_s)| (self.start_s..self.end_s).contains(*at_s)) {
            let at = self.x(at_s);
            self.svg.line("step", (at, top - 12.0), (at, bottom));
            let long = if step == steps { "substitution".to_owned() } else { format!("step {step}") };
            let right = WIDTH - RIGHT + 10.0;
            let text = [long, step.to_string()].into_iter().find(|text| at + text.len() as f64 * CHAR + 4.0 < right);
            if let Some(text) = text.filter(|_| at >= free) {
                self.svg.text("num", (at + 4.0, top - 5.0), Anchor::Start, &text);
                free = at + text.len() as f64 * CHAR + 10.0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
