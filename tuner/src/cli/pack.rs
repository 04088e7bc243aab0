//! Flags of `pack` and `verify`.

use std::path::PathBuf;

use clap::Args;

use super::values::offset;
use crate::pack::Purpose;

/// Pack the result of a session for a list, a competition or an acceptance test.
///
/// The pack is a folder, and the same as a .tar.zst: the unmodified HPL.out of the passed final run with HPL.dat, run.sh, time stamps,
/// facts of the machine, tunables, repeats, the record and SHA-256 sums. Missing facts are listed. Simulated results and
/// estimates from windows are never packed.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// Run folder of a session with a passed final run
    #[arg(value_name = "RUN", required_unless_present_any = ["init", "check"])]
    pub run: Option<PathBuf>,
    /// What it is for
    #[arg(long = "for", value_name = "PURPOSE", value_enum, required_unless_present_any = ["init", "check"])]
    pub purpose: Option<Purpose>,
    /// Folder to make; RUN-PURPOSE by default
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Facts of the site, its system and its power meter that cannot be detected; --init writes such a file
    #[arg(long, value_name = "FILE")]
    pub site: Option<PathBuf>,
    /// Readings of a power meter: CSV with the columns time (RFC 3339 with its zone, or seconds since 1970) and watts, each the mean
    /// since the reading before
    #[arg(long, value_name = "FILE.csv")]
    pub power_log: Option<PathBuf>,
    /// Seconds to add to the times of the meter if its clock differs from that of the host
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = offset, allow_negative_numbers = true, requires = "power_log")]
    pub power_offset: f64,
    /// With --for acceptance: the promised rate in GFLOP/s; the exit code is 6 if the score is below 90 % of it, or if nodes differ
    /// by more than 10 %
    #[arg(long, value_name = "GFLOPS", value_parser = target)]
    pub target: Option<f64>,
    /// Leave out the .tar.zst
    #[arg(long)]
    pub no_archive: bool,
    /// Write a new site file to fill in, with the facts that are detected on this host
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "site.toml",
        conflicts_with_all = ["run", "purpose", "out", "site", "power_log", "target", "no_archive", "check"])]
    pub init: Option<PathBuf>,
    /// List the facts that this pack lacks, and how to give them; exit code 6 if a required one is missing
    #[arg(long, value_name = "DIR",
        conflicts_with_all = ["run", "purpose", "out", "site", "power_log", "target", "no_archive"])]
    pub check: Option<PathBuf>,
}

/// Check that the files of a pack or a run folder agree with each other.
///
/// It checks hashes, residuals, times against operations, HPL.dat against HPL.out, the journal against trials.parquet, and that
/// no simulated or estimated value is given as a measurement. The exit code is 6 if a check fails.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Pack or run folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print failed checks only
    #[arg(long, short)]
    pub quiet: bool,
}

fn target(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("'{text}' is not a rate; give GFLOP/s above 0"))
}
