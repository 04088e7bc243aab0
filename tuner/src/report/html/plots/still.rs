//! Small pictures, which stand in the place of a plot where no script runs: points and step lines on two axes.

use hpl::observe::picture::{Axis, Frame, Svg};
use space::counted;

use crate::record::Row;
use crate::report::format::digits;

/// Dots of a picture from which on a part of them is drawn.
pub(super) const MOST_DOTS: usize = 500;

/// A picture with two linear axes.
pub(super) struct Plot<'a> {
    pub(super) x_name: &'a str,
    pub(super) y_name: &'a str,
    /// Measured values.
    pub(super) points: Vec<Mark>,
    /// Corners of a line, drawn under the points.
    pub(super) line: Vec<(f64, f64)>,
    /// What a reader's program says of the picture.
    pub(super) description: &'a str,
}

/// A dot with a text that appears under the pointer.
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Class of the style sheet.
    pub(super) class: &'static str,
    pub(super) title: String,
}

const SIZE: (f64, f64) = (560.0, 340.0);
const FRAME: Frame = Frame { left: 62.0, right: SIZE.0 - 14.0, top: 12.0, bottom: SIZE.1 - 48.0 };

impl Mark {
    /// The dot of a trial at a place whose height is in this unit.
    pub(super) fn of(row: &Row, (x, y): (f64, f64), unit: &str, class: &'static str) -> Self {
        let (height, Row { trial, nb, p, q, .. }) = (digits(y), row);
        let threads = counted(row.threads, "thread");
        Self { x, y, class, title: format!("trial {trial}: {height} {unit}, NB {nb} {p}×{q}, {threads}") }
    }
}

impl Plot<'_> {
    /// The picture as an `<svg>` element; `None` without a point. All values must be finite.
    pub(super) fn draw(&self) -> Option<String> {
        let xs = self.points.iter().map(|point| point.x).chain(self.line.iter().map(|corner| corner.0));
        let ys = self.points.iter().map(|point| point.y).chain(self.line.iter().map(|corner| corner.1));
        if self.points.is_empty() {
            return None;
        }
        let (x, y) = (Axis::over(xs), Axis::over(ys));
        let place = |at: (f64, f64)| FRAME.place(x.share(at.0), y.share(at.1));
        let mut svg = Svg::element(SIZE, self.description);
        FRAME.axes(&mut svg, [&x.ticks(), &y.ticks()], [self.x_name, self.y_name], 14.0);
        svg.polyline("line", self.line.iter().map(|corner| place(*corner)));
        for point in &self.points {
            svg.titled_dot(point.class, place((point.x, point.y)), 3.5, &point.title);
        }
        Some(svg.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_under_the_pointer_are_escaped() {
        let point = Mark { x: 1.0, y: 1.0, class: "passed", title: "</title><script>".into() };
        let plot = Plot { x_name: "x", y_name: "y", points: vec![point], line: vec![], description: "d" };
        assert!(!plot.draw().unwrap().contains("<script"));
    }
}
