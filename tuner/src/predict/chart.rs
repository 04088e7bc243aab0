//! Diagrams of curves, areas and marks side by side in one SVG document.

use hpl::observe::picture::{Anchor, Axis, Frame, Paint, Svg, in_rows};

/// Width and height of a diagram with its axes.
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 400.0;
const FRAME: Frame = Frame { left: 66.0, right: WIDTH - 16.0, top: 92.0, bottom: HEIGHT - 56.0 };
/// Above the diagrams.
const HEAD: f64 = 64.0;
/// Width of a character of the legend, a little more than the mean.
const CHAR: f64 = 7.1;

const STYLE: &str = "\
.head{font-size:14px;font-weight:600}.frame{fill:none;stroke:#8b939d}.line{fill:none;stroke-width:2}\
.predicted{stroke:#1d4f9e}.ideal{stroke:#7d8794;stroke-dasharray:5 4}.measured{fill:#d55e00;stroke:#fff}\
.other{fill:none;stroke:#d55e00;stroke-width:1.5}.there{fill:none;stroke:#1d4f9e;stroke-width:1.5}.here{fill:#1d4f9e;stroke:#fff}\
.update{fill:#4a90d9}\
@media(prefers-color-scheme:dark){.predicted{stroke:#74b0e8}.here{fill:#74b0e8}.there{stroke:#74b0e8}}";

/// One set of axes with what is drawn on them.
pub(super) struct Diagram {
    pub(super) title: &'static str,
    pub(super) x_name: String,
    pub(super) y_name: String,
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Drawn in this order, under lines and marks.
    pub(super) areas: Vec<Series>,
    pub(super) lines: Vec<Series>,
    pub(super) marks: Vec<NamedMark>,
    /// Why nothing is drawn; shown in place of the contents.
    pub(super) empty: Option<String>,
}

/// A named line, or the closed outline of an area.
pub(super) struct Series {
    /// Class of the style sheet, which gives the colour.
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A point with a name for the legend and a text under the pointer.
pub(super) struct NamedMark {
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
        Self::Linear(Axis::exactly(low, high, 7.0))
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
            Self::Linear(axis) => axis.ticks(),
            Self::Doubling(axis) => {
                let doublings = (0..).map(|index| f64::from(index) * axis.step).take_while(|at| *at <= axis.high);
                doublings.map(|at| (axis.share(at), at.exp2().to_string())).collect()
            }
        }
    }
}

/// The diagrams under a title, as an SVG document.
pub(super) fn document(title: &str, subtitle: &str, diagrams: &[Diagram]) -> String {
    let mut svg = Svg::document((WIDTH * diagrams.len() as f64, HEAD + HEIGHT), 18.0, STYLE, title, subtitle);
    for (index, diagram) in diagrams.iter().enumerate() {
        svg.shifted((index as f64 * WIDTH, HEAD), |svg| diagram.draw(svg));
    }
    svg.end()
}

impl Diagram {
    fn draw(&self, svg: &mut Svg) {
        svg.text("head", (FRAME.left, 22.0), Anchor::Start, self.title);
        if let Some(why) = &self.empty {
            svg.text("dim", (FRAME.left, 46.0), Anchor::Start, why);
            return;
        }
        self.legend(svg);
        for area in &self.areas {
            svg.polygon(area.class, area.points.iter().map(|point| self.place(*point)));
        }
        FRAME.axes(svg, [&self.x.ticks(), &self.y.ticks()], [&self.x_name, &self.y_name], 15.0);
        let Frame { left, right, top, bottom } = FRAME;
        svg.rect(Paint::Class("frame"), (left, top), (right - left, bottom - top));
        for line in &self.lines {
            svg.polyline(&format!("line {}", line.class), line.points.iter().map(|point| self.place(*point)));
        }
        for mark in &self.marks {
            svg.titled_dot(mark.class, self.place((mark.x, mark.y)), 4.5, &mark.title);
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        FRAME.place(self.x.share(x), self.y.share(y))
    }

    /// One entry per class drawn, in rows of what fits.
    fn legend(&self, svg: &mut Svg) {
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
        let widths = entries.iter().map(|(_, name, _)| 30.0 + CHAR * name.chars().count() as f64);
        let places = in_rows(widths, FRAME.left, WIDTH);
        for ((class, name, kind), (x, row)) in entries.into_iter().zip(places) {
            let y = 44.0 + 20.0 * row as f64;
            match kind {
                SeriesKind::Area => svg.rect(Paint::Class(class), (x, y - 10.0), (14.0, 11.0)),
                SeriesKind::Line => svg.line(&format!("line {class}"), (x, y - 4.0), (x + 16.0, y - 4.0)),
                SeriesKind::Mark => svg.dot(class, (x + 7.0, y - 4.0), 4.5),
            }
            svg.text("", (x + 20.0, y), Anchor::Start, name);
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
