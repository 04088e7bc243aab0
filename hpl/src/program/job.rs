//! The job of the ranks for a candidate: the whole run, windows of it, or a survey.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::Candidate;
use space::result::PhaseTime;

use crate::backend::host::kernels::Kernels;
use crate::comm::Comm;
use crate::lu::solve;
use crate::measure::survey::{RankSurvey, survey};
use crate::observe::trace::Span;
use crate::plan::windows::{Window, WindowsReport};
use crate::{Error, Report, Watch, measure_windows};

/// Report of one rank, in addition to the outcome that is the same on all ranks.
#[derive(Serialize, Deserialize)]
pub(super) struct RankReport {
    /// Empty for a run that does not want them.
    pub(super) phases: Vec<PhaseTime>,
    /// Times are relative to `started`.
    pub(super) spans: Vec<Span>,
    /// Name of its kernels.
    pub(super) kernels: String,
    /// Rate of independent multiply–adds of its threads in GFLOP/s.
    pub(super) fma_peak_gflops: Option<f64>,
    /// Measurements of a survey.
    pub(super) survey: Option<RankSurvey>,
    /// Start of the factorization; valid only in this process.
    #[serde(skip, default = "Instant::now")]
    pub(super) started: Instant,
}

/// A job of the ranks for a candidate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Job {
    /// The whole run.
    Run {
        /// Whether spans are recorded.
        wants_spans: bool,
        /// Whether the ranks report their phases.
        wants_phases: bool,
    },
    /// These windows of the run.
    Windows(Vec<Window>),
    /// The survey with this many repeats.
    Survey(usize),
}

/// Outcome of a job, the same on all ranks.
pub(super) enum JobOutcome {
    Run(Report),
    Windows(WindowsReport),
    /// The measurements are in the report of each rank.
    Survey,
}

impl Job {
    /// Executes the job on one of the ranks; `watch` is used on rank 0.
    pub(super) fn work<C: Comm>(
        &self,
        candidate: &Candidate,
        comm: &C,
        cores: &[usize],
        kernels: &dyn Kernels,
        watch: &dyn Watch,
    ) -> Result<(JobOutcome, RankReport), Error> {
        let mut rank = RankReport {
            phases: Vec::new(),
            spans: Vec::new(),
            kernels: kernels.name(),
            fma_peak_gflops: None,
            survey: None,
            started: Instant::now(),
        };
        let outcome = match self {
            Self::Run { wants_phases, .. } => {
                let mut report = solve(candidate, comm, cores, kernels, watch)?;
                let phases = std::mem::take(&mut report.phases);
                if *wants_phases {
                    rank.phases = phases;
                }
                rank.spans = std::mem::take(&mut report.spans);
                rank.started = report.started;
                rank.fma_peak_gflops = report.fma_peak_gflops;
                JobOutcome::Run(report)
            }
            Self::Windows(windows) => {
                let mut report = measure_windows(candidate, windows, comm, cores, kernels)?;
                rank.phases = std::mem::take(&mut report.phases);
                JobOutcome::Windows(report)
            }
            Self::Survey(repeats) => {
                rank.survey = Some(survey(candidate, *repeats, comm, cores, kernels)?);
                JobOutcome::Survey
            }
        };
        Ok((outcome, rank))
    }
}

impl JobOutcome {
    /// The report of a [`Job::Run`].
    pub(super) fn run(self) -> Report {
        match self {
            Self::Run(report) => report,
            Self::Windows(_) | Self::Survey => unreachable!("the job was a run"),
        }
    }

    /// The report of [`Job::Windows`].
    pub(super) fn windows(self) -> WindowsReport {
        match self {
            Self::Windows(report) => report,
            Self::Run(_) | Self::Survey => unreachable!("the job was windows"),
        }
    }
}

/// The phases of all ranks, step by step. A step that a rank has measured in several windows keeps their order.
pub(super) fn phases(ranks: &[RankReport]) -> Vec<PhaseTime> {
    let mut phases: Vec<_> = ranks.iter().flat_map(|report| report.phases.iter().copied()).collect();
    phases.sort_by_key(|phase| (phase.step, phase.rank));
    phases
}

/// Names of the kernels of the ranks, each once, as stored with a result.
pub(super) fn kernels(ranks: &[RankReport]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in ranks.iter().map(|report| report.kernels.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}

/// Rate of independent multiply–adds of all ranks in GFLOP/s; `None` where threads of one share cores.
pub(super) fn fma_peak_gflops(ranks: &[RankReport]) -> Option<f64> {
    ranks.iter().map(|report| report.fma_peak_gflops).sum()
}

/// The spans of all ranks, with times since the start of the first rank.
pub(super) fn spans(ranks: &[RankReport]) -> Vec<Span> {
    let zero = ranks.iter().map(|report| report.started).min();
    let since = |started: Instant| zero.map_or(0.0, |zero| (started - zero).as_secs_f64());
    let shifted = |report: &RankReport| {
        let shift_s = since(report.started);
        let shift = move |span: &Span| Span { start_s: span.start_s + shift_s, end_s: span.end_s + shift_s, ..*span };
        report.spans.iter().map(shift).collect::<Vec<_>>()
    };
    ranks.iter().flat_map(shifted).collect()
}
