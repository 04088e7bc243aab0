//! Quoting of commands and cleaning of output: any bytes become readable words.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The words of a command quoted for bash: joined with spaces they are a line that runs the command.
/// Bytes that are no UTF-8 become `$'\xff'`.
pub fn quoted<S: AsRef<OsStr>>(command: impl IntoIterator<Item = S>) -> Vec<String> {
    command.into_iter().map(|word| quote(word.as_ref())).collect()
}

fn quote(word: &OsStr) -> String {
    let printable = word.to_str().filter(|text| !text.chars().any(char::is_control));
    match printable.and_then(|text| shlex::try_quote(text).ok()) {
        Some(quoted) => quoted.into_owned(),
        None => {
            let escaped = word.as_bytes().iter().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

/// A text without the control characters that could control the user's terminal: line feeds stay, tabs become spaces, and others `�`.
pub fn printable(text: &str) -> Cow<'_, str> {
    let shown = |sign: char| match sign {
        '\n' => '\n',
        '\t' => ' ',
        sign if sign.is_control() => char::REPLACEMENT_CHARACTER,
        sign => sign,
    };
    if text.chars().all(|sign| shown(sign) == sign) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(shown).collect())
}

/// Characters of a line that are shown, at most.
const WIDTH: usize = 400;

/// At most `count` lines of what a program printed: the last ones, and of more than that the first one, too, which often says what
/// is wrong. Without lines of dashes alone, control characters (which could control the user's terminal) or more than 400
/// characters each.
pub fn telling_lines(output: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let clean = |line: &str| {
        let mut chars = line.chars().filter(|c| !c.is_control());
        let line: String = chars.by_ref().take(WIDTH).collect();
        if chars.next().is_some() { line + "…" } else { line }
    };
    let is_telling = |line: &String| line.chars().any(|c| !c.is_whitespace() && c != '-');
    let mut lines: Vec<_> = text.lines().map(clean).filter(is_telling).collect();
    let missing = lines.len().saturating_sub(count);
    if missing > 0 && count > 2 {
        lines.splice(1..missing + 2, ["…".to_owned()]);
        return lines;
    }
    lines.split_off(missing)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn bash_reads_back_the_very_bytes() {
        let words: Vec<OsString> = [
            &b"plain-1/x.y"[..],
            b"",
            b"two words",
            b"it's",
            b"$HOME `id` \"q\"",
            b"a\xffb'c\\d",
            b"new\nline",
            "é".as_bytes(),
        ]
        .iter()
        .map(|bytes| OsString::from_vec(bytes.to_vec()))
        .collect();
        let line = quoted(&words).join(" ");
        let script = format!("printf '%s\\0' {line}");
        let out = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        assert_eq!(out.stdout, expected, "{line}");
    }

    #[test]
    fn nothing_printable_controls_a_terminal() {
        assert_eq!(printable("a\x1b[2J\u{9b}31m\x7f\r\n\tb"), "a\u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}\n b");
        assert!(matches!(printable("1×2 ± 3\n"), Cow::Borrowed("1×2 ± 3\n")));
    }

    #[test]
    fn lines_are_clean_and_few() {
        assert_eq!(telling_lines(b"a\n\n\x1b[2Jb\xff\nc", 2), ["[2Jb\u{fffd}", "c"]);
        assert!(telling_lines(b"", 3).is_empty());
        assert_eq!(telling_lines(&[b'x'; 1000], 3)[0].chars().count(), 401);
        assert_eq!(telling_lines(b"-----\nwhy\nb\nc\nd\n-----\n", 3), ["why", "…", "d"]);
        assert_eq!(telling_lines(b"why\nb\nc", 3), ["why", "b", "c"]);
    }
}
