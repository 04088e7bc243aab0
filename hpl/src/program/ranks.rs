//! The ranks of a run: threads of this process or processes of an MPI job.

use std::sync::Arc;

use space::{Candidate, KernelChoice};

use super::job::{Job, JobOutcome, RankReport};
use super::memory::FreeMemory;
use super::processes::{self, Processes};
use super::rank_threads::run_threads;
use super::{RunError, UnderMpi, refuse_mpi};
use crate::backend::host::kernels::{KernelError, Loaded, RankKernels};
use crate::comm::mpi::{Calls, LibraryError};
use crate::comm::threads::ThreadComm;
use crate::comm::{Buffers, Comm};
use crate::machine::affinity::core_sets;
use crate::machine::bindings::{Bindings, RankBinding};
use crate::machine::host;
use crate::observe::Watch;

/// The ranks that a program can use.
pub struct Ranks(Available);

enum Available {
    /// Threads of this process, as many as the grid needs, with their shared memory.
    Threads(Arc<Buffers>),
    /// The processes of the MPI job, of which this is rank 0.
    Processes(Processes),
}

/// Calls `main` in the process with rank 0, and returns its exit code in all processes of the job. The other ranks take
/// part in the runs of `main`.
///
/// # Errors
/// [`LibraryError`]: the MPI library in the program's folder cannot be used.
pub fn enter(main: impl FnOnce(&Ranks) -> u8) -> Result<u8, LibraryError> {
    let role = Calls::here()?.map_or(processes::Role::Alone, processes::start);
    Ok(match role {
        processes::Role::Alone => main(&Ranks::threads()),
        processes::Role::First(processes) => {
            let ranks = Ranks(Available::Processes(processes));
            let code = main(&ranks);
            let Available::Processes(processes) = ranks.0 else { unreachable!("created above") };
            processes.end(code);
            code
        }
        processes::Role::Other(code) => code,
    })
}

impl Ranks {
    /// Threads of this process.
    pub fn threads() -> Self {
        Self(Available::Threads(Arc::default()))
    }

    /// Refuses when a launcher started several processes that do not form one MPI job.
    ///
    /// # Errors
    /// [`UnderMpi`], from the environment read by `variable`.
    pub fn refuse_separate_processes(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), UnderMpi> {
        match &self.0 {
            Available::Threads(_) => refuse_mpi(variable),
            Available::Processes(_) => Ok(()),
        }
    }

    /// Threads of each rank when `ranks` of them share the cores evenly; at least 1.
    pub fn threads_each(&self, ranks: usize) -> usize {
        match &self.0 {
            Available::Threads(_) => (host::facts().cores_allowed.len() / ranks.max(1)).max(1),
            Available::Processes(processes) => processes.threads_each(ranks),
        }
    }

    /// Host and cores of each rank of the job, with `threads` threads per rank; by default the cores of a node are divided among
    /// its ranks. If ranks are threads, the process is one entry.
    pub fn bindings(&self, threads: Option<usize>) -> Bindings {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        match &self.0 {
            Available::Threads(_) => {
                let facts = host::facts();
                let threads = threads.unwrap_or(facts.cores_allowed.len());
                let cores = core_sets(&facts.cores_allowed, 1, threads).unwrap_or_default().concat();
                let (host, memory_bytes) = (facts.hostname, facts.memory_available_bytes);
                let cores_allowed = host::physical_cores(&facts.cores_allowed);
                let ranks = vec![RankBinding { host, cores_allowed, cores, memory_bytes }];
                Bindings { version, mpi: None, threads, ranks }
            }
            Available::Processes(processes) => {
                let threads = threads.unwrap_or_else(|| processes.threads_each(processes.size()));
                Bindings { version, mpi: Some(processes.library()), threads, ranks: processes.bindings(threads) }
            }
        }
    }

    /// Whether some threads have to share a core with `threads` threads on each of `ranks` ranks.
    pub fn oversubscribed(&self, ranks: usize, threads: usize) -> bool {
        match &self.0 {
            Available::Threads(_) => ranks.saturating_mul(threads) > host::facts().cores_allowed.len(),
            Available::Processes(processes) => processes.oversubscribed(ranks, threads),
        }
    }

    /// Refuses a grid with more ranks than the job has processes, or more threads than one process may have.
    ///
    /// # Errors
    /// [`RunError::Processes`], [`RunError::Rule`].
    pub fn check_grid(&self, candidate: &Candidate) -> Result<(), RunError> {
        match &self.0 {
            Available::Threads(_) => Ok(candidate.check_in_one_process()?),
            Available::Processes(processes) => processes.check_grid(&candidate.hpl),
        }
    }

    /// Memory for a run on `ranks` ranks that can be filled without swapping, including memory kept from earlier runs.
    pub(super) fn free_memory(&self, ranks: usize) -> FreeMemory {
        match &self.0 {
            Available::Threads(buffers) => {
                let kept_bytes = buffers.matrices.bytes();
                let facts = if kept_bytes > 0 { host::facts_after_runs() } else { host::facts() };
                FreeMemory::OneProcess(facts.memory_available_bytes + kept_bytes)
            }
            Available::Processes(processes) => FreeMemory::Nodes(processes.free_memory(ranks)),
        }
    }

    /// Reserves shared memory for a later run with local matrices of these lengths. Processes of an MPI job have separate
    /// memory, which is mapped again when it is too small or the run is on another number of ranks.
    pub(super) fn reserve(&self, lens: &[usize]) {
        match &self.0 {
            Available::Threads(buffers) => buffers.matrices.reserve(lens),
            Available::Processes(_) => (),
        }
    }

    /// The kernels of the ranks in this process: `common`, or those of `rank_kernels` where that is not empty. Other processes load
    /// their own, which may not run on the node of this one.
    ///
    /// # Errors
    /// [`KernelError`].
    pub(super) fn kernels<'a>(
        &self,
        common: &'a Loaded,
        rank_kernels: &[KernelChoice],
    ) -> Result<RankKernels<'a>, KernelError> {
        let here = match &self.0 {
            Available::Threads(_) => rank_kernels.len(),
            Available::Processes(_) => rank_kernels.len().min(1),
        };
        RankKernels::new(common, &rank_kernels[..here])
    }

    /// Executes a job that has been checked; returns its outcome and the report of each rank, in order. `watch` receives the
    /// progress.
    pub(super) fn run_on_all(
        &self,
        candidate: &Candidate,
        job: &Job,
        kernels: &RankKernels<'_>,
        watch: &dyn Watch,
    ) -> Result<(JobOutcome, Vec<RankReport>), RunError> {
        match &self.0 {
            Available::Threads(buffers) => {
                let work = |comm: &ThreadComm, cores: &[usize]| {
                    job.work(candidate, comm, cores, kernels.of(comm.rank()), watch)
                };
                let ends = run_threads(candidate, buffers, &host::facts().cores_allowed, work)?;
                let (mut outcomes, of_ranks): (Vec<_>, _) = ends.into_iter().unzip();
                Ok((outcomes.swap_remove(0), of_ranks))
            }
            Available::Processes(processes) => processes.run_on_all(candidate, job, kernels.of(0), watch),
        }
    }
}
