//! Flags of `compare`.

use std::path::PathBuf;

use clap::Args;

use super::values::tolerance;

/// Flags of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Reference: a run folder (its best from the final run on), an HPL.out, or results of hpl-tune run --result or xhpl --json
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Runs that are judged: the same kinds
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// By how much B may be slower, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = tolerance)]
    pub tolerance: f64,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}
