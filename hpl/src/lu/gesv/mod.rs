//! The factorization: [A | b] ← [L\U | L⁻¹ P b], step by step according to the plan.
//!
//! [`Lu::run`] is the main loop: one line per kind of [task](Task). [`Panels`] holds the panels in flight, [`RowSwaps`] the row
//! exchanges in flight; the [`Backend`] holds the matrix.

mod panels;
mod reports;
mod row_swaps;

use std::iter::Peekable;
use std::ops::Range;
use std::slice;
use std::time::Instant;

use space::HplParams;

use self::panels::Panels;
use self::reports::Reports;
use self::row_swaps::RowSwaps;
use crate::Error;
use crate::backend::{Backend, Columns, Meanwhile, Update};
use crate::comm::grid::Grid;
use crate::comm::{Comm, Completion, Msg};
use crate::lu::fact::Fact;
use crate::lu::panel;
use crate::observe::Watch;
use crate::observe::phases::{Phase, Phases};
use crate::observe::trace::Trace;
use crate::plan::recursion::Recipe;
use crate::plan::{PanelShape, Part, Plan, Section, Task};

/// Columns that are updated between two polls where messages progress only when polled: a fraction of a millisecond up to
/// thousands of rows, in which a fast link transfers no more than fits its buffers.
const POLL_COLS: usize = 32;

/// The factorization on one rank.
pub(crate) struct Lu<'a, C: Comm> {
    plan: &'a Plan,
    grid: &'a Grid<C>,
    params: &'a HplParams,
    panels: Panels<'a, C>,
    swaps: RowSwaps<'a, C>,
    pub(crate) phases: Phases,
    trace: &'a Trace,
    step: usize,
    /// The first step whose time counts: a device has done what the steps before have queued when it begins.
    pub(crate) timed: usize,
}

impl<'a, C: Comm> Lu<'a, C> {
    /// Allocates the memory for those of `panels` that this rank factors; later panels reuse it, as each update frees one panel.
    /// This is done before the timer starts; Netlib's program allocates its panels in the timed part.
    pub(crate) fn new(
        plan: &'a Plan,
        grid: &'a Grid<C>,
        params: &'a HplParams,
        rank: usize,
        trace: &'a Trace,
        panels: Range<usize>,
    ) -> Self {
        let panels = panels.start..panels.end.min(plan.steps());
        for k in panels.filter(|&k| plan.layout.cols.block_owner(k) == grid.col) {
            grid.row_comm.buffers().panels.reserve(plan.panel(k, grid.row).words());
        }
        Self {
            plan,
            grid,
            params,
            panels: Panels::new(&grid.row_comm, params),
            swaps: RowSwaps::new(&grid.col_comm, &plan.layout.rows, params),
            phases: Phases::new(rank, plan.steps() + 1),
            trace,
            step: 0,
            timed: 0,
        }
    }

    /// Factors the local matrix by the steps `steps`, after all earlier steps. Returns info: column + 1 of the first zero
    /// pivot, 0 if there is none.
    ///
    /// # Errors
    /// When a rank or thread fails.
    pub(crate) fn factor(
        &mut self,
        steps: Range<usize>,
        backend: &mut impl Backend,
        watch: Option<&dyn Watch>,
    ) -> Result<usize, Error> {
        let start = Instant::now();
        let mut reports = Reports::new(watch, self.params.n, start);
        let (row, col) = (self.grid.row, self.grid.col);
        let (end, done) = (steps.end, steps.clone());
        self.step = steps.start;
        self.run(&self.plan.prologue(steps.start, row, col), backend)?;
        self.phases.begin(start);
        for k in steps {
            let step = self.plan.step(k, row, col);
            self.step = k;
            self.run(&step.tasks, backend)?;
            // A rank without columns to update has not yet waited for the panel.
            self.wait_for_panel(k)?;
            self.panels.release_oldest();
            if k + 1 == end || k + 1 == self.timed {
                backend.finish()?;
            }
            self.phases.end(k, start);
            reports.column(step.panel.ia + step.panel.jb);
        }
        self.finish_sends()?;
        self.take_stream_spans(done, backend);
        Ok(self.panels.info())
    }

    /// Takes the times of a device in the place of those in which the host has queued its work, and waited for it. They overlap. A
    /// panel counts for the step in which it is factored, as on the host.
    fn take_stream_spans(&mut self, steps: Range<usize>, backend: &mut impl Backend) {
        let spans = backend.stream_spans();
        for phase in [Phase::Fact, Phase::Rs, Phase::Update] {
            if spans.iter().any(|span| span.phase == phase) {
                steps.clone().for_each(|step| self.phases.clear(step, phase));
            }
        }
        for span in &spans {
            let ahead = if span.phase == Phase::Fact { self.plan.depth } else { 0 };
            let step = span.panel.saturating_sub(ahead).clamp(steps.start, steps.end.max(steps.start + 1) - 1);
            self.phases.add_until(step, span.phase, span.times);
        }
        self.trace.streams(&spans);
    }

    /// After the steps before `end`: completes all messages in flight. Each panel in flight, except the last
    /// where it keeps its columns, updates the columns that it has not updated yet, so that all columns of the trailing matrix have the same updates.
    ///
    /// # Errors
    /// When a rank or thread fails.
    pub(crate) fn quiesce(&mut self, end: usize, backend: &mut impl Backend) -> Result<(), Error> {
        self.step = end;
        self.run(&self.plan.drain(end, self.grid.col, !backend.panels_unchanged()), backend)?;
        self.panels.wait_for_all()?;
        self.panels.clear();
        self.swaps.abandon(backend)?;
        self.finish_sends()?;
        backend.finish()
    }

    /// Executes the tasks in order. L1 and L2 of a panel are loaded once for all its sections.
    fn run<B: Backend>(&mut self, tasks: &[Task], backend: &mut B) -> Result<(), Error> {
        let mut factored: Option<Msg> = None;
        let mut loaded: Option<(usize, B::L)> = None;
        for task in tasks {
            match task {
                // Panel ← L\U
                Task::Fact(shape) => factored = Some(self.fact(shape, backend)?),
                // L, L1 and the pivots to all process columns
                Task::Lbcast(shape) => self.start_bcast(shape, factored.take()),
                // [U; C] ← P·[U; C]
                Task::RsStart { panel, section, u_cols } => self.start_laswp(*panel, section, *u_cols, backend)?,
                Task::RsWait { panel, part } => self.finish_laswp(*panel, *part, backend)?,
                // U ← L1⁻¹ U, C ← C − L2 U, for the columns of one panel
                Task::Update { panel, section, rows, packs: false, .. } => {
                    self.update_lookahead(*panel, section, *rows, backend)?;
                }
                // The same for a section, while the next panel is factored
                Task::Update { panel, section, rows, overlapped, .. } => {
                    let l = match loaded.take() {
                        Some((k, l)) if k == *panel => l,
                        other => {
                            if let Some((_, l)) = other {
                                backend.unload(l);
                            }
                            self.load(*panel, backend)?
                        }
                    };
                    self.update(&l, *panel, section, *rows, overlapped, backend)?;
                    loaded = Some((*panel, l));
                }
            }
        }
        if let Some((_, l)) = loaded {
            backend.unload(l);
        }
        Ok(())
    }

    /// Adds the time of this thread since `start`, spent on panel `k`, to the phases of the step; returns the current time.
    fn record(&mut self, k: usize, phase: Phase, part: Option<Part>, start: Instant) -> Instant {
        let now = self.phases.add(self.step, phase, start);
        self.trace.span(0, k, phase, part, (start, now));
        now
    }

    /// Factors a panel of this process column; returns the panel's message.
    fn fact(&mut self, shape: &PanelShape, columns: &mut impl Columns) -> Result<Msg, Error> {
        let start = Instant::now();
        let mut threads = 1;
        let msg = self.grid.row_comm.buffers().panels.message(shape.words(), |data| -> Result<(), Error> {
            threads = columns.fact(Fact {
                recipe: Recipe::new(self.params),
                column: &self.grid.col_comm,
                rows: &self.plan.layout.rows,
                shape: *shape,
                col: self.plan.layout.cols.local(shape.ia),
                panel: panel::parts_mut(shape, self.params.l1, data),
            })?;
            Ok(())
        })?;
        let end = self.record(shape.k, Phase::Fact, None, start);
        // The threads wait for each other at every column: all have the same span.
        (1..threads).for_each(|thread| self.trace.span(thread, shape.k, Phase::Fact, None, (start, end)));
        Ok(msg)
    }

    /// Starts the broadcast of a panel: as its root, which has `factored` it, or as a receiver.
    fn start_bcast(&mut self, shape: &PanelShape, factored: Option<Msg>) {
        let start = Instant::now();
        self.panels.start_bcast(shape, factored);
        self.record(shape.k, Phase::Lbcast, None, start);
    }

    /// Waits until panel `k` has arrived.
    fn wait_for_panel(&mut self, k: usize) -> Result<(), Error> {
        while !self.panels.has(k) {
            let start = Instant::now();
            self.panels.wait_for_next()?;
            self.record(k, Phase::Lbcast, None, start);
        }
        Ok(())
    }

    /// Starts the row exchange of a section by the pivots of panel `k`; `u_cols`: columns of U.
    fn start_laswp(
        &mut self,
        k: usize,
        section: &Section,
        u_cols: usize,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        self.wait_for_panel(k)?;
        let start = Instant::now();
        self.swaps.start(self.panels.get(k), section, u_cols, columns)?;
        self.record(k, Phase::Rs, Some(section.part), start);
        Ok(())
    }

    /// Waits until the row exchange of a section is complete.
    fn finish_laswp(&mut self, k: usize, part: Part, columns: &mut impl Columns) -> Result<(), Error> {
        let start = Instant::now();
        self.swaps.finish(k, part, columns)?;
        self.record(k, Phase::Rs, Some(part), start);
        Ok(())
    }

    /// Loads L1 and L2 of panel `k`, for all its sections.
    fn load<B: Backend>(&mut self, k: usize, backend: &mut B) -> Result<B::L, Error> {
        self.wait_for_panel(k)?;
        let start = Instant::now();
        let l = backend.load(self.panels.get_mut(k))?;
        self.record(k, Phase::Update, None, start);
        Ok(l)
    }

    /// Updates a section. During the update this rank executes the tasks `overlapped`, each as soon as it can start; a
    /// factorization is the first of them.
    fn update<B: Backend>(
        &mut self,
        l: &B::L,
        k: usize,
        section: &Section,
        rows_of: Part,
        overlapped: &[Task],
        backend: &mut B,
    ) -> Result<(), Error> {
        let shape = *self.panels.get(k).shape();
        let (next, others) = match overlapped.split_first() {
            Some((Task::Fact(next), others)) => (Some(next), others),
            _ => (None, overlapped),
        };
        let swap = self.swaps.take(k, rows_of);
        let rows = self.swaps.rows(self.panels.get(k), swap.as_ref(), section);
        let (part, cols, trace) = (section.part, section.cols.clone(), self.trace);
        let update = Update { panel: &shape, part, cols, rows, next, trace };
        let mut meanwhile = OverlappedTasks::new(self, k, part, next, others);
        let ended = backend.update(l, &update, &mut meanwhile)?;
        // Counted as update time but not traced as work: this thread waited for the others.
        self.phases.add(self.step, Phase::Update, ended);
        self.swaps.keep(swap, section);
        Ok(())
    }

    /// Updates the columns of a panel that is factored next.
    fn update_lookahead(
        &mut self,
        k: usize,
        section: &Section,
        rows_of: Part,
        backend: &mut impl Backend,
    ) -> Result<(), Error> {
        self.wait_for_panel(k)?;
        let start = Instant::now();
        let panel = self.panels.get(k);
        let swap = self.swaps.take(k, rows_of);
        let rows = self.swaps.rows(panel, swap.as_ref(), section);
        let (part, cols) = (section.part, section.cols.clone());
        let update = Update { panel: panel.shape(), part, cols, rows, next: None, trace: self.trace };
        let placed = backend.update_lookahead(panel, &update)?;
        self.phases.add_until(self.step, Phase::Rs, (start, placed));
        self.trace.span(0, k, Phase::Rs, Some(part), (start, placed));
        self.record(k, Phase::Update, Some(part), placed);
        self.swaps.keep(swap, section);
        self.poll(backend)
    }

    /// Forwards the messages that have arrived: panels along the process row, rows along the process column.
    fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.panels.poll()?;
        self.swaps.poll(columns)
    }

    /// Whether sends or receives of this rank are in flight.
    fn messages_in_flight(&self) -> bool {
        self.panels.in_flight() || self.swaps.in_flight()
    }

    /// Waits for all sends.
    fn finish_sends(&mut self) -> Result<(), Error> {
        self.panels.finish_sends()?;
        self.swaps.finish_sends()
    }
}

/// The tasks executed during the update of a section by panel `k`.
struct OverlappedTasks<'l, 'a, C: Comm> {
    lu: &'l mut Lu<'a, C>,
    k: usize,
    part: Part,
    next: Option<&'l PanelShape>,
    /// The next panel, between its factorization and the start of its broadcast.
    factored: Option<Msg>,
    /// The tasks after the factorization.
    tasks: Peekable<slice::Iter<'l, Task>>,
}

impl<'l, 'a, C: Comm> OverlappedTasks<'l, 'a, C> {
    /// First the factorization of `next`, then `tasks`.
    fn new(lu: &'l mut Lu<'a, C>, k: usize, part: Part, next: Option<&'l PanelShape>, tasks: &'l [Task]) -> Self {
        Self { lu, k, part, next, factored: None, tasks: tasks.iter().peekable() }
    }
}

impl<C: Comm> Meanwhile for OverlappedTasks<'_, '_, C> {
    fn fact(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.factored = self.next.map(|next| self.lu.fact(next, columns)).transpose()?;
        Ok(())
    }

    fn start(&mut self, columns: &mut impl Columns, completion: Completion) -> Result<(), Error> {
        let Self { lu, factored, tasks, .. } = self;
        while let Some(task) = tasks.peek().copied() {
            let can_start = match task {
                Task::RsStart { panel, .. } => lu.panels.has(*panel),
                _ => true,
            };
            if completion == Completion::Test && !can_start {
                break;
            }
            tasks.next();
            match task {
                Task::Lbcast(shape) => lu.start_bcast(shape, factored.take()),
                Task::RsStart { panel, section, u_cols } => lu.start_laswp(*panel, section, *u_cols, columns)?,
                Task::Fact(_) | Task::RsWait { .. } | Task::Update { .. } => {
                    unreachable!(
                        "during an update the plan has only broadcasts and starts of row exchanges, after the factorization"
                    )
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.lu.poll(columns)
    }

    fn cols_to_poll(&self) -> usize {
        if !C::ASYNC_PROGRESS && self.lu.messages_in_flight() { POLL_COLS } else { usize::MAX }
    }

    fn record(&mut self, phase: Phase, start: Instant) -> Instant {
        self.lu.record(self.k, phase, Some(self.part), start)
    }
}

#[cfg(test)]
mod tests;
