//! Flags of `completions`.

use clap::Args;
use clap_complete::Shell;

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell; its manual says where it looks for them
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}
