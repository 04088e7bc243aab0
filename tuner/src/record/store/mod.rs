//! The record of a session on disk: one place that every trial goes through when it starts and when it has ended.
//!
//! Journal and folder of a trial say what is being run before it runs, so that a run which finished while no tuner was there is
//! taken into the record on resume, and a proposal that was interrupted is run again (`left_over`).

use std::path::Path;
use std::time::{Duration, Instant};

use objectives::real::{RealRuns, lack_of_room};
use objectives::{Failure, Measurement, Observation};
use serde::Serialize;
use space::dims::{Dim, Space};

use crate::error::RecordError;
use crate::record::folder::{RunFolder, replace_file};
use crate::record::journal::{self, BadLine, Journal};
use crate::record::kept::KeptRows;
use crate::record::parquet;
use crate::record::session::Session;
use crate::record::sha256;
use crate::record::table::TableWriter;
use crate::record::{Begun, Circumstances, Finished, Identity, Objective, PlannedTrial, Row, ShortRow, names_in_order};

mod left_over;
mod running;

use running::TRIAL;
pub use running::{RunningTrial, predicted, trial_file};

/// How often `trials.parquet` is brought up to date, and the share of the time that goes into it at most, as one in so many.
const REFRESH: Duration = Duration::from_secs(60);
const REFRESH_PART: u32 = 100;

/// How often the session's clock is saved while a run is under way.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// `space.toml`: the dimensions that are searched.
#[derive(Serialize)]
struct Searched<'a> {
    points: usize,
    dim: &'a [Dim],
}

/// What was mended when a record was opened.
#[derive(Debug)]
pub struct Repairs {
    /// Lines of the journal that were left out.
    pub bad_lines: Vec<BadLine>,
    /// Trials that had finished, but were not in the journal: they are now.
    pub adopted: Vec<u64>,
    /// Trials that were killed with their session each time that they ran: they are recorded as failed now.
    pub killed: Vec<u64>,
}

/// The open record of a session.
pub struct Store {
    folder: RunFolder,
    session: Session,
    journal: Journal,
    /// What is kept in memory of the trials that have ended.
    kept: KeptRows,
    /// Proposals that were under way when their tuner was gone, and were not started again.
    interrupted: Vec<PlannedTrial>,
    /// Numbers of the trials that run now.
    running: Vec<u64>,
    table: TableWriter,
    /// When the table is due.
    refresh_at: Instant,
    saved: Instant,
}

impl Store {
    /// Opens the record of a session, and takes in the runs that finished while no tuner was there, and those that no session survives.
    ///
    /// # Errors
    /// [`RecordError`] when the journal cannot be read or written.
    pub fn open(folder: RunFolder, session: Session, runs: &RealRuns) -> Result<(Self, Repairs), RecordError> {
        let (journal, contents) = Journal::open(&folder.journal())?;
        let now = Instant::now();
        folder.lay_ballast();
        let mut store = Self {
            folder,
            session,
            journal,
            kept: KeptRows::default(),
            interrupted: Vec::new(),
            running: Vec::new(),
            table: TableWriter::Here,
            refresh_at: now + REFRESH,
            saved: now,
        };
        contents.rows.into_iter().for_each(|row| store.kept.take(row, &store.session));
        let adopted = store.adopt(runs)?;
        let killed = store.fail_killed(&contents.under_way, runs)?;
        store.interrupted = store.to_run_again(&contents.under_way);
        Ok((store, Repairs { bad_lines: contents.bad_lines, adopted, killed }))
    }

    /// Lets a child of this program write `trials.parquet`, so that what that takes is not kept by this process.
    #[must_use]
    pub fn with_table_by_child(self) -> Self {
        Self { table: TableWriter::child(), ..self }
    }

    /// Where the session lives.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The session as stored.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What is kept of all finished trials on all nodes of the session, in the order in which they finished.
    pub fn rows(&self) -> &[ShortRow] {
        &self.kept.on_all
    }

    /// Their rows, read from the journal.
    ///
    /// # Errors
    /// As [`journal::read`].
    pub fn recorded(&self) -> Result<Vec<Row>, RecordError> {
        Ok(self.session.split(journal::read(&self.folder.journal())?.rows).all)
    }

    /// The last of them.
    pub fn last(&self) -> Option<&Row> {
        self.kept.last.as_ref()
    }

    /// What went wrong in the last of them that failed.
    pub fn last_failure(&self) -> Option<&str> {
        self.kept.last_failure.as_deref()
    }

    /// Finished trials on some of its nodes: of another task, whose rates do not compare with those of [`rows`](Self::rows).
    pub fn on_some_nodes(&self) -> &[Row] {
        &self.kept.on_some
    }

    /// Finished trials on the nodes that the session had before: they belong to another machine.
    pub fn elsewhere(&self) -> &[Row] {
        &self.kept.elsewhere
    }

    /// How many of [`rows`](Self::rows) failed by what may be mended since, where a sitting begins with them: all but the last ones that were
    /// killed with the session, as nothing has run since.
    pub fn mendable(&self) -> usize {
        self.rows().len() - self.kept.killed_last
    }

    /// Proposals that were under way when the tuner or the machine went down, and left no result: each is to be run once more.
    pub fn interrupted(&self) -> &[PlannedTrial] {
        &self.interrupted
    }

    /// Wall-clock seconds of the budget used in earlier sittings.
    pub fn spent_s(&self) -> f64 {
        self.session.used_s(&self.kept.on_all).max(self.session.used_s(&self.kept.on_some))
    }

    /// Whether the final run has been tried.
    pub fn has_final(&self) -> bool {
        self.rows().iter().any(|row| row.strategy() == Identity::FINAL)
    }

    /// Whether a final run has passed.
    pub fn final_passed(&self) -> bool {
        self.rows().iter().any(|row| row.strategy() == Identity::FINAL && row.passed())
    }

    /// Whether it has no trial at all, on whatever nodes.
    pub fn is_empty(&self) -> bool {
        self.next_trial() == 0
    }

    /// The number that the next trial gets.
    pub fn next_trial(&self) -> u64 {
        self.running.iter().map(|trial| trial + 1).max().unwrap_or(0).max(self.kept.next)
    }

    /// Changes the session and saves it, on a full disk in the room that was kept for the last records.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written.
    pub fn update_session(&mut self, change: impl FnOnce(&mut Session)) -> Result<(), RecordError> {
        change(&mut self.session);
        self.folder.write_with_ballast(|| self.session.save(&self.folder.session_toml()))
    }

    /// Makes the folder of the next trial, and notes there and in the journal what is about to run, and by which command.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written, or when the disk is so full that the run might fail for it.
    pub fn begin(&mut self, plan: &PlannedTrial, runs: &RealRuns) -> Result<RunningTrial, RecordError> {
        let number = plan.trial.unwrap_or_else(|| self.next_trial());
        let folder = self.folder.trial(number);
        let identity = Identity {
            trial: number,
            repeat_of: plan.repeat_of,
            paired_with: plan.paired_with,
            reference_trial: plan.reference.as_ref().map(|reference| reference.trial),
            strategy: plan.strategy.clone(),
            why: plan.why.clone(),
            engine: self.session.recorded_engine(),
            started_utc: jiff::Timestamp::now().to_string(),
            command: String::new(),
            nodes: match &plan.nodes[..] {
                [] => self.session.node_names(),
                some => Some(names_in_order(some)),
            },
        };
        let mut begun = Begun {
            identity,
            candidate: plan.candidate.clone(),
            extent: plan.extent,
            reference: plan.reference.as_ref().map(|reference| reference.candidate.clone()),
            // By GFLOPS/W the search predicts what compares with other predictions alone: rates at the power of the first run.
            predicted: plan.predicted.filter(|_| self.session.objective != Objective::GflopsPerWatt),
            expected_s: plan.expected_s,
            nodes: plan.nodes.clone(),
            seed: self.session.seed,
            host: self.session.host.clone(),
        };
        self.folder.check_space(runs.result_bytes(&begun.run())).inspect_err(|_| {
            // What is written now are the last records.
            self.folder.drop_ballast();
        })?;
        // What an interrupted run left there is not part of this one.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(RecordError::write(&folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(RecordError::write(&folder))?;
        begun.identity.command = runs.command(&begun.run(), &folder).join(" ");
        let json = serde_json::to_vec(&begun).map_err(|e| RecordError::write(&folder)(e.into()))?;
        replace_file(&folder.join(TRIAL), &json)?;
        self.journal.start(&begun)?;
        self.interrupted.retain(|plan| plan.trial != Some(number));
        self.running.push(number);
        let results = folder.join(runs.results_file());
        Ok(RunningTrial { folder, begun, results })
    }

    /// Records a finished trial; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RecordError`] when the journal cannot be written; the trial stays in its folder and is taken in on resume.
    /// One that failed while the disk was full says nothing of its candidate: it is forgotten.
    pub fn finish(
        &mut self,
        trial: RunningTrial,
        outcome: &Result<Observation, Failure>,
        around: Circumstances,
    ) -> Result<(), RecordError> {
        if let Err(failure) = outcome {
            // What is written after an error are the last records.
            self.forgotten_on_full_disk(&trial, failure).inspect_err(|_| {
                self.folder.drop_ballast();
            })?;
        }
        self.append(trial.begun, outcome, around, &trial.results)?;
        if Instant::now() >= self.refresh_at {
            let begun = Instant::now();
            // The journal has all of it; what is missing now is written next time, or at the end.
            let _ = self.table.write(&self.folder);
            self.refresh_at = Instant::now() + REFRESH.max(REFRESH_PART * begun.elapsed());
        }
        Ok(())
    }

    /// Forgets a trial that failed while the disk, or a quota, was full; an error then.
    fn forgotten_on_full_disk(&self, trial: &RunningTrial, failure: &Failure) -> Result<(), RecordError> {
        if let Some(cause) = lack_of_room(&trial.folder, failure) {
            // What it has printed stays until it is run once more: it may have passed.
            trial.forget_end();
            return Err(RecordError::write(&trial.folder)(cause));
        }
        self.folder.check_space(0).inspect_err(|_| {
            // A folder that cannot be removed is seen again on resume, as a failure.
            let _ = std::fs::remove_dir_all(&trial.folder);
        })
    }

    /// Saves the used seconds of the budget now and then while a run is under way.
    pub fn heartbeat(&mut self, spent_s: f64) {
        if self.saved.elapsed() >= HEARTBEAT {
            self.saved = Instant::now();
            self.session.elapsed_s = spent_s;
            // A missed beat costs a few seconds of budget after a kill; the next trial reports a full disk.
            let _ = self.session.save(&self.folder.session_toml());
        }
    }

    /// Notes that the trials under way end with the session, which is asked to end or breaks off: that says nothing of their candidates.
    pub fn note_stop(&mut self) {
        let running = std::mem::take(&mut self.running);
        if !running.is_empty() {
            // What cannot be noted counts as killed, and is run once more all the same.
            let _ = self.journal.stop(&running);
        }
    }

    /// Brings everything up to date at the end of a sitting, with the used seconds of the budget.
    ///
    /// # Errors
    /// [`RecordError`] when a file cannot be written.
    pub fn close(&mut self, spent_s: f64) -> Result<(), RecordError> {
        self.update_session(|session| session.elapsed_s = spent_s)?;
        self.write_table()
    }

    /// Stores what is searched, as `space.toml`.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written.
    pub fn write_space(&self, space: &dyn Space) -> Result<(), RecordError> {
        let path = self.folder.space_toml();
        let searched = Searched { points: space.points().len(), dim: space.dims() };
        let text = toml::to_string(&searched).map_err(|error| RecordError::damaged(&path, error))?;
        replace_file(&path, text.as_bytes())
    }

    /// Writes `trials.parquet`; where no child can, in this process.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written.
    pub fn write_table(&self) -> Result<(), RecordError> {
        self.table.write(&self.folder).or_else(|_| TableWriter::Here.write(&self.folder))
    }

    fn append(
        &mut self,
        begun: Begun,
        outcome: &Result<Observation, Failure>,
        around: Circumstances,
        results: &Path,
    ) -> Result<(), RecordError> {
        let number = begun.identity.trial;
        let run = begun.run();
        // A run that printed nothing has no output file.
        let output_sha256 = sha256::of_file(results).ok();
        // A run that failed does not say where it was.
        let started_on = Some(begun.host).filter(|host| outcome.is_err() && !host.is_empty());
        let row = Row::new(begun.identity, &run, begun.predicted, outcome, around, &self.session);
        let host = started_on.unwrap_or_else(|| row.host.clone());
        let row = Row { output_sha256, host, ..row };
        // A finished trial is worth the room that was kept for it.
        self.folder.write_with_ballast(|| self.journal.append(&row))?;
        self.running.retain(|running| *running != number);
        self.kept.take(row, &self.session);
        let phases = match outcome {
            Ok(Observation::Whole(Measurement { result: Some(result), .. })) => &result.phases,
            Ok(Observation::Windows(sample)) => &sample.result.phases,
            _ => return Ok(()),
        };
        parquet::write(&self.folder.phases(number), phases)
    }
}

#[cfg(test)]
mod tests;
