//! Flags of `space`.

use std::path::PathBuf;

use clap::Args;

/// The values that a search would try, with the reason for each dimension.
#[derive(Debug, Args)]
pub struct SpaceArgs {
    /// TOML file with a table for each dimension that is restricted, fixed or extended; its keys are values, fixed, without, min, max
    #[arg(long, value_name = "FILE")]
    pub space: Option<PathBuf>,
    /// Matrix order; by default the largest that the free memory allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub n: Option<u64>,
    /// Number of ranks, P × Q; searched by default
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub ranks: Option<u64>,
    /// Threads of each rank; searched by default
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..))]
    pub threads: Option<u64>,
    /// The space of another HPL: netlib, hpcc, rochpl, nvidia, rochpl-mxp, nvidia-mxp, intel, cuda, hip, or the profile in a file
    #[arg(long, value_name = "NAME|FILE")]
    pub engine: Option<String>,
    /// For ranks of unequal speed: also their weights, near those in this file
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    pub weights: Option<PathBuf>,
    /// TOML with rank_kernels, and with a section "weights" in place of --weights
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    pub engine_params: Option<PathBuf>,
    /// Use the memory and cores in this machine.toml, and the speeds of its ranks if a survey wrote it
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}
