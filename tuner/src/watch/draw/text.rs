//! Texts of at most a given width.

use ratatui_core::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::watch::look::{Look, Tone};

/// Columns of the names before figures, and the width below which names take no column.
const NAMES: usize = 14;
const NARROW: usize = 60;

/// A name, then its text over as many lines as it takes.
pub(super) fn named(name: &str, text: &str, tone: Tone, width: usize, look: Look) -> Vec<Line<'static>> {
    let (name, text) = (look.text(name), look.text(text));
    let column = if width < NARROW { name.width() + 1 } else { NAMES };
    let indent = if width < NARROW { 1 } else { NAMES };
    let lines = wrapped(&text, width.saturating_sub(column), width.saturating_sub(indent));
    let before = |at: usize| if at == 0 { format!("{name:<column$}") } else { " ".repeat(indent) };
    let line = |(at, line): (usize, String)| {
        Line::from(vec![Span::styled(before(at), look.style(Tone::Name)), Span::styled(line, look.style(tone))])
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// The words of a text in lines, the first of at most `first` columns and the others of at most `width`. A longer word is cut.
pub(super) fn wrapped(text: &str, first: usize, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = if lines.len() == 1 { first } else { width };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let room = |at: usize| if at == 0 { first } else { width };
    lines.iter().enumerate().map(|(at, line)| cut(line, room(at))).collect()
}

/// At most this many columns of a text; the last one says that something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut columns = 1;
    for sign in text.chars() {
        columns += sign.width().unwrap_or(0);
        if columns > width {
            break;
        }
        kept.push(sign);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Exactly this many columns of a text.
pub(super) fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let missing = width.saturating_sub(text.width());
    text + &" ".repeat(missing)
}

/// A bar of which a part from 0 to 1 is filled.
pub(super) fn bar(part: f64, width: usize, look: Look) -> String {
    let filled = ((part * width as f64).round() as usize).min(width);
    let (full, empty) = if look.ascii { ("=", "-") } else { ("━", "─") };
    full.repeat(filled) + &empty.repeat(width - filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_within_their_columns() {
        assert_eq!(wrapped("one two three four", 7, 10), ["one two", "three four"]);
        assert_eq!(wrapped("incomprehensible", 7, 7), ["incomp…"]);
        assert_eq!(cut("×××", 2), "×…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(padded("ab", 4), "ab  ");
        assert_eq!(padded("abcde", 4), "abc…");
        let look = Look { colour: false, ascii: true };
        for (part, expected) in [(0.0, "----"), (0.5, "==--"), (1.0, "===="), (7.0, "====")] {
            assert_eq!(bar(part, 4, look), expected);
        }
        for width in 0..30 {
            let lines = named("Best/default", "1.024 (0.989-1.036, 99.2 %, 8 pairs)", Tone::Plain, width, look);
            let least = if width < 14 { 14 } else { width };
            assert!(lines.iter().all(|line| line.width() <= least), "{width}: {lines:?}");
        }
    }
}
