//! Flags of `doctor`.

use clap::Args;

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}
