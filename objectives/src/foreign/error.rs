//! Errors of a profile.

/// Why a profile is invalid; each message names the key and the way out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// Invalid TOML, a missing or unknown key, or a value of the wrong type; the text contains the position.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A profile of a newer program.
    #[error("schema_version is {found}, this program knows {known}; use a newer hpl-tune")]
    Newer {
        /// The version found.
        found: u32,
        /// The version known.
        known: u32,
    },
    /// A placeholder with an unknown name.
    #[error("{place}: unknown placeholder {{{name}}}; known are {known}; a brace is written {{{{ or }}}}")]
    Placeholder {
        /// The key.
        place: String,
        /// The text between the braces.
        name: String,
        /// The known names.
        known: String,
    },
    /// A brace without its partner.
    #[error("{place}: '{text}' has an unmatched brace; a brace is written {{{{ or }}}}")]
    Brace {
        /// The key.
        place: String,
        /// The text.
        text: String,
    },
    /// An invalid regular expression.
    #[error("patterns.{key}: {reason}")]
    Pattern {
        /// The key.
        key: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// A pattern without a group that is needed.
    #[error("patterns.{key} needs the group (?<{group}>…)")]
    Group {
        /// The key.
        key: &'static str,
        /// The missing group, or the groups of which one is needed.
        group: &'static str,
    },
    /// A dimension that HPL does not have.
    #[error("obeys: unknown dimension '{name}'; known are {known}")]
    Obeys {
        /// The name found.
        name: String,
        /// The known names.
        known: String,
    },
    /// An invalid dimension of the engine.
    #[error("[[dimension]] {name}: {problem}")]
    Dimension {
        /// Its name.
        name: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// Another invalid value.
    #[error("{key} {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong, and the way out.
        problem: String,
    },
}
