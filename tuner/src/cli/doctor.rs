//! Flags of `doctor`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
    /// Look for the sensors of power below this folder, in place of /; for tests
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub power_root: PathBuf,
}
