//! What does not hold in a pack or in a run folder.
//!
//! The hashes show what was changed since; where those were made anew, too, the output, HPL.dat, the journal, trials.parquet and
//! what the pack says must still agree with each other and with the arithmetic of HPL. Who forges all of them alike is not found.

mod output;
mod packed;
mod record;
mod run_folder;

use std::fmt;
use std::path::Path;

use super::manifest;
use crate::error::RecordError;
use crate::record::decode::Decoder;
use crate::record::folder::RunFolder;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to what was verified.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub way_out: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.file, self.problem, self.way_out)
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// What was verified: `pack for top500` or `run folder`.
    pub what: String,
    /// What was compared, a clause each.
    pub looked_at: Vec<String>,
    /// What does not hold, none where all does.
    pub findings: Vec<Finding>,
}

impl Checked {
    fn find(&mut self, file: impl Into<String>, problem: impl Into<String>, way_out: impl Into<String>) {
        self.findings.push(Finding { file: file.into(), problem: problem.into(), way_out: way_out.into() });
    }

    fn looked(&mut self, what: impl Into<String>) {
        self.looked_at.push(what.into());
    }
}

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
