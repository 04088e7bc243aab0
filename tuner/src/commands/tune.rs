//! `hpl-tune [tune]`: detect, calibrate, search, verify, report.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use objectives::predict::Predictor;
use objectives::real::RealRuns;
use space::KernelChoice;
use space::domain::{DomainSpec, HplDomain, default_candidate};
use space::machine::Machine;

use crate::budget::{Budget, CLOSING_S, SMALLEST_BUDGET_S};
use crate::cli::TuneArgs;
use crate::commands::report::publish;
use crate::cost::CostEstimate;
use crate::drive::{Drive, Ended};
use crate::exit::{self, bad_input};
use crate::folder::{Lock, RunFolder, replace_file};
use crate::forecast::Forecast;
use crate::interrupt::Interrupt;
use crate::prepare::{self, Target};
use crate::progress::{Progress, human};
use crate::record::{Identity, Outcome, Row};
use crate::session::{SESSION_SCHEMA, Session};
use crate::store::Store;
use crate::strategy::Prior;
use crate::{calibrate, prior, strategy};

/// Starts or resumes a session and runs it to its end.
///
/// # Errors
/// Bad input, or records that could not be written.
pub fn tune(args: &TuneArgs) -> anyhow::Result<u8> {
    let started = Instant::now();
    let interrupt = Interrupt::listen().context("cannot listen to signals")?;
    let (folder, _lock, session) = match &args.resume {
        Some(path) => resume(path)?,
        None => begin(args)?,
    };
    let mut progress = Progress::new(session.budget_s, args.output.quiet);
    let mut store = Store::open(folder, session, &progress)?;
    let budget = Budget::new(started, store.session().budget_s, store.spent_s());
    let program = std::env::current_exe().context("cannot find the program's own path")?;

    progress.line(&format!("results in {}", store.folder().root().display()));
    let ended = if store.has_final() || budget.left_s() <= 0.0 {
        Ok(Ended::Done)
    } else {
        search(&mut store, budget, &program, &mut progress, &interrupt, args.output.verbose)
    };
    let ended = match ended {
        Err(error) if store.rows().is_empty() => {
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
    // The summary is shown whatever happened; the first error is the one to tell.
    let closed = store.close(&budget);
    let published = publish(store.folder(), store.session(), store.rows(), &program, args.output.json);
    let ended = ended?;
    closed?;
    // Whoever closed the pipe has seen enough; how the session ended stays true.
    published.or_else(|error| if exit::closed_pipe(&error) { Ok(()) } else { Err(error) })?;
    Ok(exit_code(ended, store.rows()))
}

/// Measures, chooses what is searched, and runs the session to its end.
fn search(
    store: &mut Store,
    budget: Budget,
    program: &Path,
    progress: &mut Progress,
    interrupt: &Interrupt,
    verbose: bool,
) -> anyhow::Result<Ended> {
    same_machine(store.session(), progress)?;
    let path = store.folder().machine_toml();
    if !path.exists() && !calibrate::in_child(program, store, &budget, progress, interrupt)? {
        return Ok(Ended::Interrupted);
    }
    let (machine, _) = read_machine(&path)?;
    let predictor = Predictor::new(&machine).map_err(bad_input)?;
    let spec = spec(store, &machine, &predictor, &budget)?;
    let domain = HplDomain::new(&spec).map_err(bad_input)?;
    let prior = prior::table(&domain, &predictor);
    let baseline = default_candidate(&spec);
    store.write_space(&domain)?;
    plan(store, &domain, &prior, &predictor, &budget, progress)?;

    let strategy = strategy::by_name(&store.session().strategy)
        .ok_or_else(|| bad_input(format!("session.toml: unknown strategy '{}'", store.session().strategy)))?;
    let final_n = if store.session().n_fixed {
        spec.n..=spec.n
    } else {
        prepare::SMALLEST_N.min(spec.n)..=prepare::largest_safe_n(&spec)
    };
    let mut drive = Drive {
        domain: &domain,
        prior: &prior,
        predictor: &predictor,
        strategy: strategy.as_ref(),
        baseline: &baseline,
        budget,
        final_n,
        runs: &RealRuns::new(program.to_path_buf()),
        store,
        progress,
        interrupt,
        verbose,
    };
    Ok(drive.run()?)
}

fn say_how_it_ended(ended: &anyhow::Result<Ended>, store: &Store, progress: &Progress) {
    let failed = store.rows().last().and_then(|row| row.failure_detail.as_deref()).unwrap_or("no trial fitted");
    let folder = objectives::real::quoted([store.folder().root()]).join("");
    match ended {
        Ok(Ended::Interrupted) => progress.line(&format!("stopped; go on with: hpl-tune --resume {folder}")),
        Ok(Ended::NothingWorks) => progress.warn(&format!(
            "trial after trial failed, the last one: {failed}; when this is mended go on with: hpl-tune --resume {folder}"
        )),
        Ok(Ended::Done) if !store.rows().iter().any(|row| row.passed) => {
            progress.warn(&format!("no trial succeeded, the last one: {failed}"));
        }
        Ok(Ended::Done) if !store.has_final() => {
            progress.warn("the budget was used up before the final run; the best of the trials is shown");
        }
        Ok(Ended::Done) | Err(_) => {}
    }
}

fn exit_code(ended: Ended, rows: &[Row]) -> u8 {
    let wrong = |row: &Row| row.outcome == Outcome::Residual;
    let passed = rows.iter().any(|row| row.passed);
    match ended {
        Ended::Interrupted => exit::INTERRUPTED,
        Ended::Done if passed => {
            let last = rows.last().filter(|row| row.strategy == Identity::FINAL);
            if last.is_some_and(wrong) { exit::RESIDUAL } else { exit::DONE }
        }
        Ended::NothingWorks | Ended::Done if rows.last().is_some_and(wrong) => exit::RESIDUAL,
        Ended::NothingWorks | Ended::Done => exit::NO_TRIAL,
    }
}

/// A new session in a new folder.
fn begin(args: &TuneArgs) -> anyhow::Result<(RunFolder, Lock, Session)> {
    let budget_s = args.budget.map_or(0.0, |budget| budget.as_secs_f64());
    if budget_s < SMALLEST_BUDGET_S {
        return Err(bad_input(format!(
            "--budget {budget_s} s is too short for a calibration, a baseline and a verified run; give at least 30s"
        )));
    }
    let facts = hpl::host::facts();
    let now = jiff::Timestamp::now();
    let cores = facts.cores_allowed.clone();
    let wanted = args.ranks.unwrap_or(1).saturating_mul(args.threads.unwrap_or(1));
    if wanted > cores.len() as u64 {
        return Err(bad_input(format!(
            "--ranks and --threads need {wanted} cores, {} are available; lower them",
            cores.len()
        )));
    }
    let machine = args.machine.as_deref().map(read_machine).transpose()?;
    let (folder, lock) = match &args.out {
        Some(root) => RunFolder::create(root)?,
        None => RunFolder::create_numbered(&RunFolder::default_path(&facts.hostname, now))?,
    };
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
        strategy: args.strategy.clone(),
        cores,
        memory_bytes: 0,
        kernels: args.blas.clone(),
        ranks: args.ranks.map(|r| r as usize),
        threads: args.threads.map(|t| t as usize),
        n: args.n.map(|n| n as usize),
        n_fixed: args.n.is_some(),
        n_memory: None,
        n_limited_by_budget: false,
    };
    let given = machine.map_or(Ok(()), |(_, text)| replace_file(&folder.machine_toml(), text.as_bytes()));
    if let Err(error) = given.and_then(|()| session.save(&folder.session_toml())) {
        folder.discard();
        return Err(error.into());
    }
    Ok((folder, lock, session))
}

fn resume(path: &Path) -> anyhow::Result<(RunFolder, Lock, Session)> {
    let folder = RunFolder::open(path)?;
    let lock = folder.lock()?;
    let session = Session::load(&folder.session_toml())?;
    Ok((folder, lock, session))
}

/// Refuses to go on where runs cannot be the same; warns where they may differ.
fn same_machine(session: &Session, progress: &Progress) -> anyhow::Result<()> {
    let facts = hpl::host::facts();
    let (needed, found) = (session.cores.len(), facts.cores_allowed.len());
    if needed > found {
        return Err(bad_input(format!(
            "the session uses {needed} cores, {found} are available here; resume it where it was started"
        )));
    }
    if let KernelChoice::Blas(path) = &session.kernels
        && !path.exists()
    {
        return Err(bad_input(format!(
            "the session's BLAS library {} is gone; put it back, or start a new session with --blas",
            path.display()
        )));
    }
    if session.host != facts.hostname {
        progress.warn(&format!(
            "the session was started on {}, this is {}: their times may not compare",
            session.host, facts.hostname
        ));
    }
    Ok(())
}

/// A machine.toml, checked, and its text.
fn read_machine(path: &Path) -> anyhow::Result<(Machine, String)> {
    let text =
        std::fs::read_to_string(path).map_err(|error| bad_input(format!("cannot read {}: {error}", path.display())))?;
    let machine = Machine::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    Ok((machine, text))
}

/// What is searched: on a resume as before, else N as chosen now. Stores the choice.
fn spec(store: &mut Store, machine: &Machine, predictor: &Predictor, budget: &Budget) -> anyhow::Result<DomainSpec> {
    let session = store.session();
    let mut spec = DomainSpec {
        n: session.n.unwrap_or(0),
        cores: session.cores.len(),
        memory_bytes: prepare::usable_bytes(machine),
        kernels: resolved(session, machine)?,
        ranks: session.ranks,
        threads: session.threads,
    };
    let n_memory = prepare::largest_safe_n(&spec);
    let target = match session.n {
        Some(n) => Target { n, n_memory, limited_by_budget: session.n_limited_by_budget },
        None => prepare::choose_n(&spec, predictor, budget.run_s()).map_err(bad_input)?,
    };
    spec.n = target.n;
    store.update_session(|session| {
        session.n = Some(target.n);
        session.n_memory = Some(target.n_memory);
        session.n_limited_by_budget = target.limited_by_budget;
        session.memory_bytes = spec.memory_bytes;
        session.kernels = spec.kernels.clone();
    })?;
    Ok(spec)
}

/// The kernels of the session: what the user named, or what the calibration chose.
fn resolved(session: &Session, machine: &Machine) -> anyhow::Result<KernelChoice> {
    let choice = match &session.kernels {
        KernelChoice::Auto => KernelChoice::from(machine.host.kernels.clone()),
        named => named.clone(),
    };
    match choice {
        KernelChoice::Auto => Err(bad_input("machine.toml: [host] kernels does not say which kernels; give --blas")),
        choice => Ok(choice),
    }
}

/// Says what will be done before it is done, and refuses what cannot work.
fn plan(
    store: &Store,
    domain: &HplDomain,
    prior: &dyn Prior,
    predictor: &Predictor,
    budget: &Budget,
    progress: &Progress,
) -> anyhow::Result<()> {
    use space::dims::Space;
    let session = store.session();
    let run_s = prepare::best_run_s(domain.spec(), predictor).map_err(bad_input)?;
    let n = domain.spec().n;
    if run_s > budget.left_s() && store.rows().is_empty() {
        return Err(bad_input(format!(
            "one run at N={n} is predicted to take {}, {} of the budget are left; lower --n or raise --budget",
            human(run_s),
            human(budget.left_s())
        )));
    }
    let limit = match (session.n_fixed, session.n_limited_by_budget, session.n_memory) {
        (true, ..) => "as asked".to_owned(),
        (_, true, Some(n)) => format!("limited by the budget; memory allows N = {n}"),
        _ => "the largest that memory allows".to_owned(),
    };
    progress.line(&format!("N = {n} ({limit}), kernels {}", session.kernels));
    progress.line(&format!(
        "{} candidates, {} distinct predictions",
        domain.points().len(),
        prior::distinct(domain, prior)
    ));
    let fastest = prior::fastest(domain, prior);
    let reserve_s = CostEstimate::new(store.rows(), predictor).at_most(&fastest) + CLOSING_S;
    let forecast = Forecast { total_s: budget.total_s(), spent_s: budget.spent_s(), reserve_s, trial_s: run_s };
    progress.line(&forecast.sentence());
    Ok(())
}
