//! How a session begins: what is asked for, where it can run, and its folder.

use std::path::Path;
use std::time::Duration;

use objectives::real::Extent;
use objectives::simulated::SimulatedCluster;
use space::EngineParams;
use space::machine::Machine;

use super::given::{budget_s, leaves_engine_open, objective, power_log, rank_input, read_cluster};
use super::placed::{PlacedEngine, check_groups, enough_ranks, on_simulated, placed};
use super::settle::spec;
use super::varied::{RunPlace, varied};
use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::commands::space::read_limits;
use crate::earlier;
use crate::error::RecordError;
use crate::exit::bad_input;
use crate::record::decode::Decoder;
use crate::record::folder::{Lock, RunFolder, replace_file};
use crate::record::session::{SESSION_SCHEMA, Session};
use crate::search::interrupt::Interrupt;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::faster;
use crate::session::gpus;
use crate::session::input::read_machine;
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
    let asked_s = budget_s(budget)?;
    let simulated = args.simulate.as_deref().map(read_cluster).transpose()?;
    let job = Allocation::or_reached(args.nodes, args.launcher.as_deref())?.filter(|_| simulated.is_none());
    let budget_s = job.as_ref().map_or(Ok(asked_s), |job| job.budget_s(asked_s))?;
    let facts = hpl::machine::host::facts();
    let now = jiff::Timestamp::now();
    let cores = facts.cores_allowed.clone();
    let (machine, text) = args.machine.as_deref().map(read_machine).transpose()?.unzip();
    let found = earlier::read::read(&args.warm_start, &Decoder::child()?).map_err(bad_input)?;
    found.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let power_log = power_log(args)?;
    let objective = objective(args)?;
    let (engine, gpus_found) = if leaves_engine_open(args, job.as_ref()) {
        let look = faster::Look { program, facts: &facts, n: args.n.map(|n| n as usize), budget_s, interrupt };
        look.engine(&mut |sentence| {
            if !args.output.quiet {
                say(sentence);
            }
        })
    } else {
        (Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), args.program.as_deref())?, None)
    };
    engine.check_flags(args.threads, &args.blas)?;
    let (machine, text) = match machine {
        Some(machine) => (Some(machine), text),
        None => {
            let machine = gpus::described(&engine, &facts, || gpus::look(program))?;
            let text = machine.as_ref().map(Machine::to_toml).transpose()?;
            (machine, text)
        }
    };
    let engine = engine.on(machine.as_ref());
    let kernels = engine.kernels(&args.blas, machine.as_ref())?;
    let placed = match &simulated {
        Some((cluster, _)) => on_simulated(cluster, program),
        None => placed(engine, args, program, job.as_ref(), machine.as_ref(), cores.len())?,
    };
    let given = machine.is_some();
    let machine = placed.described(machine);
    let text = match &machine {
        Some(machine) if given && !placed.nodes.is_empty() => Some(machine.to_toml()?),
        _ => text,
    };
    let PlacedEngine { engine, nodes, hosts, spares } = placed;
    check_groups(args, hosts.len())?;
    let limits = args.space.as_deref().map(|path| read_limits(path, &engine)).transpose()?;
    let described = machine.as_ref().map_or(&[][..], |machine| &machine.nodes);
    let place = RunPlace { nodes: described, hosts: &hosts, this: &facts.hostname, cores: cores.len() };
    let cluster = simulated.as_ref().map(|(cluster, _)| cluster);
    let (levels, slurm_clock) = varied(args, &engine, &place, cluster, program)?;
    limits.iter().try_for_each(|(limits, _)| settings::check_limits(limits, &levels)).map_err(bad_input)?;
    let unequal = rank_input(args).unequal(&engine, machine.as_ref(), cores.len())?;
    enough_ranks(&unequal, &hosts)?;
    let ranks = args.ranks.or(unequal.ranks().map(|ranks| ranks as u64));
    let wanted = Wanted::of(ranks, args.threads);
    let here = Here { cores: cores.len(), memory_bytes: facts.memory_available_bytes };
    let room = Room::new(&engine, here, machine.as_ref(), wanted);
    room.check(wanted)?;
    // Where nothing will be measured, what is unknown now stays so.
    if !engine.calibrates() {
        room.memory_for(args.n.map(|n| n as usize))?;
    }
    if let Some(job) = &job {
        let said = job.warnings(asked_s, budget_s, args.local);
        let unequal = job.unequal().filter(|_| matches!(engine, Engine::Launched(_)));
        said.iter().chain(&unequal).for_each(|sentence| say(&format!("warning: {sentence}")));
    }
    let (folder, lock) = match &args.out {
        Some(root) => RunFolder::create(root)?,
        None => RunFolder::create_numbered(&RunFolder::default_path(&facts.hostname, now))?,
    };
    if args.shared_folder {
        folder.share()?;
    }
    let mut mpi_job = engine.mpi_job().cloned();
    if let Some(job) = mpi_job.as_mut().filter(|_| simulated.is_some()) {
        job.simulated = Some(std::path::absolute(folder.simulated_toml())?);
    }
    let session = Session {
        schema_version: SESSION_SCHEMA,
        name: folder.name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: facts.hostname,
        started_utc: now.to_string(),
        command: objectives::real::quoted(std::env::args_os()).join(" "),
        budget_s,
        elapsed_s: 0.0,
        seed: args.seed,
        until_gain: args.until_gain,
        left: None,
        lead_of_search: None,
        engine: engine.name().to_owned(),
        extent: Extent::Whole,
        objective,
        strategy: args.strategy.clone(),
        cores,
        memory_bytes: 0,
        kernels,
        ranks: ranks.map(|r| r as usize),
        threads: args.threads.map(|t| t as usize),
        n: args.n.map(|n| n as usize),
        n_fixed: args.n.is_some(),
        n_memory: None,
        n_limited_by_budget: false,
        notes: Vec::new(),
        expert: None,
        hosts,
        spares,
        lost: Vec::new(),
        mpi_job,
        nodes,
        unequal,
        power_log,
        settings: levels,
        groups: args.groups.clone(),
        slurm_clock,
        gpus_found,
    };
    let has_power = simulated.as_ref().map(|(cluster, _)| cluster.power.is_some());
    // An N that the memory does not hold is refused before anything is measured.
    let fits = || match spec(&session, &room, EngineParams::default().kernels) {
        Ok(spec) if session.n.is_some() => engine.check_fits(&spec).map_err(|error| error.to_string()),
        _ => Ok(()),
    };
    let of_runs = SessionNodes { session: &session, engine: &engine, described };
    let checked = power::check(&of_runs, &args.power_root, has_power)
        .and_then(|()| settings::check(&of_runs))
        .and_then(|()| fits());
    if let Err(refused) = checked {
        folder.discard();
        return Err(bad_input(refused));
    }
    let given = text.map_or(Ok(()), |text| replace_file(&folder.machine_toml(), text.as_bytes()));
    let allowed = || limits.map_or(Ok(()), |(_, text)| replace_file(&folder.limits_toml(), text.as_bytes()));
    let warm = || if args.warm_start.is_empty() { Ok(()) } else { earlier::save(&folder, &found.runs) };
    let cluster = || simulated.as_ref().map_or(Ok(()), |(cluster, text)| save_cluster(&folder, cluster, text));
    let saved = given
        .and_then(|()| cluster())
        .and_then(|()| allowed())
        .and_then(|()| warm())
        .and_then(|()| engine.save(&folder));
    if let Err(error) = saved.and_then(|()| session.save(&folder.session_toml())) {
        folder.discard();
        return Err(error.into());
    }
    Ok((folder, lock, session))
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
