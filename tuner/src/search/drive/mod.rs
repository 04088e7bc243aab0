//! The loop: plan, run, record, until the budget is used; the final verified run before its end.

mod broken_off;
mod energy;
mod known;
mod power;
mod rival;
mod silence;
mod started;
mod together;
mod whole;

use std::thread;

use hpl::program::freed::{give_back_freed_memory, keep_little_freed_memory};

pub use self::known::KnownRows;
use self::rival::Rival;
pub use self::together::TrialRunner;
use crate::error::RecordError;
use crate::record::lead::Lead;
use crate::record::parquet;
use crate::record::store::Store;
use crate::record::{Finished, Identity, Outcome, PlannedTrial, ShortRow};
use crate::search::model::SessionModel;
use crate::search::schedule::{Due, FAILURES_TO_GIVE_UP, Setup, View, nothing_works};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// The budget is used, as far as runs fit.
    Done,
    /// A signal asked to stop; the session can be resumed.
    Interrupted,
    /// Trial after trial failed.
    NothingWorks,
    /// These nodes answer no more.
    NodesLost(Vec<String>),
}

/// A session in progress.
pub struct Drive<'a> {
    /// The model with its predictions of the domain's points.
    pub model: SessionModel<'a>,
    /// What is searched.
    pub setup: Setup<'a>,
    /// Orders of the final run, up to the largest safe one; the target alone when the user chose it.
    pub final_n: std::ops::RangeInclusive<usize>,
    /// What is known of the rows that were looked at.
    pub known: KnownRows,
    /// Starts and records trials.
    pub runner: TrialRunner<'a>,
}

/// What is due, as one look at the record has it.
struct Next {
    due: Due,
    /// Of the final run of what the search has chosen: what it says of its choice and the default.
    lead: Option<Option<Lead>>,
    /// Seconds of the budget left at that look.
    left_s: f64,
}

impl Drive<'_> {
    /// Runs the session to its end.
    ///
    /// # Errors
    /// [`RecordError`] when a trial could not be recorded; everything before it is.
    pub fn run(&mut self) -> Result<SessionEnd, RecordError> {
        self.runner.progress.phase("searching");
        keep_little_freed_memory();
        while let Some(Next { due, lead, left_s }) = self.due() {
            self.say_what_is_left(&due.plan)?;
            if let Some(lead) = lead {
                self.runner.store.update_session(|session| session.lead_of_search = lead)?;
            }
            if due.plan.strategy == Identity::FINAL {
                self.runner.progress.phase("final run");
                if self.runner.store.has_final() {
                    self.runner.progress.line(&format!("final run: {}", due.plan.why));
                }
            }
            let (due, left_s) = self.final_now(&due.plan).unwrap_or((due, left_s));
            // The memory of the machine is the run's.
            give_back_freed_memory();
            // A slow candidate may take little power.
            let rival =
                self.setup.objective.is_rate().then(|| Rival::of(&due.plan, self.runner.store, self.runner.runs));
            let due = due.after_s(left_s - self.runner.budget.left_s(), left_s);
            if !self.runner.together(&[due], rival.flatten().as_ref(), &self.model.predictor)? {
                return Ok(SessionEnd::Interrupted);
            }
            // The end of the job ends the run, too.
            if self.runner.interrupt.asked() {
                return Ok(SessionEnd::Interrupted);
            }
            let lost = self.lost();
            if !lost.is_empty() {
                return Ok(SessionEnd::NodesLost(lost));
            }
            if !self.runner.store.has_final() && nothing_works(self.runner.store.rows(), self.setup.earlier_rows) {
                if !self.runner.store.rows().iter().any(Finished::passed) {
                    return Ok(SessionEnd::NothingWorks);
                }
                self.runner.progress.warn(&format!("the last {FAILURES_TO_GIVE_UP} trials failed: the search ends"));
            }
        }
        Ok(SessionEnd::Done)
    }

    fn due(&mut self) -> Option<Next> {
        if !self.runner.store.has_final() {
            let folder = self.runner.store.folder();
            // Phases that were not kept are no news.
            let phases = |trial| parquet::read(&folder.phases(trial)).ok();
            self.model.learn(self.runner.store.rows(), phases);
        }
        self.known.look(self.runner.store.rows(), self.setup.domain, &self.model);
        self.consider(|view| {
            let due = view.due(self.final_n.clone())?;
            let lead = view.is_choice(&due.plan).then(|| view.lead_of(&due.plan.candidate));
            Some(Next { due, lead, left_s: view.left_s })
        })
    }

    /// A final run as it is due now, with the seconds left.
    fn final_now(&self, plan: &PlannedTrial) -> Option<(Due, f64)> {
        if plan.strategy != Identity::FINAL {
            return None;
        }
        let final_n = self.final_n.clone();
        self.consider(|view| Some((view.final_now(plan.clone(), final_n)?, view.left_s)))
    }

    /// Keeps and shows what the search leaves, before the first run that follows it, and once more where it goes on after that.
    fn say_what_is_left(&mut self, plan: &PlannedTrial) -> Result<(), RecordError> {
        let follows = matches!(plan.strategy.as_str(), Identity::PROMOTE | Identity::FINAL);
        if !follows {
            return forget_what_was_left(self.runner.store);
        }
        if self.runner.store.has_final() || self.runner.store.session().left.is_some() {
            return Ok(());
        }
        let Some(left) = self.consider(|view| view.left()) else { return Ok(()) };
        self.runner.progress.line(&format!("the search ends: {left}"));
        self.runner.store.update_session(|session| session.left = Some(left))
    }

    /// Looks at the record as it is now. A thread of its own does: what its matrix products and its allocations took goes with it, and
    /// what stays of a trial does not keep their pages.
    fn consider<T: Send>(&self, ask: impl FnOnce(&View<'_, ShortRow>) -> T + Send) -> T {
        let rows = self.runner.store.rows();
        let interrupted = self.runner.store.interrupted();
        let lead_of_search = self.runner.store.session().lead_of_search;
        let (setup, known, prior, predictor) = (self.setup, &self.known, &*self.model.prior, &self.model.predictor);
        let (left_s, total_s) = (self.runner.budget.left_s(), self.runner.budget.total_s());
        let look = || {
            let history = &known.history(rows, setup.domain, setup.objective);
            let cost = &known.cost(rows, predictor);
            ask(&View { setup, prior, rows, history, interrupted, cost, lead_of_search, left_s, total_s })
        };
        thread::scope(|scope| scope.spawn(look).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// The nodes that answer no more, where the latest trial may have failed for that. What was verified stays the result.
    fn lost(&self) -> Vec<String> {
        let store = &*self.runner.store;
        let broke_off = |row: &ShortRow| {
            // Where the system lacks memory it may have ended what answers for a node.
            use Outcome::{Crashed, Killed, Launch, OutOfMemory, Output, TimedOut};
            matches!(row.outcome(), Crashed | Killed | TimedOut | Launch | OutOfMemory | Output)
        };
        let ask = !store.final_passed() && store.rows().last().is_some_and(broke_off);
        if ask { (self.runner.lost)() } else { Vec::new() }
    }
}

/// Forgets what a search was said to leave that goes on: in the time of whole runs that took less than was kept for them, or in another job.
fn forget_what_was_left(store: &mut Store) -> Result<(), RecordError> {
    if store.has_final() || store.session().left.is_none() {
        return Ok(());
    }
    store.update_session(|session| session.left = None)
}

#[cfg(test)]
mod tests;
