//! The command line: flags and verbs, parsed and nothing else.

pub mod balance;
#[cfg(test)]
mod flags;
pub mod mpi_setup;
pub mod nodes;
pub mod pack;
pub mod predict;
pub mod space;
pub mod survey;
mod values;
pub mod weights;

use std::path::PathBuf;
use std::time::Duration;

use ::space::KernelChoice;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use hpl::plan::windows::Windows;

use self::balance::BalanceArgs;
use self::mpi_setup::MpiSetupArgs;
use self::nodes::NodesArgs;
use self::pack::{PackArgs, VerifyArgs};
use self::predict::{MachinesArgs, PredictArgs};
use self::space::SpaceArgs;
use self::survey::SurveyArgs;
use self::values::{duration, kernel_choice, percent, share};
use self::weights::WeightsArgs;
use crate::replay::play::PriorChoice;
use crate::search::strategy::NAMES;

/// Autotuner for High Performance Linpack.
///
/// Without a verb it tunes: measures this machine, searches HPL's parameters within the budget, and leaves the best
/// HPL.dat, the command that runs it, a verified score and every trial in a run folder.
#[derive(Debug, Parser)]
#[command(name = "hpl-tune", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; tune when absent.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of tune.
    #[command(flatten)]
    pub tune: TuneArgs,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search for the best HPL.dat within a time budget (the default verb)
    Tune(TuneArgs),
    /// Run one HPL.dat once with the built-in engine; exit code 3 when the residual fails
    Run(RunArgs),
    /// Measure this machine's kernel and message rates into machine.toml
    Calibrate(CalibrateArgs),
    /// Predict a run on a described machine, with its breakdown and pictures
    Predict(PredictArgs),
    /// List the published machine descriptions that come with the program
    Machines(MachinesArgs),
    /// Print the summary of a run folder again and rewrite its report
    Report(ReportArgs),
    /// Pack the score of a session for a list, a competition or an acceptance
    Pack(PackArgs),
    /// Look for what does not hold in a pack or a run folder; exit code 6 when something does not
    Verify(VerifyArgs),
    /// Print what would be searched on this machine, and why
    Space(SpaceArgs),
    /// Score search strategies, and the stored searches of other tools, on a recorded landscape
    Replay(ReplayArgs),
    /// Measure what each rank reaches while all work, with the links between them
    Survey(SurveyArgs),
    /// Run HPL on every node of the job at once, and say which are slow or have less than the others
    Nodes(NodesArgs),
    /// Make an xhpl whose ranks are processes of the MPI library here, by its mpicc
    MpiSetup(MpiSetupArgs),
    /// Weights of unequal nodes by every method, side by side
    Weights(WeightsArgs),
    /// Share a product y ← y + A·x between two workers of unequal speed
    Balance(BalanceArgs),
}

/// Flags of `tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Wall-clock time for everything, final run included: 90s, 2m, 4h, 1h30m; at least 30s
    #[arg(long, value_name = "TIME", value_parser = duration, required_unless_present = "resume", conflicts_with = "resume")]
    pub budget: Option<Duration>,
    /// Folder for the results; runs/HOST-DATE-TIME by default
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Let everybody on this machine read that folder; by default only you may (mode 0700)
    #[arg(long, conflicts_with = "resume")]
    pub shared_folder: bool,
    /// Go on with the session in this run folder, with the flags it was started with
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Matrix order to tune for; by default the largest safe one that the budget allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub n: Option<u64>,
    /// Only grids of this many ranks
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub ranks: Option<u64>,
    /// Only this many threads per rank
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub threads: Option<u64>,
    /// Kernels of our engine: auto, builtin, or the path of a BLAS library
    #[arg(long, value_name = "auto|builtin|PATH", default_value = "auto", value_parser = kernel_choice, conflicts_with = "resume")]
    pub blas: KernelChoice,
    /// Tune another HPL: netlib, hpcc, rochpl, nvidia, intel, or the profile in a file
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "resume")]
    pub engine: Option<String>,
    /// Our xhpl with the MPI library of --launcher, by default that of mpi-setup; with --engine the other HPL's program, instead of
    /// the one that its profile names
    #[arg(long, value_name = "PATH", conflicts_with = "resume")]
    pub program: Option<PathBuf>,
    /// Run the ranks as processes of MPI jobs, started by mpirun, mpiexec, srun, flux, aprun, or the words of a launcher with
    /// {np} and {threads}: those of our xhpl, or of the other HPL of --engine
    #[arg(long, value_name = "NAME|WORDS", conflicts_with = "resume")]
    pub launcher: Option<String>,
    /// Keep to this node, where a job of Slurm, PBS or LSF has several; otherwise our engine uses all of them, as processes of the
    /// launcher that works there
    #[arg(long, conflicts_with_all = ["resume", "launcher", "program", "engine"])]
    pub local: bool,
    /// Play the session on the simulated cluster that this file describes, on a clock of its own: nothing is run or measured
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine", "launcher", "program", "local", "dry_run", "sbatch",
        "machine", "weights", "engine_params", "blas"])]
    pub simulate: Option<PathBuf>,
    /// Print the command, environment and input of the first run, and do nothing
    #[arg(long, conflicts_with_all = ["resume", "sbatch"])]
    pub dry_run: bool,
    /// Write a Slurm batch script of this session to a new file, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub sbatch: Option<PathBuf>,
    /// Nodes of the job that --sbatch asks for; outside of a job, nodes that --launcher reaches
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with_all = ["resume", "local"])]
    pub nodes: Option<u64>,
    /// Use the rates of this machine.toml instead of measuring; with --launcher or --engine also the nodes or accelerators
    /// that the runs have
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub machine: Option<PathBuf>,
    /// TOML that narrows, fixes or widens what is searched; see hpl-tune space
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub space: Option<PathBuf>,
    /// Ranks of unequal speed: search the weights, too, around those of this file, as `hpl-tune weights --out` writes them
    ///
    /// Without it a machine.toml of `hpl-tune survey` whose ranks differ by more than 2 % does the same.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine"])]
    pub weights: Option<PathBuf>,
    /// TOML with rank_kernels, the kernels of each rank where they differ, and with [weights] in place of --weights
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine"])]
    pub engine_params: Option<PathBuf>,
    /// Start from earlier runs: run folders, journal.jsonl or trials.parquet files, HPL.out files, of this or other machines
    ///
    /// They only say what to try first: of this machine the differences between runs count, of others their order, and
    /// when they mislead they are dropped. They are no part of the results.
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with = "resume")]
    pub warm_start: Vec<PathBuf>,
    /// How the next point is chosen: a Gaussian process with the model as its mean, refined by Nelder–Mead; Nelder–Mead
    /// alone; uniform without replacement; or local search
    #[arg(long, value_name = "NAME", default_value = NAMES[0], value_parser = PossibleValuesParser::new(NAMES), conflicts_with = "resume")]
    pub strategy: String,
    /// End the search when its runs let expect, at 95 %, that the best point gains no more than this over the best known one, as 0.5%; the
    /// comparisons and the final run follow at once
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "resume")]
    pub until_gain: Option<f64>,
    /// Seed of all random choices
    #[arg(long, value_name = "SEED", default_value_t = 0, conflicts_with = "resume")]
    pub seed: u64,
    /// How results are shown
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// HPL.dat that names exactly one run
    #[arg(long, value_name = "FILE", default_value = "HPL.dat")]
    pub dat: PathBuf,
    /// Engine parameters (threads, huge pages, kernels); without threads the cores are spread over the ranks
    #[arg(long, value_name = "FILE")]
    pub engine_params: Option<PathBuf>,
    /// Weights of process rows and columns, as `hpl-tune weights --out` writes them
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Print a progress line now and then on standard error
    #[arg(long)]
    pub progress: bool,
    /// Run even when memory looks too small
    #[arg(long)]
    pub force: bool,
    /// Measure only these steps of the run and predict the time of the whole: FIRST:STEPS,... or auto
    ///
    /// Steps count from 0, one per panel. What each window leaves is checked; the result says of every number whether it
    /// was measured or predicted, and cannot be read as that of a whole run.
    #[arg(long, value_name = "WINDOWS", conflicts_with = "progress")]
    pub windows: Option<Windows>,
    /// Compare with the run that this HPL.dat names, by windows of both in turn
    ///
    /// Both have the same N. Each window is measured before and after its counterpart, in one process and the same memory,
    /// so that a machine whose speed changes slows both. The result is the ratio of the rates that whole runs are
    /// predicted to have.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["progress", "windows", "weights"])]
    pub reference: Option<PathBuf>,
    /// Engine parameters of --reference; those of --engine-params when absent
    #[arg(long, value_name = "FILE", requires = "reference")]
    pub reference_params: Option<PathBuf>,
}

/// Flags of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "machine.toml")]
    pub out: PathBuf,
    /// Time to measure for, between 2s and 60s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub budget: Duration,
    /// Kernels: auto, builtin, or the path of a BLAS library
    #[arg(long, value_name = "auto|builtin|PATH", default_value = "auto", value_parser = kernel_choice)]
    pub blas: KernelChoice,
    /// No output but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Flags of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

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
    /// End a search when its runs let expect that no more than this is left to gain, as 0.5%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub until_gain: Option<f64>,
    /// Play whole sessions, as tune runs them, with a budget of this many runs of the usual point, beside random draws of the
    /// same time: 25,50,100
    #[arg(long, value_name = "RUNS,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(4..),
        conflicts_with_all = ["evals", "until_gain", "traces", "store"])]
    pub session: Vec<u32>,
    /// What strategies are told beforehand: nothing, the model's values, these shuffled among the points, or upside down
    #[arg(long, value_enum, default_value_t = PriorChoice::None)]
    pub prior: PriorChoice,
    /// Relative standard deviation of every run around its point's mean, in place of the recorded runs
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub cv: Option<f64>,
    /// Share of the points that crash, in boxes of two dimensions, others for each seed
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub crash: f64,
    /// Share of the speed that is lost from the middle of each search on
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub drift: f64,
    /// With --session: standard deviation of a speed that changes all the time, forgotten after about five runs of the usual point
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, requires = "session")]
    pub wander: f64,
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

/// How results are shown.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress, only the summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Say why each trial was chosen
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
