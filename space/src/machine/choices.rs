//! `[choices]`: what a published model chose where it leaves something open.

use serde::{Deserialize, Serialize};

/// The choices of the model that was published with the figures of a description, where its source states them or they are
/// assumed; they stand where a user names no others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedChoices {
    /// NB of the measured runs that state none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nb: Option<usize>,
    /// Layers that a run is charged for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layering>,
}

/// Which layers of a description a run is charged for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layering {
    /// All that it uses.
    #[default]
    All,
    /// A rank's memory and the layer that joins all ranks.
    Ends,
}
