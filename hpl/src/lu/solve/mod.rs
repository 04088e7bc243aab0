//! One run on one rank: generate, factor, substitute, check.

use std::time::{Duration, Instant};

use space::result::PhaseTime;
use space::workspace::{DEVICE_LD_STEP, leading_dimension};
use space::{Candidate, DeviceChoice, HplParams, Weights};

use crate::Error;
use crate::backend::Backend;
use crate::backend::device::gpu::{GpuDevice, GpuPlatform};
use crate::backend::device::reference::{ExecutionOrder, Reference};
use crate::backend::device::{Device, DeviceParams, OnDevice};
use crate::backend::host::kernels::Kernels;
use crate::backend::host::kernels::isa::Isa;
use crate::backend::host::kernels::peak::multiply_add_gflops;
use crate::backend::host::team::{Team, TeamParams, with_team};
use crate::backend::host::{HostBackend, Workspace};
use crate::comm::Comm;
use crate::comm::grid::{self, Grid};
use crate::comm::reduce;
use crate::lu::gesv::Lu;
use crate::lu::residual::{self, Residual};
use crate::lu::trsv;
use crate::mat::MatMut;
use crate::observe::phases::Phase;
use crate::observe::trace::{Span, Trace};
use crate::observe::watch::Watch;
use crate::plan::layout::Layout;
use crate::plan::windows::{Window, WindowsReport};
use crate::plan::{ColumnStrips, Plan};

/// Time for which multiply–adds are measured after a run: some hundred readings.
const PEAK_TIME: Duration = Duration::from_millis(8);

/// Result of a run on one rank; all fields except `phases`, `spans`, `started`, `fma_peak_gflops` and `device` are the same on all ranks.
#[derive(Debug, Clone)]
pub struct Report {
    /// Time of factorization and back substitution in seconds, maximum over ranks.
    pub time_s: f64,
    /// The check; `None` after a zero pivot.
    pub residual: Option<Residual>,
    /// Column + 1 of the first zero pivot; 0 when there was none.
    pub info: usize,
    /// Time to generate the matrix in seconds, maximum over ranks.
    pub generate_s: f64,
    /// Time of the check in seconds, maximum over ranks.
    pub check_s: f64,
    /// Time of this rank's first thread in each phase of each step.
    pub phases: Vec<PhaseTime>,
    /// Trace of this rank's threads, with times since [`started`](Self::started); empty unless [`Watch::wants_spans`].
    pub spans: Vec<Span>,
    /// Start of the factorization on this rank, after a barrier of all ranks.
    pub started: Instant,
    /// Rate of independent multiply–adds of this rank's threads right after the run, in GFLOP/s; `None` where threads share cores.
    pub fma_peak_gflops: Option<f64>,
    /// The device with its libraries; `None` on the host.
    pub device: Option<String>,
    /// The solution, N elements; empty after a zero pivot.
    pub x: Vec<f64>,
}

/// Solves the system of `candidate`, as one of its P·Q ranks. Called by every rank of `comm`.
///
/// `cores`: cores of this rank's threads, in order. With fewer cores than threads, the other threads are not pinned and no
/// thread spins while it waits; further cores are borrowed for panel factorizations
/// ([`affinity::time_shared`](crate::machine::affinity::time_shared)). The calling thread is the first thread of the rank and
/// stays pinned. `watch` receives the progress on rank 0.
///
/// # Errors
/// A rank that fails poisons `comm`, so that all ranks return an error. Of a device that lacks memory they know without that.
pub fn solve<C: Comm>(
    candidate: &Candidate,
    comm: &C,
    cores: &[usize],
    kernels: &dyn Kernels,
    watch: &dyn Watch,
) -> Result<Report, Error> {
    // The rate of a device is no share of what the host's threads reach.
    let comparable = cores.len() >= candidate.engine.threads && !candidate.engine.device.is_gpu();
    as_rank(candidate, comm, cores, kernels, watch, |run, team| {
        let report = run.with_backend(team, WholeRun)?;
        Ok(Report { fma_peak_gflops: comparable.then(|| fma_peak_gflops(team)).transpose()?, ..report })
    })
}

/// Measures windows of the run of `candidate`, as one of its P·Q ranks; arguments as in [`solve`].
///
/// # Errors
/// A rank that fails poisons `comm`, so that all ranks return an error. Of a device that lacks memory they know without that.
pub fn measure_windows<C: Comm>(
    candidate: &Candidate,
    windows: &[Window],
    comm: &C,
    cores: &[usize],
    kernels: &dyn Kernels,
) -> Result<WindowsReport, Error> {
    as_rank(candidate, comm, cores, kernels, &(), |run, team| run.with_backend(team, SomeWindows(windows)))
}

/// Rate of independent multiply–adds of all threads of `team` at the same time, in GFLOP/s.
fn fma_peak_gflops(team: &mut Team<'_>) -> Result<f64, Error> {
    let of_thread = |()| multiply_add_gflops(Isa::detect(), PEAK_TIME);
    Ok(team.map(vec![(); team.threads()], of_thread)?.into_iter().sum())
}

/// Creates the grid, starts the threads and calls `work`.
fn as_rank<C: Comm, R>(
    candidate: &Candidate,
    comm: &C,
    cores: &[usize],
    kernels: &dyn Kernels,
    watch: &dyn Watch,
    work: impl FnOnce(&RankRun<'_, C>, &mut Team<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let (hpl, threads) = (&candidate.hpl, candidate.engine.threads.max(1));
    if hpl.ranks() != comm.size() {
        return Err(Error::Ranks { p: hpl.p, q: hpl.q, found: comm.size() });
    }
    let grid = &Grid::new(comm, hpl.pmap, hpl.p, hpl.q)?;
    let layout = Layout::of(hpl, &candidate.engine.weights);
    let depth = hpl.depth.min(layout.rows.blocks());
    // Only for one thread per rank in one process: a strip is too small for several threads, and messages of other processes
    // need more time.
    // A device updates whole sections.
    let on_host = candidate.engine.device == DeviceChoice::None;
    let by_strips = on_host && C::IN_PROCESS && threads == 1;
    let strips = if by_strips { ColumnStrips::Each(strip_cols(grid, kernels)?) } else { ColumnStrips::Whole };
    let plan = Plan { layout, depth, split: candidate.engine.split.get(), strips };
    let team = TeamParams { threads, cores, spin: cores.len() >= threads };
    let run = RankRun { candidate, comm, grid, kernels, watch, plan };
    let outcome = with_team(team, |team| work(&run, team)).unwrap_or_else(|refused| {
        Err(Error::Thread { index: refused.index, threads, reason: refused.error.to_string() })
    });
    if let Err(error) = &outcome
        && !error.is_agreed()
    {
        // Before the grid is dropped: after that, the others would see only that this rank has ended.
        comm.poison(&error.to_string());
    }
    outcome
}

/// Columns of a strip: the same on all ranks of the process column, which exchange its rows, also where their kernels differ.
fn strip_cols<C: Comm>(grid: &Grid<C>, kernels: &dyn Kernels) -> Result<usize, Error> {
    let narrowest = -reduce::all_max(&grid.col_comm, -(kernels.widest_slab() as f64))?;
    Ok(narrowest as usize)
}

/// What a rank does with its local matrix, on any backend.
trait RankWork {
    /// Its result.
    type Output;

    /// Does it.
    fn run<C: Comm>(self, run: &RankRun<'_, C>, backend: &mut impl Backend) -> Result<Self::Output, Error>;
}

/// The whole run.
struct WholeRun;

impl RankWork for WholeRun {
    type Output = Report;

    fn run<C: Comm>(self, run: &RankRun<'_, C>, backend: &mut impl Backend) -> Result<Report, Error> {
        run.run(backend)
    }
}

/// Windows of the run.
struct SomeWindows<'w>(&'w [Window]);

impl RankWork for SomeWindows<'_> {
    type Output = WindowsReport;

    fn run<C: Comm>(self, run: &RankRun<'_, C>, backend: &mut impl Backend) -> Result<WindowsReport, Error> {
        run.windows(backend, self.0)
    }
}

/// One run on one rank.
struct RankRun<'a, C> {
    candidate: &'a Candidate,
    comm: &'a C,
    grid: &'a Grid<C>,
    kernels: &'a dyn Kernels,
    watch: &'a dyn Watch,
    plan: Plan,
}

impl<C: Comm> RankRun<'_, C> {
    /// Calls `work` with the local matrix where the candidate wants it.
    fn with_backend<W: RankWork>(&self, team: &mut Team<'_>, work: W) -> Result<W::Output, Error> {
        match self.candidate.engine.device {
            DeviceChoice::None => self.on_host(team, |backend| work.run(self, backend)),
            DeviceChoice::Reference => {
                self.on_device(team, Ok(self.reference(self.order())), |backend| work.run(self, backend))
            }
            DeviceChoice::Cuda => self.on_device(team, self.gpu(GpuPlatform::Cuda), |backend| work.run(self, backend)),
            DeviceChoice::Hip => self.on_device(team, self.gpu(GpuPlatform::Hip), |backend| work.run(self, backend)),
        }
    }

    /// The order of execution on the reference device: another one on each rank, the same in each run.
    fn order(&self) -> ExecutionOrder {
        ExecutionOrder { seed: self.comm.rank() as u64, without: None }
    }

    /// A reference device that executes in this order.
    fn reference(&self, order: ExecutionOrder) -> Reference<'_> {
        Reference::new(self.kernels, order)
    }

    /// The GPU of this rank; other ranks of this process may have the same one.
    fn gpu(&self, platform: GpuPlatform) -> Result<GpuDevice, Error> {
        let ranks = if C::IN_PROCESS { self.comm.size() } else { 1 };
        Ok(GpuDevice::open(platform, self.comm.place_on_node(), ranks)?)
    }

    /// Calls `work` with the local matrix on `device`, unless that of any rank lacks memory to be opened or to hold its part.
    fn on_device<D: Device, R>(
        &self,
        team: &mut Team<'_>,
        device: Result<D, Error>,
        work: impl FnOnce(&mut OnDevice<'_, '_, D>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (layout, coords) = (&self.plan.layout, (self.grid.row, self.grid.col));
        let align = self.candidate.hpl.align.max(1);
        let step = if DEVICE_LD_STEP.is_multiple_of(align) { DEVICE_LD_STEP } else { align };
        let (_, _, ld) = local_shape(layout, step, coords);
        let params = DeviceParams { ld, depth: self.plan.depth, fact_blocks: self.candidate.engine.fact_blocks() };
        let made = device.and_then(|device| OnDevice::new(device, self.kernels, team, layout, coords, params));
        work(&mut self.if_all_fit(made)?)
    }

    /// `made`, unless the device of any rank lacks the memory for it: all ranks return that together.
    fn if_all_fit<T>(&self, made: Result<T, Error>) -> Result<T, Error> {
        let lacking = matches!(&made, Err(Error::Device(error)) if error.lacks_memory);
        if made.is_err() && !lacking {
            return made;
        }
        let any_lacking = reduce::all_max(self.comm, f64::from(u8::from(lacking)))? > 0.0;
        match made {
            Err(Error::Device(error)) => Err(Error::DeviceMemory(error)),
            Ok(_) if any_lacking => Err(Error::DeviceMemoryElsewhere),
            made => made,
        }
    }

    /// Calls `work` with the local matrix in main memory, that of an earlier run or new pages.
    fn on_host<R>(
        &self,
        team: &mut Team<'_>,
        work: impl FnOnce(&mut HostBackend<'_, '_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (coords, engine) = ((self.grid.row, self.grid.col), &self.candidate.engine);
        let (rows, cols, ld) = local_shape(&self.plan.layout, self.candidate.hpl.align, coords);
        // In a survey each rank is a group of its own, and all are in one process.
        let rank = self.comm.world_rank();
        let mut data = self.comm.buffers().matrices.take(rank, ld * cols, engine.huge_pages)?;
        let mut workspace = Workspace::default();
        let a = MatMut::new(&mut data, rows, cols, ld);
        let report = work(&mut HostBackend::new(self.kernels, team, a, &mut workspace))?;
        self.comm.buffers().matrices.give(rank, data);
        Ok(report)
    }

    fn run(&self, backend: &mut impl Backend) -> Result<Report, Error> {
        let (plan, grid) = (&self.plan, self.grid);

        // [A | b]
        let start = self.start()?;
        self.if_all_fit(self.generate(backend))?;
        let trace = Trace::new(if self.watch.wants_spans() { backend.threads() } else { 0 });
        let mut lu = self.lu(&trace, 0);
        // Before the timer starts; Netlib's program allocates its panels in the timed part.
        self.warm_up(0, backend)?;
        let generate_s = self.seconds_since(start)?;

        // [L\U | y] with P A = L U, L y = P b
        let watch = (self.comm.rank() == 0).then_some(self.watch);
        watch.inspect(|watch| watch.starts());
        let started = self.start()?;
        let info = lu.factor(0..plan.steps(), backend, watch)?;
        // U x = y
        let mut x = Vec::new();
        if info == 0 {
            let clock = Instant::now();
            x = trsv::solve(plan, 0, grid, backend)?;
            let end = lu.phases.add(plan.steps(), Phase::Trsv, clock);
            trace.span(0, plan.steps(), Phase::Trsv, None, (clock, end));
        }
        let time_s = self.seconds_since(started)?;
        watch.inspect(|watch| watch.ends());
        let phases = lu.phases.into_steps();
        let spans = trace.into_spans(self.comm.rank(), started);

        // ‖A x − b‖
        let start = self.start()?;
        // Each process column has its own blocks of x, and zeros in the other blocks.
        reduce::all(&grid.row_comm, &mut x, |a, b| a + b)?;
        let check = || residual::check(&plan.layout, grid, self.comm, backend, &x);
        let residual = (info == 0).then(check).transpose()?;
        let check_s = self.seconds_since(start)?;
        let device = backend.device();
        Ok(Report {
            time_s,
            residual,
            info,
            generate_s,
            check_s,
            phases,
            spans,
            started,
            fma_peak_gflops: None,
            device,
            x,
        })
    }

    /// Generates the local matrix. A device may lack memory there that it takes at its first use: no message is sent.
    fn generate(&self, backend: &mut impl Backend) -> Result<(), Error> {
        backend.load_kernels(&self.candidate.hpl)?;
        backend.generate(&self.plan.layout, (self.grid.row, self.grid.col))
    }

    /// Barrier of all ranks; returns the time after it.
    fn start(&self) -> Result<Instant, Error> {
        self.comm.barrier()?;
        Ok(Instant::now())
    }

    /// Seconds since `start`, maximum over ranks.
    fn seconds_since(&self, start: Instant) -> Result<f64, Error> {
        Ok(reduce::all_max(self.comm, start.elapsed().as_secs_f64())?)
    }

    /// A new factorization that begins with step `first`, with memory for all panels that it has at a time. At Q > 1 the first step
    /// factors one more while the others keep what they have sent.
    fn lu<'s>(&'s self, trace: &'s Trace, first: usize) -> Lu<'s, C> {
        let panels = self.plan.depth.max(1) + usize::from(self.plan.layout.cols.procs() > 1);
        Lu::new(&self.plan, self.grid, &self.candidate.hpl, self.comm.rank(), trace, first..first + panels)
    }

    /// Touches the workspace that step `first` needs, so that the step runs as it would after earlier steps.
    fn warm_up(&self, first: usize, backend: &mut impl Backend) -> Result<(), Error> {
        if first == self.plan.steps() {
            return Ok(());
        }
        let shape = self.plan.panel(first, self.grid.row);
        backend.warm_up(&shape, self.plan.layout.cols.local_from(self.grid.col, shape.ia))
    }
}

/// Rows, columns and leading dimension of the local part of [A | b].
fn local_shape(layout: &Layout, align: usize, (row, col): (usize, usize)) -> (usize, usize, usize) {
    let (rows, cols) = (layout.rows.local_len(row), layout.cols.local_len(col));
    (rows, cols, leading_dimension(rows, align))
}

/// Leading dimension of the local matrices of each process row, and columns of those of each process column.
pub(crate) fn local_shapes(hpl: &HplParams, weights: &Weights) -> (Vec<usize>, Vec<usize>) {
    let layout = Layout::of(hpl, weights);
    let ld = |row| leading_dimension(layout.rows.local_len(row), hpl.align);
    ((0..hpl.p).map(ld).collect(), (0..hpl.q).map(|col| layout.cols.local_len(col)).collect())
}

/// Elements of the local matrix of rank `rank` in main memory: none on a device.
pub(crate) fn matrix_len(candidate: &Candidate, rank: usize) -> usize {
    let Candidate { hpl, engine } = candidate;
    if engine.device != DeviceChoice::None {
        return 0;
    }
    let (_, cols, ld) =
        local_shape(&Layout::of(hpl, &engine.weights), hpl.align, grid::coords(hpl.pmap, rank, hpl.p, hpl.q));
    ld * cols
}

mod windows;

#[cfg(test)]
mod tests;
