//! What the command line names, looked at before anything is asked or measured.

use std::path::Path;

use space::KernelChoice;

use super::begin::{power_log, read_cluster};
use crate::cli::TuneArgs;
use crate::earlier;
use crate::exit::bad_input;
use crate::record::folder::RunFolder;
use crate::session::environment::rate_gflops;
use crate::session::input::{read_machine, read_params, read_weights};

/// Reads the files, and looks whether the session's folder is free and its library can be used. `program` is the path of `hpl-tune`.
///
/// # Errors
/// The first that cannot be used.
pub(super) fn check(args: &TuneArgs, program: &Path) -> anyhow::Result<()> {
    args.machine.as_deref().map(read_machine).transpose()?;
    args.simulate.as_deref().map(read_cluster).transpose()?;
    args.weights.as_deref().map(read_weights).transpose()?;
    read_params(args.engine_params.as_deref())?;
    power_log(args)?;
    earlier::read::exist(&args.warm_start).map_err(bad_input)?;
    args.out.as_deref().map_or(Ok(()), RunFolder::is_free)?;
    // A batch script is for other nodes, and with a description the first trials tell as soon.
    let calibrates = args.sbatch.is_none() && args.machine.is_none();
    match &args.blas {
        KernelChoice::Blas(path) if calibrates && rate_gflops(program, path, &[]).is_none() => Err(bad_input(format!(
            "--blas {}: its dgemm cannot be used; give another path, or builtin",
            path.display()
        ))),
        _ => Ok(()),
    }
}
