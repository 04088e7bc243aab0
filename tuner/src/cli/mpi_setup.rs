//! Flags of `mpi-setup`.

use std::path::PathBuf;

use clap::Args;

use crate::session::engine::programs::launcher_here;

/// Build an xhpl for the MPI library of this machine, with its mpicc; neither Rust nor libclang is needed.
#[derive(Debug, Args)]
pub struct MpiSetupArgs {
    /// Compiler wrapper of the MPI library that the launcher belongs to: a name on the search path, or a path
    #[arg(long, value_name = "MPICC", default_value = "mpicc")]
    pub mpicc: PathBuf,
    /// Launcher: srun, mpirun, or a launch command with {np} and {threads}; by default the first that works in the job, else the
    /// mpirun of --mpicc
    #[arg(long, value_name = "NAME|WORDS", value_parser = launcher_here, conflicts_with = "no_check")]
    pub launcher: Option<String>,
    /// Folder for xhpl and its library, which all nodes see; by default mpi in the folder of this program, where sessions look first
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Skip the test run on two processes, for hosts where no job may run, such as login nodes
    #[arg(long)]
    pub no_check: bool,
}
