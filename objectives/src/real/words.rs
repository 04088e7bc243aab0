//! Quoting of commands and cleaning of output: any bytes become readable words.

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

/// At most `count` last lines of what a program printed, without empty lines, control characters (which
/// could control the user's terminal) or more than 200 characters each.
pub fn last_lines(output: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
    let lines: Vec<_> = text.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
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
    fn last_lines_are_clean_and_few() {
        assert_eq!(last_lines(b"a\n\n\x1b[2Jb\xff\nc", 2), ["[2Jb\u{fffd}", "c"]);
        assert!(last_lines(b"", 3).is_empty());
        assert_eq!(last_lines(&[b'x'; 1000], 3)[0].len(), 200);
    }
}
