//! How the terminal can show things: with colours or without, in Unicode or in ASCII.

use std::borrow::Cow;

use objectives::real::printable;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use crate::cli::watch::ColorChoice;

/// What a text is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// Names of what follows.
    Name,
    /// Beside the point.
    Quiet,
    /// The most important figure.
    Strong,
    /// What went well.
    Good,
    /// What is to be known before the figures are believed.
    Doubt,
    /// What failed.
    Bad,
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether there are colours. Bold, dim and reversed text there is in any case.
    pub colour: bool,
    /// Whether ASCII is all there is.
    pub ascii: bool,
}

impl Look {
    /// By the flags and the environment variables that `variable` knows: NO_COLOR and TERM, and those of the locale.
    pub fn new(color: ColorChoice, ascii: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let wanted = set("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb");
        let colour = match color {
            ColorChoice::Auto => wanted,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_lowercase();
        Self { colour, ascii: ascii || !(locale.contains("utf-8") || locale.contains("utf8")) }
    }

    /// How a text of this tone looks.
    pub fn style(self, tone: Tone) -> Style {
        let (color, modifier) = match tone {
            Tone::Plain => (Color::Reset, Modifier::empty()),
            Tone::Name => (Color::Cyan, Modifier::empty()),
            Tone::Quiet => (Color::Reset, Modifier::DIM),
            Tone::Strong => (Color::Reset, Modifier::BOLD),
            Tone::Good => (Color::Green, Modifier::BOLD),
            Tone::Doubt => (Color::Yellow, Modifier::BOLD),
            Tone::Bad => (Color::Red, Modifier::BOLD),
        };
        let style = Style::new().add_modifier(modifier);
        if self.colour { style.fg(color) } else { style }
    }

    /// A text in the signs that there are, without any that control the terminal.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        let text = printable(text);
        if !self.ascii || text.is_ascii() {
            return text;
        }
        let mut plain = String::with_capacity(text.len());
        for sign in text.chars() {
            match sign {
                '±' => plain.push_str("+-"),
                '…' => plain.push_str("..."),
                '→' => plain.push_str("->"),
                '≤' => plain.push_str("<="),
                '≥' => plain.push_str(">="),
                sign => plain.push(in_one_cell(sign)),
            }
        }
        Cow::Owned(plain)
    }

    /// Leaves no other signs in what was drawn.
    pub(super) fn clean(self, drawn: &mut Buffer) {
        if !self.ascii {
            return;
        }
        for cell in drawn.content.iter_mut().filter(|cell| !cell.symbol().is_ascii()) {
            let sign = cell.symbol().chars().next().map_or(' ', in_one_cell);
            cell.set_char(sign);
        }
    }
}

/// The ASCII sign that is most like this one.
fn in_one_cell(sign: char) -> char {
    match sign {
        '\u{20}'..='\u{7e}' => sign,
        '×' => 'x',
        '÷' => '/',
        '·' | '•' => '*',
        '–' | '—' | '─' | '━' | '═' => '-',
        '│' | '┃' | '║' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => '+',
        '█' | '▉' | '▇' | '▆' | '▅' | '■' => '#',
        '▄' | '▃' | '▂' | '▁' | '░' => '.',
        '…' => '.',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(color: ColorChoice, ascii: bool, set: &[(&str, &str)]) -> (bool, bool) {
        let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let Look { colour, ascii } = Look::new(color, ascii, variable);
        (colour, ascii)
    }

    #[test]
    fn flags_come_before_the_environment() {
        use ColorChoice::{Always, Auto, Never};
        let utf8 = ("LANG", "de_DE.UTF-8");
        assert_eq!(look(Auto, false, &[utf8]), (true, false));
        assert_eq!(look(Auto, false, &[utf8, ("NO_COLOR", "1")]), (false, false));
        assert_eq!(look(Auto, false, &[utf8, ("NO_COLOR", "")]), (true, false), "an empty one is none: no-color.org");
        assert_eq!(look(Always, true, &[utf8, ("NO_COLOR", "1")]), (true, true));
        assert_eq!(look(Never, false, &[utf8]), (false, false));
        assert_eq!(look(Auto, false, &[utf8, ("TERM", "dumb")]), (false, false));
    }

    #[test]
    fn the_locale_says_whether_there_is_more_than_ascii() {
        let ascii = |set: &[(&str, &str)]| look(ColorChoice::Never, false, set).1;
        assert!(ascii(&[]), "the locale is C");
        assert!(ascii(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]), "LC_ALL is the last word");
        assert!(ascii(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!ascii(&[("LANG", "C"), ("LC_CTYPE", "C.utf8"), ("LC_ALL", "")]));
    }

    #[test]
    fn every_sign_has_one_in_ascii() {
        let look = Look { colour: false, ascii: true };
        assert_eq!(look.text("1×2 ± 3 … 4 ÷ 5"), "1x2 +- 3 ... 4 / 5");
        assert!(look.text("naïve – ⣿").is_ascii());
    }

    #[test]
    fn no_text_controls_the_terminal() {
        let shown = [false, true].map(|ascii| Look { colour: true, ascii }.text("n1\x1b[2J").into_owned());
        assert_eq!(shown, ["n1\u{fffd}[2J", "n1?[2J"]);
    }
}
