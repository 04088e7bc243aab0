//! The version of what was written, read before the rest.

use serde::Deserialize;

/// Of a line or a file: what is newer is refused for its version, not for a key unknown here.
#[derive(Deserialize)]
pub(crate) struct Version {
    pub(crate) schema_version: u64,
}
