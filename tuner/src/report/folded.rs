//! Text in lines that a terminal shows whole.

use unicode_width::UnicodeWidthStr;

/// `line` in lines of at most `width` columns, or of one word; those after the first begin with `indent` spaces. As it is without a width.
pub(crate) fn folded(line: &str, width: Option<usize>, indent: usize) -> String {
    let Some(width) = width else { return line.to_owned() };
    let mut lines = vec![String::new()];
    // Words with the spaces after them, as columns of numbers have several.
    for word in line.split_inclusive(' ') {
        let last = lines.last().map_or("", String::as_str);
        let fits = last.width() + word.trim_end().width() <= width;
        if !fits && last.trim() != "" {
            lines.push(" ".repeat(indent));
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(word);
        }
    }
    let whole: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    whole.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_words() {
        assert_eq!(
            folded("Best  38.2 GFLOP/s at N = 4000", Some(16), 6),
            "Best  38.2\n      GFLOP/s at\n      N = 4000"
        );
        assert_eq!(folded("Best  38.2  GFLOP/s", Some(80), 6), "Best  38.2  GFLOP/s");
        assert_eq!(folded("a/path/that/is/long and more", Some(8), 2), "a/path/that/is/long\n  and\n  more");
        assert_eq!(folded("Best  38.2", None, 6), "Best  38.2");
        assert_eq!(folded("1×6: 2×8", Some(5), 0), "1×6:\n2×8");
    }
}
