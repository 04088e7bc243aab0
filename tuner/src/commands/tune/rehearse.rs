//! `--dry-run` and `--sbatch`: what a session would run, without running it.
//!
//! Both refuse what the session would refuse.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use objectives::predict::Predictor;
use objectives::real::RunSpec;
use space::domain::DomainSpec;
use space::machine::Machine;
use space::{EngineParams, KernelChoice};

use super::given::{budget_s, leaves_engine_open, objective, power_log, rank_input};
use super::placed::{check_groups, enough_ranks, no_spares, placed};
use super::script::{request, write_script};
use super::varied::{RunPlace, varied};
use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::bindings;
use crate::commands::space::{limits, of_limits};
use crate::exit::{self, bad_input};
use crate::record::folder::RunFolder;
use crate::report::counted;
use crate::search::budget::Budget;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::gpus;
use crate::session::input::read_machine;
use crate::session::power;
use crate::session::prepare;
use crate::session::room::{Here, Modelled, Room, Wanted};
use crate::session::settings;

/// Order of a dry run whose user names none and that has no description: a session chooses after its calibration.
const EXAMPLE_N: usize = 10_000;

/// Shows the first run of a session, or writes its batch script.
///
/// # Errors
/// Bad input, or a script that cannot be written.
pub(super) fn rehearse(args: &TuneArgs, program: &Path) -> anyhow::Result<u8> {
    let asked_s = budget_s(args.budget)?;
    let mut budget = Budget::new(Instant::now(), asked_s, 0.0);
    let engine = Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), args.program.as_deref())?;
    engine.check_flags(args.threads, &args.blas)?;
    let facts = hpl::machine::host::facts();
    let machine = match args.machine.as_deref().map(read_machine).transpose()? {
        Some((machine, _)) => Some(machine),
        // A batch script is for other nodes.
        None if args.sbatch.is_some() => None,
        None => gpus::described(&engine, &facts, || gpus::look(program))?,
    };
    let engine = engine.on(machine.as_ref());
    // Nodes that are found have no kernels.
    let kernels = engine.kernels(&args.blas, machine.as_ref())?;
    let objective = objective(args)?;
    // What the session would find on the nodes of its job.
    let job = if args.dry_run { Allocation::or_reached(args.nodes, args.launcher.as_deref())? } else { None };
    let (engine, machine, hosts) = match &job {
        Some(job) => {
            let budget_s = job.budget_s(asked_s)?;
            budget = Budget::new(Instant::now(), budget_s, 0.0);
            job.warnings(asked_s, budget_s, args.local)
                .iter()
                .for_each(|sentence| say(&format!("warning: {sentence}")));
            let placed = placed(engine, args, program, Some(job), machine.as_ref(), facts.cores_allowed.len())?;
            if let Some(unequal) = job.unequal().filter(|_| matches!(placed.engine, Engine::Launched(_))) {
                say(&format!("warning: {unequal}"));
            }
            let machine = placed.described(machine);
            (placed.engine, machine, placed.hosts)
        }
        None if args.dry_run && args.spares > 0 => return Err(no_spares(args.spares)),
        None => (engine, machine, Vec::new()),
    };
    check_groups(args, args.nodes.filter(|_| args.sbatch.is_some()).map_or(hosts.len(), |nodes| nodes as usize))?;
    let mut here = Here { cores: facts.cores_allowed.len(), memory_bytes: facts.memory_available_bytes };
    let mut wanted = Wanted::of(args.ranks, args.threads);
    if args.sbatch.is_some() {
        let unknown = machine.is_none() && matches!(engine, Engine::Ours);
        here = elsewhere(here, (machine.as_ref(), unknown), args.nodes, wanted);
    }
    let unequal = rank_input(args).unequal(&engine, machine.as_ref(), here.cores)?;
    enough_ranks(&unequal, &hosts)?;
    wanted.ranks = wanted.ranks.or(unequal.ranks());
    let room = Room::new(&engine, here, machine.as_ref(), wanted);
    room.check(wanted)?;
    let limits = limits(args.space.as_deref(), &engine)?;
    // The accelerators of other nodes are not known here.
    let memory_bytes = room.memory_for(args.n.map(|n| n as usize).or(args.sbatch.as_ref().map(|_| 1)))?;
    let mut spec = DomainSpec {
        kernels: match kernels {
            None | Some(KernelChoice::Auto) => EngineParams::default().kernels,
            Some(named) => named,
        },
        unequal,
        ..room.spec(0, memory_bytes, wanted)
    };
    // A session calibrates nodes that it has found.
    let rates = machine.as_ref().filter(|_| args.machine.is_some());
    let TargetOrder { n, why, note } = order(args, &engine, &room, rates, &spec, &budget)?;
    spec.n = n;
    // A batch script is for other nodes.
    let (levels, slurm_clock) = if args.dry_run {
        let described = machine.as_ref().map_or(&[][..], |machine| &machine.nodes);
        let place = RunPlace { nodes: described, hosts: &hosts, this: &facts.hostname, cores: here.cores };
        varied(args, &engine, &place, None, program)?
    } else {
        Default::default()
    };
    if args.dry_run {
        settings::check_limits(&limits, &levels).map_err(bad_input)?;
        let is_here = hosts.is_empty()
            && machine.as_ref().is_none_or(|machine| machine.nodes.iter().map(|node| node.count).sum::<usize>() < 2);
        if is_here && args.simulate.is_none() {
            let meter = power_log(args)?;
            power::check_here(objective, &facts.hostname, meter, &args.power_root).map_err(bad_input)?;
        }
    }
    let engine = engine.clocked_by(slurm_clock);
    let domain = engine.domain_at(&spec, &limits, &levels);
    let (domain, usual) = domain.map_err(|error| of_limits(args.space.as_deref(), &error))?;
    if let Some(path) = &args.sbatch {
        let request = request(args, &engine, wanted, &room)?;
        return write_script(args, program, path, request, &room, &engine);
    }
    let root = args.out.clone().unwrap_or_else(|| RunFolder::default_path(&facts.hostname, jiff::Timestamp::now()));
    let folder = std::path::absolute(root)?.join("trials").join("0");
    let runs = engine.runs(program);
    let mut out = std::io::stdout().lock();
    writeln!(out, "# {} candidates at N = {n} ({why}); the first trial:", domain.points().len())?;
    let (p, q, threads) = (usual.hpl.p, usual.hpl.q, usual.engine.threads);
    writeln!(out, "# {} ({p}×{q}) of {}", counted(p * q, "rank"), counted(threads, "thread"))?;
    for note in room.notes.iter().chain(&note) {
        writeln!(out, "# {note}")?;
    }
    if leaves_engine_open(args, job.as_ref()) {
        for (platform, gpus) in
            gpus::look(program).into_iter().filter_map(|(platform, found)| Some((platform, found.ok()?)))
        {
            writeln!(
                out,
                "# {gpus}: where short runs there are faster than the processors, the session is on them, as with --engine {platform}"
            )?;
        }
    }
    writeln!(out, "{}", runs.command(&RunSpec::whole(&usual), &folder).join(" "))?;
    for (name, text) in runs.inputs(&usual).map_err(bad_input)? {
        writeln!(out, "\n# {}\n{}", folder.join(name).display(), text.trim_end())?;
    }
    out.flush()?;
    // What would run is shown first, so that the command can be corrected by it.
    let starts = || match (&engine, &job) {
        (Engine::Launched(mpi), None) => bindings(mpi, usual.hpl.ranks().min(2), 1).map(drop),
        _ => Ok(()),
    };
    let checked = engine.check_programs().and_then(|()| starts());
    checked.map_err(|error| bad_input(format!("this session could not start: {error}")))?;
    Ok(exit::DONE)
}

/// What a job has that will start later: the nodes of the description, else `nodes` of which nothing is known but that the ranks
/// wanted are to fit; also of one node where it is `unknown` as the process of the session has all of it.
fn elsewhere(here: Here, (machine, unknown): (Option<&Machine>, bool), nodes: Option<u64>, wanted: Wanted) -> Here {
    let described = machine.into_iter().flat_map(|machine| &machine.nodes).map(|node| node.cores);
    let cores = described.fold(here.cores, usize::max);
    let nodes = nodes.map_or(1, |nodes| nodes as usize);
    let fit = if nodes > 1 || unknown { wanted.places() } else { 0 };
    let cores = cores.saturating_mul(nodes).max(fit);
    Here { cores, memory_bytes: u64::MAX }
}

/// N of a session.
struct TargetOrder {
    n: usize,
    /// Why it is that.
    why: String,
    /// What the cost is computed from, where that is not a calibration.
    note: Option<String>,
}

/// N of the session. Without a description only a calibration could show what fits the budget.
fn order(
    args: &TuneArgs,
    engine: &Engine,
    room: &Room,
    machine: Option<&Machine>,
    spec: &DomainSpec,
    budget: &Budget,
) -> anyhow::Result<TargetOrder> {
    let n = args.n.map(|n| n as usize);
    if machine.is_none() && (engine.calibrates() || args.sbatch.is_some()) {
        let example = || (EXAMPLE_N, "an example: a session chooses it after its calibration".to_owned());
        let (n, why) = n.map_or_else(example, |n| (n, prepare::limit(true, false, None)));
        return Ok(TargetOrder { n, why, note: None });
    }
    let Modelled { machine, note } = room.model(engine, machine, spec, n, budget).map_err(bad_input)?;
    let predictor = Predictor::new(&machine).map_err(bad_input)?.slowed(spec.unequal.clone());
    let target = prepare::target(engine, spec, &predictor, budget, n)?;
    let why = prepare::limit(n.is_some(), target.limited_by_budget, target.n_memory);
    Ok(TargetOrder { n: target.n, why, note })
}
