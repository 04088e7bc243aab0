//! One run of the engine in this process: what `xhpl` and `hpl-tune run` share.
//!
//! P·Q ranks are started as threads, each on its own cores where there are enough; their reports become one
//! [`RunResult`]. A rank that fails or panics ends the run with an error that names it; nobody hangs.

pub mod files;
mod job;
mod mpi;
mod nodes;
mod pair;
mod processes;
mod progress;
mod ranks;
mod survey;
#[cfg(test)]
mod tests;
mod windows;
pub mod xhpl;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::{io, thread};

use space::order;
use space::result::RESULT_SCHEMA;
use space::rules::RuleError;
use space::{Candidate, HplParams, KernelChoice, RunResult, flops};

use self::job::Job;
pub use self::mpi::{UnderMpi, refuse_mpi};
pub use self::pair::{measure_pair, write_pair};
pub use self::progress::ProgressLines;
pub use self::ranks::{Ranks, enter};
pub use self::windows::{measure_candidate, result_of, write_windows};
use crate::backend::host::kernels::{self, KernelError, Loaded, RankKernels};
use crate::comm::Buffers;
use crate::comm::grid;
use crate::comm::threads::{self, ThreadComm};
use crate::lu::solve::matrix_len;
use crate::machine::affinity;
use crate::machine::host;
use crate::mat::give_large_blocks_back;
use crate::observe::trace::Span;
use crate::plan::windows::WindowError;
use crate::{Error, Report, Residual, Watch};

/// How a run is made, beside what is run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// A scaled residual below this passes; at or below 0 nothing is checked.
    pub threshold: f64,
    /// Run even when memory seems too small.
    pub force: bool,
    /// Is told of the progress.
    pub watch: &'a dyn Watch,
}

/// Why there is no result of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The candidate breaks a hard rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The kernels cannot be used.
    #[error(transparent)]
    Kernels(#[from] KernelError),
    /// The matrices of all ranks, each with one of its own, do not fit.
    #[error(
        "each of {ranks} ranks runs N={n} NB={nb} by itself: that needs {:.2} GiB, {:.2} GiB are available; lower N to \
         {largest_n}",
        gib(*needed_bytes),
        gib(*free_bytes)
    )]
    TooLargeEach {
        /// Order of each.
        n: usize,
        /// Blocking factor.
        nb: usize,
        /// Ranks.
        ranks: usize,
        /// Memory of all ranks together.
        needed_bytes: u64,
        /// Memory that can be filled without swapping.
        free_bytes: u64,
        /// The largest order that fits.
        largest_n: usize,
    },
    /// The matrix with its workspace does not fit.
    #[error(
        "N={n} P={p} Q={q} NB={nb} needs {:.2} GiB, {:.2} GiB are available; \
         lower N to {largest_n}, or insist with --force",
        gib(*needed_bytes),
        gib(*free_bytes)
    )]
    TooLarge {
        /// Order.
        n: usize,
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Blocking factor.
        nb: usize,
        /// Memory of all ranks together.
        needed_bytes: u64,
        /// Memory that can be filled without swapping.
        free_bytes: u64,
        /// Largest order that fits, a multiple of NB.
        largest_n: usize,
    },
    /// The grid has more ranks than the job has processes.
    #[error(
        "P={p} Q={q} needs {} ranks, mpirun started {found} processes; lower P or Q, or start it with mpirun -np {}",
        p * q, p * q
    )]
    Processes {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Processes of the job.
        found: usize,
    },
    /// A window that the run does not have.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// Two runs of unequal order, or of order 0, do not compare.
    #[error("windows of N={n} and of a reference of N={reference_n} do not compare; use the same N above 0 for both")]
    Orders {
        /// Order of the candidate.
        n: usize,
        /// Order of the reference.
        reference_n: usize,
    },
    /// Another process of the job cannot take part in the run.
    #[error("rank {rank}: {message}")]
    Unready {
        /// The first such rank.
        rank: usize,
        /// Why.
        message: String,
    },
    /// The matrix fits, its columns rounded up to ALIGN do not.
    #[error(
        "ALIGN={align} pads the matrix to {:.2} GiB, {:.2} GiB are available; lower ALIGN, 8 is usual, or insist with \
         --force",
        gib(*padded_bytes),
        gib(*free_bytes)
    )]
    Padded {
        /// ALIGN.
        align: usize,
        /// Memory of the padded matrix on all ranks.
        padded_bytes: u64,
        /// Memory that can be filled without swapping.
        free_bytes: u64,
    },
    /// The system refused a thread.
    #[error("cannot start the thread of rank {rank}: {source}; lower P, Q or the threads")]
    Thread {
        /// Rank that could not be started.
        rank: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// A rank panicked: a fault of the engine.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// Rank that panicked first.
        rank: usize,
        /// Its message.
        message: String,
    },
    /// A rank ended with an error.
    #[error("rank {rank}: {source}")]
    Engine {
        /// The first such rank.
        rank: usize,
        /// Its error.
        source: Error,
    },
}

/// A run that came to its end.
#[derive(Debug, Clone)]
pub struct Run {
    /// What `result.json` holds.
    pub result: RunResult,
    /// The check with its norms; `None` where [`RunResult::residual`] is.
    pub residual: Option<Residual>,
    /// What each thread of each rank did when; empty unless [`RunOptions::watch`] wants it.
    pub spans: Vec<Span>,
}

/// The kernels loaded: what the runs of one program share.
pub struct Runner {
    kernels: Loaded,
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
/// As of [`files::write_atomically`].
pub fn write_result(path: &Path, result: &RunResult) -> io::Result<()> {
    files::write_atomically(path, &serde_json::to_vec(result)?)
}

/// Whether a run fits into `free_bytes`.
///
/// # Errors
/// [`RunError::TooLarge`], [`RunError::Padded`].
pub fn check_memory(hpl: &HplParams, free_bytes: u64) -> Result<(), RunError> {
    let &HplParams { n, nb, p, q, depth, align, .. } = hpl;
    let needed_bytes = order::required_bytes(n, p, q, nb, depth);
    if needed_bytes <= free_bytes {
        let padded_bytes = padded_bytes(hpl);
        return if padded_bytes <= free_bytes {
            Ok(())
        } else {
            Err(RunError::Padded { align, padded_bytes, free_bytes })
        };
    }
    let largest_n = order::largest_n(free_bytes, p, q, nb, depth);
    Err(RunError::TooLarge { n, p, q, nb, needed_bytes, free_bytes, largest_n })
}

/// Memory of [A | b] on all ranks, the local rows of each column rounded up to ALIGN.
fn padded_bytes(hpl: &HplParams) -> u64 {
    let [n, p, align] = [hpl.n, hpl.p, hpl.align].map(|size| size as u128);
    let rows = n.div_ceil(p.max(1)).next_multiple_of(align.max(1));
    u64::try_from(p.saturating_mul(rows).saturating_mul(8 * (n + 1))).unwrap_or(u64::MAX)
}

impl Runner {
    /// Loads and tests the kernels; of `auto` the fastest.
    ///
    /// # Errors
    /// [`RunError::Kernels`].
    pub fn new(choice: &KernelChoice) -> Result<Self, RunError> {
        give_large_blocks_back();
        let (choice, why) = kernels::resolve(choice)?;
        Ok(Self { kernels: kernels::load(&choice)?, choice, why })
    }

    /// Which kernels, and why these.
    pub fn kernels(&self) -> (String, &str) {
        (self.kernels.name(), &self.why)
    }

    /// Runs one candidate on threads of this process, with the loaded kernels, whatever the candidate says of kernels.
    ///
    /// # Errors
    /// [`RunError`]; a failed residual is no error.
    pub fn run(&self, candidate: &Candidate, options: &RunOptions<'_>) -> Result<Run, RunError> {
        self.run_on(&Ranks::threads(), candidate, options)
    }

    /// As [`run`](Self::run), on these ranks.
    ///
    /// # Errors
    /// [`RunError`]; a failed residual is no error.
    pub fn run_on(&self, ranks: &Ranks, candidate: &Candidate, options: &RunOptions<'_>) -> Result<Run, RunError> {
        let candidate = self.accept(ranks, candidate, options.force)?;
        let started_utc = jiff::Timestamp::now().to_string();
        let kernels = RankKernels::new(&self.kernels, &candidate.engine.rank_kernels)?;
        let job = Job::Run { wants_spans: options.watch.wants_spans() };
        let (outcome, of_ranks) = ranks.run_on_all(&candidate, &job, &kernels, options.watch)?;
        let report = outcome.run();

        let Report { time_s, residual, info, generate_s, check_s, ref x, .. } = report;
        let residual = residual.filter(|_| options.threshold > 0.0);
        let result = RunResult {
            schema_version: RESULT_SCHEMA,
            time_s,
            rate_gflops: flops::rate_gflops(candidate.hpl.n, time_s),
            residual: residual.map(|residual| residual.scaled),
            passed: residual.is_some_and(|residual| residual.scaled < options.threshold),
            info,
            generate_s,
            check_s,
            x_hash: (info == 0).then(|| hash(x)),
            phases: job::phases(&of_ranks),
            started_utc,
            host: host::facts().hostname,
            kernel: kernels.names(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            candidate,
        };
        Ok(Run { result, residual, spans: job::spans(&of_ranks) })
    }

    /// The candidate with its kernels resolved, if it can be run.
    fn accept(&self, ranks: &Ranks, candidate: &Candidate, force: bool) -> Result<Candidate, RunError> {
        candidate.check()?;
        ranks.check_grid(&candidate.hpl)?;
        if !force {
            check_memory(&candidate.hpl, ranks.free_bytes(candidate.hpl.ranks()))?;
        }
        let mut candidate = candidate.clone();
        candidate.engine.kernels = self.choice.clone();
        Ok(candidate)
    }
}

/// FNV-1a over the bits.
fn hash(x: &[f64]) -> String {
    let bytes = x.iter().flat_map(|x| x.to_bits().to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

/// Elements of the local matrices of all ranks.
fn matrix_lens(candidate: &Candidate) -> Vec<usize> {
    (0..candidate.hpl.ranks()).map(|rank| matrix_len(candidate, rank)).collect()
}

/// Starts the ranks as threads, each of which does `work` on its cores, and waits for all of them; the report of each,
/// in order. Their memory is that of earlier runs.
fn run_threads<R: Send>(
    candidate: &Candidate,
    buffers: &Arc<Buffers>,
    cores: &[usize],
    work: impl Fn(&ThreadComm, &[usize]) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, RunError> {
    let ranks = candidate.hpl.ranks();
    let sets = affinity::core_sets(cores, ranks, candidate.engine.threads);
    // Threads that share cores are not pinned, and do not spin.
    let world = threads::world_with(Arc::clone(buffers), ranks, sets.is_some());
    buffers.matrices.settle(&matrix_lens(candidate), candidate.engine.huge_pages);
    let sets = sets.unwrap_or_else(|| vec![Vec::new(); ranks]);
    let sets = shared_in_panels(&candidate.hpl, sets, 0..ranks);
    let work = &work;
    let reports = thread::scope(|scope| {
        let mut handles = Vec::with_capacity(ranks);
        for (rank, (comm, cores)) in world.into_iter().zip(&sets).enumerate() {
            // Dropped in a panic, `comm` tells the others.
            let life = move || work(&comm, cores);
            // Where a thread cannot be started, its `comm` and those after it are dropped: the ranks that are
            // running notice.
            let handle = thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, life);
            handles.push(handle.map_err(|source| RunError::Thread { rank, source })?);
        }
        conclude(handles.into_iter().map(thread::ScopedJoinHandle::join).collect())
    });
    buffers.forget_messages();
    reports
}

/// The cores of `ranks`, which share a node, with those that they borrow: only without look-ahead does nobody update while
/// a panel is factored.
fn shared_in_panels(hpl: &HplParams, sets: Vec<Vec<usize>>, ranks: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    if hpl.depth > 0 {
        return sets;
    }
    affinity::time_shared(&sets, &ranks.map(|rank| grid::place(hpl.pmap, rank, hpl.p, hpl.q)).collect::<Vec<_>>())
}

/// All reports, or the error that caused the others.
fn conclude<R>(ends: Vec<thread::Result<Result<R, Error>>>) -> Result<Vec<R>, RunError> {
    let mut reports = Vec::with_capacity(ends.len());
    let mut first: Option<RunError> = None;
    for (rank, end) in ends.into_iter().enumerate() {
        let error = match end {
            Ok(Ok(report)) => {
                reports.push(report);
                continue;
            }
            Ok(Err(source)) => RunError::Engine { rank, source },
            Err(payload) => RunError::Panicked { rank, message: panic_message(&*payload) },
        };
        if first.as_ref().is_none_or(|first| weight(&error) > weight(first)) {
            first = Some(error);
        }
    }
    first.map_or(Ok(reports), Err)
}

/// How near an error is to the cause: a panic, then an error of the rank's own, then the loss of a peer.
fn weight(error: &RunError) -> u8 {
    match error {
        RunError::Panicked { .. } => 2,
        RunError::Engine { source: Error::Peer(_), .. } => 0,
        _ => 1,
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
