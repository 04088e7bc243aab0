//! The parts of the screen that are text.

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::text::{bar, cut, named, padded};
use crate::record::now::human;
use crate::report::nodes::NodeSpeed;
use crate::watch::look::{Look, Tone};
use crate::watch::model::{Figure, WatchModel};

/// Columns of a bar, and the most of a screen that it takes.
const BAR: usize = 20;
const PART: usize = 10;

/// What the session does, and its time.
pub(super) fn head(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    let state = &model.state;
    let mut spans = Vec::new();
    let mut room = width;
    let mut put = |text: &str, tone: Tone| {
        let text = cut(&look.text(text), room);
        room -= text.width();
        spans.push(Span::styled(text, look.style(tone)));
    };
    if model.simulated {
        put("simulated, nothing is measured · ", Tone::Doubt);
    }
    put(state.stage, Tone::Strong);
    put(" · ", Tone::Quiet);
    put(&state.work, state.tone);
    put(" · ", Tone::Quiet);
    put(&model.name, Tone::Plain);
    let clock = &model.clock;
    let bar_width = BAR.min(width / PART);
    let words = format!(" {} · {}", clock.words, model.about);
    let words = cut(&look.text(&words), width.saturating_sub(bar_width));
    let time = vec![
        Span::styled(bar(clock.used, bar_width, look), look.style(Tone::Name)),
        Span::styled(words, look.style(Tone::Plain)),
    ];
    vec![Line::from(spans), Line::from(time)]
}

/// What a stop leaves, and how a stopped session goes on.
pub(super) fn outcome(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    let outcome = &model.outcome;
    let mut lines = named(outcome.name, &outcome.value, outcome.tone, width, look);
    lines.extend(model.state.way_on.iter().flat_map(|way| named("Go on", way, Tone::Plain, width, look)));
    lines
}

/// The lines of these figures.
pub(super) fn figures(figures: &[Figure], width: usize, look: Look) -> Vec<Line<'static>> {
    figures.iter().flat_map(|figure| named(figure.name, &figure.value, figure.tone, width, look)).collect()
}

/// The trial under way, its time in the first line.
pub(super) fn running(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    let Some(running) = &model.running else { return Vec::new() };
    let bar = bar(running.done, BAR.min(width / PART), look);
    let mut lines = named("Running", &format!("{bar} {}", running.time), Tone::Strong, width, look);
    lines.extend(named("", &running.why, Tone::Plain, width, look));
    lines.extend(named("", &running.candidate, Tone::Plain, width, look));
    lines
}

/// The dimensions that made a difference: a sentence, or a bar for each.
pub(super) fn differences(model: &WatchModel, width: usize, look: Look, bars: bool) -> Vec<Line<'static>> {
    let name = "Differences";
    let Some(said) = &model.differences else { return Vec::new() };
    if !bars || model.importance.is_empty() {
        return named(name, said, Tone::Plain, width, look);
    }
    let mut lines = named(name, "explained by each dimension alone", Tone::Quiet, width, look);
    for dim in &model.importance {
        let part = format!(
            "{} {} {:.0} % (chance: up to {:.0} %)",
            padded(&dim.dimension, 12),
            bar(dim.explained, BAR / 2, look),
            100.0 * dim.explained,
            100.0 * dim.chance
        );
        lines.extend(named("", &part, Tone::Plain, width, look));
    }
    lines
}

/// Clock, steal and drift.
pub(super) fn machine(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    model.machine.iter().flat_map(|said| named("Machine", said, Tone::Plain, width, look)).collect()
}

/// A sign for each node by its speed, and the names of the slower ones.
pub(super) fn nodes(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    let nodes = &model.nodes;
    if nodes.is_empty() {
        return Vec::new();
    }
    let names = |nodes: Vec<&NodeSpeed>| -> String {
        let named = |node: &&NodeSpeed| match node.speed {
            Some(speed) => format!("{} {speed:.3}", node.host),
            None => node.host.clone(),
        };
        nodes.iter().map(named).collect::<Vec<_>>().join(" ")
    };
    let said = if nodes.iter().all(|node| node.speed.is_some()) {
        let signs: String = nodes.iter().map(|node| sign(node.speed.unwrap_or(1.0), look)).collect();
        let slower: Vec<&NodeSpeed> = nodes.iter().filter(|node| node.speed.is_some_and(|speed| speed < 1.0)).collect();
        format!("{signs} speeds as part of the fastest; slower: {}", names(slower))
    } else {
        format!("{}: {}", nodes.len(), names(nodes.iter().collect()))
    };
    named("Nodes", &said, Tone::Plain, width, look)
}

/// The speed of a node as a sign: full height within 2 % of the fastest, then a step for each 4 %.
fn sign(speed: f64, look: Look) -> char {
    let signs = if look.ascii { ['#', '+', '-', '.', '_'] } else { ['█', '▆', '▄', '▂', '▁'] };
    let behind = ((1.0 - speed - 0.02) / 0.04).ceil().max(0.0) as usize;
    signs[behind.min(signs.len() - 1)]
}

/// What is wrong with the record.
pub(super) fn doubts(model: &WatchModel, width: usize, look: Look) -> Vec<Line<'static>> {
    model.doubts.iter().flat_map(|doubt| named("Note", doubt, Tone::Doubt, width, look)).collect()
}

/// The keys, and whether what is shown is old.
pub(super) fn bottom(width: usize, look: Look, late_s: Option<f64>) -> Line<'static> {
    let keys = Span::styled(cut("q: quit", width), look.style(Tone::Quiet));
    let Some(late_s) = late_s else { return Line::from(keys) };
    let late = format!("   the run folder has not answered for {}", human(late_s));
    let room = width.saturating_sub(keys.content.width());
    Line::from(vec![keys, Span::styled(cut(&late, room), look.style(Tone::Doubt))])
}

/// The title of what follows below it.
pub(super) fn title(name: &str, words: &str, width: usize, look: Look) -> Line<'static> {
    named(name, words, Tone::Plain, width, look).swap_remove(0)
}
