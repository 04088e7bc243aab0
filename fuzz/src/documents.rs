//! Changes of documents: TOML, JSON, lines of JSON, words.
//!
//! Bytes that libFuzzer changes by chance are mostly no document any more. A change here goes by tokens: a value of another kind or
//! from another place, an entry that is gone, repeated or moved, a text that ends early.

use std::ops::Range;

use fastrand::Rng;

/// Values of all kinds, at the ends of their ranges, and some that are none.
const VALUES: [&str; 57] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "7",
    "0.5",
    "-0.0",
    "1e300",
    "1e-300",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "170141183460469231731687303715884105728",
    "340282366920938463463374607431768211456",
    "0x10",
    "0b1",
    "1_0",
    "1.5e",
    "01",
    "\"\"",
    "\"x\"",
    "'x'",
    "\"\"\"x\"\"\"",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "[]",
    "[[]]",
    "[1, 2]",
    "[true]",
    "[0.5]",
    "[\"x\"]",
    "[{}]",
    "[2026-01-01]",
    "[340282366920938463463374607431768211455]",
    "[1, \"x\"]",
    "{}",
    "{\"x\": 1}",
    "{x = 1}",
    "{x = []}",
    "{x = {}}",
    "2026-01-01",
    "12:00:00",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z",
    "#",
];

/// Put into a token: what ends a string, a line, a document or a character, and escapes.
const PIECES: [&[u8]; 20] = [
    b"\"",
    b"'",
    b"\\",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\0",
    b"\x1b",
    b"\x80",
    b"\xc3\xa9",
    b"\\n",
    b"\\u0041",
    b"\\x",
    b",",
    b":",
    b"=",
    b"}",
    b"]",
    b".",
];

/// Most changes at once.
const MOST: usize = 3;

/// The text after up to [`MOST`] changes.
pub(crate) fn changed(text: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..rng.usize(1..=MOST) {
        let tokens = tokens(&text);
        if !tokens.is_empty() {
            change(&mut text, &tokens, rng);
        }
    }
    text
}

/// Strings, numbers and words whole, and each other sign but spaces.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte) || !byte.is_ascii();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        let rest = &text[at + 1..];
        let length = match first {
            b'"' | b'\'' => {
                let mut escaped = false;
                let end = rest.iter().position(|&byte| {
                    let ends = byte == b'\n' || (byte == first && !escaped);
                    escaped = byte == b'\\' && !escaped && first == b'"';
                    ends
                });
                end.map_or(rest.len(), |end| end + usize::from(rest[end] == first))
            }
            _ if is_word(&first) => rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len()),
            _ => 0,
        };
        if first != b' ' {
            tokens.push(at..at + 1 + length);
        }
        at += 1 + length;
    }
    tokens
}

/// Changes one place.
fn change(text: &mut Vec<u8>, tokens: &[Range<usize>], rng: &mut Rng) {
    let (here, there) = (rng.usize(..tokens.len()), rng.usize(..tokens.len()));
    match rng.u8(..8) {
        0 | 1 => drop(text.splice(value(text, tokens, here), VALUES[rng.usize(..VALUES.len())].bytes())),
        2 => {
            let other = text[value(text, tokens, there)].to_vec();
            drop(text.splice(value(text, tokens, here), other));
        }
        3 => drop(text.drain(entry(text, tokens, here))),
        4 => {
            let entry = entry(text, tokens, here);
            let again = text[entry.clone()].to_vec();
            drop(text.splice(entry.end..entry.end, again));
        }
        5 => {
            let entry = text[entry(text, tokens, here)].to_vec();
            let at = tokens[there].start;
            drop(text.splice(at..at, entry));
        }
        6 => {
            let token = &tokens[here];
            let at = rng.usize(token.start..=token.end);
            drop(text.splice(at..at, PIECES[rng.usize(..PIECES.len())].iter().copied()));
        }
        _ => text.truncate(rng.usize(tokens[here].start..=tokens[here].end)),
    }
}

/// The value that begins with a token: a list or a table whole.
fn value(text: &[u8], tokens: &[Range<usize>], first: usize) -> Range<usize> {
    let mut open = 0_usize;
    for token in &tokens[first..] {
        match text[token.start] {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return tokens[first].start..token.end;
        }
    }
    tokens[first].clone()
}

/// The entry that begins with a token: its key and value where it is a key, and the comma or the end of the line behind it.
fn entry(text: &[u8], tokens: &[Range<usize>], first: usize) -> Range<usize> {
    let byte = |at: usize| tokens.get(at).map(|token| text[token.start]);
    let is_key = matches!(byte(first + 1), Some(b':' | b'=')) && first + 2 < tokens.len();
    let end = value(text, tokens, if is_key { first + 2 } else { first }).end;
    let behind = tokens.partition_point(|token| token.start < end);
    let end = if matches!(byte(behind), Some(b',' | b'\n')) { tokens[behind].end } else { end };
    tokens[first].start..end
}
