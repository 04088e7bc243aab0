//! Errors of a run.

use std::io;

use space::rules::RuleError;

use crate::Error;
use crate::backend::host::kernels::KernelError;
use crate::plan::windows::WindowError;

/// Error of a run without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The candidate breaks a hard rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The kernels cannot be used.
    #[error(transparent)]
    Kernels(#[from] KernelError),
    /// A survey of ranks whose matrices are on devices.
    #[error(
        "a survey measures the cores of the ranks and the links between them, not devices; take the device out of the \
         engine parameters"
    )]
    SurveyOfDevices,
    /// The matrices of a survey, one on each rank, do not fit.
    #[error(
        "each of {ranks} ranks runs N={n} NB={nb} by itself: that needs {:.2} GiB, {:.2} GiB are available; lower N to \
         {largest_n}",
        gib(*needed_bytes),
        gib(*free_bytes)
    )]
    TooLargeEach {
        /// Order of each matrix.
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
         lower N to {largest_n}, or use --force",
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
        /// Memory that can be filled without swapping; of several nodes what all hold when the first is full.
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
    /// A window is not in the run.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// Two runs of different order, or of order 0, cannot be compared.
    #[error(
        "windows of N={n} and of a reference of N={reference_n} cannot be compared; use the same N above 0 for both"
    )]
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
        /// The reason.
        message: String,
    },
    /// The matrix fits, but not with its columns rounded up to ALIGN.
    #[error(
        "ALIGN={align} pads the matrix to {:.2} GiB, {:.2} GiB are available; lower ALIGN, 8 is usual, or use \
         --force",
        gib(*padded_bytes),
        gib(*free_bytes)
    )]
    Padded {
        /// ALIGN.
        align: usize,
        /// Memory of the padded matrix on all ranks.
        padded_bytes: u64,
        /// Memory that can be filled without swapping; of several nodes what all hold when the first is full.
        free_bytes: u64,
    },
    /// The system refused a thread.
    #[error("cannot start the thread of rank {rank}: {source}; lower P, Q or the threads")]
    Thread {
        /// Rank that could not be started.
        rank: usize,
        /// The system's error.
        source: io::Error,
    },
    /// A rank panicked, which is an error of the engine.
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

impl RunError {
    /// Whether the run, with the padding of its columns, does not fit in memory, which the system may also refuse only when it is asked
    /// for it, or in that of a device: another run may. In an MPI job no rank returns from a refusal, which ends the job.
    pub fn lacks_memory(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::Padded { .. } => true,
            Self::Engine { source: Error::Memory(_), .. } => true,
            Self::Engine { source, .. } => source.lacks_device_memory(),
            _ => false,
        }
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
