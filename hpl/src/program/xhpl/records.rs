//! The files of `--phases` and `--timeline`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Watch;
use crate::observe::trace::{NotInRun, StepRange, TracePicture};
use crate::program::CompletedRun;
use clap::Args;
use space::params::Coded;
use space::{HplParams, RunResult};

/// Flags of the files.
#[derive(Debug, Clone, Args)]
pub(super) struct RecordArgs {
    /// Write the time per phase, step and rank of all runs to this CSV file
    ///
    /// Its columns: run (counted from 1), N, NB, P, Q, step, rank, the seconds of panel factorization, panel broadcast,
    /// row exchange, update and back substitution on the first thread of the rank, and the end of the step in seconds.
    #[arg(long, value_name = "FILE.csv")]
    phases: Option<PathBuf>,
    /// Draw a timeline of all threads in the last run to this SVG file
    #[arg(long, value_name = "FILE.svg")]
    timeline: Option<PathBuf>,
    /// The steps to draw, both ends included: FIRST..LAST or all [default: four in the middle of the run]
    #[arg(long, value_name = "STEPS", requires = "timeline")]
    timeline_steps: Option<StepRange>,
}

impl RecordArgs {
    /// Whether there are files to write.
    pub(super) fn asks_for_files(&self) -> bool {
        self.phases.is_some() || self.timeline.is_some()
    }
}

/// Errors of writing the files.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("--{flag} {}: cannot open it for output: {source}; name another file", path.display())]
    Unopened { flag: &'static str, path: PathBuf, source: io::Error },
    #[error("--timeline-steps: {0} in the last run of HPL.dat")]
    Steps(#[from] NotInRun),
    #[error("cannot write to {}: {source}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
}

/// The files. They are opened before the first run, so that a wrong name is reported before hours of work.
pub(super) struct Records {
    phases: Option<Sink>,
    timeline: Option<Sink>,
    steps: StepRange,
    /// Number of runs until now, skipped ones included.
    runs: usize,
}

impl Records {
    /// Opens the files; `last` is the last run.
    pub(super) fn open(args: &RecordArgs, last: Option<&HplParams>) -> Result<Self, WriteError> {
        let steps = args.timeline_steps.unwrap_or_default();
        if let Some(last) = last {
            steps.check(panels(last))?;
        }
        let open = |flag, path: &Option<PathBuf>| path.as_deref().map(|path| Sink::open(flag, path)).transpose();
        let mut records =
            Self { phases: open("phases", &args.phases)?, timeline: open("timeline", &args.timeline)?, steps, runs: 0 };
        if let Some(phases) = &mut records.phases {
            phases.write("run,n,nb,p,q,step,rank,fact_s,lbcast_s,rs_s,update_s,trsv_s,end_s\n")?;
        }
        Ok(records)
    }

    /// Whether a timeline will be drawn.
    pub(super) fn wants_spans(&self) -> bool {
        self.timeline.is_some()
    }

    /// Whether the phases of each run are written.
    pub(super) fn wants_phases(&self) -> bool {
        self.phases.is_some()
    }

    /// Adds one completed run; `is_last`: whether it is the last one, which is drawn.
    pub(super) fn add(&mut self, run: &CompletedRun, is_last: bool) -> Result<(), WriteError> {
        self.runs += 1;
        if let Some(phases) = &mut self.phases {
            phases.write(&csv(self.runs, &run.result))?;
        }
        match &mut self.timeline {
            Some(timeline) if is_last => timeline.write(&picture(run, self.steps)),
            _ => Ok(()),
        }
    }

    /// Counts a run that was skipped; `is_last` as in [`add`](Self::add).
    pub(super) fn skip(&mut self, is_last: bool) -> Result<(), WriteError> {
        self.runs += 1;
        match &mut self.timeline {
            Some(timeline) if is_last => timeline.write(&nothing_to_draw("The last run was skipped")),
            _ => Ok(()),
        }
    }
}

/// A file and its name.
struct Sink {
    path: PathBuf,
    file: File,
}

impl Sink {
    fn open(flag: &'static str, path: &Path) -> Result<Self, WriteError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(WriteError::Unopened { flag, path, source }),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), WriteError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| WriteError::Unwritten { path: self.path.clone(), source })
    }
}

fn panels(hpl: &HplParams) -> u32 {
    u32::try_from(hpl.n.div_ceil(hpl.nb.max(1))).unwrap_or(u32::MAX)
}

/// The rows of one run.
fn csv(run: usize, result: &RunResult) -> String {
    let HplParams { n, nb, p, q, .. } = result.candidate.hpl;
    let mut text = String::new();
    for phase in &result.phases {
        let space::result::PhaseTime { step, rank, fact_s, lbcast_s, rs_s, update_s, trsv_s, end_s } = phase;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{run},{n},{nb},{p},{q},{step},{rank},{fact_s},{lbcast_s},{rs_s},{update_s},{trsv_s},{end_s}"
        );
    }
    text
}

/// The timeline of one run.
fn picture(run: &CompletedRun, shown: StepRange) -> String {
    let RunResult { candidate, time_s, rate_gflops, kernel, host, version, .. } = &run.result;
    let (hpl, steps) = (&candidate.hpl, panels(&candidate.hpl));
    let (first, last) = shown.of(steps);
    let title = format!(
        "HPL timeline: N={} NB={} P×Q={}×{}, threads {}, DEPTH {}, BCAST {}, SWAP {}, split {}",
        hpl.n,
        hpl.nb,
        hpl.p,
        hpl.q,
        candidate.engine.threads,
        hpl.depth,
        hpl.bcast.name(),
        hpl.swap.name(),
        candidate.engine.split.get(),
    );
    let subtitle = format!(
        "Steps {first} to {last} of 0 to {}. Whole run: {time_s:.3} s, {rate_gflops:.2} GFLOP/s; kernels {kernel}; \
         host {host}; xhpl {version}",
        steps.saturating_sub(1)
    );
    let timeline = TracePicture { spans: &run.spans, steps, shown, title: &title, subtitle: &subtitle };
    timeline.draw().unwrap_or_else(|| nothing_to_draw("No step"))
}

/// The picture of a run without a step, with the reason.
fn nothing_to_draw(why: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 400 40\"><text x=\"10\" y=\"25\">{why}, nothing to \
         draw</text></svg>\n"
    )
}

/// Progress, spans and phases of a run, all optional.
pub(super) struct Watching<'a> {
    /// Receives the progress.
    pub(super) progress: Option<&'a dyn Watch>,
    /// Whether time spans are recorded.
    pub(super) spans: bool,
    /// Whether the result has the phases.
    pub(super) phases: bool,
}

impl Watch for Watching<'_> {
    fn column(&self, done: usize, n: usize, rate_gflops: f64) {
        if let Some(progress) = self.progress {
            progress.column(done, n, rate_gflops);
        }
    }

    fn wants_spans(&self) -> bool {
        self.spans
    }

    fn wants_phases(&self) -> bool {
        self.phases
    }
}
