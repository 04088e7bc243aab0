//! Units are a part of a key's name; a key with another unit gets a word of help.

/// Endings of keys and the units they stand for, longer ones first.
const UNITS: [(&str, &str); 6] = [
    ("_s_per_word", "seconds per 8-byte word"),
    ("_gflops", "GFLOP/s (1e9)"),
    ("_bytes", "bytes"),
    ("_error", "a share from 0"),
    ("_hz", "Hz"),
    ("_s", "seconds"),
];

/// What to write instead, for the reader's message about an unknown key; empty when no known key begins alike.
///
/// The message quotes the unknown key first and then the known ones, in backquotes.
pub(super) fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next().filter(|_| message.starts_with("unknown field")) else { return String::new() };
    let unit = |key: &str| UNITS.iter().find(|(ending, _)| key.ends_with(ending)).map(|(_, unit)| *unit);
    let alike = |key: &&str| key.split('_').next() == unknown.split('_').next() && unit(key).is_some();
    match quoted.find(alike) {
        Some(key) => format!("\nunits are part of the key: write {key}, in {}", unit(key).unwrap_or_default()),
        None => String::new(),
    }
}
