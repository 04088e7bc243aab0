//! `hpl-tune [tune]`: detect, calibrate, search, verify, report.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use crate::cli::TuneArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::power::settings::{FoundSettings, Restored};
use crate::record::Finished;
use crate::record::folder::RunFolder;
use crate::record::session::Session;
use crate::record::store::{Repairs, Store};
use crate::search::budget::Budget;
use crate::search::drive::SessionEnd;
use crate::search::interrupt::Interrupt;
use crate::search::progress::Progress;
use crate::session::engine::Engine;

mod agents;
mod ask;
mod begin;
mod binding;
mod calibrated;
mod ended;
mod given;
mod moved;
mod nodes;
mod other_host;
mod placed;
mod plan;
mod rehearse;
mod script;
mod search;
mod searched;
mod settle;
mod varied;

use begin::{begin, within_job};
use ended::{caught, exit_code, say_how_it_ended, write_results};
use moved::{Found, on_nodes_of_job, stored};
use other_host::go_on_here;
use search::{Sitting, search};

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
    if args.shared_folder {
        RunFolder::let_others_read();
    }
    let mut restored = Restored::Nothing;
    let (folder, _lock, mut session) = match &args.resume {
        Some(path) => {
            let (folder, lock, mut session) = stored(path)?;
            if session.is_shared() {
                RunFolder::let_others_read();
            }
            // Where the settings are those of another node, nothing of the session is changed.
            restored = put_back(&folder, &args.power_root)?;
            go_on_here(&mut session, &folder)?;
            (folder, lock, session)
        }
        None => begin(args, budget, &program, &interrupt)?,
    };
    if asks {
        // So that the command says all that was asked for.
        session.command += &format!(" --budget {}s", session.budget_s);
    }
    let engine = Engine::of(&session, &folder)?;
    let mut progress = Progress::new(session.budget_s, args.output.quiet);
    let store = opened(folder, session, &engine, &program, &progress)?;
    let budget = budget_of(&store, started, args.resume.is_some())?;
    say_beginning(&store, &engine, restored, args.resume.is_some(), &progress);
    let mut at_work = AtWork { store, engine, budget, is_moved: false };
    let over = if args.resume.is_some() { at_work.resume(&program, &progress, &interrupt)? } else { None };
    let ended = over.map_or_else(|| at_work.search(args, &program, &mut progress, &interrupt), Ok);
    match ended {
        Err(error) if at_work.store.is_empty() => {
            progress.end();
            if args.resume.is_none() && exit::code(&error) == exit::BAD_INPUT {
                at_work.store.folder().discard();
            }
            Err(error)
        }
        ended => at_work.close(ended, &program, &progress, args.output.json),
    }
}

/// A session at work.
struct AtWork {
    store: Store,
    engine: Engine,
    budget: Budget,
    /// Whether `session.toml` is of fewer nodes than the store, as the record could not be opened on these.
    is_moved: bool,
}

impl AtWork {
    /// Brings a session that is resumed to the nodes that its job has now, without those of its own that answer no more; how it ended,
    /// where it goes on on none. Where it is over no program is started, and it stays on the nodes that it had.
    ///
    /// # Errors
    /// Processes that cannot be started any more, or a record that could not be opened on other nodes.
    fn resume(
        &mut self,
        program: &Path,
        progress: &Progress,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<SessionEnd>> {
        if is_over(&self.store, &self.budget) {
            progress.line("nothing is run: the budget of this session is used; another session needs another folder");
            return Ok(Some(SessionEnd::Done));
        }
        let session = match on_nodes_of_job(&self.store, interrupt)? {
            Found::AsBefore => return Ok(None),
            Found::Now(session) => *session,
            Found::Silent(lost) => match self.without(&lost)? {
                Some(session) => session,
                None => return Ok(Some(SessionEnd::NodesLost(lost))),
            },
        };
        self.move_to(session, program)?;
        Ok(None)
    }

    /// Searches until the session is over, after the loss of nodes on those that are left; how it ended.
    ///
    /// # Errors
    /// What broke off the session; what it has until then is in the store.
    fn search(
        &mut self,
        args: &TuneArgs,
        program: &Path,
        progress: &mut Progress,
        interrupt: &Interrupt,
    ) -> anyhow::Result<SessionEnd> {
        loop {
            if is_over(&self.store, &self.budget) {
                return Ok(SessionEnd::Done);
            }
            let sitting = Sitting { engine: &self.engine, program, args, interrupt };
            let ended = caught(|| search(&mut self.store, &mut self.budget, progress, sitting))?;
            let SessionEnd::NodesLost(lost) = &ended else { return Ok(ended) };
            let Some(session) = self.without(lost)? else { return Ok(ended) };
            self.is_moved = true;
            self.move_to(session, program)?;
            self.is_moved = false;
        }
    }

    /// The session on the nodes that are left without those `lost`, as [`moved::without`] has it. Stores what was used of the budget.
    fn without(&mut self, lost: &[String]) -> anyhow::Result<Option<Session>> {
        let Self { store, budget, .. } = self;
        store.update_session(|session| session.elapsed_s = budget.spent_s())?;
        moved::without(store.session(), store.folder(), lost, store.rows(), budget)
    }

    /// Opens the record for `session` on other nodes, whose rows are sorted anew: those before belong to the nodes before. What was mended
    /// was said when they were read first.
    ///
    /// # Errors
    /// A record that cannot be opened; the store stays that of the nodes before.
    fn move_to(&mut self, session: Session, program: &Path) -> anyhow::Result<()> {
        let folder = self.store.folder().clone();
        let engine = Engine::of(&session, &folder)?;
        let (store, _) = Store::open(folder, session, &engine.runs(program))?;
        (self.store, self.engine) = (store.with_table_by_child(), engine);
        Ok(())
    }

    /// Says how the session ended, writes the results, and shows the summary; the exit code.
    fn close(
        self,
        ended: anyhow::Result<SessionEnd>,
        program: &Path,
        progress: &Progress,
        json: bool,
    ) -> anyhow::Result<u8> {
        let Self { mut store, engine, budget, is_moved } = self;
        store.note_stop();
        say_how_it_ended(&ended, &store, progress);
        progress.end();
        if store.folder().check_space(0).is_err() {
            // What is written now are the last records.
            store.folder().drop_ballast();
        }
        // The summary is shown whatever happened; the first error is reported.
        let closed = match is_moved {
            // Its session.toml is of other nodes, and has its time.
            true => Ok(()),
            false => store.update_session(|session| session.elapsed_s = budget.spent_s()),
        };
        let (written, published) = write_results(&store, &engine.runs(program), program, json);
        let ended = ended?;
        closed.and(written)?;
        // Whoever closed the pipe has seen enough; how the session ended stays true.
        published.or_else(|error| if exit::closed_pipe(&error) { Ok(()) } else { Err(error) })?;
        Ok(exit_code(ended, store.rows()))
    }
}

/// Puts back the settings of the node that a session left, where it was killed together with the process that should have done it.
fn put_back(folder: &RunFolder, power_root: &Path) -> anyhow::Result<Restored> {
    let restored = FoundSettings::restore(&folder.root().join(FoundSettings::NAME), power_root);
    restored.map_err(|problem| bad_input(format!("settings of the node: {problem}")))
}

/// The record of the session; says what was mended.
fn opened(
    folder: RunFolder,
    session: Session,
    engine: &Engine,
    program: &Path,
    progress: &Progress,
) -> Result<Store, RecordError> {
    let (store, repairs) = Store::open(folder, session, &engine.runs(program))?;
    say_repairs(&repairs, progress);
    Ok(store.with_table_by_child())
}

/// The budget of the session since it `started`, of one that is resumed what its job has time for.
fn budget_of(store: &Store, started: Instant, is_resumed: bool) -> anyhow::Result<Budget> {
    let (budget_s, spent_s) = (store.session().budget_s, store.spent_s());
    let total_s = if is_resumed { within_job(budget_s, spent_s, store.session().is_simulated())? } else { budget_s };
    Ok(Budget::new(started, total_s, spent_s).of_session(budget_s))
}

/// Says what was mended when the record was opened.
fn say_repairs(repairs: &Repairs, progress: &Progress) {
    repairs.bad_lines.iter().for_each(|line| progress.warn(&line.to_string()));
    for trial in &repairs.adopted {
        progress.line(&format!("trial {trial} had finished, but was not in the journal: recorded now"));
    }
    for trial in &repairs.killed {
        progress.warn(&format!("trial {trial} was killed with the session each time that it ran: recorded as failed"));
    }
}

/// Says where the results are and what runs.
fn say_beginning(store: &Store, engine: &Engine, restored: Restored, is_resumed: bool, progress: &Progress) {
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
    match engine {
        Engine::Foreign(foreign) if is_resumed => {
            let profile = foreign.profile();
            progress.line(&format!("engine.toml runs {} by: {}", profile.program, profile.command.join(" ")));
        }
        Engine::Launched(job) if is_resumed && !store.session().is_simulated() => {
            progress.line(&format!("session.toml runs {} by: {}", job.program.display(), job.launcher));
        }
        _ => {}
    }
}

/// Whether no time is left, after the final run: for any run as short as one so far.
fn is_over(store: &Store, budget: &Budget) -> bool {
    let walls_s = store.rows().iter().filter(|row| row.passed()).map(Finished::wall_s);
    let shortest_s = walls_s.reduce(f64::min).filter(|_| store.has_final());
    budget.left_s() <= shortest_s.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::tests::session;

    /// The session ended without a summary.
    #[test]
    fn a_record_that_cannot_be_opened_for_fewer_nodes_stays_that_of_the_nodes_before() {
        let home = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&home.path().join("run")).unwrap();
        let journal = folder.journal();
        let progress = Progress::new(60.0, true);
        let program = Path::new("hpl-tune");
        let store = opened(folder, session(), &Engine::Ours, program, &progress).unwrap();
        let budget = Budget::new(Instant::now(), 60.0, 0.0);
        let mut at_work = AtWork { store, engine: Engine::Ours, budget, is_moved: false };
        at_work.move_to(session(), program).unwrap();
        std::fs::remove_file(&journal).unwrap();
        std::fs::create_dir(&journal).unwrap();
        at_work.is_moved = true;
        at_work.move_to(session(), program).unwrap_err();
        let session_toml = at_work.store.folder().session_toml();
        at_work.close(Ok(SessionEnd::Done), program, &progress, false).unwrap_err();
        assert!(!session_toml.exists(), "that of fewer nodes stays");
    }
}
