//! Errors of a machine description.
//!
//! Units are a part of a key's name: a key with another unit is answered with the key to write.

/// Why a machine description is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MachineError {
    /// Invalid TOML, a missing or unknown key, or a value of the wrong type; the text contains the position.
    #[error("{cause}{}", hint(cause.message()))]
    Syntax {
        /// What the reader found, with line and column.
        #[from]
        cause: toml::de::Error,
    },
    /// A value outside its range.
    #[error("{table}: {key} must be {wanted}, found {found}")]
    Value {
        /// The table, with its number from 1 where there are several: `[[node]] 2`.
        table: String,
        /// The key.
        key: &'static str,
        /// What is accepted.
        wanted: String,
        /// What is there.
        found: String,
    },
    /// A description without nodes.
    #[error("neither [[node]] nor [[measured]]: describe one node at least, with name, count and cores")]
    NoNode,
    /// A description that TOML cannot hold.
    #[error("cannot write the machine description: {0}")]
    Unwritable(#[from] toml::ser::Error),
}

/// Endings of keys and the units they stand for, longer ones first.
const UNITS: [(&str, &str); 8] = [
    ("gbytes_per_s", "GB/s (1e9 bytes a second)"),
    ("_s_per_word", "seconds per 8-byte word"),
    ("_s_per_byte", "seconds per byte"),
    ("_gflops", "GFLOP/s (1e9)"),
    ("_bytes", "bytes"),
    ("_error", "a share from 0"),
    ("_hz", "Hz"),
    ("_s", "seconds"),
];

/// What to write instead, for the reader's message about an unknown key; empty when no known key begins alike.
///
/// The message quotes the unknown key first and then the known ones, in backquotes.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next().filter(|_| message.starts_with("unknown field")) else { return String::new() };
    let unit = |key: &str| UNITS.iter().find(|(ending, _)| key.ends_with(ending)).map(|(_, unit)| *unit);
    let alike = |key: &&str| key.split('_').next() == unknown.split('_').next() && unit(key).is_some();
    match quoted.find(alike) {
        Some(key) => format!("\nunits are part of the key: write {key}, in {}", unit(key).unwrap_or_default()),
        None => String::new(),
    }
}
