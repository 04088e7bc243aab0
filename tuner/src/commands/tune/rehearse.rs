//! `--dry-run` and `--sbatch`: what a session would run, without running it.
//!
//! Both refuse what the session would refuse.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use hpl::machine::host::{HostFacts, facts};
use objectives::predict::Predictor;
use objectives::real::RunSpec;
use objectives::slurm_clock::SlurmClock;
use space::domain::{DomainSpec, Limits};
use space::machine::{Machine, Node};
use space::{Candidate, KernelChoice, SettingLevels, Unequal};

use super::given::{budget_s, leaves_engine_open, objective, power_log, rank_input};
use super::placed::{check_groups, enough_ranks, no_spares, placed, uneven};
use super::script::{request, write_script};
use super::varied::{RunPlace, varied};
use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::bindings;
use crate::commands::space::{limits, of_limits};
use crate::exit::{self, bad_input};
use crate::record::Objective;
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

/// Order of a dry run whose user names none and that has no description, where it fits the memory: a session chooses after its calibration.
const EXAMPLE_N: usize = 10_000;

/// Shows the first run of a session, or writes its batch script.
///
/// # Errors
/// Bad input, or a script that cannot be written.
pub(super) fn rehearse(args: &TuneArgs, program: &Path) -> anyhow::Result<u8> {
    let rehearsed = rehearsed(args, program)?;
    match &args.sbatch {
        Some(path) => {
            let Rehearsed { site, ranks, .. } = &rehearsed;
            let request = request(args, &site.engine, ranks.wanted, &ranks.room)?;
            write_script(args, program, path, request, &ranks.room, &site.engine)
        }
        None => show(args, program, &rehearsed),
    }
}

/// The engine of the session on the nodes that it would find.
struct Site {
    engine: Engine,
    machine: Option<Machine>,
    kernels: Option<KernelChoice>,
    /// Names of the nodes of the job.
    hosts: Vec<String>,
    job: Option<Allocation>,
    /// This host.
    facts: HostFacts,
    budget: Budget,
}

impl Site {
    /// The engine of the flags on the machine of `--machine`, or on the GPUs of this host.
    fn chosen(args: &TuneArgs, program: &Path, budget: Budget) -> anyhow::Result<Self> {
        let engine = Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), args.program.as_deref())?;
        engine.check_flags(args.threads, &args.blas)?;
        let facts = facts();
        let machine = match args.machine.as_deref().map(read_machine).transpose()? {
            Some((machine, _)) => Some(machine),
            // A batch script is for other nodes.
            None if args.sbatch.is_some() => None,
            None => gpus::described(&engine, &facts, || gpus::look(program))?,
        };
        let engine = engine.on(machine.as_ref());
        // Nodes that are found have no kernels.
        let kernels = engine.kernels(&args.blas, machine.as_ref())?;
        Ok(Self { engine, machine, kernels, hosts: Vec::new(), job: None, facts, budget })
    }

    /// The room on the nodes of the job, which a session would find; a script is for another job.
    fn in_job(self, args: &TuneArgs, program: &Path) -> anyhow::Result<Self> {
        let job = if args.dry_run { Allocation::or_reached(args.nodes, args.launcher.as_deref())? } else { None };
        let Some(job) = job else {
            return if args.dry_run && args.spares > 0 { Err(no_spares(args.spares)) } else { Ok(self) };
        };
        let Self { engine, machine, kernels, facts, budget, .. } = self;
        let asked_s = budget.total_s();
        let budget_s = job.budget_s(asked_s)?;
        let budget = Budget::new(Instant::now(), budget_s, 0.0);
        job.warnings(asked_s, budget_s, args.local).iter().for_each(|sentence| say(&format!("warning: {sentence}")));
        let placed = placed(engine, args, program, Some(&job), machine.as_ref(), facts.cores_allowed.len())?;
        if let Some(uneven) = uneven(&job, &placed.engine) {
            say(&format!("warning: {uneven}"));
        }
        let machine = placed.described(machine);
        Ok(Self { engine: placed.engine, machine, kernels, hosts: placed.hosts, job: Some(job), facts, budget })
    }

    /// The nodes, as far as they are described.
    fn nodes(&self) -> &[Node] {
        self.machine.as_ref().map_or(&[][..], |machine| &machine.nodes)
    }

    /// Whether the runs would be on several nodes, as far as something says it.
    fn has_several_nodes(&self) -> bool {
        let most = match &self.engine {
            Engine::Ours => 1,
            Engine::Launched(_) => usize::MAX,
            Engine::Foreign(foreign) => foreign.profile().nodes.unwrap_or(usize::MAX),
        };
        let described = self.nodes().iter().map(|node| node.count).fold(0, usize::saturating_add);
        most.min(described.max(self.hosts.len())) > 1
    }
}

/// What the ranks would have.
struct RankRoom {
    wanted: Wanted,
    unequal: Unequal,
    room: Room,
}

impl RankRoom {
    /// For the ranks that are wanted; for a batch script by what its job has.
    fn new(args: &TuneArgs, site: &Site) -> anyhow::Result<Self> {
        let (engine, machine) = (&site.engine, site.machine.as_ref());
        let mut here = Here { cores: site.facts.cores_allowed.len(), memory_bytes: site.facts.memory_available_bytes };
        let mut wanted = Wanted::of(args.ranks, args.threads);
        if args.sbatch.is_some() {
            let unknown = machine.is_none() && matches!(engine, Engine::Ours);
            here = elsewhere(here, (machine, unknown), args.nodes, wanted);
        }
        let unequal = rank_input(args).unequal(engine, machine, here.cores)?;
        enough_ranks(&unequal, &site.hosts)?;
        wanted.ranks = wanted.ranks.or(unequal.ranks());
        let room = Room::new(engine, here, machine, wanted);
        room.check(wanted)?;
        Ok(Self { wanted, unequal, room })
    }
}

/// A session as far as it is settled without a run.
struct Rehearsed {
    site: Site,
    ranks: RankRoom,
    target: TargetOrder,
    /// Number of candidates.
    candidates: usize,
    /// What the first trial runs.
    usual: Candidate,
}

/// Settles what the session would, and refuses what it would refuse.
fn rehearsed(args: &TuneArgs, program: &Path) -> anyhow::Result<Rehearsed> {
    let budget = Budget::new(Instant::now(), budget_s(args.budget)?, 0.0);
    let site = Site::chosen(args, program, budget)?;
    let objective = objective(args)?;
    let site = site.in_job(args, program)?;
    let asked_nodes = args.nodes.filter(|_| args.sbatch.is_some());
    check_groups(args, asked_nodes.map_or(site.hosts.len(), |nodes| nodes as usize))?;
    let ranks = RankRoom::new(args, &site)?;
    let limits = limits(args.space.as_deref(), &site.engine)?;
    let spec = spec(args, &site, &ranks)?;
    let target = order(args, &site, &ranks.room, (&spec, &limits))?;
    let spec = DomainSpec { n: target.n, ..spec };
    let (levels, slurm_clock) = levels(args, &site, &limits, program)?;
    check_power(args, &site, objective)?;
    let site = Site { engine: site.engine.clocked_by(slurm_clock), ..site };
    let domain = site.engine.domain_at(&spec, &limits, &levels);
    let (domain, usual) = domain.map_err(|error| of_limits(args.space.as_deref(), &error))?;
    Ok(Rehearsed { site, ranks, target, candidates: domain.points().len(), usual })
}

/// What the session would search, its N not yet chosen.
fn spec(args: &TuneArgs, site: &Site, ranks: &RankRoom) -> anyhow::Result<DomainSpec> {
    let RankRoom { wanted, unequal, room } = ranks;
    // The accelerators of other nodes are not known here.
    let memory_bytes = room.memory_for(args.n.map(|n| n as usize).or(args.sbatch.as_ref().map(|_| 1)))?;
    let spec = room.spec(0, memory_bytes, *wanted);
    let kernels = match &site.kernels {
        None | Some(KernelChoice::Auto) => spec.kernels,
        Some(named) => named.clone(),
    };
    Ok(DomainSpec { kernels, unequal: unequal.clone(), ..spec })
}

/// The settings that would be varied, and how Slurm is asked for the clock; none for a batch script, whose nodes are not known.
fn levels(
    args: &TuneArgs,
    site: &Site,
    limits: &Limits,
    program: &Path,
) -> anyhow::Result<(SettingLevels, Option<SlurmClock>)> {
    if !args.dry_run {
        let unknown = settings::of_unknown_nodes(&args.vary);
        settings::check_limits(limits, &unknown).map_err(bad_input)?;
        let nodes = args.nodes.unwrap_or(1).saturating_sub(args.spares);
        if nodes > 1 && site.engine.is_ours() {
            // The launcher that such a session finds may be srun.
            let by_slurm = matches!(site.engine, Engine::Ours) || site.engine.is_started_by_srun();
            settings::check_elsewhere(&unknown, by_slurm).map_err(bad_input)?;
        }
        return Ok(Default::default());
    }
    let (this, cores) = (&site.facts.hostname, site.facts.cores_allowed.len());
    let place = RunPlace { nodes: site.nodes(), hosts: &site.hosts, this, cores };
    let (levels, slurm_clock) = varied(args, &site.engine, &place, None, program)?;
    settings::check_limits(limits, &levels).map_err(bad_input)?;
    if site.has_several_nodes() {
        settings::check_elsewhere(&levels, slurm_clock.is_some()).map_err(bad_input)?;
    }
    Ok((levels, slurm_clock))
}

/// Makes sure that the objective can be read, where the runs would be on this node alone.
fn check_power(args: &TuneArgs, site: &Site, objective: Objective) -> anyhow::Result<()> {
    let is_here = site.hosts.is_empty() && site.nodes().iter().map(|node| node.count).sum::<usize>() < 2;
    if args.dry_run && is_here && args.simulate.is_none() {
        let meter = power_log(args)?;
        power::check_here(objective, &site.facts.hostname, meter, &args.power_root).map_err(bad_input)?;
    }
    Ok(())
}

/// Shows the first run, then says whether it could start.
fn show(args: &TuneArgs, program: &Path, rehearsed: &Rehearsed) -> anyhow::Result<u8> {
    let Rehearsed { site, usual, .. } = rehearsed;
    let named = || RunFolder::default_path(&site.facts.hostname, jiff::Timestamp::now());
    let folder = std::path::absolute(args.out.clone().unwrap_or_else(named))?.join("trials").join("0");
    let runs = site.engine.runs(program);
    let mut out = std::io::stdout().lock();
    show_space(&mut out, rehearsed)?;
    if leaves_engine_open(args, site.job.as_ref()) {
        show_gpus(&mut out, program)?;
    }
    writeln!(out, "{}", runs.command(&RunSpec::whole(usual), &folder).join(" "))?;
    for (name, text) in runs.inputs(usual).map_err(bad_input)? {
        writeln!(out, "\n# {}\n{}", folder.join(name).display(), text.trim_end())?;
    }
    out.flush()?;
    // What would run is shown first, so that the command can be corrected by it.
    can_start(site, usual).map_err(|error| bad_input(format!("this session could not start: {error}")))?;
    Ok(exit::DONE)
}

/// Shows how many candidates there are, N, the ranks of the first trial, and what had to be assumed.
fn show_space(out: &mut impl Write, rehearsed: &Rehearsed) -> std::io::Result<()> {
    let Rehearsed { ranks, target: TargetOrder { n, why, note }, candidates, usual, .. } = rehearsed;
    writeln!(out, "# {} at N = {n} ({why}); the first trial:", counted(*candidates, "candidate"))?;
    let (p, q, threads) = (usual.hpl.p, usual.hpl.q, usual.engine.threads);
    writeln!(out, "# {} ({p}×{q}) of {}", counted(p * q, "rank"), counted(threads, "thread"))?;
    for note in ranks.room.notes.iter().chain(note) {
        writeln!(out, "# {note}")?;
    }
    Ok(())
}

/// Shows the GPUs of this host that the session would compare with its processors.
fn show_gpus(out: &mut impl Write, program: &Path) -> std::io::Result<()> {
    for (platform, gpus) in
        gpus::look(program).into_iter().filter_map(|(platform, found)| Some((platform, found.ok()?)))
    {
        writeln!(
            out,
            "# {gpus}: where short runs there are faster than the processors, the session is on them, as with --engine {platform}"
        )?;
    }
    Ok(())
}

/// Makes sure that the programs are there, and that ranks are started where no job has shown that.
fn can_start(site: &Site, usual: &Candidate) -> anyhow::Result<()> {
    site.engine.check_programs()?;
    match (&site.engine, &site.job) {
        (Engine::Launched(mpi), None) => bindings(mpi, usual.hpl.ranks().min(2), 1).map(drop),
        _ => Ok(()),
    }
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
    site: &Site,
    room: &Room,
    (spec, limits): (&DomainSpec, &Limits),
) -> anyhow::Result<TargetOrder> {
    let (engine, budget) = (&site.engine, &site.budget);
    // A session calibrates nodes that it has found.
    let machine = site.machine.as_ref().filter(|_| args.machine.is_some());
    let n = args.n.map(|n| n as usize);
    if machine.is_none() && (engine.calibrates() || args.sbatch.is_some()) {
        let example =
            || (example_n(spec, engine, limits), "an example: a session chooses it after its calibration".to_owned());
        let (n, why) = n.map_or_else(example, |n| (n, prepare::limit(true, false, None)));
        return Ok(TargetOrder { n, why, note: None });
    }
    let Modelled { machine, note } = room.model(engine, machine, spec, n, budget).map_err(bad_input)?;
    let predictor = Predictor::new(&machine).map_err(bad_input)?.slowed(spec.unequal.clone());
    let target = prepare::target(engine, (spec, limits), &predictor, budget, n)?;
    let why = prepare::limit(n.is_some(), target.limited_by_budget, target.n_memory);
    Ok(TargetOrder { n: target.n, why, note })
}

/// [`EXAMPLE_N`], or the largest order that fits the memory, as a session would choose no larger one.
fn example_n(spec: &DomainSpec, engine: &Engine, limits: &Limits) -> usize {
    // A batch script is for other nodes, whose memory is not known.
    if spec.memory_bytes == u64::MAX {
        return EXAMPLE_N;
    }
    match prepare::largest_n_within(spec, engine, limits) {
        // What is missing is said of the example.
        0 => EXAMPLE_N,
        largest => EXAMPLE_N.min(prepare::rounded(largest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dry run said that the session could not start.
    #[test]
    fn the_example_fits_the_memory() {
        let spec = |memory_bytes| DomainSpec { cores: 2, memory_bytes, ..facts().domain_spec(0) };
        let of = |memory_bytes| example_n(&spec(memory_bytes), &Engine::Ours, &Limits::default());
        assert_eq!([u64::MAX, 64 << 30, 0].map(of), [EXAMPLE_N; 3]);
        let n = of(500 << 20);
        assert!((5000..EXAMPLE_N).contains(&n), "{n}");
        assert_eq!(Engine::Ours.check_fits(&DomainSpec { n, ..spec(500 << 20) }), Ok(()));
    }
}
