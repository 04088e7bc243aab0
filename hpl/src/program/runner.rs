//! Runs of candidates with kernels that are loaded once.

use std::io;
use std::path::Path;

use space::result::RESULT_SCHEMA;
use space::{Candidate, KernelChoice, RunResult, flops};

use super::files;
use super::job::{self, Job};
use super::memory::check_memory;
use super::{Ranks, RunError};
use crate::backend::host::kernels::{self, Loaded};
use crate::machine::host;
use crate::observe::trace::Span;
use crate::{Report, Residual, Watch};

/// Options of a run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// A scaled residual below this passes; at or below 0 none is reported, though the check runs.
    pub threshold: f64,
    /// Run without the memory check.
    pub force: bool,
    /// Receives the progress.
    pub watch: &'a dyn Watch,
}

/// A completed run.
#[derive(Debug, Clone)]
pub struct CompletedRun {
    /// The content of `result.json`; without phases, unless [`RunOptions::watch`] requests these.
    pub result: RunResult,
    /// The check with its norms; `None` where [`RunResult::residual`] is `None`.
    pub residual: Option<Residual>,
    /// Trace of the threads of all ranks; empty unless [`RunOptions::watch`] requests it.
    pub spans: Vec<Span>,
}

/// Executes the runs of one program with the same loaded kernels.
pub struct Runner {
    pub(super) kernels: Loaded,
    choice: KernelChoice,
    why: String,
}

/// Runs one candidate.
///
/// # Errors
/// [`RunError`]; a failed residual is no error.
pub fn run_candidate(candidate: &Candidate, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    Runner::new(&candidate.engine.kernels)?.run(candidate, options).map(|run| run.result)
}

/// Writes a `result.json`, complete or not at all.
///
/// # Errors
/// Those of [`files::write_atomically`].
pub fn write_result(path: &Path, result: &RunResult) -> io::Result<()> {
    files::write_atomically(path, &serde_json::to_vec(result)?)
}

impl Runner {
    /// Loads and tests the kernels; for `auto` the fastest.
    ///
    /// # Errors
    /// [`RunError::Kernels`].
    pub fn new(choice: &KernelChoice) -> Result<Self, RunError> {
        let (choice, why) = kernels::resolve(choice)?;
        Ok(Self { kernels: kernels::load(&choice)?, choice, why })
    }

    /// Name of the kernels, and the reason for the choice.
    pub fn kernels(&self) -> (String, &str) {
        (self.kernels.name(), &self.why)
    }

    /// Runs one candidate on threads of this process, with the loaded kernels instead of those of the candidate.
    ///
    /// # Errors
    /// [`RunError`]; a failed residual is no error.
    pub fn run(&self, candidate: &Candidate, options: &RunOptions<'_>) -> Result<CompletedRun, RunError> {
        self.run_on(&Ranks::threads(), candidate, options)
    }

    /// As [`run`](Self::run), on these ranks.
    ///
    /// # Errors
    /// [`RunError`]; a failed residual is no error.
    pub fn run_on(
        &self,
        ranks: &Ranks,
        candidate: &Candidate,
        options: &RunOptions<'_>,
    ) -> Result<CompletedRun, RunError> {
        let candidate = self.accept(ranks, candidate, options.force)?;
        let started_utc = jiff::Timestamp::now().to_string();
        let kernels = ranks.kernels(&self.kernels, &candidate.engine.rank_kernels)?;
        let watch = options.watch;
        let job = Job::Run { wants_spans: watch.wants_spans(), wants_phases: watch.wants_phases() };
        let (outcome, of_ranks) = ranks.run_on_all(&candidate, &job, &kernels, watch)?;
        let report = outcome.run();

        let core_started_utc =
            jiff::Timestamp::now().checked_sub(report.started.elapsed()).ok().map(|time| time.to_string());
        let Report { time_s, residual, info, generate_s, check_s, ref x, ref device, .. } = report;
        let residual = residual.filter(|_| options.threshold > 0.0);
        let rate_gflops = flops::rate_gflops(candidate.hpl.n, time_s);
        let fma_peak_gflops = job::fma_peak_gflops(&of_ranks);
        let result = RunResult {
            schema_version: RESULT_SCHEMA,
            time_s,
            rate_gflops,
            fma_peak_gflops,
            fma_peak_share: fma_peak_gflops.map(|peak| rate_gflops / peak),
            residual: residual.map(|residual| residual.scaled),
            passed: residual.is_some_and(|residual| residual.scaled < options.threshold),
            info,
            generate_s,
            check_s,
            x_hash: (info == 0).then(|| hash(x)),
            phases: job::phases(&of_ranks),
            started_utc,
            core_started_utc,
            host: host::facts().hostname,
            kernel: job::kernels(&of_ranks),
            device: device.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            candidate,
        };
        Ok(CompletedRun { result, residual, spans: job::spans(&of_ranks) })
    }

    /// Checks a candidate; returns it with its kernels resolved.
    pub(super) fn accept(&self, ranks: &Ranks, candidate: &Candidate, force: bool) -> Result<Candidate, RunError> {
        candidate.check()?;
        ranks.check_grid(candidate)?;
        if !force {
            check_memory(candidate, &ranks.free_memory(candidate.hpl.ranks()))?;
        }
        let mut candidate = candidate.clone();
        candidate.engine.kernels = self.choice.clone();
        Ok(candidate)
    }
}

/// FNV-1a hash of the bits.
fn hash(x: &[f64]) -> String {
    let bytes = x.iter().flat_map(|x| x.to_bits().to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}
