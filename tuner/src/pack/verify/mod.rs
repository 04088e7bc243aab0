//! What does not hold in a pack or in a run folder.
//!
//! The hashes show what was changed since; where those were made anew, too, the output, HPL.dat, the journal, trials.parquet and
//! what the pack says must still agree with each other and with the arithmetic of HPL. Who forges all of them alike is not found.

mod claims;
mod findings;
mod output;
mod packed;
mod record;
mod run_folder;

use std::path::Path;

pub use findings::{Checked, Finding};

use super::manifest;
use crate::error::RecordError;
use crate::record::decode::Decoder;
use crate::record::folder::RunFolder;

/// Verifies the pack or run folder at `root`; Parquet is decoded by `decoder`.
///
/// # Errors
/// [`RecordError`] for a folder that is neither.
pub fn verify(root: &Path, decoder: &Decoder) -> Result<Checked, RecordError> {
    if root.join(manifest::NAME).is_file() || root.join(super::folder::SUMS).is_file() {
        return Ok(packed::verify(root, decoder));
    }
    Ok(run_folder::verify(&RunFolder::open(root)?, decoder))
}
