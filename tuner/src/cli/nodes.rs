//! Flags of `nodes`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::session::engine::programs::launcher_here;

/// Run HPL on every node of the job at the same time; name slow nodes and nodes with less memory or fewer cores.
#[derive(Debug, Args)]
pub struct NodesArgs {
    /// Our xhpl with MPI; by default that of mpi-setup, else the one in the folder of this program or on the search path
    #[arg(long, value_name = "XHPL")]
    pub program: Option<PathBuf>,
    /// Launcher: srun, mpirun, or a launch command with {np} and {threads}; by default the first that works in the job
    #[arg(long, value_name = "NAME|WORDS", value_parser = launcher_here)]
    pub launcher: Option<String>,
    /// Number of nodes on which --launcher starts processes, outside of a job
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..=1_000_000), requires = "launcher")]
    pub nodes: Option<u64>,
    /// Engine parameters: kernels, kernels of single nodes (rank_kernels)
    #[arg(long, value_name = "FILE")]
    pub engine_params: Option<PathBuf>,
    /// Order of the HPL run of each node; by default 4000·√cores, or less if the memory is small
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=200_000))]
    pub n: Option<u64>,
    /// Runs on each node
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub repeats: u64,
    /// By how much a node may be slower than the typical one, in per cent; its fastest link may have 20 % less than the typical
    /// bandwidth, its memory may be 10 % less
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = super::values::tolerance)]
    pub tolerance: f64,
    /// Time limit for the answers of all nodes
    #[arg(long, value_name = "TIME", value_parser = super::values::duration, default_value = "10m")]
    pub limit: Duration,
    /// Folder for nodes.html and nodes.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}
