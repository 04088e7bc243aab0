//! Flags of `pack` and `verify`.

use std::path::PathBuf;

use clap::Args;

use crate::pack::Purpose;

/// Pack the score of a session for a list, a competition or an acceptance.
///
/// The pack is a folder, and the same as a .tar.zst: the unmodified HPL.out of the passed final run with HPL.dat, run.sh, time stamps,
/// facts of the machine, tunables, repeats, the record and SHA-256 sums. What is not known is missing, and named. Nothing that was
/// simulated or estimated from windows is packed.
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
    /// What cannot be found out of the site, its system and its power meter, as --init writes it
    #[arg(long, value_name = "FILE")]
    pub site: Option<PathBuf>,
    /// Readings of a power meter: CSV with the columns time (RFC 3339 with its zone, or seconds since 1970) and watts, each the mean
    /// since the reading before
    #[arg(long, value_name = "FILE.csv")]
    pub power_log: Option<PathBuf>,
    /// Seconds to add to the times of the meter, where its clock is not that of the host
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = offset, allow_negative_numbers = true, requires = "power_log")]
    pub power_offset: f64,
    /// What was promised, in GFLOP/s; with --for acceptance the exit code is 6 where the score is below 90 % of it, or nodes differ by
    /// more than 10 %
    #[arg(long, value_name = "GFLOPS", value_parser = target)]
    pub target: Option<f64>,
    /// Leave out the .tar.zst
    #[arg(long)]
    pub no_archive: bool,
    /// Write a site file to fill in, with what this host tells, to this new file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "site.toml",
        conflicts_with_all = ["run", "purpose", "out", "site", "power_log", "target", "no_archive", "check"])]
    pub init: Option<PathBuf>,
    /// Name what is missing in this pack, and how it is given; exit code 6 when that is needed
    #[arg(long, value_name = "DIR",
        conflicts_with_all = ["run", "purpose", "out", "site", "power_log", "target", "no_archive"])]
    pub check: Option<PathBuf>,
}

/// Look for what does not hold in a pack or a run folder.
///
/// Hashes, residuals, times against operations, HPL.dat against HPL.out, the journal against trials.parquet, and that nothing simulated
/// or estimated is taken for a measurement. The exit code is 6 when something does not hold.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Pack or run folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// No output but what does not hold
    #[arg(long, short)]
    pub quiet: bool,
}

fn offset(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && seconds.abs() < 1e9);
    seconds.ok_or_else(|| format!("'{text}' is no number of seconds"))
}

fn target(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("'{text}' is no rate; give GFLOP/s above 0"))
}
