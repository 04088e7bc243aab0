//! Flags of `weights`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::predict::positive;

/// Compute the weights of unequal nodes by every method.
#[derive(Debug, Args)]
pub struct WeightsArgs {
    /// Machine description with the nodes and their speeds: a file, or the name of a published machine
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "measure")]
    pub machine: Option<String>,
    /// Find the weights of this HPL.dat by measuring windows of its run on this machine, ranks as threads
    #[arg(long, value_name = "HPL.dat", conflicts_with_all = ["machine", "p", "q", "n", "nb", "memory", "combine", "message_unit", "speeds", "method", "node_perf", "ranks", "json"])]
    pub measure: Option<PathBuf>,
    /// Engine parameters of the measured run
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub engine_params: Option<PathBuf>,
    /// Process rows, one process per node
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u64).range(1..))]
    pub p: Option<u64>,
    /// Process columns; P·Q is the number of nodes. Without P and Q all nodes are in one row
    #[arg(long, value_name = "Q", value_parser = clap::value_parser!(u64).range(1..))]
    pub q: Option<u64>,
    /// Matrix order; by default each method's own best
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub n: Option<u64>,
    /// Blocking factor
    #[arg(long, value_name = "NB", default_value_t = 192, value_parser = clap::value_parser!(u64).range(1..))]
    pub nb: u64,
    /// Speeds of the groups of nodes in GFLOP/s, in place of those of the description
    #[arg(long, value_name = "S,...", value_delimiter = ',', allow_negative_numbers = true)]
    pub speeds: Option<Vec<f64>>,
    /// How memory limits the shares: by a cap, or by the factor of the SLEM paper, which favours nodes with much memory
    #[arg(long, value_name = "HOW", value_enum, default_value = "cap")]
    pub memory: MemoryArg,
    /// How the shares of the nodes in a row or column become one
    #[arg(long, value_name = "HOW", value_enum, default_value = "mean")]
    pub combine: CombineArg,
    /// SLEM: cost of one communicated word, in flops
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub message_unit: f64,
    /// Method whose weights the files hold
    #[arg(long, value_name = "NAME", value_enum, default_value = "model")]
    pub method: MethodArg,
    /// Write the weights for `--weights` of run and xhpl
    #[arg(long, value_name = "FILE", value_parser = super::values::file_to_write())]
    pub out: Option<PathBuf>,
    /// Write the weights as HPL-GPU's node-perf.dat
    #[arg(long, value_name = "FILE", value_parser = super::values::file_to_write())]
    pub node_perf: Option<PathBuf>,
    /// Distribute this many equal ranks over the nodes instead, for programs without weights
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub ranks: Option<u64>,
    /// Write the ranks of each node as an Open MPI host file
    #[arg(long, value_name = "FILE", requires = "ranks")]
    pub hostfile: Option<PathBuf>,
    /// Draw the owner of each block and the load of each node, with equal weights and with these
    #[arg(long, value_name = "SVG")]
    pub picture: Option<PathBuf>,
    /// Print the weights as JSON
    #[arg(long)]
    pub json: bool,
}

/// What memory does to shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    /// A node takes at most what it can hold
    Cap,
    /// Shares times the node's part of all memory
    Paper,
}

/// How shares of nodes become those of rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CombineArg {
    /// Their mean
    Mean,
    /// The smallest, as HPL-GPU does
    Min,
}

/// How nodes get their shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// Each node the same
    Equal,
    /// As the speeds
    Proportional,
    /// Fastest mixing of the graph of work and messages
    Slem,
    /// Equal times of computing and messages
    Model,
}
