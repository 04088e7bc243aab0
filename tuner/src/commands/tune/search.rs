//! A sitting of a session: measures what is missing, chooses what is searched, and runs the trials.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::domain::DomainSpec;

use super::binding::say_binding;
use super::calibrated::calibrated;
use super::nodes::from_nodes;
use super::plan::{earlier_runs, say_plan};
use super::searched::{ModelMachine, Searched};
use super::settle::same_machine;
use super::{agents, varied};
use crate::agents::NodeAgents;
use crate::cli::TuneArgs;
use crate::cluster::launched::lost::lost;
use crate::error::RecordError;
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
use crate::search::strategy::{self, Strategy};
use crate::session::engine::Engine;
use crate::session::environment;
use crate::session::input::read_machine;
use crate::session::power::{self, SessionNodes};
use crate::session::preflight;
use crate::session::prepare;
use crate::session::settings;

/// What a sitting is made with.
#[derive(Clone, Copy)]
pub(super) struct Sitting<'a> {
    pub(super) engine: &'a Engine,
    /// The path of `hpl-tune`.
    pub(super) program: &'a Path,
    pub(super) args: &'a TuneArgs,
    pub(super) interrupt: &'a Interrupt,
}

/// Measures, chooses what is searched, and runs the session to its end.
pub(super) fn search(
    store: &mut Store,
    budget: &mut Budget,
    progress: &mut Progress,
    sitting: Sitting<'_>,
) -> anyhow::Result<SessionEnd> {
    let Sitting { engine, program, args, interrupt } = sitting;
    same_machine(store.session())?;
    let set = environment::warning(engine, store.session().kernels.as_ref(), program);
    set.iter().for_each(|warning| progress.warn(warning));
    let Observers { agents, power } = observers(store, sitting, progress)?;
    if !measured(store, sitting, budget, progress)? {
        return Ok(SessionEnd::Interrupted);
    }
    let (searched, model) = Searched::settle(store, engine, budget)?;
    let setter = setter(store, sitting)?;
    keep_notes(store, &searched, &model.predictor, set, progress)?;
    let earlier = earlier_runs(store, searched.domain(), progress)?;
    let given = !earlier.is_empty();
    let strategy = strategy::by_name(&store.session().strategy)
        .ok_or_else(|| bad_input(format!("session.toml: unknown strategy '{}'", store.session().strategy)))?;
    let runs = engine.runs(program);
    let objective = store.session().objective;
    let of_runs = SessionNodes { session: store.session(), engine, described: &searched.nodes };
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
        verbose: args.output.verbose,
    };
    let Some(found) = from_nodes(&searched.parts(engine, &model.machine, strategy.as_ref()), &mut runner)? else {
        return Ok(SessionEnd::Interrupted);
    };
    let ModelMachine { machine, predictor } = model.corrected(found.machine, runner.store.session())?;
    let (known, extent) = ((earlier, found.beyond), runner.store.session().extent);
    let model = SessionModel::new(searched.domain(), &machine, predictor, known, engine.is_ours(), extent)
        .with_objective(objective);
    if given && !model.informed {
        runner.progress.warn("the earlier runs are not used: no two of them can be compared");
    }
    let setup = setup(&searched, strategy.as_ref(), &model, &runner, sitting)?;
    let final_n = final_n(runner.store.session(), &searched.spec, engine);
    let runner = TrialRunner { settings: setter.as_ref(), ..runner };
    let mut drive = Drive { setup, model, final_n, known: KnownRows::default(), runner };
    let ended = drive.run();
    drop(drive);
    if let Some(Err(problem)) = setter.map(NodeSetter::end) {
        progress.warn(&format!("settings of the node: {problem}"));
    }
    Ok(ended?)
}

/// Calibrates, where that is possible and not done; `false` when a signal asked to stop.
fn measured(store: &mut Store, sitting: Sitting<'_>, budget: &Budget, progress: &mut Progress) -> anyhow::Result<bool> {
    let Sitting { engine, program, interrupt, .. } = sitting;
    if !engine.calibrates() || store.folder().machine_toml().exists() {
        return Ok(true);
    }
    if !store.session().is_simulated() {
        preflight::look(&store.session().cores, budget, progress);
    }
    calibrated(program, engine, store, budget, progress, interrupt)
}

/// What makes the settings of the node, where they are varied and still can be.
fn setter(store: &Store, sitting: Sitting<'_>) -> anyhow::Result<Option<NodeSetter>> {
    let Sitting { engine, program, args, .. } = sitting;
    if args.resume.is_some() || !store.rows().is_empty() {
        varied::check_again(store.session(), engine, &args.power_root, program)?;
    }
    settings::setter(store.session(), store.folder(), &args.power_root).map_err(bad_input)
}

/// Warns of what is assumed and of what the model cannot know, and keeps that with what else there is to note; `set`: of the environment.
fn keep_notes(
    store: &mut Store,
    searched: &Searched,
    predictor: &Predictor,
    set: Option<String>,
    progress: &Progress,
) -> Result<(), RecordError> {
    let doubts = doubts::of(predictor, searched.domain(), &searched.baseline);
    let notes: Vec<String> = searched.assumed.iter().cloned().chain(doubts).collect();
    notes.iter().for_each(|note| progress.warn(note));
    let lost_nodes = store.session().lost_nodes();
    let chosen = store.session().gpus_found.clone();
    let notes = chosen.into_iter().chain(notes).chain(set).chain(lost_nodes).collect();
    store.update_session(|session| session.notes = notes)
}

/// Keeps what is searched, and says what will be done.
fn setup<'a>(
    searched: &'a Searched,
    strategy: &'a dyn Strategy,
    model: &SessionModel<'_>,
    runner: &TrialRunner<'_>,
    sitting: Sitting<'_>,
) -> anyhow::Result<Setup<'a>> {
    let store = &*runner.store;
    store.write_space(searched.domain())?;
    let pairs = searched.pairs(runner.runs, store.session(), &model.predictor);
    let setup = searched.setup(strategy, store, pairs);
    say_plan(store, &setup, model, runner.budget, runner.progress);
    say_binding(sitting.engine, &searched.baseline, store.session(), sitting.program, runner.progress)?;
    Ok(setup)
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
fn observers(store: &Store, sitting: Sitting<'_>, progress: &Progress) -> anyhow::Result<Observers> {
    let Sitting { engine, program, args, .. } = sitting;
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
