//! `--dry-run` and `--sbatch`: what a session would run, without running it.
//!
//! Both refuse what the session would refuse.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use objectives::predict::Predictor;
use objectives::real::{RunSpec, quoted};
use space::domain::DomainSpec;
use space::machine::Machine;
use space::{EngineParams, KernelChoice};

use super::given::{budget_s, leaves_engine_open, objective, power_log, rank_input};
use super::placed::{check_groups, enough_ranks, no_spares, placed};
use super::varied::{RunPlace, varied};
use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::bindings;
use crate::cluster::sbatch::{self, JobRequest};
use crate::commands::space::{limits, of_limits};
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::RunFolder;
use crate::report::counted;
use crate::search::budget::Budget;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::engine::programs::set_up;
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

/// What the job of a script asks for.
///
/// # Errors
/// Several nodes for ranks that are threads of one process.
fn request(args: &TuneArgs, engine: &Engine, wanted: Wanted, room: &Room) -> anyhow::Result<JobRequest> {
    let nodes = args.nodes.map(|nodes| nodes as usize);
    let spares = args.spares as usize;
    if spares > 0 && spares >= nodes.unwrap_or(1) {
        let nodes = nodes.unwrap_or(1);
        return Err(bad_input(format!(
            "--spares {spares}: of {nodes} nodes none is left to run on; raise --nodes, or lower --spares"
        )));
    }
    if let (Engine::Foreign(foreign), Some(asked)) = (engine, nodes)
        && let Some(most) = foreign.profile().nodes.filter(|most| asked > *most)
    {
        let (name, most) = (engine.name(), counted(most, "node"));
        return Err(bad_input(format!("--nodes {asked}: engine {name} runs on {most} at most; lower --nodes")));
    }
    Ok(match engine {
        // Without a launcher it finds one on the nodes of its job.
        Engine::Ours if nodes.is_some_and(|nodes| nodes > 1) && args.local => {
            return Err(bad_input("--local uses one node: leave out --nodes, or --local"));
        }
        // Steps of its own start the ranks, on all cores.
        Engine::Ours if nodes.is_some_and(|nodes| nodes > 1) => JobRequest { nodes, ..JobRequest::default() },
        Engine::Ours => {
            let tasks = wanted.ranks.zip(wanted.threads).map(|(ranks, threads)| (1, ranks * threads));
            JobRequest { nodes: Some(1), tasks, accelerators: None }
        }
        _ => {
            let threads = wanted.threads.unwrap_or(1);
            let ranks = wanted.ranks.unwrap_or((room.places / threads).max(1));
            // All cores of the nodes, where neither they nor the ranks are known: this may be a login node.
            let unknown = args.machine.is_none() && wanted.ranks.is_none();
            let tasks = (!unknown).then_some((ranks, threads));
            let accelerators = (!engine.calibrates() && !unknown).then_some(ranks);
            JobRequest { nodes: nodes.or(unknown.then_some(1)), tasks, accelerators }
        }
    })
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

fn write_script(
    args: &TuneArgs,
    program: &Path,
    path: &Path,
    request: JobRequest,
    room: &Room,
    engine: &Engine,
) -> anyhow::Result<u8> {
    let words = sbatch::without(std::env::args_os().skip(1), &["--sbatch", "--nodes", "--out"]);
    let words: Vec<_> = [program.as_os_str().to_owned()].into_iter().chain(words).collect();
    // Each script has its own session.
    let named = || Path::new("runs").join(path.file_stem().unwrap_or(OsStr::new("slurm")));
    let out = args.out.clone().unwrap_or_else(named);
    RunFolder::is_free(&out)?;
    let script =
        sbatch::script(&words, request, budget_s(args.budget)?, &std::env::current_dir()?, &std::path::absolute(out)?);
    // What is there may be another session's script, or anything else.
    let new = OpenOptions::new().write(true).create_new(true).open(path);
    match new.and_then(|mut file| file.write_all(script.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(bad_input(format!(
                "--sbatch {}: the file is there already; remove it, or give another name",
                path.display()
            )));
        }
        written => written.map_err(RecordError::write(path))?,
    }
    let mut out = std::io::stdout().lock();
    for note in &room.notes {
        writeln!(out, "# {note}")?;
    }
    if !engine.calibrates() && request.accelerators.is_none() {
        writeln!(
            out,
            "# it asks for no accelerators, whose number is not known here: add them to it, as by #SBATCH --gpus=1"
        )?;
    }
    let starts_ranks = matches!(engine, Engine::Ours) && request.nodes.is_some_and(|nodes| nodes > 1);
    if starts_ranks && args.program.is_none() && !set_up(program).is_file() {
        writeln!(
            out,
            "# hpl-tune mpi-setup has made no xhpl here: run it before the script, unless an xhpl beside hpl-tune or on the search path \
             is built for the MPI library of the nodes"
        )?;
    }
    let nodes = request.nodes.map(|nodes| counted(nodes, "node"));
    let tasks = request.tasks.map(|(tasks, cores)| match tasks {
        1 => format!("1 task with {}", counted(cores, "core")),
        _ => format!("{tasks} tasks with {} each", counted(cores, "core")),
    });
    let asked: Vec<String> = nodes.into_iter().chain(tasks).collect();
    writeln!(
        out,
        "{0} asks for {1}; submit it with: sbatch {2}",
        path.display(),
        asked.join(" and "),
        quoted([path]).concat()
    )?;
    Ok(exit::DONE)
}
