//! Flags of `balance`.

use clap::{Args, ValueEnum};

/// Divide a product y ← y + A·x between two workers of unequal speed, by their measured times.
#[derive(Debug, Args)]
pub struct BalanceArgs {
    /// Rows of A
    #[arg(long, value_name = "M", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rows: u64,
    /// Columns of A
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    pub cols: u64,
    /// How A is stored
    #[arg(long, value_name = "HOW", value_enum, default_value = "dense")]
    pub format: FormatArg,
    /// Entries in a row of a sparse A, on average
    #[arg(long, value_name = "K", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub per_row: u64,
    /// Threads of the slower worker, which adds one product after the other
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub slow_threads: u64,
    /// Threads of the faster worker, which uses the vector units
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub fast_threads: u64,
    /// How the share is found
    #[arg(long, value_name = "HOW", value_enum, default_value = "fixed-point")]
    pub by: ByArg,
    /// Ratio of the workers' peaks, faster to slower, to start from
    #[arg(long, value_name = "R", default_value_t = 2.0)]
    pub peak_ratio: f64,
    /// Rounds of measurements once the share is found
    #[arg(long, value_name = "K", default_value_t = 31, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub repeats: u64,
    /// Measure nothing: follow two workers that take TO and 1 s for everything and TT s for transfers
    #[arg(long, value_name = "TO,TT", value_parser = two_times)]
    pub simulate: Option<(f64, f64)>,
    /// Print the iterations as JSON
    #[arg(long)]
    pub json: bool,
}

/// Two times in seconds, as `4.22,0.58`.
fn two_times(text: &str) -> Result<(f64, f64), String> {
    let time = |text: &str| text.parse::<f64>().ok().filter(|time_s| time_s.is_finite() && *time_s >= 0.0);
    let times = text.split_once(',').and_then(|(a, b)| Some((time(a)?, time(b)?)));
    times.ok_or_else(|| format!("'{text}' is not a pair of times of at least 0; write it as 4.22,0.58"))
}

/// How a matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// All entries
    Dense,
    /// Compressed rows
    Csr,
}

/// How a share is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// In proportion to the last measured rates
    FixedPoint,
    /// The six states of the Roadrunner scheme
    SixStates,
}
