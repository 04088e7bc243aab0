//! Flags of `mpi-setup`.

use std::path::PathBuf;

use clap::Args;

/// Make an xhpl whose ranks are processes of the MPI library here, by its mpicc: no Rust, no libclang.
#[derive(Debug, Args)]
pub struct MpiSetupArgs {
    /// Compiler wrapper of the MPI library that the launcher belongs to: a name on the search path, or a path
    #[arg(long, value_name = "MPICC", default_value = "mpicc")]
    pub mpicc: PathBuf,
    /// How processes are launched: srun, mpirun, or the words of a launcher with {np} and {threads}; by default what works in the
    /// job, else the mpirun of --mpicc
    #[arg(long, value_name = "NAME|WORDS", conflicts_with = "no_check")]
    pub launcher: Option<String>,
    /// Folder for xhpl and its library, which all nodes see; by default mpi beside this program, where sessions look first
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Leave out the run on two processes: where no job may run, as on many login nodes
    #[arg(long)]
    pub no_check: bool,
}
