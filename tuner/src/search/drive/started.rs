//! Trials from their start to their end, before they are recorded.

use std::time::{Duration, Instant};

use hpl::measure::power::PowerSamples;
use objectives::real::Running;
use objectives::simulated::RunClock;
use objectives::{Failure, Observation};

use super::broken_off::broke_off;
use super::rival::{Pace, Rival};
use super::silence::Silence;
use crate::record::store::RunningTrial;
use crate::record::vitals::Vitals;
use crate::record::{Circumstances, PlannedTrial};
use crate::search::schedule::Due;

/// A trial under way.
pub(super) struct StartedTrial<'a> {
    pub(super) due: &'a Due,
    pub(super) trial: RunningTrial,
    /// Its run, or why there is none; `None` once it was taken.
    pub(super) run: Option<Result<Running, Failure>>,
    /// When it was seen running last.
    pub(super) seen: Instant,
}

impl StartedTrial<'_> {
    /// Waits for the outcome for at most `time`.
    pub(super) fn finish_within(&mut self, time: Duration) -> Option<Result<Observation, Failure>> {
        match self.run.take()? {
            Ok(mut running) => {
                let outcome = running.finish_within(time);
                if outcome.is_none() {
                    (self.run, self.seen) = (Some(Ok(running)), Instant::now());
                }
                outcome
            }
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Its run, where there is one.
    pub(super) fn running(&mut self) -> Option<&mut Running> {
        self.run.as_mut()?.as_mut().ok()
    }
}

/// What a run alone is ended for.
pub(super) struct Judged<'a> {
    rival: Option<&'a Rival>,
    pace: Pace,
    silence: Silence,
}

impl<'a> Judged<'a> {
    /// A run of `due` that has `started`, beside its `rival`.
    pub(super) fn new(rival: Option<&'a Rival>, due: Option<&Due>, started: Instant) -> Self {
        let expected_s = due.map_or(0.0, |due| due.plan.expected_s);
        Self { rival, pace: Pace::new(), silence: Silence::new(expected_s, started) }
    }

    /// Why a run is not worth its end, if it is not: it falls behind the rival, or has lost a node.
    pub(super) fn hopeless(&mut self, alone: &mut StartedTrial<'_>, lost: &dyn Fn() -> Vec<String>) -> Option<Failure> {
        if !self.pace.is_due(Instant::now()) {
            return None;
        }
        let on_all = alone.due.plan.nodes.is_empty();
        let progress = alone.running()?.progress();
        let beaten = self.rival.and_then(|rival| rival.beats(progress));
        if beaten.is_some() || !on_all || !self.silence.asks(progress.len(), Instant::now()) {
            return beaten;
        }
        let lost = lost();
        (!lost.is_empty()).then(|| Failure::Killed { by: format!("the loss of {}", lost.join(", ")) })
    }
}

/// When a trial ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndTime {
    /// Its clock, where it is simulated.
    pub(super) clock: Option<RunClock>,
    /// Wall-clock seconds that it took, on that clock.
    pub(super) wall_s: f64,
    /// Seconds that it left of the session.
    pub(super) left_s: f64,
}

impl EndTime {
    /// What surrounded the trial, as yet without its power, and the samples of that; `vitals` are none where it was on some nodes alone.
    pub(super) fn around(self, vitals: Option<Vitals<'_>>) -> (Circumstances, Option<PowerSamples>) {
        let Self { wall_s, left_s, .. } = self;
        match vitals {
            Some(vitals) => {
                let (around, samples) = vitals.end(wall_s, left_s);
                (around, Some(samples))
            }
            None => (Circumstances { wall_s, left_s, ..Circumstances::default() }, None),
        }
    }
}

/// A trial that has ended.
pub(super) struct EndedTrial<'a> {
    pub(super) plan: &'a PlannedTrial,
    pub(super) trial: RunningTrial,
    pub(super) outcome: Result<Observation, Failure>,
    pub(super) time: EndTime,
}

/// Ends all runs as this program ends. What sent it a signal may have sent that to their launchers as well: one that broke off says nothing of
/// its candidate. Its end is forgotten at once: a second signal may end this program before the last run has ended.
pub(super) fn interrupt(under_way: &mut [StartedTrial<'_>]) {
    end(under_way, |trial, outcome| {
        if outcome.as_ref().is_some_and(broke_off) {
            trial.forget_end();
        }
    });
}

/// Ends all runs: they are asked at the same time. `with_outcome` is called for each when it has ended.
pub(super) fn end(
    under_way: &mut [StartedTrial<'_>],
    mut with_outcome: impl FnMut(&RunningTrial, Option<Result<Observation, Failure>>),
) {
    let mut running = Vec::new();
    for StartedTrial { trial, run, .. } in under_way {
        if let Some(Ok(run)) = run.take() {
            run.ask_to_end();
            running.push((&*trial, run));
        }
    }
    for (trial, run) in running {
        with_outcome(trial, run.cancel());
    }
}
