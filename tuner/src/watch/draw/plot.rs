//! The curve of the best so far, in Braille signs or in ASCII.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::text::padded;
use crate::report::digits;
use crate::watch::look::{Look, Tone};
use crate::watch::model::Curve;

/// Rows without which a curve says nothing.
pub(super) const LEAST_ROWS: u16 = 3;

/// Columns of the rates beside it.
const LABELS: u16 = 9;

/// Draws the curve: the highest rate so far as a line, single trials as dots, the default's median as a row of hyphens.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, curve: &Curve, look: Look) {
    if area.height < LEAST_ROWS || area.width < LABELS + 4 {
        return;
    }
    let rows = area.height - 1;
    let plot = Rect { x: area.x + LABELS, width: area.width - LABELS, height: rows, ..area };
    let mut grid = Grid::new(plot, curve, look);
    if let Some(rate) = curve.default {
        grid.level(rate);
    }
    let quiet = look.style(Tone::Quiet);
    grid.write(buffer, ('-', None), quiet);
    curve.points.iter().for_each(|&(trial, rate)| grid.point(trial, rate));
    // Few trials are easy to see; many would hide each other.
    let whole = (curve.points.len() <= usize::from(plot.width)).then_some('•');
    grid.write(buffer, ('.', whole), quiet);
    curve.best.windows(2).for_each(|ends| grid.step(ends[0], ends[1]));
    grid.write(buffer, ('#', None), look.style(Tone::Good));

    let label = |rate: f64| format!("{:>width$} ", digits(rate), width = usize::from(LABELS) - 1);
    let [low, high] = curve.rates;
    let mut put = |x: u16, y: u16, text: &str, width: u16| {
        buffer.set_stringn(x, y, look.text(text), usize::from(width), quiet);
    };
    put(area.x, area.y, &label(high), LABELS);
    put(area.x, area.y + rows - 1, &label(low), LABELS);
    // Where it does not hide the others.
    if let Some(row) = curve.default.and_then(|rate| grid.row(rate)).filter(|row| (1..rows - 1).contains(row)) {
        put(area.x, area.y + row, &format!("{:>width$} ", "default", width = usize::from(LABELS) - 1), LABELS);
    }
    let [first, last] = curve.trials.map(|trial| format!("{trial:.0}"));
    let words =
        format!("{}{last}", padded(&format!("trial {first}"), usize::from(plot.width).saturating_sub(last.len())));
    put(plot.x, area.y + rows, &words, plot.width);
}

/// Dots over some cells of the terminal: 2 × 4 in each where there are Braille signs, else one.
struct Grid {
    area: Rect,
    ascii: bool,
    /// Dots in a cell.
    dots: [usize; 2],
    trials: [f64; 2],
    rates: [f64; 2],
    /// Which dots of each cell are set.
    cells: Vec<u8>,
}

impl Grid {
    fn new(area: Rect, curve: &Curve, look: Look) -> Self {
        let dots = if look.ascii { [1, 1] } else { [2, 4] };
        Self {
            area,
            ascii: look.ascii,
            dots,
            trials: curve.trials,
            rates: curve.rates,
            cells: vec![0; usize::from(area.width) * usize::from(area.height)],
        }
    }

    /// The column of dots of a trial.
    fn x(&self, trial: f64) -> usize {
        let [first, last] = self.trials;
        let most = usize::from(self.area.width) * self.dots[0] - 1;
        (((trial - first) / (last - first).max(1.0) * most as f64).round().max(0.0) as usize).min(most)
    }

    /// The row of dots of a rate, from above; `None` for one that is not shown.
    fn y(&self, rate: f64) -> Option<usize> {
        let [low, high] = self.rates;
        let most = usize::from(self.area.height) * self.dots[1] - 1;
        let from_above = (high - rate) / (high - low);
        (0.0..=1.0).contains(&from_above).then(|| (from_above * most as f64).round() as usize)
    }

    /// The row of cells of a rate.
    fn row(&self, rate: f64) -> Option<u16> {
        Some((self.y(rate)? / self.dots[1]) as u16)
    }

    fn set(&mut self, x: usize, y: usize) {
        let cell = y / self.dots[1] * usize::from(self.area.width) + x / self.dots[0];
        self.cells[cell] |= 1 << (y % self.dots[1] * 2 + x % self.dots[0]);
    }

    fn point(&mut self, trial: f64, rate: f64) {
        if let Some(y) = self.y(rate) {
            self.set(self.x(trial), y);
        }
    }

    /// A dotted line at a rate.
    fn level(&mut self, rate: f64) {
        let Some(y) = self.y(rate) else { return };
        let columns = usize::from(self.area.width) * self.dots[0];
        (0..columns).step_by(2).for_each(|x| self.set(x, y));
    }

    /// A horizontal or vertical line.
    fn step(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (Some(from_y), Some(to_y)) = (self.y(from.1), self.y(to.1)) else { return };
        let (from_x, to_x) = (self.x(from.0), self.x(to.0));
        (from_x..=to_x).for_each(|x| self.set(x, from_y));
        (from_y.min(to_y)..=from_y.max(to_y)).for_each(|y| self.set(to_x, y));
    }

    /// Writes the dots into the buffer, over what is there, and takes them back: as the sign in ASCII, else as the one for a whole cell or
    /// in Braille.
    fn write(&mut self, buffer: &mut Buffer, (ascii, whole): (char, Option<char>), style: Style) {
        let width = usize::from(self.area.width);
        for (index, dots) in self.cells.iter_mut().enumerate().filter(|(_, dots)| **dots != 0) {
            let place = (self.area.x + (index % width) as u16, self.area.y + (index / width) as u16);
            if let Some(cell) = buffer.cell_mut(place) {
                let in_unicode = || whole.unwrap_or_else(|| braille(*dots, cell.symbol()));
                let sign = if self.ascii { ascii } else { in_unicode() };
                cell.set_char(sign).set_style(style);
            }
            *dots = 0;
        }
    }
}

/// The Braille sign of these dots, bit 2·row + column of each, with those that the cell has already.
fn braille(dots: u8, there: &str) -> char {
    /// Bits of Unicode for the bits here.
    const BITS: [u32; 8] = [0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80];
    const BLANK: u32 = 0x2800;
    let before = there.chars().next().map_or(0, u32::from);
    let before = if (BLANK..BLANK + 0x100).contains(&before) { before - BLANK } else { 0 };
    let set = (0..8).filter(|bit| dots >> bit & 1 == 1).map(|bit| BITS[bit]).fold(before, |all, bit| all | bit);
    char::from_u32(BLANK + set).expect("there are 256 of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: fn() -> Curve = || Curve {
        unit: "GFLOP/s".to_owned(),
        points: vec![(0.0, 10.0), (1.0, 12.0), (2.0, 11.0), (3.0, 5.0)],
        best: vec![(0.0, 10.0), (1.0, 10.0), (1.0, 12.0), (3.0, 12.0)],
        default: Some(10.0),
        trials: [0.0, 3.0],
        rates: [9.0, 13.0],
        words: String::new(),
        raised: vec![0, 1],
    };

    fn drawn(width: u16, height: u16, ascii: bool) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(&mut buffer, area, &CURVE(), Look { colour: false, ascii });
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(row).collect()
    }

    #[test]
    fn the_best_so_far_is_a_line_of_steps() {
        // Trials at columns 0, 3, 7 and 10 of 11; the rate of the last one is too low to be shown.
        let expected = [
            "   13.00            ",
            "            ########",
            "            #   .   ",
            " default ####- - - -",
            "   9.000            ",
            "         trial 0   3",
        ];
        let mut drawn = drawn(20, 6, true);
        drawn.iter_mut().for_each(|row| *row = format!("{row:<20}"));
        assert_eq!(drawn, expected);
    }

    #[test]
    fn braille_has_eight_dots_in_a_cell() {
        assert_eq!(braille(0xff, " "), '⣿');
        assert_eq!(braille(0b1, " "), '⠁');
        assert_eq!(braille(0b1000_0000, "⠁"), '⢁');
        let text = drawn(40, 8, false).concat();
        assert!(text.chars().any(|sign| ('⠁'..='⣿').contains(&sign)), "{text}");
    }

    #[test]
    fn any_size_is_drawn_without_panic() {
        for width in 0..30 {
            for height in 0..8 {
                drawn(width, height, true);
                drawn(width, height, false);
            }
        }
    }
}
