//! Flags of `man`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages; it is made where it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
