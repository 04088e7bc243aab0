//! What the ranks of a program do with a candidate: the whole run, windows of it, or a survey.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::Candidate;
use space::result::PhaseTime;

use crate::backend::host::kernels::Kernels;
use crate::comm::Comm;
use crate::lu::solve;
use crate::machine::survey::RankSurvey;
use crate::observe::trace::Span;
use crate::plan::windows::{Window, WindowsReport};
use crate::{Error, Report, Watch, measure_windows};

/// What a rank has to report beside what all know.
#[derive(Serialize, Deserialize)]
pub(super) struct RankReport {
    pub(super) phases: Vec<PhaseTime>,
    /// With times since `started`.
    pub(super) spans: Vec<Span>,
    /// What a survey has found.
    pub(super) survey: Option<RankSurvey>,
    /// Means nothing to another process.
    #[serde(skip, default = "Instant::now")]
    pub(super) started: Instant,
}

/// A job that another process can be told of.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Order {
    Run { wants_spans: bool },
    Windows(Vec<Window>),
    Survey(usize),
}

/// A job for all ranks of a candidate.
pub(super) trait Job: Sync {
    /// What has come of it, the same on all ranks.
    type Outcome: Send;

    /// Does it as one of the ranks.
    fn work<C: Comm>(
        &self,
        candidate: &Candidate,
        comm: &C,
        cores: &[usize],
        kernels: &dyn Kernels,
    ) -> Result<(Self::Outcome, RankReport), Error>;

    /// How another process is told of it.
    fn order(&self) -> Order;
}

/// The whole run, and who watches it.
pub(super) struct WholeRun<'a>(pub(super) &'a dyn Watch);

impl Job for WholeRun<'_> {
    type Outcome = Report;

    fn work<C: Comm>(
        &self,
        candidate: &Candidate,
        comm: &C,
        cores: &[usize],
        kernels: &dyn Kernels,
    ) -> Result<(Report, RankReport), Error> {
        let mut report = solve(candidate, comm, cores, kernels, self.0)?;
        let (phases, spans) = (std::mem::take(&mut report.phases), std::mem::take(&mut report.spans));
        let started = report.started;
        Ok((report, RankReport { phases, spans, survey: None, started }))
    }

    fn order(&self) -> Order {
        Order::Run { wants_spans: self.0.wants_spans() }
    }
}

/// These windows of the run.
pub(super) struct SomeWindows<'a>(pub(super) &'a [Window]);

impl Job for SomeWindows<'_> {
    type Outcome = WindowsReport;

    fn work<C: Comm>(
        &self,
        candidate: &Candidate,
        comm: &C,
        cores: &[usize],
        kernels: &dyn Kernels,
    ) -> Result<(WindowsReport, RankReport), Error> {
        let started = Instant::now();
        let mut report = measure_windows(candidate, self.0, comm, cores, kernels)?;
        let phases = std::mem::take(&mut report.phases);
        Ok((report, RankReport { phases, spans: Vec::new(), survey: None, started }))
    }

    fn order(&self) -> Order {
        Order::Windows(self.0.to_vec())
    }
}

/// The phases of all ranks, step by step.
pub(super) fn phases(ranks: &[RankReport]) -> Vec<PhaseTime> {
    let mut phases: Vec<_> = ranks.iter().flat_map(|own| own.phases.iter().copied()).collect();
    phases.sort_by_key(|phase| (phase.step, phase.rank));
    phases
}

/// The spans of all ranks, with times since the first rank began.
pub(super) fn spans(ranks: &[RankReport]) -> Vec<Span> {
    let zero = ranks.iter().map(|own| own.started).min();
    let since = |started: Instant| zero.map_or(0.0, |zero| (started - zero).as_secs_f64());
    let shifted = |own: &RankReport| {
        let shift_s = since(own.started);
        let shift = move |span: &Span| Span { start_s: span.start_s + shift_s, end_s: span.end_s + shift_s, ..*span };
        own.spans.iter().map(shift).collect::<Vec<_>>()
    };
    ranks.iter().flat_map(shifted).collect()
}
