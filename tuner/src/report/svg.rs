//! Small pictures: points and step lines on two axes.

use std::fmt::Write;

use hpl::observe::picture::{escape, label, round_step};

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

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 48.0;

/// An axis has at most this many steps between the least and the greatest value.
const MOST_STEPS: f64 = 7.0;

impl Plot<'_> {
    /// The picture as an `<svg>` element; `None` without a point. All values must be finite.
    pub(super) fn draw(&self) -> Option<String> {
        let xs = self.points.iter().map(|point| point.x).chain(self.line.iter().map(|corner| corner.0));
        let ys = self.points.iter().map(|point| point.y).chain(self.line.iter().map(|corner| corner.1));
        if self.points.is_empty() {
            return None;
        }
        let (x_axis, y_axis) = (Axis::over(xs), Axis::over(ys));
        let x = |value: f64| LEFT + x_axis.share(value) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - y_axis.share(value) * (HEIGHT - TOP - BOTTOM);
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut svg =
            format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>\n", self.description);
        // Writing to a String cannot fail.
        for tick in x_axis.ticks() {
            let at = x(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{at:.1}\" \
                y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                label(tick, x_axis.step)
            );
        }
        for tick in y_axis.ticks() {
            let at = y(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" \
                y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 7.0,
                at + 4.0,
                label(tick, y_axis.step)
            );
        }
        let (x_middle, y_middle) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{x_middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            self.x_name
        );
        let _ = writeln!(
            svg,
            "<text class=\"axis\" transform=\"translate(14 {y_middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            self.y_name
        );
        let corners: Vec<String> =
            self.line.iter().map(|corner| format!("{:.1},{:.1}", x(corner.0), y(corner.1))).collect();
        let _ = writeln!(svg, "<polyline class=\"line\" points=\"{}\"/>", corners.join(" "));
        for point in &self.points {
            let _ = writeln!(
                svg,
                "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
                point.class,
                x(point.x),
                y(point.y),
                escape(&point.title)
            );
        }
        svg.push_str("</svg>\n");
        Some(svg)
    }
}

/// A linear axis with round ticks: 1, 2 or 5 times a power of ten apart.
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Distance between ticks.
    pub(crate) step: f64,
}

impl Axis {
    /// The round ends around the values.
    pub(crate) fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        // Equal values get a span of their own.
        let span = if high > low { high - low } else { low.abs().max(1.0) };
        let step = round_step(span, MOST_STEPS);
        let round = |value: f64, to: fn(f64) -> f64| to(value / step) * step;
        let (low, high) = (round(low, f64::floor), round(high, f64::ceil));
        Self { low, high: if high > low { high } else { low + step }, step }
    }

    /// Where a value lies, from 0 at the low end to 1 at the high one.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The ticks from the low end to the high one.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|index| self.low + index as f64 * self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_their_values_between_few_round_ticks() {
        for values in
            [vec![0.0, 119.3], vec![84.2, 85.1, 84.9], vec![5.0, 5.0], vec![-1e-3, 1e-3], vec![1e6, 3e6], vec![0.0]]
        {
            let axis = Axis::over(values.iter().copied());
            assert!(values.iter().all(|&value| (0.0..=1.0).contains(&axis.share(value))), "{values:?}");
            assert!((2..=10).contains(&axis.ticks().count()), "{values:?}: {}", axis.ticks().count());
        }
    }

    #[test]
    fn texts_under_the_pointer_are_escaped() {
        let point = Mark { x: 1.0, y: 1.0, class: "passed", title: "</title><script>".into() };
        let plot = Plot { x_name: "x", y_name: "y", points: vec![point], line: vec![], description: "d" };
        assert!(!plot.draw().unwrap().contains("<script"));
    }
}
