//! `xhpl`: a drop-in replacement of Netlib's program, on in-process ranks or the processes of an MPI job.

mod dat_text;
mod engine;
mod error;
mod output;
mod pair;
mod printed;
mod records;
mod result_file;
mod sample;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use crate::Watch;
use crate::machine::affinity;
use crate::machine::host;
use crate::measure::survey::Survey;
use crate::plan::windows::{Windows, covers_owner_cycle};
use crate::program::memory::check_memory;
use crate::program::{self, ProgressLines, Ranks, RunError, RunOptions, Runner};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use space::dat::HplDat;
use space::out::{self, Tally};
use space::rules::RuleError;
use space::{Candidate, KernelChoice};

use self::dat_text::dat_text;
use self::engine::EngineArgs;
use self::error::XhplError;
use self::output::Out;
use self::pair::PairArgs;
use self::printed::{report, skipped};
use self::records::{RecordArgs, Records, Watching};
use self::result_file::{is_asked_for, write_last};

/// What `--version` says.
static VERSION: LazyLock<String> =
    LazyLock::new(|| program::long_version(env!("CARGO_PKG_VERSION"), env!("HPL_BUILT_FROM")));

/// High Performance Linpack on this machine.
///
/// Reads HPL.dat in the current folder and runs all its combinations. The P×Q ranks of a run are threads of this process; with
/// MPI (built in, or the library of `hpl-tune mpi-setup` in the program's folder) and started by mpirun, they are the first P×Q
/// processes of the job. The output has the format of Netlib's xhpl 2.3; lines 3 and 4 of HPL.dat name its destination.
///
/// Exit codes: 0 all runs completed, passed or not; 1 a run was aborted; 2 wrong usage or input; 5 output not written.
#[derive(Parser)]
#[command(name = "xhpl", version, long_version = VERSION.as_str())]
struct Args {
    #[command(flatten)]
    engine: EngineArgs,
    /// Run without the memory check
    #[arg(long)]
    force: bool,
    /// Print progress lines on stdout, in the format of Netlib's program; on stderr with --json
    #[arg(long)]
    progress: bool,
    /// Print one JSON document per run on stdout, one per line, instead of Netlib's text
    ///
    /// The documents are those of `hpl-tune run --result`, with the time per phase, step and rank; a run that was
    /// skipped for lack of memory has a line with its candidate and the reason. Lines 3 and 4 of HPL.dat are ignored.
    #[arg(long)]
    json: bool,
    /// Measure only these steps of each run and predict the time of the whole: FIRST:STEPS,... or auto
    ///
    /// Steps count from 0, one per panel. Each window starts on a newly generated trailing matrix, and the matrix after it
    /// is checked. The text is not in Netlib's format, and a predicted rate is no HPL score. With --json, one line per run,
    /// as written by `hpl-tune run --windows --result`.
    #[arg(long, value_name = "WINDOWS", conflicts_with_all = ["progress", "phases", "timeline"])]
    windows: Option<Windows>,
    /// Survey the ranks of the first run instead of running it, K times: rates of each rank while all ranks work, and of the
    /// links between them, as JSON for `hpl-tune survey --program`
    #[arg(long, value_name = "K", conflicts_with_all = ["windows", "progress", "phases", "timeline"])]
    survey: Option<NonZeroUsize>,
    /// Print the host and cores of each rank of the job as JSON, with --threads threads per rank, and exit
    #[arg(long, conflicts_with_all = ["windows", "survey", "result", "progress", "phases", "timeline"])]
    report_bindings: bool,
    /// Write the result of the last run as JSON to this file, in the format of `hpl-tune run --result`
    #[arg(long, value_name = "FILE", conflicts_with = "survey")]
    result: Option<PathBuf>,
    #[command(flatten)]
    pair: PairArgs,
    #[command(flatten)]
    records: RecordArgs,
}

impl Args {
    /// Whether files are to be written, too.
    fn asks_for_files(&self) -> bool {
        self.result.is_some() || self.records.asks_for_files()
    }
}

/// The flags of the program, for its page of the manual.
pub fn command() -> clap::Command {
    Args::command()
}

/// The program; returns its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = tell() {
        return ExitCode::from(code);
    }
    match program::enter(as_rank_0) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            note(&error.to_string());
            ExitCode::from(2)
        }
    }
}

/// Prints help or version, where these are asked for and this is the only process: MPI, whose start takes seconds and may fail, is not
/// needed for them. Returns the exit code.
fn tell() -> Option<u8> {
    let asked = Args::try_parse().err().filter(|error| !error.use_stderr())?;
    program::refuse_mpi(|name| std::env::var(name).ok()).ok()?;
    // An error of writing it cannot be reported anywhere.
    let _ = asked.print();
    Some(0)
}

/// The program on rank 0, with the ranks that it can use; returns its exit code.
fn as_rank_0(ranks: &Ranks) -> u8 {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help or a usage error; an error of writing it cannot be reported anywhere.
            let _ = error.print();
            if names_a_file(&error) {
                note(
                    "HPL.dat is read in the current folder, and by no other name; start xhpl in the folder of HPL.dat",
                );
            }
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let Err(failure) = xhpl(&args, ranks) else { return 0 };
    let code = failure.exit_code(args.asks_for_files());
    if code != 0 {
        note(&failure.to_string());
    }
    code
}

/// Whether a usage error is about a word that is no flag, as the name of a file.
fn names_a_file(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'))
}

/// Prints a line on stderr; errors are ignored, as stderr may be closed.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "xhpl: {text}");
}

fn xhpl(args: &Args, ranks: &Ranks) -> Result<(), XhplError> {
    if args.report_bindings {
        return Out::stdout().write(&json(&ranks.bindings(args.engine.threads())));
    }
    ranks.refuse_separate_processes(|name| std::env::var(name).ok())?;
    let dat = HplDat::parse(&read_dat()?)?;
    let engine = args.engine.read()?;
    let candidates: Vec<Candidate> = dat.runs().iter().map(|hpl| engine.candidate(hpl, ranks)).collect();
    check(&candidates, ranks, args.force)?;
    program::refuse_emulation(engine.device(), std::env::vars_os())?;
    if let Some(windows) = &args.windows {
        sample::check(windows, &candidates)?;
    }
    let reference = args.pair.read(&candidates, &engine, ranks)?;
    if let Some(reference) = &reference {
        program::refuse_emulation(reference.engine.device, std::env::vars_os())?;
    }
    result_file::check(args.result.as_deref())?;
    let runner = Runner::new(engine.kernels())?;
    if let Some(repeats) = args.survey {
        return survey(&candidates, repeats.get(), ranks, &runner, args.force);
    }
    let mut records = Records::open(&args.records, candidates.last().map(|last| &last.hpl))?;
    let mut out = if args.json { Out::stdout() } else { Out::open(&dat)? };
    describe(&runner, &candidates, ranks, engine.kernels());
    if let Some(reference) = reference {
        let options = RunOptions { threshold: dat.threshold, force: args.force, watch: &() };
        if !(covers_owner_cycle(&candidates[0].hpl) && covers_owner_cycle(&reference.hpl)) {
            note(
                "a window is shorter than the cycle of panel owners, lcm(P, Q) steps: what other owners change is not in the ratio",
            );
        }
        let result = runner.measure_pair_on(ranks, [&candidates[0], &reference], &options)?;
        let written = write_last(args.result.as_deref(), true, |path| program::write_pair(path, &result));
        out.write(&if args.json { json(&result) } else { out::pair(&result) })?;
        return Ok(written?);
    }
    if let Some(windows) = &args.windows {
        return sample::measure_all(windows, &dat, &candidates, ranks, &runner, args, &mut out);
    }
    run_all(&dat, &candidates, ranks, &runner, args, &mut out, &mut records)
}

/// Surveys the ranks of the first run; prints the result on stdout.
fn survey(
    candidates: &[Candidate],
    repeats: usize,
    ranks: &Ranks,
    runner: &Runner,
    force: bool,
) -> Result<(), XhplError> {
    let Some(first) = candidates.first() else { return Ok(()) };
    let found = Survey { kernels: runner.kernels().0, ranks: runner.survey_on(ranks, first, repeats, force)? };
    Out::stdout().write(&json(&found))
}

/// The text of the HPL.dat in the current folder.
fn read_dat() -> Result<String, XhplError> {
    match dat_text(Path::new("HPL.dat")) {
        Ok(text) => text.ok_or(XhplError::TooLong),
        Err(source) => {
            let folder = std::env::current_dir().map_or_else(|_| ".".to_owned(), |folder| folder.display().to_string());
            Err(XhplError::Unreadable { folder, source })
        }
    }
}

/// Checks all runs before the first one.
fn check(candidates: &[Candidate], ranks: &Ranks, force: bool) -> Result<(), XhplError> {
    for same_size in candidates.chunk_by(|a, b| a.hpl.ranks() == b.hpl.ranks()) {
        let free = ranks.free_memory(same_size[0].hpl.ranks());
        for candidate in same_size {
            let memory = || if force { Ok(()) } else { check_memory(candidate, &free) };
            let rules = candidate.check().map_err(RunError::from);
            rules.and_then(|()| ranks.check_grid(candidate)).and_then(|()| memory()).map_err(
                |source| match line_of(&source) {
                    Some(line) => XhplError::Refused { line, source },
                    None => XhplError::Run(source),
                },
            )?;
        }
    }
    Ok(())
}

/// The line of HPL.dat with the refused parameter; `None` if it is not in HPL.dat.
fn line_of(error: &RunError) -> Option<usize> {
    match error {
        RunError::TooLarge { .. } | RunError::Rule(RuleError::TooLarge { .. }) => Some(6),
        RunError::Processes { .. } => Some(11),
        RunError::Rule(RuleError::TooDeep { .. }) => Some(25),
        RunError::Padded { .. } => Some(31),
        _ => None,
    }
}

/// Prints on stderr the kernels, and warnings about cores.
fn describe(runner: &Runner, candidates: &[Candidate], available: &Ranks, choice: &KernelChoice) {
    let (name, why) = runner.kernels();
    note(&format!("kernels: {name}"));
    if *choice == KernelChoice::Auto {
        note(why);
    }
    for candidate in candidates {
        let (ranks, threads) = (candidate.hpl.ranks(), candidate.engine.threads);
        if available.oversubscribed(ranks, threads) {
            note(&format!("{ranks} ranks × {threads} threads have to share cores: expect a low rate"));
            break;
        }
    }
    if let Some((core, error)) = affinity::refused(&host::facts().cores_allowed) {
        note(&format!(
            "the system refuses to bind threads to core {core} ({error}): threads are not pinned, expect a lower rate"
        ));
    }
}

/// Runs all candidates one after the other, each printed as soon as it has ended.
fn run_all(
    dat: &HplDat,
    candidates: &[Candidate],
    ranks: &Ranks,
    runner: &Runner,
    args: &Args,
    out: &mut Out,
    records: &mut Records,
) -> Result<(), XhplError> {
    let lines = ProgressLines::new(if args.json { Out::stderr().sink } else { Out::stdout().sink });
    let mut tally = Tally::default();
    let text = !args.json;
    if text {
        out.write(&out::header(dat))?;
    }
    let mut headed = false;
    for (index, candidate) in candidates.iter().enumerate() {
        let is_last = index + 1 == candidates.len();
        let progress = args.progress.then_some(&lines as &dyn Watch);
        let phases = args.json || records.wants_phases() || is_asked_for(args.result.as_deref(), is_last);
        let watch = &Watching { progress, spans: is_last && records.wants_spans(), phases };
        let options = RunOptions { threshold: dat.threshold, force: args.force, watch };
        match runner.run_on(ranks, candidate, &options) {
            Ok(run) => {
                let written =
                    write_last(args.result.as_deref(), is_last, |path| program::write_result(path, &run.result));
                // As in Netlib's program between the progress of a run and its result.
                if text && (!headed || dat.threshold > 0.0) {
                    out.write(&out::heading())?;
                    headed = true;
                }
                out.write(&if text { report(&run, dat.threshold, &mut tally) } else { json(&run.result) })?;
                records.add(&run, is_last)?;
                written?;
            }
            // The memory was free at the start, but other processes use it now, or the system refuses it, or that of a device is too
            // small, which only the run finds. As in Netlib's program, the next run follows.
            Err(error) if error.lacks_memory() && !is_asked_for(args.result.as_deref(), is_last) => {
                tally.skipped += 1;
                out.write(&skipped(candidate, &error, args.json))?;
                records.skip(is_last)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if text { out.write(&out::footer(&tally, dat.threshold)) } else { Ok(()) }
}

/// A result as a line of JSON.
fn json(result: &impl serde::Serialize) -> String {
    serde_json::to_string(result).expect("all map keys of a result are strings") + "\n"
}

#[cfg(test)]
mod tests;
