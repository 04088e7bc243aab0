//! The loop: plan, run, record, until the budget is used; the final verified run before its end.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use hpl::measure::power::PowerSamples;
use objectives::foreign::{ProgressPoint, ratio};
use objectives::real::{Extent, GuardRecord, RealRuns, RunSpec, Running};
use objectives::{Failure, Observation};
use space::Candidate;
use space::stats::median;

use crate::error::RecordError;
use crate::power::{PowerReader, PowerRecord, RunPower, RunSpans};
use crate::record::folder::replace_file;
use crate::record::now::{Now, on_one_line};
use crate::record::parquet;
use crate::record::store::Store;
use crate::record::vitals::Vitals;
use crate::record::{Circumstances, Identity, Objective, Outcome, PlannedTrial, Row};
use crate::search::budget::Budget;
use crate::search::cost::CostEstimate;
use crate::search::history::History;
use crate::search::interrupt::Interrupt;
use crate::search::model::SessionModel;
use crate::search::progress::Progress;
use crate::search::schedule::{Due, Setup, View};

/// Failures in a row after which something is wrong with the machine, not with a candidate.
const FAILURES_TO_GIVE_UP: usize = 8;

/// How often the progress is drawn while a trial runs.
const REDRAW: Duration = Duration::from_millis(200);

/// How often a run is judged by its progress in the end. Reading takes the machine from the run.
const JUDGE: Duration = Duration::from_secs(1);

/// Shares of the work between which a run is judged by its progress: before it says little, after it the end is near, and a
/// whole result worth more.
const JUDGED: std::ops::Range<f64> = 0.1..0.7;

/// A run is ended early when its mean rate is below this part of the best one's at the same share of the work: at the end of
/// that range, and at its begin, as moments differ by more than whole runs do.
const HOPELESS: f64 = 0.95;
const HOPELESS_AT_FIRST: f64 = 0.8;

/// Runs ended early one after the other, after which one is let go to its end: perhaps it is the machine that has changed.
const ENDED_IN_A_ROW: usize = 3;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The budget is used, as far as runs fit.
    Done,
    /// A signal asked to stop; the session can be resumed.
    Interrupted,
    /// Trial after trial failed.
    NothingWorks,
}

/// A session in progress.
pub struct Drive<'a> {
    /// The model with its predictions of the domain's points.
    pub model: SessionModel<'a>,
    /// What is searched.
    pub setup: Setup<'a>,
    /// The clock.
    pub budget: &'a mut Budget,
    /// Orders of the final run, up to the largest safe one; the target alone when the user chose it.
    pub final_n: std::ops::RangeInclusive<usize>,
    /// Starts runs.
    pub runs: &'a RealRuns,
    /// Reads the power that they take.
    pub power: &'a PowerReader,
    /// The record.
    pub store: &'a mut Store,
    /// What the user sees.
    pub progress: &'a mut Progress,
    /// Whether to stop.
    pub interrupt: &'a Interrupt,
    /// Say why each trial was chosen.
    pub verbose: bool,
}

impl Drive<'_> {
    /// Runs the session to its end.
    ///
    /// # Errors
    /// [`RecordError`] when a trial could not be recorded; everything before it is.
    pub fn run(&mut self) -> Result<SessionEnd, RecordError> {
        self.progress.phase("searching");
        while let Some(Due { plan, limit_s }) = self.due() {
            self.say_what_is_left(&plan)?;
            if plan.strategy == Identity::FINAL {
                self.progress.phase("final run");
            }
            if !self.trial(&plan, limit_s)? {
                return Ok(SessionEnd::Interrupted);
            }
            if !self.store.has_final() && self.nothing_works() {
                return Ok(SessionEnd::NothingWorks);
            }
        }
        Ok(SessionEnd::Done)
    }

    fn due(&mut self) -> Option<Due> {
        if !self.store.has_final() {
            let folder = self.store.folder();
            // Phases that were not kept are no news.
            let phases = |trial| parquet::read(&folder.phases(trial)).ok();
            self.model.learn(self.store.rows(), self.budget.left_s(), phases);
        }
        self.consider(|view| view.due(self.final_n.clone()))
    }

    /// Keeps and shows what the search leaves, before the first run that follows it.
    fn say_what_is_left(&mut self, plan: &PlannedTrial) -> Result<(), RecordError> {
        let follows = matches!(plan.strategy.as_str(), Identity::PROMOTE | Identity::FINAL);
        if !follows || self.store.has_final() || self.store.session().left.is_some() {
            return Ok(());
        }
        let Some(left) = self.consider(|view| view.left()) else { return Ok(()) };
        self.progress.line(&format!("the search ends: {left}"));
        self.store.update_session(|session| session.left = Some(left))
    }

    /// Looks at the record as it is now.
    fn consider<T>(&self, ask: impl FnOnce(&View<'_>) -> T) -> T {
        let rows = self.store.rows();
        ask(&View {
            setup: self.setup,
            prior: self.model.prior.as_ref(),
            rows,
            interrupted: self.store.interrupted().iter().find(|plan| plan.is_of_search()),
            history: &History::from_rows(rows, self.setup.domain, self.setup.objective),
            cost: &CostEstimate::new(rows, &self.model.predictor),
            left_s: self.budget.left_s(),
            total_s: self.budget.total_s(),
        })
    }

    /// Whether the latest trials all failed. An early end is no sign of that: a candidate can be slow.
    fn nothing_works(&self) -> bool {
        let slow = |row: &Row| matches!(row.outcome, Outcome::TimedOut | Outcome::Beaten);
        let failed = |row: &&Row| !row.passed && !slow(row);
        self.store.rows().iter().rev().take_while(failed).count() >= FAILURES_TO_GIVE_UP
    }

    /// Runs and records one trial; `false` when a signal asked to stop before it ended.
    fn trial(&mut self, plan: &PlannedTrial, limit_s: f64) -> Result<bool, RecordError> {
        // A signal may come while the next trial is chosen, and a short run would not see it.
        if self.interrupt.asked() {
            return Ok(false);
        }
        self.progress.tick(self.budget.left_s());
        let trial = self.store.begin(plan, self.runs)?;
        Now::running(trial.identity(), plan, limit_s, self.budget.left_s()).write(self.store.folder());
        let mut vitals = Vitals::start(self.power);
        let started = Instant::now();
        let run = RunSpec { candidate: plan.candidate.clone(), extent: plan.extent };
        let rival = self.rival(plan);
        let outcome = match self.runs.start(&run, trial.folder(), limit_s) {
            Ok(running) => match self.wait(running, rival.as_ref(), &mut vitals) {
                Some(outcome) => outcome,
                None => return Ok(false),
            },
            Err(failure) => Err(failure),
        };
        let real_s = started.elapsed().as_secs_f64();
        let wall_s = self.runs.simulated(trial.folder()).map_or(real_s, |clock| clock.simulated_wall_s);
        self.budget.pass(wall_s - real_s);
        let (around, samples) = vitals.end(wall_s, self.budget.left_s());
        let power = self.power_of(trial.folder(), &outcome, &samples);
        self.store.finish(trial, &outcome, Circumstances { power, ..around })?;
        Now::ended(self.store.folder());
        self.show(plan);
        Ok(true)
    }

    /// The last whole run of the best candidate so far with its progress, where a new candidate may be ended early for it.
    fn rival(&self, plan: &PlannedTrial) -> Option<Rival> {
        let rows = self.store.rows();
        let whole = [Identity::BASELINE, Identity::CONFIRM, Identity::EXPERT, Identity::FINAL];
        let new = plan.repeat_of.is_none() && !whole.contains(&plan.strategy.as_str());
        let ended = rows.iter().rev().take_while(|row| row.outcome == Outcome::Beaten).count();
        // A slow candidate may take little power.
        if !self.setup.objective.is_rate() || !self.runs.reports_progress() || !new || ended >= ENDED_IN_A_ROW {
            return None;
        }
        let mut runs: HashMap<Candidate, (Vec<f64>, u64)> = HashMap::new();
        for row in rows.iter().filter(|row| row.n == plan.candidate.hpl.n) {
            if let Some(rate_gflops) = row.score_gflops() {
                let (rates, last) = runs.entry(row.candidate()).or_default();
                rates.push(rate_gflops);
                *last = row.trial;
            }
        }
        let typical = |rates: &[f64]| median(rates).unwrap_or(0.0);
        // Of equals the first, so that the same record leads to the same end.
        let (rates, last) =
            runs.into_values().max_by(|a, b| typical(&a.0).total_cmp(&typical(&b.0)).then(b.1.cmp(&a.1)))?;
        let trace = self.runs.progress_in(&self.store.folder().trial(last));
        (!trace.is_empty()).then_some(Rival { rate_gflops: *rates.last()?, trace })
    }

    /// Waits for a run; `None` when a signal asked to stop, the run being ended then. A run that falls behind its rival
    /// is ended.
    fn wait(
        &mut self,
        mut running: Running,
        rival: Option<&Rival>,
        vitals: &mut Vitals<'_>,
    ) -> Option<Result<Observation, Failure>> {
        let mut judged = Pace::new();
        loop {
            if let Some(outcome) = running.finish_within(REDRAW) {
                return Some(outcome);
            }
            if self.interrupt.asked() {
                running.cancel();
                return None;
            }
            vitals.look();
            if let Some(rival) = rival.filter(|_| judged.is_due(Instant::now()))
                && let Some(failure) = rival.beats(running.progress())
            {
                running.cancel();
                return Some(Err(failure));
            }
            self.progress.tick(self.budget.left_s());
            self.store.heartbeat(self.budget.spent_s());
        }
    }

    /// The power that the run in `folder` took, which is kept there as well.
    fn power_of(&mut self, folder: &Path, outcome: &Result<Observation, Failure>, samples: &PowerSamples) -> RunPower {
        if let Some(clock) = self.runs.simulated(folder) {
            return clock.power.map(RunPower::simulated).unwrap_or_default();
        }
        let measured = match outcome {
            Ok(Observation::Whole(measured)) => Some(measured),
            _ => None,
        };
        // Only a run of another engine says by its output when its core phase was.
        let printed = measured.filter(|measured| measured.result.is_none());
        let output = printed.and_then(|_| std::fs::read_to_string(folder.join(self.runs.results_file())).ok());
        let spans = GuardRecord::read(folder).ok();
        let spans = spans.and_then(|guard| RunSpans::new(&guard, measured, output.as_deref().unwrap_or_default()));
        let record = spans.map_or(Ok(None), |spans| self.power.of_run(samples, &spans));
        let record = record.unwrap_or_else(|problem| {
            self.progress.warn_once(&problem);
            None
        });
        if let Some(still) = self.power.still(samples) {
            self.progress.warn_once(&still);
        }
        let Some(record) = record else { return RunPower::default() };
        if let Ok(json) = serde_json::to_vec(&record) {
            // The row has what counts; a full disk is seen when that is written.
            let _ = replace_file(&folder.join(PowerRecord::NAME), &json);
        }
        record.columns(measured.map(|measured| measured.rate_gflops))
    }

    fn show(&mut self, plan: &PlannedTrial) {
        let Some(row) = self.store.rows().last() else { return };
        let result = match (row.comparable_rate_gflops(), row.extent, &row.failure_detail) {
            (Some(rate), Extent::Windows, _) => format!("{rate:8.2} GFLOP/s by windows"),
            (Some(rate), ..) => format!("{rate:8.2} GFLOP/s"),
            (_, _, Some(detail)) => format!("failed: {detail}"),
            _ => "failed".to_owned(),
        };
        let per_watt = Objective::GflopsPerWatt.value(row).filter(|_| !self.setup.objective.is_rate());
        let result = per_watt.map_or(result.clone(), |value| format!("{result} {value:.4} GFLOPS/W"));
        let why = if self.verbose { format!("  ({}: {})", plan.strategy, plan.why) } else { String::new() };
        self.progress.line(&format!("{:>4}  {result}  {}{why}", row.trial, on_one_line(&plan.candidate)));
        let alike = self.store.rows().iter().filter(|other| other.extent == row.extent && other.n == row.n);
        let objective = self.setup.objective;
        let best = alike.filter_map(|row| objective.value(row)).fold(0.0, f64::max);
        self.progress.best(match objective {
            Objective::Gflops => format!("{best:.2} GFLOP/s"),
            Objective::GflopsPerWatt => format!("{best:.4} GFLOPS/W"),
        });
    }
}

/// Says when a run is to be judged: each time later after the last, up to [`JUDGE`], as short runs end soon.
struct Pace {
    every: Duration,
    last: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { every: REDRAW, last: Instant::now() }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let due = now.saturating_duration_since(self.last) >= self.every;
        if due {
            self.last = now;
            self.every = JUDGE.min(2 * self.every);
        }
        due
    }
}

/// The run to be beaten.
struct Rival {
    rate_gflops: f64,
    trace: Vec<ProgressPoint>,
}

impl Rival {
    /// Why a run that has come so far is not worth its end, if it is not.
    fn beats(&self, running: &[ProgressPoint]) -> Option<Failure> {
        let (ratio, flops) = ratio(running, &self.trace)?;
        let judged = (flops - JUDGED.start) / (JUDGED.end - JUDGED.start);
        let hopeless = HOPELESS_AT_FIRST + judged * (HOPELESS - HOPELESS_AT_FIRST);
        (JUDGED.contains(&flops) && ratio < hopeless).then_some(Failure::Beaten {
            done_percent: 100.0 * flops,
            estimated_rate_gflops: ratio * self.rate_gflops,
            best_rate_gflops: self.rate_gflops,
        })
    }
}

#[cfg(test)]
mod tests;
