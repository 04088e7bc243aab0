//! What the ranks of a run are: threads of this process or processes of an MPI job.

use space::{Candidate, HplParams};

#[cfg(feature = "mpi")]
use super::processes::{self, Processes};
use super::{RunError, UnderMpi, refuse_mpi, run_threads};
use crate::comm::Comm;
use crate::kernels::RankKernels;
use crate::windows::{Window, WindowsReport};
use crate::{Report, Watch, host, measure_windows, solve};

/// The ranks at a program's disposal.
pub struct Ranks(Kind);

enum Kind {
    /// As many threads of this process as a grid needs.
    Threads,
    /// The processes of the MPI job, of which this is rank 0.
    #[cfg(feature = "mpi")]
    Processes(Processes),
}

/// Runs `main` in the process that is rank 0, and yields its exit code in all processes of the job. The other
/// ranks serve the runs that `main` makes.
pub fn enter(main: impl FnOnce(&Ranks) -> u8) -> u8 {
    #[cfg(feature = "mpi")]
    match processes::start() {
        processes::Role::Alone => (),
        processes::Role::First(processes) => {
            let ranks = Ranks(Kind::Processes(processes));
            let code = main(&ranks);
            let Kind::Processes(processes) = ranks.0 else { unreachable!("just made") };
            processes.end(code);
            return code;
        }
        processes::Role::Other(code) => return code,
    }
    main(&Ranks::threads())
}

impl Ranks {
    /// Threads of this process.
    pub fn threads() -> Self {
        Self(Kind::Threads)
    }

    /// Refuses when a launcher started several processes and each believes that it is the only one.
    ///
    /// # Errors
    /// [`UnderMpi`], from the environment asked through `variable`.
    pub fn refuse_strange_launcher(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), UnderMpi> {
        match &self.0 {
            Kind::Threads => refuse_mpi(variable),
            #[cfg(feature = "mpi")]
            Kind::Processes(_) => Ok(()),
        }
    }

    /// Threads of each rank when `ranks` of them share the cores evenly; at least 1.
    pub fn threads_each(&self, ranks: usize) -> usize {
        match &self.0 {
            Kind::Threads => (host::facts().cores_allowed.len() / ranks.max(1)).max(1),
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.threads_each(ranks),
        }
    }

    /// Whether some threads have to share a core when each of `ranks` ranks has `threads`.
    pub fn crowded(&self, ranks: usize, threads: usize) -> bool {
        match &self.0 {
            Kind::Threads => ranks.saturating_mul(threads) > host::facts().cores_allowed.len(),
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.crowded(ranks, threads),
        }
    }

    /// Refuses a grid that has more ranks than there are.
    ///
    /// # Errors
    /// [`RunError::Processes`].
    #[cfg_attr(not(feature = "mpi"), expect(unused_variables, reason = "threads are made as needed"))]
    pub fn check_grid(&self, hpl: &HplParams) -> Result<(), RunError> {
        match &self.0 {
            Kind::Threads => Ok(()),
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.check_grid(hpl),
        }
    }

    /// Memory for a run on `ranks` ranks that can be filled without swapping: on the tightest node, scaled to all.
    #[cfg_attr(not(feature = "mpi"), expect(unused_variables, reason = "threads are made as needed"))]
    pub fn free_bytes(&self, ranks: usize) -> u64 {
        match &self.0 {
            Kind::Threads => host::facts().memory_available_bytes,
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.free_bytes(ranks),
        }
    }

    /// Makes a run that has been checked; the report of each rank, in order.
    pub(super) fn run(
        &self,
        candidate: &Candidate,
        kernels: &RankKernels<'_>,
        watch: &dyn Watch,
    ) -> Result<Vec<Report>, RunError> {
        match &self.0 {
            Kind::Threads => run_threads(candidate, &host::facts().cores_allowed, |comm, cores| {
                solve(candidate, comm, cores, kernels.of(comm.rank()), watch)
            }),
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.run(candidate, kernels.of(0), watch),
        }
    }

    /// Measures windows of a run that has been checked; the report of each rank, in order.
    pub(super) fn windows(
        &self,
        candidate: &Candidate,
        windows: &[Window],
        kernels: &RankKernels<'_>,
    ) -> Result<Vec<WindowsReport>, RunError> {
        match &self.0 {
            Kind::Threads => run_threads(candidate, &host::facts().cores_allowed, |comm, cores| {
                measure_windows(candidate, windows, comm, cores, kernels.of(comm.rank()))
            }),
            #[cfg(feature = "mpi")]
            Kind::Processes(processes) => processes.windows(candidate, windows, kernels.of(0)),
        }
    }
}
