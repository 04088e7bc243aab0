//! Trials that run at the same time: the one place where runs are started and waited for.

use std::path::Path;
use std::time::Instant;

use hpl::machine::accelerators::Accelerators;
use hpl::measure::power::PowerSamples;
use objectives::predict::Predictor;
use objectives::real::{Extent, RealRuns};
use objectives::{Failure, Observation};

use super::broken_off::{ended_with_session, since_end, unless_passed};
use super::energy::with_estimate;
use super::power::power_of_run;
use super::rival::{REDRAW, Rival};
use super::started::{EndTime, EndedTrial, Judged, StartedTrial, end, interrupt};
use super::whole::completed;
use crate::agents::NodeAgents;
use crate::agents::vitals::{self, NodeApart, VitalsRecord};
use crate::error::RecordError;
use crate::power::settings::{NodeSetter, clock_doubt};
use crate::power::{PowerReader, RunPower};
use crate::record::folder::replace_file;
use crate::record::now::{Now, on_one_line};
use crate::record::store::Store;
use crate::record::vitals::Vitals;
use crate::record::{Circumstances, Finished, MeasuredPair, Objective, PlannedTrial, Row, limited_power_w};
use crate::search::budget::Budget;
use crate::search::interrupt::Interrupt;
use crate::search::progress::Progress;
use crate::search::schedule::Due;

/// In runs of at least so many seconds Slurm has set the clock before it was looked at.
const CLOCK_IS_SET_S: f64 = 5.0;

/// Starts trials, waits for them, and records them.
pub struct TrialRunner<'a> {
    /// The clock.
    pub budget: &'a mut Budget,
    /// Starts runs.
    pub runs: &'a RealRuns,
    /// Reads the power that they take.
    pub power: &'a PowerReader,
    /// The accelerators of this node that the runs are on.
    pub accelerators: &'a Accelerators,
    /// Watch the nodes, where the runs are on several.
    pub agents: Option<&'a NodeAgents>,
    /// The record.
    pub store: &'a mut Store,
    /// What the user sees.
    pub progress: &'a mut Progress,
    /// Whether to stop.
    pub interrupt: &'a Interrupt,
    /// What is made as large as possible.
    pub objective: Objective,
    /// Makes the settings of the node, where they are varied.
    pub settings: Option<&'a NodeSetter>,
    /// The nodes that answer no more; asked during and after a run that a lost node may have ended.
    pub lost: &'a dyn Fn() -> Vec<String>,
    /// Say why each trial was chosen.
    pub verbose: bool,
}

impl TrialRunner<'_> {
    /// What starts trials as this does, for as long as this is borrowed.
    pub fn reborrowed(&mut self) -> TrialRunner<'_> {
        TrialRunner {
            budget: &mut *self.budget,
            runs: self.runs,
            power: self.power,
            accelerators: self.accelerators,
            agents: self.agents,
            store: &mut *self.store,
            progress: &mut *self.progress,
            interrupt: self.interrupt,
            objective: self.objective,
            settings: self.settings,
            lost: self.lost,
            verbose: self.verbose,
        }
    }

    /// Runs the trials `due` at the same time, and records each when it has ended; `false` when a signal asked to stop before
    /// that: all are ended then. A run alone that falls behind the `rival` or has lost a node is ended, too. Of windows on large grids the
    /// `predictor` says what the whole run takes.
    ///
    /// # Errors
    /// [`RecordError`] when a trial could not be recorded; everything before it is, and the others are ended.
    pub(crate) fn together(
        &mut self,
        due: &[Due],
        rival: Option<&Rival>,
        predictor: &Predictor,
    ) -> Result<bool, RecordError> {
        // A signal may come while the next trial is chosen, and a short run would not see it.
        if self.interrupt.asked() {
            return Ok(false);
        }
        self.progress.tick(self.budget.left_s());
        let left_s = self.budget.left_of_session_s();
        let mut under_way = self.begun(due)?;
        self.say_now(&under_way, left_s);
        // Where they are varied, all runs are on this node, one at a time.
        let set = due.first().map_or(Ok(()), |due| self.make_settings(&due.plan));
        // The clock and the power of this node say nothing of single other ones.
        if let Some(agents) = self.agents {
            agents.begin();
        }
        let mut vitals =
            due.iter().all(|due| due.plan.nodes.is_empty()).then(|| Vitals::start(self.power, self.accelerators));
        let started = Instant::now();
        self.start(&mut under_way, &set);
        let mut judged = Judged::new(rival, due.first(), started);
        let mut longest_s = None;
        while !under_way.is_empty() {
            let Some((at, outcome)) = self.wait(&mut under_way, &mut vitals, &mut judged) else {
                Now::ended(self.store.folder());
                return Ok(false);
            };
            let StartedTrial { due, trial, .. } = under_way.remove(at);
            let time = self.end_time(trial.folder(), started, left_s);
            if time.clock.is_some() {
                longest_s = Some(time.wall_s.max(longest_s.unwrap_or(0.0)));
            }
            let ended = EndedTrial { plan: &due.plan, trial, outcome, time };
            if let Err(error) = self.record(ended, vitals.take(), predictor) {
                interrupt(&mut under_way);
                Now::ended(self.store.folder());
                return Err(error);
            }
            if under_way.is_empty() {
                Now::ended(self.store.folder());
            } else {
                self.say_now(&under_way, time.left_s);
            }
            self.show(&due.plan);
        }
        if let Some(longest_s) = longest_s {
            self.budget.pass(longest_s - started.elapsed().as_secs_f64());
            self.runs.pass(longest_s);
        }
        Ok(true)
    }

    /// The trials `due`, noted in the record as begun.
    fn begun<'d>(&mut self, due: &'d [Due]) -> Result<Vec<StartedTrial<'d>>, RecordError> {
        let mut under_way = Vec::new();
        for due in due {
            let trial = self.store.begin(&due.plan, self.runs)?;
            under_way.push(StartedTrial { due, trial, run: None, seen: Instant::now() });
        }
        Ok(under_way)
    }

    /// Starts the runs, where the settings of the node were `set`.
    fn start(&self, under_way: &mut [StartedTrial<'_>], set: &Result<(), Failure>) {
        for StartedTrial { due, trial, run, .. } in under_way {
            *run = Some(set.clone().and_then(|()| self.runs.start(&trial.run(), trial.folder(), due.limit_s)));
        }
    }

    /// When the trial in `folder` ended, which was `started` with `left_s` seconds of the session left. On the clock of a simulated cluster all of
    /// a batch began at the same time.
    fn end_time(&self, folder: &Path, started: Instant, left_s: f64) -> EndTime {
        let real_s = started.elapsed().as_secs_f64();
        let clock = self.runs.simulated(folder);
        let wall_s = clock.map_or(real_s, |clock| clock.simulated_wall_s);
        let left_s = if clock.is_some() { left_s - wall_s } else { self.budget.left_of_session_s() };
        EndTime { clock, wall_s, left_s }
    }

    /// Records a trial that has ended, with what surrounded it.
    fn record(
        &mut self,
        ended: EndedTrial<'_>,
        vitals: Option<Vitals<'_>>,
        predictor: &Predictor,
    ) -> Result<(), RecordError> {
        let EndedTrial { plan, trial, outcome, time } = ended;
        let (around, samples) = time.around(vitals);
        let outcome = outcome.map(|observed| completed(observed, &plan.candidate, predictor));
        let power = self.power_taken(trial.folder(), plan, &outcome, time, samples);
        let nodes_apart = self.nodes_apart(trial.folder(), plan);
        let around = Circumstances { power, nodes_apart, ..around };
        self.look_at_clock(plan, &around);
        self.store.finish(trial, &outcome, around)
    }

    /// The power that the trial in `folder` took, by its clock or by `samples`; of windows alone also what the whole run is predicted to take.
    fn power_taken(
        &mut self,
        folder: &Path,
        plan: &PlannedTrial,
        outcome: &Result<Observation, Failure>,
        time: EndTime,
        samples: Option<PowerSamples>,
    ) -> RunPower {
        let power = match (time.clock, samples) {
            (Some(clock), _) => clock.power.map(RunPower::simulated).unwrap_or_default(),
            (None, Some(samples)) => {
                let results = folder.join(self.runs.results_file());
                power_of_run((self.power, &samples), (&results, outcome), self.objective, self.progress)
            }
            (None, None) => RunPower::default(),
        };
        let alone = outcome.as_ref().ok().filter(|_| plan.reference.is_none());
        with_estimate(power, alone, time.wall_s, self.store)
    }

    /// The nodes of the trial in `folder` that stood apart, with a warning; what was seen of all its nodes is kept there.
    fn nodes_apart(&mut self, folder: &Path, plan: &PlannedTrial) -> Option<String> {
        let seen = self.agents.map(|agents| agents.vitals(&plan.nodes)).filter(|seen| !seen.is_empty())?;
        let found = vitals::apart(&seen);
        if let Ok(json) = serde_json::to_vec(&VitalsRecord::new(seen)) {
            // The row has what counts; a full disk is seen when that is written.
            let _ = replace_file(&folder.join(VitalsRecord::NAME), &json);
        }
        let is_new = |node: &&NodeApart| {
            let reasons = node.why.iter().map(|(reason, _)| format!("{}: {reason:?}", node.node));
            reasons.filter(|reason| self.progress.is_first(reason)).count() > 0
        };
        let new: Vec<NodeApart> = found.iter().filter(is_new).cloned().collect();
        if let Some(words) = vitals::in_words(&new) {
            self.progress.warn(&format!("{words}; hpl-tune nodes says what leaving a slow node out is worth"));
        }
        vitals::in_words(&found)
    }

    /// Makes the settings of the node for this trial.
    fn make_settings(&self, plan: &PlannedTrial) -> Result<(), Failure> {
        let Some(setter) = self.settings else { return Ok(()) };
        let settings = &plan.candidate.engine.settings;
        setter
            .set(settings)
            .map_err(|error| Failure::Launch { what: "settings of the node".to_owned(), why: error.to_string() })
    }

    /// Warns where this node, as one of those of the run, was above the clock that Slurm was asked for.
    fn look_at_clock(&mut self, plan: &PlannedTrial, around: &Circumstances) {
        let session = self.store.session();
        let (hosts, nodes) = (&session.hosts, &session.nodes);
        let is_here = hosts.contains(&session.host) || (hosts.is_empty() && nodes.iter().all(|node| node.count < 2));
        let Some(clock) = session.slurm_clock.as_ref().filter(|_| is_here) else { return };
        let seen = around.clock_hz.filter(|_| around.wall_s >= CLOCK_IS_SET_S);
        if let Some(doubt) = clock_doubt(clock, &plan.candidate.engine.settings, seen) {
            self.progress.warn_once(&doubt);
        }
    }

    fn say_now(&self, under_way: &[StartedTrial<'_>], left_s: f64) {
        let of = |run: &StartedTrial<'_>| Now::running(run.trial.identity(), &run.due.plan, run.due.limit_s, left_s);
        if let Some(now) = Now::together(under_way.iter().map(of)) {
            now.write(self.store.folder());
        }
    }

    /// Waits for one of the trials: its place among them, and the outcome; `None` when a signal asked to stop, all runs being ended
    /// then.
    fn wait(
        &mut self,
        under_way: &mut [StartedTrial<'_>],
        vitals: &mut Option<Vitals<'_>>,
        judged: &mut Judged<'_>,
    ) -> Option<(usize, Result<Observation, Failure>)> {
        let look = REDRAW / u32::try_from(under_way.len()).unwrap_or(1);
        let in_slurm = std::env::var_os("SLURM_JOB_ID").is_some();
        loop {
            for (at, trial) in under_way.iter_mut().enumerate() {
                // What could not be started did not end with the job.
                let in_job = in_slurm && trial.running().is_some();
                if let Some(outcome) = trial.finish_within(look) {
                    let since_end = since_end(trial.trial.folder(), trial.seen);
                    if ended_with_session(&outcome, since_end, in_job, self.interrupt) {
                        trial.trial.forget_end();
                        self.store.note_stop();
                        interrupt(under_way);
                        return None;
                    }
                    return Some((at, outcome));
                }
                if self.interrupt.asked() {
                    // At once: what asked may not wait for the runs to end.
                    self.store.note_stop();
                    interrupt(under_way);
                    return None;
                }
            }
            if let Some(vitals) = vitals {
                vitals.look();
            }
            if let [alone] = under_way
                && let Some(failure) = judged.hopeless(alone, self.lost)
            {
                let mut ended = None;
                end(under_way, |_, outcome| ended = outcome);
                return Some((0, unless_passed(failure, ended)));
            }
            self.progress.tick(self.budget.left_s());
            self.store.heartbeat(self.budget.spent_s());
        }
    }

    fn show(&mut self, plan: &PlannedTrial) {
        let on_nodes = !plan.nodes.is_empty();
        let row = if on_nodes { self.store.on_some_nodes().last() } else { self.store.last() };
        let Some(row) = row else { return };
        let result = match (row.comparable_rate_gflops(), row.extent, &row.failure_detail) {
            (Some(rate), Extent::Windows, _) => format!("{rate:8.2} GFLOP/s by windows{}", ratio(row)),
            (Some(rate), ..) => format!("{rate:8.2} GFLOP/s"),
            (_, _, Some(detail)) => format!("failed: {}", self.progress.whole_once(detail)),
            _ => "failed".to_owned(),
        };
        let result = match self.objective {
            Objective::Gflops => result,
            Objective::GflopsPerWatt => Objective::GflopsPerWatt
                .value(row)
                .map_or(result.clone(), |value| format!("{result} {value:.4} GFLOPS/W")),
            Objective::GflopsWithin { .. } => {
                limited_power_w(row).filter(|_| row.passed).map_or(result.clone(), |watts| {
                    let above = if self.objective.allows(watts) { "" } else { ", above the limit" };
                    format!("{result} at {watts:.0} W{above}")
                })
            }
        };
        let why = if self.verbose { format!("  ({}: {})", plan.strategy, plan.why) } else { String::new() };
        let place = match &plan.nodes[..] {
            [] => String::new(),
            [first, .., last] if plan.nodes.len() > 2 => format!("  on {first} … {last}, {} nodes", plan.nodes.len()),
            few => format!("  on {}", few.join(" ")),
        };
        self.progress.line(&format!("{:>4}  {result}  {}{place}{why}", row.trial, on_one_line(&plan.candidate)));
        if on_nodes {
            return;
        }
        let rows = self.store.rows();
        let alike = rows.iter().filter(|other| other.extent() == row.extent && other.n() == row.n);
        let objective = self.objective;
        let best = alike.filter_map(|row| objective.value(row)).fold(0.0, f64::max);
        self.progress.best(match objective {
            Objective::Gflops | Objective::GflopsWithin { .. } => format!("{best:.2} GFLOP/s"),
            Objective::GflopsPerWatt => format!("{best:.4} GFLOPS/W"),
        });
    }
}

/// What a pair says of the two rates; nothing where the trial was none.
fn ratio(row: &Row) -> String {
    let of = |pair: MeasuredPair| format!(", {:.3} times trial {} in turn", pair.log_ratio.exp(), pair.reference_trial);
    row.pair().map_or_else(String::new, of)
}
