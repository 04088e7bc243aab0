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

use super::error::PackError;
use super::manifest;
use crate::record::decode::Decoder;
use crate::record::folder::RunFolder;

/// Verifies the pack or run folder at `root`; Parquet is decoded by `decoder`.
///
/// # Errors
/// [`PackError::AtWork`] for the run folder of a session that goes on, whose files need not agree yet; [`PackError::Record`] for a folder that
/// is neither.
pub fn verify(root: &Path, decoder: &Decoder) -> Result<Checked, PackError> {
    if root.join(manifest::NAME).is_file() || root.join(super::folder::SUMS).is_file() {
        return Ok(packed::verify(root, decoder));
    }
    let folder = RunFolder::open(root)?;
    let _lock = folder.lock_shared().map_err(|_| PackError::AtWork { folder: root.to_path_buf() })?;
    Ok(run_folder::verify(&folder, decoder))
}
