//! `hpl-tune [tune]`: detect, calibrate, search, verify, report.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use objectives::predict::Predictor;
use objectives::real::{Extent, Grids, PairRule};

use crate::cli::TuneArgs;
use crate::cluster::launched::lost::lost;
use crate::commands::space::{limits, of_limits};
use crate::exit::{self, bad_input};
use crate::power::settings::{FoundSettings, NodeSetter, Restored};
use crate::record::Finished;
use crate::record::folder::RunFolder;
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

mod agents;
mod ask;
mod begin;
mod binding;
mod calibrated;
mod ended;
mod given;
mod moved;
mod nodes;
mod placed;
mod plan;
mod rehearse;
mod settle;
mod varied;

use begin::{begin, within_job};
use binding::say_binding;
use calibrated::calibrated;
use ended::{exit_code, say_how_it_ended, write_results};
use moved::resume;
use nodes::{Parts, from_nodes};
use plan::{earlier_runs, say_plan};
use settle::{expert, resolved, room, same_machine, settle, spec};

/// Starts or resumes a session and runs it to its end.
///
/// # Errors
/// Bad input, or records that could not be written.
pub fn tune(args: &TuneArgs) -> anyhow::Result<u8> {
    let started = Instant::now();
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    if args.resume.is_none() {
        given::check(args, &program)?;
    }
    if args.dry_run || args.sbatch.is_some() {
        return rehearse::rehearse(args, &program);
    }
    let asks = args.budget.is_none() && args.resume.is_none();
    let budget = if asks { ask::budget()? } else { args.budget };
    if asks && budget.is_none() {
        return Ok(exit::BAD_INPUT);
    }
    // An answer may take a while.
    let started = if asks { Instant::now() } else { started };
    let interrupt = Interrupt::listen().context("cannot listen to signals")?;
    RunFolder::let_others_write_nothing();
    let (folder, _lock, mut session) = match &args.resume {
        Some(path) => resume(path)?,
        None => begin(args, budget, &program, &interrupt)?,
    };
    if asks {
        // So that the command says all that was asked for.
        session.command += &format!(" --budget {}s", session.budget_s);
    }
    let mut engine = Engine::of(&session, &folder)?;
    // Of a session that was killed together with the process that should have done it.
    let restored = FoundSettings::restore(&folder.root().join(FoundSettings::NAME), &args.power_root);
    let restored = restored.map_err(|problem| bad_input(format!("settings of the node: {problem}")))?;
    let mut progress = Progress::new(session.budget_s, args.output.quiet);
    let (store, repairs) = Store::open(folder, session, &engine.runs(&program))?;
    let mut store = store.with_table_by_child();
    repairs.bad_lines.iter().for_each(|line| progress.warn(&line.to_string()));
    for trial in repairs.adopted {
        progress.line(&format!("trial {trial} had finished, but was not in the journal: recorded now"));
    }
    let budget_s = store.session().budget_s;
    let total_s = if args.resume.is_some() {
        within_job(budget_s, store.spent_s(), store.session().is_simulated())?
    } else {
        budget_s
    };
    let mut budget = Budget::new(started, total_s, store.spent_s()).of_session(budget_s);

    progress.line(&format!("results in {}", store.folder().root().display()));
    match restored {
        Restored::Nothing => {}
        Restored::Done => progress.line("the settings of the node are as they were before this session"),
        Restored::Rebooted => progress.line("the node was started anew, so its settings are the kernel's own"),
    }
    if store.session().is_simulated() {
        progress
            .line("simulated: HPL does not run, nothing is measured, and all times are those of the simulated cluster");
    }
    match &engine {
        Engine::Foreign(foreign) if args.resume.is_some() => {
            let profile = foreign.profile();
            progress.line(&format!("engine.toml runs {} by: {}", profile.program, profile.command.join(" ")));
        }
        Engine::Launched(job) if args.resume.is_some() && !store.session().is_simulated() => {
            progress.line(&format!("session.toml runs {} by: {}", job.program.display(), job.launcher));
        }
        _ => {}
    }
    if args.resume.is_some() && is_over(&store, &budget) {
        progress.line("nothing is run: the budget of this session is used; another session needs another folder");
    }
    let ended = loop {
        if is_over(&store, &budget) {
            break Ok(SessionEnd::Done);
        }
        let ended = search(&mut store, &engine, &mut budget, &program, &mut progress, &interrupt, args);
        let Ok(SessionEnd::NodesLost(lost)) = &ended else { break ended };
        store.update_session(|session| session.elapsed_s = budget.spent_s())?;
        let folder = store.folder().clone();
        let session = match moved::without(store.session(), &folder, lost, store.rows(), budget.left_s()) {
            Ok(Some(session)) => session,
            Ok(None) => break ended,
            Err(error) => break Err(error),
        };
        // Its rows are sorted anew: those before belong to other nodes.
        drop(store);
        engine = Engine::of(&session, &folder)?;
        store = Store::open(folder, session, &engine.runs(&program))?.0.with_table_by_child();
    };
    let ended = match ended {
        Err(error) if store.is_empty() => {
            progress.end();
            if args.resume.is_none() && exit::code(&error) == exit::BAD_INPUT {
                store.folder().discard();
            }
            return Err(error);
        }
        ended => ended,
    };
    say_how_it_ended(&ended, &store, &progress);
    progress.end();
    // The summary is shown whatever happened; the first error is reported.
    let closed = store.update_session(|session| session.elapsed_s = budget.spent_s());
    let (written, published) = write_results(&store, &engine.runs(&program), &program, args.output.json);
    let ended = ended?;
    closed.and(written)?;
    // Whoever closed the pipe has seen enough; how the session ended stays true.
    published.or_else(|error| if exit::closed_pipe(&error) { Ok(()) } else { Err(error) })?;
    Ok(exit_code(ended, store.rows()))
}

/// Whether no time is left, after the final run: for any run as short as one so far.
fn is_over(store: &Store, budget: &Budget) -> bool {
    let walls_s = store.rows().iter().filter(|row| row.passed()).map(Finished::wall_s);
    let shortest_s = if store.has_final() { walls_s.fold(f64::INFINITY, f64::min) } else { 0.0 };
    budget.left_s() <= shortest_s
}

/// Measures, chooses what is searched, and runs the session to its end.
fn search(
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
        budget: &mut *budget,
        runs: &runs,
        power: &power,
        accelerators: &accelerators,
        agents: agents.as_deref(),
        store: &mut *store,
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
            (machine, predictor.slowed(store.session().unequal.clone()).found_at(store.session().settings.as_found()))
        }
        None => (machine, predictor),
    };
    let extent = store.session().extent;
    let model = SessionModel::new(domain, &machine, predictor, (earlier, found.beyond), engine.is_ours(), extent)
        .with_objective(objective);
    if given && !model.informed {
        progress.warn("the earlier runs are not used: no two of them can be compared");
    }
    store.write_space(domain)?;
    let grids = if model.predictor.has_timeline(&baseline) { Grids::All } else { Grids::Covered };
    let setup = Setup {
        domain,
        strategy: strategy.as_ref(),
        designed: store.session().engine != Session::OURS,
        baseline: &baseline,
        expert: expert.as_ref(),
        extent,
        n_is_chosen: store.session().n_fixed,
        // The power of two in one process is that of neither.
        pairs: if extent == Extent::Windows && objective.is_rate() {
            runs.pair_rule(grids).among(domain.points().iter().map(|point| domain.candidate(point)))
        } else {
            PairRule::Never
        },
        objective,
        seed: store.session().seed,
        until_gain: store.session().until_gain,
        earlier_rows: store.rows().len(),
    };
    say_plan(store, &setup, &model, budget, progress);
    say_binding(engine, &baseline, store.session(), program, progress)?;

    let final_n = match (store.session().n_fixed, extent) {
        (true, Extent::Whole) => spec.n..=spec.n,
        (_, Extent::Windows) => prepare::SMALLEST_N.min(spec.n)..=spec.n,
        (false, Extent::Whole) => prepare::SMALLEST_N.min(spec.n)..=prepare::largest_safe_n(&spec, engine),
    };
    let mut drive = Drive {
        setup,
        model,
        final_n,
        known: KnownRows::default(),
        runner: TrialRunner {
            budget,
            runs: &runs,
            power: &power,
            accelerators: &accelerators,
            agents: agents.as_deref(),
            store,
            progress,
            interrupt,
            objective,
            settings: setter.as_ref(),
            lost: &lost,
            verbose,
        },
    };
    let ended = drive.run();
    drop(drive);
    if let Some(Err(problem)) = setter.map(NodeSetter::end) {
        progress.warn(&format!("settings of the node: {problem}"));
    }
    Ok(ended?)
}
