//! What can be wrong with a profile.

/// Why a text is no profile of an engine; each message names the key and the way out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// No TOML, a key that is missing or unknown, or a value of the wrong type; the text says where.
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
    /// A text with a hole that nothing fills.
    #[error("{place}: unknown placeholder {{{name}}}; known are {known}; a brace is written {{{{ or }}}}")]
    Placeholder {
        /// The key.
        place: String,
        /// What stands between the braces.
        name: String,
        /// What may stand there.
        known: String,
    },
    /// A brace without its partner.
    #[error("{place}: '{text}' has a brace without its partner; a brace is written {{{{ or }}}}")]
    Brace {
        /// The key.
        place: String,
        /// The text.
        text: String,
    },
    /// A regular expression that is none.
    #[error("patterns.{key}: {reason}")]
    Pattern {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
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
        /// What stands there.
        name: String,
        /// What may stand there.
        known: String,
    },
    /// A dimension of the engine that makes no sense.
    #[error("[[dimension]] {name}: {problem}")]
    Dimension {
        /// Its name.
        name: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// Another value that cannot be.
    #[error("{key} {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong, and the way out.
        problem: String,
    },
}
