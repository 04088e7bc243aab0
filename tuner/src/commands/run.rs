//! `hpl-tune run`: one HPL.dat, once, with the built-in engine. Every trial is exactly this command.

use std::io::{self, Write};
use std::path::Path;

use hpl::backend::device::FoundGpus;
use hpl::plan::windows::Windows;
use hpl::program::files::check_writable;
use hpl::program::{
    ProgressLines, RunError, RunOptions, local_offset_s, measure_candidate, measure_pair, refuse_emulation, refuse_mpi,
    run_candidate, write_pair, write_result, write_windows,
};
use space::dat::HplDat;
use space::{Candidate, EngineParams, KernelChoice, RunResult};

use crate::cli::RunArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::search::progress::say;
use crate::session::input::{read_dat, read_params_of, read_weights, single, single_run};

/// Runs one candidate, prints it as HPL does, and writes `result.json` when asked.
///
/// # Errors
/// Bad input, a run that could not be made, or a result that could not be written.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    refuse_mpi(|name| std::env::var(name).ok()).map_err(bad_input)?;
    let dat = read_dat(&args.dat)?;
    let hpl = single(&dat, &args.dat)?;
    let candidate = Candidate { hpl, engine: read_engine(args, hpl.ranks())? };
    refuse_emulation(candidate.engine.device, std::env::vars_os()).map_err(bad_input)?;
    if let Some(path) = &args.result {
        check_writable(path).map_err(RecordError::write(path))?;
    }
    let lines = ProgressLines::new(std::io::stderr());
    let options =
        RunOptions { threshold: dat.threshold, force: args.force, watch: if args.progress { &lines } else { &() } };
    if let Some(windows) = &args.windows {
        return sample(args, &candidate, windows, &options);
    }
    if let Some(reference) = &args.reference {
        let hpl = single_run(reference)?;
        let engine = read_reference(args, hpl.ranks(), &candidate.engine.kernels)?;
        let reference = Candidate { hpl, engine };
        refuse_emulation(reference.engine.device, std::env::vars_os()).map_err(bad_input)?;
        return compare(args, &candidate, &reference, &options);
    }
    let result = run_candidate(&candidate, &options).map_err(broken)?;
    let written = write(args, |path| write_result(path, &result));
    print(&dat, &result)?;
    written?;
    if let (Some(peak), Some(share)) = (result.fma_peak_gflops, result.fma_peak_share) {
        say(&format!("{share:.2} of the {peak:.1} GFLOP/s that all threads reach with independent multiply-adds"));
    }
    let checked = dat.threshold > 0.0;
    Ok(if checked && !result.passed { exit::RESIDUAL } else { exit::DONE })
}

/// Measures windows of the run in place of the whole.
fn sample(args: &RunArgs, candidate: &Candidate, windows: &Windows, options: &RunOptions<'_>) -> anyhow::Result<u8> {
    let result = measure_candidate(candidate, windows, options).map_err(broken)?;
    let written = write(args, |path| write_windows(path, &result));
    let code = print_text(&space::out::windows(&result), result.passed)?;
    written.map(|()| code)
}

/// The engine parameters of the reference, a run of `ranks` ranks. Kernels are loaded once for both.
fn read_reference(args: &RunArgs, ranks: usize, kernels: &KernelChoice) -> anyhow::Result<EngineParams> {
    let path = args.reference_params.as_deref().or(args.engine_params.as_deref());
    let engine = read_params_of(path, ranks)?;
    match path {
        Some(path) if engine.kernels != *kernels => Err(bad_input(format!(
            "{}: kernels differ from those of --engine-params, and one process has one library; compare them by whole runs",
            path.display()
        ))),
        _ => Ok(engine),
    }
}

/// Measures windows of the run and of a reference in turn.
fn compare(
    args: &RunArgs,
    candidate: &Candidate,
    reference: &Candidate,
    options: &RunOptions<'_>,
) -> anyhow::Result<u8> {
    let result = measure_pair(candidate, reference, options).map_err(broken)?;
    let written = write(args, |path| write_pair(path, &result));
    let code = print_text(&space::out::pair(&result), result.passed())?;
    written.map(|()| code)
}

/// Writes the file of `--result`, if the flag is given. Where that fails, what the run has found is still to be printed.
fn write(args: &RunArgs, result: impl FnOnce(&Path) -> io::Result<()>) -> anyhow::Result<()> {
    match &args.result {
        Some(path) => Ok(result(path).map_err(RecordError::write(path))?),
        None => Ok(()),
    }
}

/// Prints what windows have shown; the exit code.
fn print_text(text: &str, passed: bool) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(if passed { exit::DONE } else { exit::RESIDUAL })
}

/// Why there is no result: the run broke off, or the input is bad.
fn broken(error: RunError) -> anyhow::Error {
    match error {
        RunError::Panicked { .. } | RunError::Engine { .. } => anyhow::Error::new(error),
        error => bad_input(error),
    }
}

/// The engine parameters, with the weights of their own file, and split and device of the flags where there are any.
fn read_engine(args: &RunArgs, ranks: usize) -> anyhow::Result<EngineParams> {
    let mut engine = read_params_of(args.engine_params.as_deref(), ranks)?;
    if let Some(path) = &args.weights {
        engine.weights = read_weights(path)?;
    }
    engine.split = args.split.unwrap_or(engine.split);
    engine.device = args.device.map_or(engine.device, FoundGpus::choose);
    engine.settle_fact_blocks(args.fact_blocks);
    Ok(engine)
}

fn print(dat: &HplDat, result: &RunResult) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(space::out::report(dat, std::slice::from_ref(result), local_offset_s).as_bytes())?;
    Ok(out.flush()?)
}
