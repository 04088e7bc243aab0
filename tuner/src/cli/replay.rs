//! The flags of `replay`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::values::{percent, ratio, share};
use crate::replay::play::PriorChoice;
use crate::search::strategy::NAMES;

/// Flags of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// TOML that names the table's dimensions, value, cost and noise; see datasets/landscapes
    #[arg(value_name = "LANDSCAPE")]
    pub landscape: PathBuf,
    /// Table (CSV or Parquet) in place of the one that LANDSCAPE names
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Table of the model's values in place of the one that LANDSCAPE names
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Strategies to score
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = NAMES[0], value_parser = PossibleValuesParser::new(NAMES))]
    pub strategy: Vec<String>,
    /// Searches of each strategy; with 0 only stored traces are scored
    #[arg(long, value_name = "COUNT", default_value_t = 25)]
    pub seeds: u64,
    /// Evaluations of one search; by default 200, or all points where there are fewer
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub evals: Option<u64>,
    /// End a search when the predicted remaining gain is at most this, for example 0.5%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub until_gain: Option<f64>,
    /// Simulate whole sessions of tune with a budget of this many runs of the usual point, compared with random draws in the same time: 25,50,100
    #[arg(long, value_name = "RUNS,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(4..),
        conflicts_with_all = ["evals", "until_gain", "traces", "store"])]
    pub session: Vec<u32>,
    /// Prior that the strategies get: none, the model's values, these shuffled among the points, or these reversed
    #[arg(long, value_enum, default_value_t = PriorChoice::None)]
    pub prior: PriorChoice,
    /// Relative standard deviation of every run around its point's mean, in place of the recorded runs
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub cv: Option<f64>,
    /// Share of the points that crash, in boxes of two dimensions, different for each seed
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub crash: f64,
    /// Share of the speed that is lost from the middle of each search on
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub drift: f64,
    /// With --session: standard deviation of a machine speed that changes all the time, with a correlation time of about five
    /// runs of the usual point
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, requires = "session")]
    pub wander: f64,
    /// With --session: candidates can be compared in one process in 1.8 times the time of two runs, with this noise of the ratio, in that
    /// of two runs one after the other; measured were 0.43 on a quiet machine and 0.97 beside other work
    #[arg(long, value_name = "RATIO", value_parser = ratio, requires = "session")]
    pub pair_noise: Option<f64>,
    /// Also score the searches in this file, as --store or another tool wrote them
    #[arg(long, value_name = "FILE")]
    pub traces: Vec<PathBuf>,
    /// Write what was run to this file, a line of JSON for each search
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Write the landscape with its runs as JSON, for another tool to search
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Print the measures as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}
