//! Panels of curves, areas and marks side by side in one SVG document.

use std::fmt::Write;

use hpl::observe::picture::{escape, label, open};

use crate::report::svg::Axis;

/// Width and height of a panel, and what is left of them for axes.
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 56.0;
/// Above the panels.
const HEAD: f64 = 64.0;
/// Width of a character of the legend, a little more than the mean.
const CHAR: f64 = 7.1;

const STYLE: &str = "\
.panel{font-size:14px;font-weight:600}.frame{fill:none;stroke:#8b939d}.line{fill:none;stroke-width:2}\
.predicted{stroke:#1d4f9e}.ideal{stroke:#7d8794;stroke-dasharray:5 4}.measured{fill:#d55e00;stroke:#fff}\
.other{fill:none;stroke:#d55e00;stroke-width:1.5}.there{fill:none;stroke:#1d4f9e;stroke-width:1.5}.here{fill:#1d4f9e;stroke:#fff}\
.update{fill:#4a90d9}\
@media(prefers-color-scheme:dark){.predicted{stroke:#74b0e8}.here{fill:#74b0e8}.there{stroke:#74b0e8}}";

/// One set of axes with what is drawn on them.
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) x_name: String,
    pub(super) y_name: String,
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Drawn in this order, under lines and marks.
    pub(super) areas: Vec<Series>,
    pub(super) lines: Vec<Series>,
    pub(super) marks: Vec<Mark>,
    /// What is not drawn, said in place of the panel's contents.
    pub(super) empty: Option<String>,
}

/// A named line, or the closed outline of an area.
pub(super) struct Series {
    /// Class of the style sheet, which gives the colour.
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A point with a text under the pointer.
pub(super) struct Mark {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) title: String,
}

/// An axis: linear, or one whose ticks double.
pub(super) enum Scale {
    Linear(Axis),
    Doubling(Axis),
}

impl Scale {
    /// From 0 to a little above the greatest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = values.fold(0.0, f64::max);
        Self::Linear(Axis::over([0.0, if high > 0.0 { high } else { 1.0 }].into_iter()))
    }

    /// From `low` to `high`, without a margin.
    pub(super) fn exactly(low: f64, high: f64) -> Self {
        Self::Linear(Axis { low, high, ..Axis::over([low, high].into_iter()) })
    }

    /// Powers of two around the values.
    pub(super) fn doubling(values: impl Iterator<Item = f64>) -> Self {
        let doublings = values.fold(2.0, f64::max).log2().ceil();
        let step = (doublings / 8.0).ceil();
        Self::Doubling(Axis { low: 0.0, high: (doublings / step).ceil() * step, step })
    }

    fn share(&self, value: f64) -> f64 {
        match self {
            Self::Linear(axis) => axis.share(value),
            Self::Doubling(axis) => axis.share(value.log2()),
        }
    }

    /// Places of the ticks as shares, with their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => {
                let first = (axis.low / axis.step).ceil();
                let ticks = (0..=12).map(|index| (first + f64::from(index)) * axis.step);
                let inside = ticks.filter(|tick| *tick <= axis.high * (1.0 + 1e-9));
                inside.map(|tick| (axis.share(tick), label(tick, axis.step))).collect()
            }
            Self::Doubling(axis) => axis.ticks().map(|tick| (axis.share(tick), tick.exp2().to_string())).collect(),
        }
    }
}

/// The panels under a title, as an SVG document.
pub(super) fn document(title: &str, subtitle: &str, panels: &[Panel]) -> String {
    let mut svg = open((WIDTH * panels.len() as f64, HEAD + HEIGHT), 18.0, STYLE, title, subtitle);
    for (index, panel) in panels.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<g transform=\"translate({} {HEAD})\">", index as f64 * WIDTH);
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

fn x_of(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y_of(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let _ = writeln!(svg, "<text class=\"panel\" x=\"{LEFT}\" y=\"22\">{}</text>", escape(self.title));
        if let Some(why) = &self.empty {
            let _ = writeln!(svg, "<text class=\"dim\" x=\"{LEFT}\" y=\"46\">{}</text>", escape(why));
            return;
        }
        self.legend(svg);
        for area in &self.areas {
            let _ = writeln!(svg, "<polygon class=\"{}\" points=\"{}\"/>", area.class, self.points(&area.points));
        }
        self.axes(svg);
        for line in &self.lines {
            let _ = writeln!(svg, "<polyline class=\"line {}\" points=\"{}\"/>", line.class, self.points(&line.points));
        }
        for mark in &self.marks {
            let (x, y) = (x_of(self.x.share(mark.x)), y_of(self.y.share(mark.y)));
            let title = escape(&mark.title);
            let _ = writeln!(
                svg,
                "<circle class=\"{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{title}</title></circle>",
                mark.class
            );
        }
    }

    fn points(&self, points: &[(f64, f64)]) -> String {
        let at = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", x_of(self.x.share(*x)), y_of(self.y.share(*y)));
        points.iter().map(at).collect::<Vec<_>>().join(" ")
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (share, text) in self.x.ticks() {
            let x = x_of(share);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"dim num\" x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{text}</text>",
                bottom + 17.0
            );
        }
        for (share, text) in self.y.ticks() {
            let y = y_of(share);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"dim num\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{text}</text>",
                LEFT - 7.0,
                y + 4.0
            );
        }
        let (x_middle, y_middle) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\n\
             <text x=\"{x_middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(15 {y_middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            right - LEFT,
            bottom - TOP,
            HEIGHT - 16.0,
            escape(&self.x_name),
            escape(&self.y_name)
        );
    }

    /// One entry per class drawn, in rows of what fits.
    fn legend(&self, svg: &mut String) {
        let mut entries: Vec<(&str, &str, SeriesKind)> = Vec::new();
        let series = |list: &[Series], kind| list.iter().map(move |s| (s.class, s.name, kind)).collect::<Vec<_>>();
        let marks = self.marks.iter().map(|mark| (mark.class, mark.name, SeriesKind::Mark));
        let all =
            series(&self.areas, SeriesKind::Area).into_iter().chain(series(&self.lines, SeriesKind::Line)).chain(marks);
        for entry in all {
            if !entries.iter().any(|known| known.0 == entry.0) {
                entries.push(entry);
            }
        }
        let (mut x, mut y) = (LEFT, 44.0);
        for (class, name, kind) in entries {
            let width = 30.0 + CHAR * name.chars().count() as f64;
            if x + width > WIDTH && x > LEFT {
                (x, y) = (LEFT, y + 20.0);
            }
            let sign = match kind {
                SeriesKind::Area => {
                    format!("<rect class=\"{class}\" x=\"{x}\" y=\"{:.1}\" width=\"14\" height=\"11\"/>", y - 10.0)
                }
                SeriesKind::Line => format!("<path class=\"line {class}\" d=\"M{x} {:.1}h16\"/>", y - 4.0),
                SeriesKind::Mark => {
                    format!("<circle class=\"{class}\" cx=\"{}\" cy=\"{:.1}\" r=\"4.5\"/>", x + 7.0, y - 4.0)
                }
            };
            let _ = writeln!(svg, "{sign}<text x=\"{:.1}\" y=\"{y}\">{}</text>", x + 20.0, escape(name));
            x += width;
        }
    }
}

#[derive(Clone, Copy)]
enum SeriesKind {
    Area,
    Line,
    Mark,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_inside_their_axis() {
        for scale in [
            Scale::from_zero([3.0, 119.3].into_iter()),
            Scale::exactly(0.0, 500.0),
            Scale::exactly(0.0, 7.0),
            Scale::doubling([1.0, 128.0].into_iter()),
            Scale::doubling([1.0, 100_000.0].into_iter()),
            Scale::doubling([1.0].into_iter()),
            Scale::from_zero(std::iter::empty()),
        ] {
            let ticks = scale.ticks();
            assert!((2..=13).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.iter().all(|(share, _)| (0.0..=1.0 + 1e-9).contains(share)), "{ticks:?}");
        }
    }

    #[test]
    fn texts_from_outside_are_escaped() {
        assert!(!document("<script>", "a & b", &[]).contains("<script>"));
    }
}
