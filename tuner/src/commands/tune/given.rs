//! What the flags of a session say, and the files that they name.

use std::path::Path;
use std::time::Duration;

use hpl::machine::host::{HostFacts, facts};
use jiff::Timestamp;
use objectives::simulated::SimulatedCluster;
use space::KernelChoice;
use space::machine::Machine;

use crate::cli::{ObjectiveName, TuneArgs};
use crate::cluster::allocation::Allocation;
use crate::earlier::{self, Earlier};
use crate::exit::bad_input;
use crate::power::MeterLog;
use crate::record::Objective;
use crate::record::decode::Decoder;
use crate::record::folder::RunFolder;
use crate::search::budget::SMALLEST_BUDGET_S;
use crate::search::progress::say;
use crate::session::environment::rate_gflops;
use crate::session::input::{read_machine, read_params, read_weights};
use crate::session::unequal::RankInput;

/// Reads the files, and looks whether the session's folder is free and its library can be used, before anything is asked or measured. `program`
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

/// What a new session is given: by its flags, by the files that they name, by its job and this host.
pub(super) struct Given {
    /// Seconds that were asked for.
    pub(super) asked_s: f64,
    /// Seconds of the session, which ends before its job.
    pub(super) budget_s: f64,
    /// The cluster that is simulated, and the text of its file.
    pub(super) simulated: Option<(SimulatedCluster, String)>,
    /// The job, unless a cluster is simulated.
    pub(super) job: Option<Allocation>,
    /// This host.
    pub(super) facts: HostFacts,
    /// When the session begins.
    pub(super) now: Timestamp,
    /// The description of `--machine` with its text.
    pub(super) machine: Option<(Machine, String)>,
    /// The runs of `--warm-start`.
    pub(super) earlier: Vec<Earlier>,
    /// The file of the meter.
    pub(super) power_log: Option<MeterLog>,
    /// What is made as large as possible.
    pub(super) objective: Objective,
}

impl Given {
    /// Reads all of it, with a warning of each earlier run that is left out.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub(super) fn read(args: &TuneArgs, budget: Option<Duration>) -> anyhow::Result<Self> {
        let asked_s = budget_s(budget)?;
        let simulated = args.simulate.as_deref().map(read_cluster).transpose()?;
        let job = Allocation::or_reached(args.nodes, args.launcher.as_deref())?.filter(|_| simulated.is_none());
        let budget_s = job.as_ref().map_or(Ok(asked_s), |job| job.budget_s(asked_s))?;
        let (facts, now) = (facts(), Timestamp::now());
        let machine = args.machine.as_deref().map(read_machine).transpose()?;
        let found = earlier::read::read(&args.warm_start, &Decoder::child()?).map_err(bad_input)?;
        found.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        let power_log = power_log(args)?;
        let objective = objective(args)?;
        let earlier = found.runs;
        Ok(Self { asked_s, budget_s, simulated, job, facts, now, machine, earlier, power_log, objective })
    }

    /// The cluster that is simulated.
    pub(super) fn cluster(&self) -> Option<&SimulatedCluster> {
        self.simulated.as_ref().map(|(cluster, _)| cluster)
    }

    /// Cores of this host.
    pub(super) fn cores(&self) -> usize {
        self.facts.cores_allowed.len()
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
