//! Flags of `space`.

use std::path::PathBuf;

use clap::Args;

/// What a search would look at, with the reason for each dimension.
#[derive(Debug, Args)]
pub struct SpaceArgs {
    /// TOML with a table for each dimension that is narrowed, fixed or widened; its keys are values, fixed, without, min, max
    #[arg(long, value_name = "FILE")]
    pub space: Option<PathBuf>,
    /// Matrix order; by default the largest that the free memory allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub n: Option<u64>,
    /// Only grids of this many ranks
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub ranks: Option<u64>,
    /// Only this many threads per rank
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..))]
    pub threads: Option<u64>,
    /// The space of another HPL: xhpl, netlib, hpcc, rochpl, nvidia, intel, or the profile in a file
    #[arg(long, value_name = "NAME|FILE")]
    pub engine: Option<String>,
    /// Ranks of unequal speed: the weights, too, around those of this file
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    pub weights: Option<PathBuf>,
    /// TOML with rank_kernels, and with a section "weights" in place of --weights
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    pub engine_params: Option<PathBuf>,
    /// A machine.toml: the memory and cores that it describes, and the speeds of its ranks where a survey wrote it
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}
