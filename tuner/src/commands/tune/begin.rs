//! How a session begins: what is asked for, where it can run, and its folder.

use std::path::Path;
use std::time::Duration;

use objectives::real::Extent;
use objectives::simulated::SimulatedCluster;
use objectives::slurm_clock::SlurmClock;
use space::machine::{Machine, Node};
use space::{EngineParams, KernelChoice, SettingLevels, Unequal};

use super::given::{Given, leaves_engine_open, rank_input};
use super::placed::{PlacedEngine, check_groups, enough_ranks, on_simulated, placed, uneven};
use super::settle::spec;
use super::varied::{RunPlace, varied};
use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::commands::space::read_limits;
use crate::earlier;
use crate::error::RecordError;
use crate::exit::bad_input;
use crate::record::folder::{Lock, RunFolder, replace_file};
use crate::record::session::{SESSION_SCHEMA, Session};
use crate::search::interrupt::Interrupt;
use crate::search::progress::say;
use crate::session::core_kinds;
use crate::session::engine::Engine;
use crate::session::faster;
use crate::session::gpus;
use crate::session::power::{self, SessionNodes};
use crate::session::room::{Here, Room, Wanted};
use crate::session::settings;

/// A new session of `program` in a new folder.
///
/// # Errors
/// Bad input; nothing is left then.
pub(super) fn begin(
    args: &TuneArgs,
    budget: Option<Duration>,
    program: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<(RunFolder, Lock, Session)> {
    let given = Given::read(args, budget)?;
    let chosen = chosen(args, &given, program, interrupt)?;
    let settled = settled(args, &given, chosen, program)?;
    warn_of_job(args, &given, &settled.placed.engine);
    warn_of_cores(&given, &settled);
    let (folder, lock) = new_folder(args, &given)?;
    let begun = session(args, &given, &settled, &folder).and_then(|session| {
        if args.shared_folder {
            folder.share()?;
        }
        check(args, &given, &settled, &session).map_err(bad_input)?;
        save(args, &given, &settled, &session, &folder)?;
        Ok(session)
    });
    match begun {
        Ok(session) => Ok((folder, lock, session)),
        Err(error) => {
            folder.discard();
            Err(error)
        }
    }
}

/// A description of the machine with the text that is kept of it, as far as there is one.
struct Described {
    machine: Option<Machine>,
    text: Option<String>,
}

impl Described {
    /// The nodes; none where nothing is described.
    fn nodes(&self) -> &[Node] {
        self.machine.as_ref().map_or(&[][..], |machine| &machine.nodes)
    }
}

/// The engine of a session before its ranks have a place.
struct ChosenEngine {
    engine: Engine,
    /// What was found of the GPUs of this host, where it was looked for.
    gpus_found: Option<String>,
    described: Described,
    kernels: Option<KernelChoice>,
}

/// The engine of the flags, or of this host where they leave it open, on the machine of `--machine` or on the GPUs of this host.
///
/// # Errors
/// An engine that cannot be used, or flags that it does not obey.
fn chosen(args: &TuneArgs, given: &Given, program: &Path, interrupt: &Interrupt) -> anyhow::Result<ChosenEngine> {
    let facts = &given.facts;
    let (engine, gpus_found) = if leaves_engine_open(args, given.job.as_ref()) {
        let (n, budget_s) = (args.n.map(|n| n as usize), given.budget_s);
        let look = faster::Look { program, facts, n, budget_s, interrupt };
        look.engine(&mut |sentence| {
            if !args.output.quiet {
                say(sentence);
            }
        })
    } else {
        (Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), args.program.as_deref())?, None)
    };
    engine.check_flags(args.threads, &args.blas)?;
    let (machine, text) = match given.machine.clone() {
        Some((machine, text)) => (Some(machine), Some(text)),
        None => {
            let machine = gpus::described(&engine, facts, || gpus::look(program))?;
            let text = machine.as_ref().map(Machine::to_toml).transpose()?;
            (machine, text)
        }
    };
    let engine = engine.on(machine.as_ref());
    let kernels = engine.kernels(&args.blas, machine.as_ref())?;
    Ok(ChosenEngine { engine, gpus_found, described: Described { machine, text }, kernels })
}

/// What is settled of a session before it has a folder.
struct Settled {
    placed: PlacedEngine,
    gpus_found: Option<String>,
    kernels: Option<KernelChoice>,
    described: Described,
    /// The text of the file of limits.
    limits: Option<String>,
    /// The settings of the nodes that are varied.
    levels: SettingLevels,
    slurm_clock: Option<SlurmClock>,
    unequal: Unequal,
    room: Room,
}

/// Where the ranks run, which settings of the nodes are varied, and what distinguishes the ranks.
///
/// # Errors
/// What cannot be used together, with the way out.
fn settled(args: &TuneArgs, given: &Given, chosen: ChosenEngine, program: &Path) -> anyhow::Result<Settled> {
    let ChosenEngine { engine, gpus_found, described, kernels } = chosen;
    let (placed, described) = on_nodes(args, given, engine, described, program)?;
    let (engine, hosts, cores) = (&placed.engine, &placed.hosts, given.cores());
    let limits = args.space.as_deref().map(|path| read_limits(path, engine)).transpose()?;
    let place = RunPlace { nodes: described.nodes(), hosts, this: &given.facts.hostname, cores };
    let (levels, slurm_clock) = varied(args, engine, &place, given.cluster(), program)?;
    limits.iter().try_for_each(|(limits, _)| settings::check_limits(limits, &levels)).map_err(bad_input)?;
    let unequal = rank_input(args).unequal(engine, described.machine.as_ref(), cores)?;
    enough_ranks(&unequal, hosts)?;
    let room = room(args, given, engine, described.machine.as_ref(), &unequal)?;
    let limits = limits.map(|(_, text)| text);
    Ok(Settled { placed, gpus_found, kernels, described, limits, levels, slurm_clock, unequal, room })
}

/// The engine where its ranks can run, and the description with the nodes that were found for them.
///
/// # Errors
/// Programs or nodes that are not there, and groups of a single node.
fn on_nodes(
    args: &TuneArgs,
    given: &Given,
    engine: Engine,
    described: Described,
    program: &Path,
) -> anyhow::Result<(PlacedEngine, Described)> {
    let Described { machine, text } = described;
    let placed = match given.cluster() {
        Some(cluster) => on_simulated(cluster, program),
        None => placed(engine, args, program, given.job.as_ref(), machine.as_ref(), given.cores())?,
    };
    let is_given = machine.is_some();
    let machine = placed.described(machine);
    let text = match &machine {
        Some(machine) if is_given && !placed.nodes.is_empty() => Some(machine.to_toml()?),
        _ => text,
    };
    check_groups(args, placed.hosts.len())?;
    Ok((placed, Described { machine, text }))
}

/// What the runs have.
///
/// # Errors
/// Too little for the ranks and threads that are wanted.
fn room(
    args: &TuneArgs,
    given: &Given,
    engine: &Engine,
    machine: Option<&Machine>,
    unequal: &Unequal,
) -> anyhow::Result<Room> {
    let ranks = args.ranks.or(unequal.ranks().map(|ranks| ranks as u64));
    let wanted = Wanted::of(ranks, args.threads);
    let here = Here { cores: given.cores(), memory_bytes: given.facts.memory_available_bytes };
    let room = Room::new(engine, here, machine, wanted);
    room.check(wanted)?;
    // Where nothing will be measured, what is unknown now stays so.
    if !engine.calibrates() {
        room.memory_for(args.n.map(|n| n as usize))?;
    }
    Ok(room)
}

/// Says what the user should know of the job.
fn warn_of_job(args: &TuneArgs, given: &Given, engine: &Engine) {
    let Some(job) = &given.job else { return };
    let said = job.warnings(given.asked_s, given.budget_s, args.local);
    said.iter().chain(&uneven(job, engine)).for_each(|sentence| say(&format!("warning: {sentence}")));
}

/// Says where runs on this host alone would have equal shares on cores of several kinds.
fn warn_of_cores(given: &Given, settled: &Settled) {
    let PlacedEngine { engine, hosts, .. } = &settled.placed;
    if given.simulated.is_some() || hosts.len() > 1 || settled.unequal.differs() {
        return;
    }
    if let Some(sentence) = core_kinds::warning(&given.facts, engine) {
        say(&format!("warning: {sentence}"));
    }
}

/// The folder of the session with its lock.
fn new_folder(args: &TuneArgs, given: &Given) -> Result<(RunFolder, Lock), RecordError> {
    match &args.out {
        Some(root) => RunFolder::create(root),
        None => RunFolder::create_numbered(&RunFolder::default_path(&given.facts.hostname, given.now)),
    }
}

/// The session as it begins in `folder`.
fn session(args: &TuneArgs, given: &Given, settled: &Settled, folder: &RunFolder) -> anyhow::Result<Session> {
    let PlacedEngine { engine, nodes, hosts, spares } = &settled.placed;
    let mut mpi_job = engine.mpi_job().cloned();
    if let Some(job) = mpi_job.as_mut().filter(|_| given.simulated.is_some()) {
        job.simulated = Some(std::path::absolute(folder.simulated_toml())?);
    }
    Ok(Session {
        schema_version: SESSION_SCHEMA,
        name: folder.name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: given.facts.hostname.clone(),
        started_utc: given.now.to_string(),
        command: objectives::real::quoted(std::env::args_os()).join(" "),
        budget_s: given.budget_s,
        elapsed_s: 0.0,
        seed: args.seed,
        until_gain: args.until_gain,
        left: None,
        lead_of_search: None,
        engine: engine.name().to_owned(),
        extent: Extent::Whole,
        objective: given.objective,
        strategy: args.strategy.clone(),
        cores: given.facts.cores_allowed.clone(),
        memory_bytes: 0,
        kernels: settled.kernels.clone(),
        ranks: args.ranks.map(|r| r as usize).or(settled.unequal.ranks()),
        threads: args.threads.map(|t| t as usize),
        n: args.n.map(|n| n as usize),
        n_fixed: args.n.is_some(),
        n_memory: None,
        n_limited_by_budget: false,
        notes: Vec::new(),
        expert: None,
        hosts: hosts.clone(),
        spares: spares.clone(),
        lost: Vec::new(),
        moved_from: Vec::new(),
        mpi_job,
        nodes: nodes.clone(),
        unequal: settled.unequal.clone(),
        power_log: given.power_log.clone(),
        settings: settled.levels.clone(),
        groups: args.groups.clone(),
        slurm_clock: settled.slurm_clock.clone(),
        gpus_found: settled.gpus_found.clone(),
    })
}

/// Makes sure that the objective can be read and the settings made on the nodes of the session, and that an N of the user fits.
///
/// # Errors
/// Why not, with the way out.
fn check(args: &TuneArgs, given: &Given, settled: &Settled, session: &Session) -> Result<(), String> {
    let engine = &settled.placed.engine;
    let of_runs = SessionNodes { session, engine, described: settled.described.nodes() };
    let has_power = given.cluster().map(|cluster| cluster.power.is_some());
    power::check(&of_runs, &args.power_root, has_power)?;
    settings::check(&of_runs)?;
    // An N that the memory does not hold is refused before anything is measured.
    match spec(session, &settled.room, EngineParams::default().kernels) {
        Ok(spec) if session.n.is_some() => engine.check_fits(&spec).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

/// Keeps in `folder` what the session starts from, and the session as the last: by that it has begun.
fn save(
    args: &TuneArgs,
    given: &Given,
    settled: &Settled,
    session: &Session,
    folder: &RunFolder,
) -> Result<(), RecordError> {
    if let Some(text) = &settled.described.text {
        replace_file(&folder.machine_toml(), text.as_bytes())?;
    }
    if let Some((cluster, text)) = &given.simulated {
        save_cluster(folder, cluster, text)?;
    }
    if let Some(text) = &settled.limits {
        replace_file(&folder.limits_toml(), text.as_bytes())?;
    }
    if !args.warm_start.is_empty() {
        earlier::save(folder, &given.earlier)?;
    }
    settled.placed.engine.save(folder)?;
    session.save(&folder.session_toml())
}

/// Keeps the cluster, and the description of its nodes as if one had been calibrated, in `folder`.
fn save_cluster(folder: &RunFolder, cluster: &SimulatedCluster, text: &str) -> Result<(), RecordError> {
    let path = folder.calibrated_node();
    let rates = cluster.description().to_toml().map_err(|error| RecordError::damaged(&path, error))?;
    std::fs::create_dir_all(folder.calibration()).map_err(RecordError::write(&path))?;
    replace_file(&path, rates.as_bytes())?;
    replace_file(&folder.simulated_toml(), text.as_bytes())
}

/// The budget of a resumed session that has spent `spent_s` seconds, ended before its job.
///
/// # Errors
/// A job that ends too soon to go on.
pub(super) fn within_job(budget_s: f64, spent_s: f64, simulated: bool) -> anyhow::Result<f64> {
    let left_s = budget_s - spent_s;
    let Some(job) = Allocation::here().filter(|_| left_s > 0.0 && !simulated) else { return Ok(budget_s) };
    let most_s = job.budget_s(left_s)?;
    if most_s < left_s {
        say(&format!("warning: {}", job.warnings(left_s, most_s, false).join("; ")));
    }
    Ok(spent_s + most_s)
}
