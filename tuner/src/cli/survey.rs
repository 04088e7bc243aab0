//! Flags of `survey`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::session::engine::programs::launcher_here;

/// Measure the speed of each rank while all ranks compute, and the links between them.
#[derive(Debug, Args)]
pub struct SurveyArgs {
    /// Ranks, as threads of this process unless --program is given; by default one per core
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub ranks: Option<u64>,
    /// An xhpl built with MPI, whose processes are surveyed in place of threads of this process
    #[arg(long, value_name = "XHPL", requires = "ranks")]
    pub program: Option<PathBuf>,
    /// Launcher: none, mpirun (the default), mpiexec, srun, flux, aprun, or a launch command with {np} and {threads}
    #[arg(long, value_name = "NAME|WORDS", value_parser = launcher_here, requires = "program")]
    pub launcher: Option<String>,
    /// Time limit for the answers of the processes of --program
    #[arg(long, value_name = "TIME", value_parser = super::values::duration, default_value = "10m", requires = "program")]
    pub limit: Duration,
    /// Engine parameters: threads of a rank (1 by default), kernels, kernels of single ranks
    #[arg(long, value_name = "FILE")]
    pub engine_params: Option<PathBuf>,
    /// Order of the short HPL run of each rank
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..=200_000))]
    pub n: u64,
    /// Blocking factor of the short runs
    #[arg(long, value_name = "NB", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub nb: u64,
    /// Measurements of each kind
    #[arg(long, value_name = "K", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub repeats: u64,
    /// Calibrated machine.toml of one of the fastest nodes: its phases, rates and layers go into the description, so that
    /// `hpl-tune weights` can predict by the timeline
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Machine description to write, for `hpl-tune weights --machine`
    #[arg(long, value_name = "FILE", value_parser = super::values::file_to_write())]
    pub out: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}
