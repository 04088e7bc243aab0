//! What the ranks of a run are: threads of this process or processes of an MPI job.

use std::sync::Arc;

use space::{Candidate, HplParams};

use super::job::{Job, Outcome, RankReport};
use super::processes::{self, Processes};
use super::rank_threads::run_threads;
use super::{RunError, UnderMpi, refuse_mpi};
use crate::backend::host::kernels::RankKernels;
use crate::comm::mpi::{Calls, LibraryError};
use crate::comm::threads::ThreadComm;
use crate::comm::{Buffers, Comm};
use crate::machine::affinity::core_sets;
use crate::machine::bindings::{Bindings, RankBinding};
use crate::machine::host;
use crate::observe::Watch;

/// The ranks at a program's disposal.
pub struct Ranks(Kind);

enum Kind {
    /// As many threads of this process as a grid needs, and the memory that they share.
    Threads(Arc<Buffers>),
    /// The processes of the MPI job, of which this is rank 0.
    Processes(Processes),
}

/// Runs `main` in the process that is rank 0, and yields its exit code in all processes of the job. The other
/// ranks serve the runs that `main` makes.
///
/// # Errors
/// [`LibraryError`]: an MPI library beside the program that cannot be used.
pub fn enter(main: impl FnOnce(&Ranks) -> u8) -> Result<u8, LibraryError> {
    let role = Calls::here()?.map_or(processes::Role::Alone, processes::start);
    Ok(match role {
        processes::Role::Alone => main(&Ranks::threads()),
        processes::Role::First(processes) => {
            let ranks = Ranks(Kind::Processes(processes));
            let code = main(&ranks);
            let Kind::Processes(processes) = ranks.0 else { unreachable!("just made") };
            processes.end(code);
            code
        }
        processes::Role::Other(code) => code,
    })
}

impl Ranks {
    /// Threads of this process.
    pub fn threads() -> Self {
        Self(Kind::Threads(Arc::default()))
    }

    /// Refuses when a launcher started several processes and each believes that it is the only one.
    ///
    /// # Errors
    /// [`UnderMpi`], from the environment asked through `variable`.
    pub fn refuse_strange_launcher(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), UnderMpi> {
        match &self.0 {
            Kind::Threads(_) => refuse_mpi(variable),
            Kind::Processes(_) => Ok(()),
        }
    }

    /// Threads of each rank when `ranks` of them share the cores evenly; at least 1.
    pub fn threads_each(&self, ranks: usize) -> usize {
        match &self.0 {
            Kind::Threads(_) => (host::facts().cores_allowed.len() / ranks.max(1)).max(1),
            Kind::Processes(processes) => processes.threads_each(ranks),
        }
    }

    /// Where each rank of the job is, with as many `threads`; by default the cores of a node are spread over its ranks. Ranks that
    /// are threads are one process.
    pub fn bindings(&self, threads: Option<usize>) -> Bindings {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        match &self.0 {
            Kind::Threads(_) => {
                let facts = host::facts();
                let threads = threads.unwrap_or(facts.cores_allowed.len());
                let cores = core_sets(&facts.cores_allowed, 1, threads).unwrap_or_default().concat();
                let (host, memory_bytes) = (facts.hostname, facts.memory_available_bytes);
                let ranks = vec![RankBinding { host, cores_allowed: facts.cores_allowed, cores, memory_bytes }];
                Bindings { version, mpi: None, threads, ranks }
            }
            Kind::Processes(processes) => {
                let threads = threads.unwrap_or_else(|| processes.threads_each(processes.size()));
                Bindings { version, mpi: Some(processes.library()), threads, ranks: processes.bindings(threads) }
            }
        }
    }

    /// Whether some threads have to share a core when each of `ranks` ranks has `threads`.
    pub fn crowded(&self, ranks: usize, threads: usize) -> bool {
        match &self.0 {
            Kind::Threads(_) => ranks.saturating_mul(threads) > host::facts().cores_allowed.len(),
            Kind::Processes(processes) => processes.crowded(ranks, threads),
        }
    }

    /// Refuses a grid that has more ranks than there are.
    ///
    /// # Errors
    /// [`RunError::Processes`].
    pub fn check_grid(&self, hpl: &HplParams) -> Result<(), RunError> {
        match &self.0 {
            Kind::Threads(_) => Ok(()),
            Kind::Processes(processes) => processes.check_grid(hpl),
        }
    }

    /// Memory for a run on `ranks` ranks that can be filled without swapping, that of earlier runs included: on the
    /// tightest node, scaled to all.
    pub fn free_bytes(&self, ranks: usize) -> u64 {
        match &self.0 {
            Kind::Threads(buffers) => host::facts().memory_available_bytes + buffers.matrices.bytes(),
            Kind::Processes(processes) => processes.free_bytes(ranks),
        }
    }

    /// Runs of which one needs local matrices of these lengths are to follow in the same memory. Processes of an MPI job have
    /// their own each, which is mapped anew where it is too small.
    pub(super) fn reserve(&self, lens: &[usize]) {
        match &self.0 {
            Kind::Threads(buffers) => buffers.matrices.reserve(lens),
            Kind::Processes(_) => (),
        }
    }

    /// Does a job that has been checked; what has come of it, and what each rank has to report, in order. `watch` is told of the
    /// progress.
    pub(super) fn run_on_all(
        &self,
        candidate: &Candidate,
        job: &Job,
        kernels: &RankKernels<'_>,
        watch: &dyn Watch,
    ) -> Result<(Outcome, Vec<RankReport>), RunError> {
        match &self.0 {
            Kind::Threads(buffers) => {
                let work = |comm: &ThreadComm, cores: &[usize]| {
                    job.work(candidate, comm, cores, kernels.of(comm.rank()), watch)
                };
                let ends = run_threads(candidate, buffers, &host::facts().cores_allowed, work)?;
                let (mut outcomes, of_ranks): (Vec<_>, _) = ends.into_iter().unzip();
                Ok((outcomes.swap_remove(0), of_ranks))
            }
            Kind::Processes(processes) => processes.run_on_all(candidate, job, kernels.of(0), watch),
        }
    }
}
