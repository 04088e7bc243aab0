//! `hpl-tune __simulated`: answers in the place of `xhpl`, on a simulated cluster.

use std::ffi::OsString;
use std::io::{Write, stdout};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use hpl::plan::windows::Windows;
use objectives::real::TRIAL_VARIABLE;
use objectives::simulated::{Asked, Clock, LIMIT_VARIABLE, RunClock, SimulatedCluster, SimulatedRun};
use space::dat::HplDat;
use space::{Candidate, EngineParams};

use crate::exit;

/// The flags of `xhpl` that a session gives, and the cluster.
#[derive(Debug, Parser)]
struct Args {
    /// TOML of the cluster
    #[arg(long)]
    cluster: PathBuf,
    #[arg(long)]
    ranks: NonZeroUsize,
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
    /// The nodes that the ranks are kept to
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<String>,
    #[arg(long)]
    report_bindings: bool,
    #[arg(long)]
    engine_params: Option<PathBuf>,
    #[arg(long)]
    survey: Option<NonZeroUsize>,
    #[arg(long)]
    windows: Option<Windows>,
    #[arg(long)]
    reference: Option<PathBuf>,
    #[arg(long)]
    reference_params: Option<PathBuf>,
    #[arg(long)]
    result: Option<PathBuf>,
}

/// Answers as the words `args` ask.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(std::iter::once("__simulated".into()).chain(args)) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match answer(&args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "simulated: {error:#}");
            ExitCode::from(exit::BAD_INPUT)
        }
    }
}

fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    let path = &args.cluster;
    let named = || path.display().to_string();
    let cluster = SimulatedCluster::parse(&std::fs::read_to_string(path).with_context(named)?).with_context(named)?;
    if args.report_bindings {
        let bindings =
            cluster.bindings(args.ranks.get(), args.threads.get(), &args.nodes).map_err(anyhow::Error::msg)?;
        return printed(&bindings);
    }
    let clock = Clock::read(path).with_context(named)?;
    let candidate = candidate(Path::new("HPL.dat"), args.engine_params.as_deref())?;
    if let Some(repeats) = args.survey {
        return printed(&cluster.survey(&candidate, repeats.get(), clock).map_err(anyhow::Error::msg)?);
    }
    let Some(result) = &args.result else { bail!("a simulated run needs --result, the file of its result") };
    // Runs at the same time differ in their luck by their trials.
    let clock = Clock { runs: trial().unwrap_or(clock.runs), ..clock };
    let reference = match &args.reference {
        Some(dat) => Some(self::candidate(dat, args.reference_params.as_deref())?),
        None => None,
    };
    let asked = match (&reference, &args.windows) {
        (Some(reference), _) => Asked::InTurnWith(reference),
        (None, Some(windows)) => Asked::Windows(windows),
        (None, None) => Asked::Whole,
    };
    let powered =
        if args.nodes.is_empty() { cluster.clone() } else { cluster.part(&args.nodes).map_err(anyhow::Error::msg)?.0 };
    let answer = match args.nodes[..] {
        [] => cluster.run(&candidate, asked, clock),
        ref nodes => cluster.run_on(nodes, &candidate, asked, clock),
    };
    let answer = answer.map_err(anyhow::Error::msg)?;
    let limit_s = std::env::var(LIMIT_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::INFINITY);
    let timed_out = answer.wall_s() > limit_s;
    let simulated_wall_s = answer.wall_s().min(limit_s);
    if !timed_out {
        answer.write(result)?;
    }
    let power = powered.power(&candidate, &answer).filter(|_| !timed_out);
    RunClock { simulated_wall_s, timed_out, power }.write(Path::new("."))?;
    match answer {
        _ if timed_out => Ok(ExitCode::FAILURE),
        SimulatedRun::BreaksOff(after_s) => {
            writeln!(std::io::stderr(), "simulated: a rank has died after {after_s:.0} s")?;
            Ok(ExitCode::FAILURE)
        }
        _ => {
            writeln!(stdout(), "simulated: no HPL has run")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The number of the trial in whose folder it runs.
fn trial() -> Option<u64> {
    Path::new(&std::env::var_os(TRIAL_VARIABLE)?).file_name()?.to_str()?.parse().ok()
}

/// The run that the HPL.dat `path` describes.
fn candidate(path: &Path, engine_params: Option<&Path>) -> anyhow::Result<Candidate> {
    let named = || path.display().to_string();
    let dat = HplDat::parse(&std::fs::read_to_string(path).with_context(named)?).with_context(named)?;
    let engine = match engine_params {
        Some(path) => toml::from_str(&std::fs::read_to_string(path)?).with_context(|| path.display().to_string())?,
        None => EngineParams::default(),
    };
    let Some(hpl) = dat.runs().first().copied() else { bail!("{}: no run in it", path.display()) };
    Ok(Candidate { hpl, engine })
}

fn printed(answer: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    writeln!(stdout(), "{}", serde_json::to_string(answer)?)?;
    Ok(ExitCode::SUCCESS)
}
