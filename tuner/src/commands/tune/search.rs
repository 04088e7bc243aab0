//! A sitting of a session: measures what is missing, chooses what is searched, and runs the trials.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use objectives::predict::Predictor;
use objectives::real::{Extent, Grids, PairRule};
use space::domain::DomainSpec;

use super::binding::say_binding;
use super::calibrated::calibrated;
use super::nodes::{Parts, from_nodes};
use super::plan::{earlier_runs, say_plan};
use super::settle::{expert, resolved, room, same_machine, settle, spec};
use super::{agents, varied};
use crate::agents::NodeAgents;
use crate::cli::TuneArgs;
use crate::cluster::launched::lost::lost;
use crate::commands::space::{limits, of_limits};
use crate::exit::bad_input;
use crate::power::PowerReader;
use crate::power::settings::NodeSetter;
use crate::record::session::Session;
use crate::record::store::Store;
use crate::search::budget::Budget;
use crate::search::doubts;
use crate::search::drive::{Drive, KnownRows, SessionEnd, TrialRunner};
use crate::search::interrupt::Interrupt;
use crate::search::model::SessionModel;
use crate::search::progress::Progress;
use crate::search::schedule::Setup;
use crate::search::strategy;
use crate::session::engine::Engine;
use crate::session::environment;
use crate::session::input::read_machine;
use crate::session::power::{self, SessionNodes};
use crate::session::preflight;
use crate::session::prepare;
use crate::session::room::Modelled;
use crate::session::settings;

/// Measures, chooses what is searched, and runs the session to its end.
pub(super) fn search(
    store: &mut Store,
    engine: &Engine,
    budget: &mut Budget,
    program: &Path,
    progress: &mut Progress,
    interrupt: &Interrupt,
    args: &TuneArgs,
) -> anyhow::Result<SessionEnd> {
    same_machine(store.session(), progress)?;
    let set = environment::warning(engine, store.session().kernels.as_ref(), program);
    set.iter().for_each(|warning| progress.warn(warning));
    let Observers { agents, power } = observers(store, engine, program, progress, args)?;
    let path = store.folder().machine_toml();
    if engine.calibrates() && !path.exists() {
        if !store.session().is_simulated() {
            preflight::look(&store.session().cores, budget, progress);
        }
        if !calibrated(program, engine, store, budget, progress, interrupt)? {
            return Ok(SessionEnd::Interrupted);
        }
    }
    let described = path.exists().then(|| read_machine(&path)).transpose()?.map(|(machine, _)| machine);
    let room = room(store.session(), engine, described.as_ref());
    let kernels = resolved(store.session(), described.as_ref())?;
    let spec = spec(store.session(), &room, kernels)?;
    let n = store.session().n;
    let Modelled { machine, note } = room.model(engine, described.as_ref(), &spec, n, budget).map_err(bad_input)?;
    let found = store.session().settings.as_found();
    let predictor =
        Predictor::new(&machine).map_err(bad_input)?.slowed(store.session().unequal.clone()).found_at(found);
    let spec = settle(store, engine, &room, spec, &predictor, budget)?;
    let path = store.folder().limits_toml();
    let path = Some(path.as_path()).filter(|path| path.exists());
    let limits = limits(path, engine)?;
    let domain = engine.domain_at(&spec, &limits, &store.session().settings);
    let (domain, baseline) = domain.map_err(|error| of_limits(path, &error))?;
    let domain = domain.as_ref();
    let expert = expert(store, engine, &spec, &baseline, described.as_ref())?;
    if args.resume.is_some() || !store.rows().is_empty() {
        varied::check_again(store.session(), engine, &args.power_root, program)?;
    }
    let setter = settings::setter(store.session(), store.folder(), &args.power_root).map_err(bad_input)?;
    let doubts = doubts::of(&predictor, domain, &baseline);
    let notes: Vec<String> = room.notes.iter().cloned().chain(note).chain(doubts).collect();
    notes.iter().for_each(|note| progress.warn(note));
    let lost_nodes = store.session().lost_nodes();
    let chosen = store.session().gpus_found.clone();
    let notes = chosen.into_iter().chain(notes).chain(set).chain(lost_nodes).collect();
    store.update_session(|session| session.notes = notes)?;
    let earlier = earlier_runs(store, domain, progress)?;
    let given = !earlier.is_empty();
    let strategy = strategy::by_name(&store.session().strategy)
        .ok_or_else(|| bad_input(format!("session.toml: unknown strategy '{}'", store.session().strategy)))?;
    let runs = engine.runs(program);
    let objective = store.session().objective;
    let verbose = args.output.verbose;
    let nodes = described.as_ref().map_or(&[][..], |machine| &machine.nodes);
    let of_runs = SessionNodes { session: store.session(), engine, described: nodes };
    let accelerators = power::accelerators(&of_runs, &args.power_root);
    let hosts = store.session().hosts.clone();
    let job = engine.mpi_job().filter(|job| job.simulated.is_none());
    let lost = || job.map_or_else(Vec::new, |job| lost(job, &hosts, interrupt));
    let mut runner = TrialRunner {
        budget,
        runs: &runs,
        power: &power,
        accelerators: &accelerators,
        agents: agents.as_deref(),
        store,
        progress: &mut *progress,
        interrupt,
        objective,
        settings: None,
        lost: &lost,
        verbose,
    };
    let place = Parts { engine, machine: &machine, spec: &spec, limits: &limits, domain, strategy: strategy.as_ref() };
    let Some(found) = from_nodes(&place, &mut runner)? else {
        return Ok(SessionEnd::Interrupted);
    };
    let (machine, predictor) = match found.machine {
        Some(machine) => {
            let predictor = Predictor::new(&machine).map_err(bad_input)?;
            (
                machine,
                predictor
                    .slowed(runner.store.session().unequal.clone())
                    .found_at(runner.store.session().settings.as_found()),
            )
        }
        None => (machine, predictor),
    };
    let extent = runner.store.session().extent;
    let model = SessionModel::new(domain, &machine, predictor, (earlier, found.beyond), engine.is_ours(), extent)
        .with_objective(objective);
    if given && !model.informed {
        runner.progress.warn("the earlier runs are not used: no two of them can be compared");
    }
    runner.store.write_space(domain)?;
    let grids = if model.predictor.has_timeline(&baseline) { Grids::All } else { Grids::Covered };
    let setup = Setup {
        domain,
        strategy: strategy.as_ref(),
        designed: runner.store.session().engine != Session::OURS,
        baseline: &baseline,
        expert: expert.as_ref(),
        extent,
        n_is_chosen: runner.store.session().n_fixed,
        // The power of two in one process is that of neither.
        pairs: if extent == Extent::Windows && objective.is_rate() {
            runs.pair_rule(grids).among(domain.points().iter().map(|point| domain.candidate(point)))
        } else {
            PairRule::Never
        },
        objective,
        seed: runner.store.session().seed,
        until_gain: runner.store.session().until_gain,
        earlier_rows: runner.store.rows().len(),
    };
    say_plan(runner.store, &setup, &model, runner.budget, runner.progress);
    say_binding(engine, &baseline, runner.store.session(), program, runner.progress)?;

    let final_n = final_n(runner.store.session(), &spec, engine);
    let runner = TrialRunner { settings: setter.as_ref(), ..runner };
    let mut drive = Drive { setup, model, final_n, known: KnownRows::default(), runner };
    let ended = drive.run();
    drop(drive);
    if let Some(Err(problem)) = setter.map(NodeSetter::end) {
        progress.warn(&format!("settings of the node: {problem}"));
    }
    Ok(ended?)
}

/// The orders of the final run: that of the search where the user chose it and it is searched by whole runs, else up to the largest.
fn final_n(session: &Session, spec: &DomainSpec, engine: &Engine) -> RangeInclusive<usize> {
    match (session.n_fixed, session.extent) {
        (true, Extent::Whole) => spec.n..=spec.n,
        (_, Extent::Windows) => prepare::SMALLEST_N.min(spec.n)..=spec.n,
        (false, Extent::Whole) => prepare::SMALLEST_N.min(spec.n)..=prepare::largest_safe_n(spec, engine),
    }
}

/// What watches the nodes during the runs, and reads their power.
struct Observers {
    agents: Option<Arc<NodeAgents>>,
    power: PowerReader,
}

/// Starts what watches the nodes, and says what is not watched and where power is read.
fn observers(
    store: &Store,
    engine: &Engine,
    program: &Path,
    progress: &Progress,
    args: &TuneArgs,
) -> anyhow::Result<Observers> {
    let path = store.folder().machine_toml();
    let given = path.exists().then(|| read_machine(&path)).transpose()?.map(|(machine, _)| machine.nodes);
    let of_runs = SessionNodes { session: store.session(), engine, described: given.as_deref().unwrap_or_default() };
    let processes = agents::processes(&of_runs, program);
    let processes = processes.unwrap_or_else(|problem| {
        progress.warn(&problem);
        None
    });
    let agents = processes.map(|processes| processes.start(&args.power_root, store.folder().root()));
    let power = power::reader_of_nodes(&of_runs, &args.power_root, agents.as_ref());
    // Where their power is read as well, it is said of that.
    if let Some(unwatched) = agents.as_ref().filter(|_| !power.needs_nodes()).and_then(|agents| agents.unwatched()) {
        progress.warn(&format!("not watched during the runs: {unwatched}"));
    }
    power::check_nodes(store.session(), &power).map_err(bad_input)?;
    power::sentences(store.session(), &power).iter().for_each(|sentence| progress.line(sentence));
    Ok(Observers { agents, power })
}
