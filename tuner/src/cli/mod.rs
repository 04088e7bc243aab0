//! The command line: flags and verbs, parsed and nothing else.

pub mod balance;
pub mod compare;
pub mod completions;
pub mod doctor;
#[cfg(test)]
mod flags;
pub mod man;
pub mod mpi_setup;
pub mod nodes;
pub mod pack;
pub mod predict;
pub mod replay;
pub mod space;
pub mod survey;
mod values;
pub mod watch;
pub mod weights;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use ::space::{DeviceRequest, KernelChoice, Share};
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use hpl::plan::windows::Windows;

use self::balance::BalanceArgs;
use self::compare::CompareArgs;
use self::completions::CompletionsArgs;
use self::doctor::DoctorArgs;
use self::man::ManArgs;
use self::mpi_setup::MpiSetupArgs;
use self::nodes::NodesArgs;
use self::pack::{PackArgs, VerifyArgs};
use self::predict::{MachinesArgs, PredictArgs};
use self::replay::ReplayArgs;
use self::space::SpaceArgs;
use self::survey::SurveyArgs;
pub use self::values::ObjectiveName;
pub(crate) use self::values::duration;
use self::values::{file_to_write, kernel_choice, offset, percent, watts};
use self::watch::WatchArgs;
use self::weights::WeightsArgs;
use crate::record::GroupSizes;
use crate::search::strategy::NAMES;
use crate::session::engine::programs::launcher_here;
use crate::session::settings::Vary;

/// What `--version` says.
static VERSION: LazyLock<String> =
    LazyLock::new(|| hpl::program::long_version(env!("CARGO_PKG_VERSION"), env!("HPL_BUILT_FROM")));

/// Autotuner for High Performance Linpack.
///
/// Without a command it tunes: it measures this machine, searches HPL's parameters within the time budget, and writes the best
/// HPL.dat, the command that runs it, the verified score and every trial into a run folder.
#[derive(Debug, Parser)]
#[command(name = "hpl-tune", version, long_version = VERSION.as_str(), args_conflicts_with_subcommands = true)]
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
    Tune(Box<TuneArgs>),
    /// Run one HPL.dat once with the built-in engine; exit code 3 when the residual fails
    Run(RunArgs),
    /// Measure this machine's kernel and message rates into machine.toml
    Calibrate(CalibrateArgs),
    /// Look at this machine before a session: what is there, what holds runs back, and what to do
    ///
    /// Each line says what was found, whether it is good, and what to do where it is not, with what that is worth where it was measured
    /// or follows from the numbers. It changes nothing and takes a few seconds. The exit code is 0, with advice as without.
    Doctor(DoctorArgs),
    /// Predict a run on a described machine, with its breakdown and pictures
    Predict(PredictArgs),
    /// List the published machine descriptions that come with the program
    Machines(MachinesArgs),
    /// Print the summary of a run folder again and rewrite its report
    Report(ReportArgs),
    /// Compare two sets of runs; exit code 6 if the second one is slower
    ///
    /// It compares passed runs of the same N, one configuration on each side, by the ratio B / A of their medians, or by pairs
    /// where the runs were made in turn. With six runs or more of each the ratio has an exact interval, and B is slower if the
    /// whole interval is below 1 by more than the tolerance. With fewer runs B is slower if all its runs are below all runs of
    /// A by more than the tolerance. The exit code is 3 if the residual of a compared configuration failed, 2 if nothing compares.
    Compare(CompareArgs),
    /// Watch a session in a terminal while it works, or a finished one; only reads its run folder
    Watch(WatchArgs),
    /// Pack the result of a session for a list, a competition or an acceptance test
    Pack(PackArgs),
    /// Check that the files of a pack or a run folder agree with each other; exit code 6 if a check fails
    Verify(VerifyArgs),
    /// Print what would be searched on this machine, and why
    Space(SpaceArgs),
    /// Score search strategies, and the stored searches of other tools, on a recorded landscape
    Replay(ReplayArgs),
    /// Measure the speed of each rank while all ranks compute, and the links between them
    Survey(SurveyArgs),
    /// Run HPL on every node of the job at the same time; name slow nodes and nodes with less memory or fewer cores
    Nodes(NodesArgs),
    /// Build an xhpl for the MPI library of this machine, with its mpicc
    MpiSetup(MpiSetupArgs),
    /// Compute the weights of unequal nodes by every method
    Weights(WeightsArgs),
    /// Divide a product y ← y + A·x between two workers of unequal speed
    Balance(BalanceArgs),
    /// Print the completions of these commands for a shell
    Completions(CompletionsArgs),
    /// Write the pages of the manual: hpl-tune, each of its commands, xhpl
    Man(ManArgs),
}

impl Cli {
    /// What `arguments` ask for.
    ///
    /// # Errors
    /// Arguments that the program does not have or that exclude each other.
    pub fn of(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments).map_err(|mut error| {
            if error.kind() == ErrorKind::ArgumentConflict && error.to_string().contains("--resume") {
                let tip = "a session that is continued keeps its flags and its budget; for more time, start another one with \
                           --warm-start DIR";
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        })
    }
}

/// Flags of `tune`.
#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Wall-clock time for everything, final run included: 90s, 2m, 4h, 1h30m; at least 30s. On a terminal it is asked for
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "resume")]
    pub budget: Option<Duration>,
    /// Folder for the results; runs/HOST-DATE-TIME by default
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Let all users of this machine read that folder; by default only you can (mode 0700)
    #[arg(long, conflicts_with = "resume")]
    pub shared_folder: bool,
    /// Continue the session in this run folder, with the flags it was started with
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Matrix order N to tune for; by default the largest one that memory and budget allow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub n: Option<u64>,
    /// Number of ranks, P × Q; searched by default
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub ranks: Option<u64>,
    /// Threads of each rank; searched by default
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub threads: Option<u64>,
    /// Kernels of our engine: auto, builtin, or the path of a BLAS library
    #[arg(long, value_name = "auto|builtin|PATH", default_value = "auto", value_parser = kernel_choice, conflicts_with = "resume")]
    pub blas: KernelChoice,
    /// Tune another HPL: netlib, hpcc, rochpl, nvidia, rochpl-mxp, nvidia-mxp, intel, or the profile in a file; cuda, or hip (which has never run on hardware): our engine
    /// on the GPUs of this node; hpl: our engine on its processors. By default ours, on the GPUs if short runs there are faster than the processors
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "resume")]
    pub engine: Option<String>,
    /// Path of our xhpl, built for the MPI library of --launcher; by default the one that mpi-setup built. With --engine: path
    /// of the other HPL's program, in place of the one in its profile
    #[arg(long, value_name = "PATH", conflicts_with = "resume")]
    pub program: Option<PathBuf>,
    /// Run the ranks as MPI processes, started by mpirun, mpiexec, srun, flux, aprun, or a launch command with {np} and
    /// {threads}. The program is our xhpl, or the other HPL of --engine
    #[arg(long, value_name = "NAME|WORDS", value_parser = launcher_here, conflicts_with = "resume")]
    pub launcher: Option<String>,
    /// Keep the last K nodes of the job, or of --nodes, to replace a node that answers no more; without them the session goes on with
    /// the nodes that are left
    #[arg(long, value_name = "K", default_value_t = 0, conflicts_with_all = ["resume", "local", "engine", "simulate"])]
    pub spares: u64,
    /// Sizes of the groups of nodes that run trials at the same time before all nodes do, as 1,4 or 1,4,16; none for trials on all nodes alone.
    /// By default single nodes from four on, and larger groups where they are worth their time
    #[arg(long, value_name = "SIZES", conflicts_with_all = ["resume", "local", "engine"])]
    pub groups: Option<GroupSizes>,
    /// Use this node alone when the Slurm, PBS or LSF job has several nodes; by default our engine runs on all of them, with the
    /// first launcher that works
    #[arg(long, conflicts_with_all = ["resume", "launcher", "program", "engine"])]
    pub local: bool,
    /// Simulate the session on the cluster that this file describes: HPL does not run, nothing is measured, and the time is simulated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine", "launcher", "program", "local", "dry_run", "sbatch",
        "nodes", "machine", "weights", "engine_params", "blas"])]
    pub simulate: Option<PathBuf>,
    /// Print the command, environment and input of the first run without running it; exit code 2 if the session could not start
    #[arg(long, conflicts_with_all = ["resume", "sbatch", "json"])]
    pub dry_run: bool,
    /// Write a Slurm batch script of this session to a new file, and run nothing
    #[arg(long, value_name = "FILE", conflicts_with = "resume", value_parser = file_to_write())]
    pub sbatch: Option<PathBuf>,
    /// Number of nodes that the script of --sbatch requests; outside of a job, number of nodes on which --launcher starts processes
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with_all = ["resume", "local"])]
    pub nodes: Option<u64>,
    /// Use the rates in this machine.toml instead of measuring them; with --launcher or --engine also its nodes and accelerators
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub machine: Option<PathBuf>,
    /// TOML file that restricts, fixes or extends the searched values; see hpl-tune space
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub space: Option<PathBuf>,
    /// For ranks of unequal speed: search their weights as well, near those in this file, as `hpl-tune weights --out` writes them
    ///
    /// A machine.toml of `hpl-tune survey` has the same effect if its ranks differ by more than 2 %.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine"])]
    pub weights: Option<PathBuf>,
    /// TOML file with rank_kernels, the kernels of each rank where they differ, and with [weights] in place of --weights
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "engine"])]
    pub engine_params: Option<PathBuf>,
    /// Start from earlier runs: run folders, journal.jsonl or trials.parquet files, HPL.out files, of this or other machines
    ///
    /// They influence what is tried first, and are never part of the results. Runs of this machine: their rate differences are
    /// used. Runs of other machines: only their ranking. They are ignored once the runs of this session are predicted better
    /// without them.
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with = "resume")]
    pub warm_start: Vec<PathBuf>,
    /// What is made as large as possible: the rate (gflops), or the rate by the mean power of the whole run (gflops-per-watt), which needs a
    /// source of power that can be read; see hpl-tune doctor
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ObjectiveName::Gflops, hide_possible_values = true, conflicts_with = "resume")]
    pub objective: ObjectiveName,
    /// With --objective gflops: the best rate among the candidates whose mean power of the core phase is at most this, as 800W, 10kW, 2.5MW;
    /// needs a source of power as well
    #[arg(long, value_name = "POWER", value_parser = watts, conflicts_with = "resume")]
    pub power_limit: Option<u64>,
    /// Search strategy: a Gaussian process with the model as its prior mean (bayes); Nelder–Mead; uniform without replacement (random);
    /// or local search
    #[arg(long, value_name = "NAME", default_value = NAMES[0], value_parser = PossibleValuesParser::new(NAMES), conflicts_with = "resume")]
    pub strategy: String,
    /// End the search when the predicted gain of the best candidate over the best tested one is at most this (with 95 %
    /// probability), for example 0.5%; the comparisons and the final run follow
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "resume")]
    pub until_gain: Option<f64>,
    /// Seed of all random choices
    #[arg(long, value_name = "SEED", default_value_t = 0, conflicts_with = "resume")]
    pub seed: u64,
    /// Take the power of the runs from the file that a power meter writes during the session, in place of the sensors of this node: CSV
    /// with the columns time (RFC 3339 with its zone, or seconds since 1970) and watts, each the mean since the reading before
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["resume", "simulate"])]
    pub power_log: Option<PathBuf>,
    /// Seconds to add to the times of the meter if its clock differs from that of this host
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = offset, allow_negative_numbers = true, requires = "power_log",
        conflicts_with = "resume")]
    pub power_offset: f64,
    /// Also search settings of this node: the highest clock of its processors (clock, by cpufreq; of all nodes by --cpu-freq where srun starts
    /// the runs), the power limit of its packages (power-cap, by powercap) or of its accelerators (gpu-power-cap, by NVML). They need the right
    /// to change them, and are put back at the end
    #[arg(
        long,
        value_name = "NAME,...",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        conflicts_with = "resume"
    )]
    pub vary: Vec<Vary>,
    /// Look for the sensors of power and the settings of the node below this folder, in place of /; for tests
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub power_root: PathBuf,
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
    /// Engine parameters (threads, huge pages, kernels); without threads the cores are divided among the ranks
    #[arg(long, value_name = "FILE")]
    pub engine_params: Option<PathBuf>,
    /// Weights of process rows and columns, as `hpl-tune weights --out` writes them
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The device that holds the matrix: none, cuda, hip (which has never run on hardware), auto (a GPU if there is one), or reference,
    /// which is simulated on the host to test the engine [default: none]
    #[arg(long, value_name = "DEVICE", conflicts_with = "reference")]
    pub device: Option<DeviceRequest>,
    /// Split update for P > 1: fraction of the local columns in the right section, at least 0 and below 1
    #[arg(long, value_name = "F", conflicts_with = "reference")]
    pub split: Option<Share>,
    /// Blocks of threads of the device that factor a panel where P = 1; 0: the threads of the host factor it [default: 32 with cuda]
    #[arg(long, value_name = "B", conflicts_with = "reference")]
    pub fact_blocks: Option<usize>,
    /// Write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Print progress lines on standard error
    #[arg(long)]
    pub progress: bool,
    /// Run even if the available memory is smaller than needed
    #[arg(long)]
    pub force: bool,
    /// Measure only these steps of the run and predict the time of the whole: FIRST:STEPS,... or auto
    ///
    /// Steps count from 0, one per panel. The matrix after each window is checked. The result marks every number as measured or
    /// predicted, and its format differs from that of a whole run.
    #[arg(long, value_name = "WINDOWS", conflicts_with = "progress")]
    pub windows: Option<Windows>,
    /// Compare with the run of this HPL.dat, by windows of both in turn
    ///
    /// Both have the same N. Each window is measured before and after its counterpart, in one process and the same memory,
    /// so that a change of the machine's speed affects both. The result is the ratio of the predicted rates of the whole runs.
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
    #[arg(long, value_name = "FILE", default_value = "machine.toml", value_parser = file_to_write())]
    pub out: PathBuf,
    /// Time for the measurements, between 2s and 60s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub budget: Duration,
    /// Kernels: auto, builtin, or the path of a BLAS library
    #[arg(long, value_name = "auto|builtin|PATH", default_value = "auto", value_parser = kernel_choice)]
    pub blas: KernelChoice,
    /// No output but warnings and errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print what is measured now on standard output, a line for each; for a session that shows it
    #[arg(long, hide = true, requires = "quiet")]
    pub tell: bool,
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
    use std::os::unix::ffi::OsStringExt;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// It was advised to name a launcher, which is refused, too.
    #[test]
    fn a_simulated_cluster_has_its_own_nodes() {
        let words = ["hpl-tune", "--budget", "1h", "--simulate", "cluster.toml", "--nodes", "4"];
        let refused = Cli::of(words.map(OsString::from)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ArgumentConflict, "{refused}");
        assert!(Cli::of(words[..5].iter().map(OsString::from)).is_ok());
    }

    /// A session in a folder with such a name had no calibration: its child refused the path of the file.
    #[test]
    fn files_to_write_may_have_any_bytes_in_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsString::from_vec(b"a 'b\xff.toml".to_vec()));
        let words = ["hpl-tune", "calibrate", "--out"].map(OsString::from);
        let cli = Cli::of(words.into_iter().chain([path.clone().into_os_string()])).unwrap();
        let Some(Command::Calibrate(args)) = cli.command else { panic!("another command") };
        assert_eq!(args.out, path);
    }
}
