//! What the flags of a session say, and the files that they name.

use std::path::Path;
use std::time::Duration;

use objectives::simulated::SimulatedCluster;
use space::KernelChoice;

use crate::cli::{ObjectiveName, TuneArgs};
use crate::cluster::allocation::Allocation;
use crate::earlier;
use crate::exit::bad_input;
use crate::power::MeterLog;
use crate::record::Objective;
use crate::record::folder::RunFolder;
use crate::search::budget::SMALLEST_BUDGET_S;
use crate::session::environment::rate_gflops;
use crate::session::input::{read_machine, read_params, read_weights};
use crate::session::unequal::RankInput;

/// Before anything is asked or measured, reads the files, and looks whether the session's folder is free and its library can be used. `program`
/// is the path of `hpl-tune`.
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

/// Seconds of the budget, enough for a session.
///
/// # Errors
/// No budget, or one that is too short, with the shortest.
pub(super) fn budget_s(budget: Option<Duration>) -> anyhow::Result<f64> {
    let budget_s = budget
        .ok_or_else(|| bad_input("--budget is missing: give the time for everything, as --budget 10m"))?
        .as_secs_f64();
    if budget_s < SMALLEST_BUDGET_S {
        return Err(bad_input(format!(
            "--budget {budget_s} s is too short for a calibration, a baseline and a verified run; give at least 30s"
        )));
    }
    Ok(budget_s)
}

/// Whether the session may be on the processors of this node or on its GPUs: no flag names an engine, or what one of the two does not have.
pub(super) fn leaves_engine_open(args: &TuneArgs, job: Option<&Allocation>) -> bool {
    let files = [&args.program, &args.machine, &args.space, &args.weights, &args.engine_params, &args.simulate];
    let numbers = [args.ranks, args.threads, args.power_limit];
    let words = [&args.engine, &args.launcher];
    let gflops = matches!(args.objective, ObjectiveName::Gflops);
    let one_node = !args.local && args.groups.is_none() && args.spares == 0 && job.is_none_or(|job| job.nodes() == 1);
    files.iter().all(|file| file.is_none())
        && numbers.iter().all(|number| number.is_none())
        && words.iter().all(|word| word.is_none())
        && args.blas == KernelChoice::Auto
        && args.vary.is_empty()
        && gflops
        && one_node
}

/// What the session makes as large as possible.
///
/// # Errors
/// A power limit of another objective than the rate.
pub(super) fn objective(args: &TuneArgs) -> anyhow::Result<Objective> {
    match (args.objective, args.power_limit) {
        (ObjectiveName::Gflops, None) => Ok(Objective::Gflops),
        (ObjectiveName::Gflops, Some(power_limit_w)) => Ok(Objective::GflopsWithin { power_limit_w }),
        (ObjectiveName::GflopsPerWatt, None) => Ok(Objective::GflopsPerWatt),
        (ObjectiveName::GflopsPerWatt, Some(_)) => Err(bad_input(
            "--power-limit is a limit of --objective gflops; leave it out, or --objective gflops-per-watt",
        )),
    }
}

/// The file of the meter, by a path that holds in any folder.
///
/// # Errors
/// One that is not a meter's.
pub(super) fn power_log(args: &TuneArgs) -> anyhow::Result<Option<MeterLog>> {
    let Some(path) = &args.power_log else { return Ok(None) };
    let meter = MeterLog { path: std::path::absolute(path)?, offset_s: args.power_offset };
    meter.check().map_err(bad_input)?;
    Ok(Some(meter))
}

/// A simulated cluster and the text of its file.
///
/// # Errors
/// A file that cannot be read, or describes none.
pub(super) fn read_cluster(path: &Path) -> anyhow::Result<(SimulatedCluster, String)> {
    let bad = |problem: String| bad_input(format!("--simulate {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let cluster = SimulatedCluster::parse(&text).map_err(|error| bad(error.to_string()))?;
    Ok((cluster, text))
}

/// What the flags say of the ranks.
pub(super) fn rank_input(args: &TuneArgs) -> RankInput<'_> {
    RankInput { weights: args.weights.as_deref(), engine_params: args.engine_params.as_deref(), ranks: args.ranks }
}
