//! Axes with round ticks, and the rectangle that they are drawn around.

use super::{Anchor, Svg};

/// An axis has at most this many steps between the least and the greatest value.
const MOST_STEPS: f64 = 7.0;

/// A linear axis with round ticks: 1, 2 or 5 times a power of ten apart.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its low end.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// Distance between ticks.
    pub step: f64,
}

impl Axis {
    /// The round ends around the values.
    pub fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        // Equal values get a span of their own.
        let span = if high > low { high - low } else { low.abs().max(1.0) };
        let step = round_step(span, MOST_STEPS);
        let round = |value: f64, to: fn(f64) -> f64| to(value / step) * step;
        let (low, high) = (round(low, f64::floor), round(high, f64::ceil));
        Self { low, high: if high > low { high } else { low + step }, step }
    }

    /// From `low` to `high` > `low` exactly, with at most `most` steps.
    pub fn exactly(low: f64, high: f64, most: f64) -> Self {
        Self { low, high, step: round_step(high - low, most) }
    }

    /// Where a value lies, from 0 at the low end to 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The ticks inside, as shares with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let first = (self.low / self.step - 1e-9).ceil();
        let ticks = (0..).map(|index| (first + f64::from(index)) * self.step);
        let inside = ticks.take_while(|tick| *tick <= self.high + 1e-9 * self.step);
        inside.map(|tick| (self.share(tick), label(tick, self.step))).collect()
    }
}

/// Distance between the ticks of an axis: the least of 1, 2 and 5 times a power of ten that cuts `span` > 0 into
/// at most `most` pieces.
fn round_step(span: f64, most: f64) -> f64 {
    let power = 10f64.powf((span / most).log10().floor());
    power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power * most >= span).unwrap_or(10.0)
}

/// A multiple of `step` with as many decimals as `step` has.
fn label(tick: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{tick:.decimals$}")
}

/// The rectangle in which values are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Its left side.
    pub left: f64,
    /// Its right side.
    pub right: f64,
    /// Its upper side.
    pub top: f64,
    /// Its lower side.
    pub bottom: f64,
}

impl Frame {
    /// The place of shares of both axes, each from 0 at its low end to 1.
    pub fn place(&self, x_share: f64, y_share: f64) -> (f64, f64) {
        (self.left + x_share * (self.right - self.left), self.bottom - y_share * (self.bottom - self.top))
    }

    /// Grid, ticks and names of both axes; the name of y reads upwards at `y_name_at`.
    pub fn axes(&self, svg: &mut Svg, ticks: [&[(f64, String)]; 2], names: [&str; 2], y_name_at: f64) {
        for (share, text) in ticks[0] {
            let (x, _) = self.place(*share, 0.0);
            svg.line("grid", (x, self.top), (x, self.bottom));
            svg.text("tick", (x, self.bottom + 17.0), Anchor::Middle, text);
        }
        for (share, text) in ticks[1] {
            let (_, y) = self.place(0.0, *share);
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text("tick", (self.left - 7.0, y + 4.0), Anchor::End, text);
        }
        let (x, y) = self.place(0.5, 0.5);
        svg.text("axis", (x, self.bottom + 40.0), Anchor::Middle, names[0]);
        svg.upward_text("axis", (y_name_at, y), names[1]);
    }
}

/// Puts entries of these widths side by side from `left` on, in rows that end at `right`: x and row of each, rows from 0.
pub fn in_rows(widths: impl Iterator<Item = f64>, left: f64, right: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (left, 0);
    let entry = |width: f64| {
        if x + width > right && x > left {
            (x, row) = (left, row + 1);
        }
        let at = (x, row);
        x += width;
        at
    };
    widths.map(entry).collect()
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
            let ticks = axis.ticks();
            assert!((2..=10).contains(&ticks.len()), "{values:?}: {ticks:?}");
            let [first, last] = [&ticks[0], &ticks[ticks.len() - 1]].map(|tick| tick.0);
            assert!(first.abs() < 1e-6 && (last - 1.0).abs() < 1e-6, "{values:?}: {ticks:?}");
        }
    }

    #[test]
    fn steps_are_round_and_labels_have_their_decimals() {
        assert_eq!(round_step(119.3, 7.0), 20.0);
        assert_eq!(label(1.25, 0.05), "1.25");
        let ticks = Axis::exactly(0.5, 7.2, 7.0).ticks();
        assert_eq!(ticks.iter().map(|tick| tick.1.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4", "5", "6", "7"]);
    }

    #[test]
    fn entries_fill_rows() {
        assert_eq!(in_rows([4.0, 5.0, 6.0, 20.0].into_iter(), 1.0, 10.0), [(1.0, 0), (5.0, 0), (1.0, 1), (1.0, 2)]);
    }
}
