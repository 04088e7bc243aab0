//! The factorization: [A | b] ← [L\U | L⁻¹ P b], step by step as the plan says.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use space::HplParams;

use self::row_swaps::{RowSwap, take_swap};
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{HelperPanicked, Team};
use crate::backend::host::update::{Memory, POLL_COLS, Queue, Scratch, Slab, Update};
use crate::comm::grid::Grid;
use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::lu::bcast::Broadcast;
use crate::lu::fact::Fact;
use crate::lu::laswp::{Hands, LaswpOp, LaswpResult, RowPermutation};
use crate::lu::panel::{self, Panel};
use crate::mat::{Mat, MatMut};
use crate::observe::phases::{Phase, Phases};
use crate::observe::trace::Trace;
use crate::observe::watch::Watch;
use crate::plan::recursion::Recipe;
use crate::plan::{self, PanelShape, Part, Plan, Section, Task};

/// Time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// One rank's view of a factorization.
pub(crate) struct Lu<'a, C: Comm, K> {
    plan: &'a Plan,
    grid: &'a Grid<C>,
    kernels: &'a K,
    params: &'a HplParams,
    /// Panels that have arrived and whose update is not complete, oldest first.
    panels: VecDeque<Panel>,
    /// The panels on their way, oldest first.
    bcasts_in_flight: VecDeque<(PanelShape, Broadcast<C>)>,
    /// The panel that this rank has factored and not yet sent.
    factored: Option<Msg>,
    /// Sends under way.
    sends: Vec<C::Send>,
    /// Column + 1 of the first zero pivot, else 0.
    info: usize,
    /// Which rows the last panel moves that any has set out for.
    permutation: Option<(usize, Arc<RowPermutation>)>,
    /// Rows of sections on their way.
    swaps_in_flight: Vec<RowSwap<LaswpOp<'a, C>>>,
    /// Rows that have come and are not all at their places.
    swaps_done: Vec<RowSwap<LaswpResult>>,
    scratch: Arc<Scratch>,
    memory: Memory,
    pub(crate) phases: Phases,
    trace: &'a Trace,
    step: usize,
}

impl<'a, C: Comm, K: Kernels> Lu<'a, C, K> {
    /// Takes the memory for the panels that this rank factors before its first update: one comes free with each update,
    /// in time for the next panel. This is before the clock starts; Netlib's program allocates its panels inside.
    pub(crate) fn new(
        plan: &'a Plan,
        grid: &'a Grid<C>,
        kernels: &'a K,
        params: &'a HplParams,
        rank: usize,
        trace: &'a Trace,
    ) -> Self {
        let first = 0..plan.steps().min(plan.depth.max(1));
        for k in first.filter(|&k| plan.layout.cols.block_owner(k) == grid.col) {
            grid.row_comm.buffers().panels.reserve(plan.panel(k, grid.row).words());
        }
        Self {
            plan,
            grid,
            kernels,
            params,
            panels: VecDeque::new(),
            bcasts_in_flight: VecDeque::new(),
            factored: None,
            sends: Vec::new(),
            info: 0,
            permutation: None,
            swaps_in_flight: Vec::new(),
            swaps_done: Vec::new(),
            scratch: Arc::default(),
            memory: Memory::default(),
            phases: Phases::new(rank, plan.steps() + 1),
            trace,
            step: 0,
        }
    }

    /// Factors the local matrix `a` by the steps `steps`; those before have left nothing to do. Returns info:
    /// column + 1 of the first zero pivot, 0 if there is none.
    ///
    /// # Errors
    /// When a rank or thread fails.
    pub(crate) fn factor(
        &mut self,
        steps: Range<usize>,
        team: &mut Team<'_>,
        mut a: MatMut<'_>,
        watch: Option<&dyn Watch>,
    ) -> Result<usize, Error> {
        let start = Instant::now();
        let mut report = start + REPORT_EVERY;
        let (row, col) = (self.grid.row, self.grid.col);
        self.step = steps.start;
        self.run(&self.plan.prologue(steps.start, row, col), team, a.reborrow())?;
        self.phases.begin(start);
        for k in steps {
            let step = self.plan.step(k, row, col);
            self.step = k;
            self.run(&step.tasks, team, a.reborrow())?;
            // Who had nothing to update has not asked for it yet.
            self.panel(k)?;
            self.panels.pop_front();
            self.phases.end(k, start);
            self.sends.retain_mut(|send| !send.ready());
            if let Some(watch) = watch.filter(|_| Instant::now() >= report) {
                let (n, done) = (self.params.n, step.panel.ia + step.panel.jb);
                watch.column(done, n, rate_gflops(n, done, start.elapsed()));
                report = Instant::now() + REPORT_EVERY;
            }
        }
        self.sends.drain(..).try_for_each(Request::wait)?;
        Ok(self.info)
    }

    /// Maps the memory of a step that begins at `first`, so that the step finds it as it would after others.
    ///
    /// # Errors
    /// When a thread fails.
    pub(crate) fn warm_up(&mut self, first: usize, team: &mut Team<'_>, a: Mat<'_>) -> Result<(), HelperPanicked> {
        if first == self.plan.steps() {
            return Ok(());
        }
        let shape = self.plan.panel(first, self.grid.row);
        let jj = self.plan.layout.cols.local_from(self.grid.col, shape.ia);
        let like_a_panel = a.sub(shape.ii, jj, shape.mp, shape.jb.min(a.cols() - jj));
        self.memory.warm_up(self.kernels, team, like_a_panel)
    }

    /// After the steps before `end`: nothing stays under way. The panels in flight but the last update all columns
    /// that have not seen them, so that what is left is one matrix again.
    ///
    /// # Errors
    /// When a rank or thread fails.
    pub(crate) fn quiesce(&mut self, end: usize, team: &mut Team<'_>, a: MatMut<'_>) -> Result<(), Error> {
        self.step = end;
        self.run(&self.plan.drain(end, self.grid.col), team, a)?;
        while !self.bcasts_in_flight.is_empty() {
            self.arrived()?;
        }
        // Rows that set out for a step that is not made.
        for swap in std::mem::take(&mut self.swaps_in_flight) {
            let (_, sends) = swap.rows.finish(Hands::All(team))?;
            self.sends.extend(sends);
        }
        self.panels.clear();
        self.swaps_done.clear();
        self.permutation = None;
        self.sends.drain(..).try_for_each(Request::wait)?;
        Ok(())
    }

    /// Tasks in order. What the sections of one panel share is prepared once.
    fn run(&mut self, tasks: &[Task], team: &mut Team<'_>, mut a: MatMut<'_>) -> Result<(), Error> {
        let mut current: Option<Update<'_, K>> = None;
        for task in tasks {
            match task {
                // Panel ← L\U
                Task::Fact(shape) => self.fact(shape, a.reborrow(), team.wide())?,
                // Everybody will get L, L1 and the pivots
                Task::Lbcast(shape) => self.start_bcast(shape),
                // [U; C] ← P·[U; C]
                Task::RsStart { panel, section, u_cols } => {
                    self.start_laswp(*panel, section, *u_cols, Hands::All(team), a.as_ref())?;
                }
                Task::RsWait { panel, part } => self.finish_laswp(*panel, *part, team)?,
                // U ← L1⁻¹ U, C ← C − L2 U, with the next panel beside
                Task::Update { panel: k, section, rows, packs: false, .. } => {
                    self.update_lookahead(*k, section, *rows, team, a.reborrow())?;
                }
                Task::Update { panel: k, section, rows, beside, .. } => {
                    let update = match current.take() {
                        Some(update) if update.panel().shape().k == *k => update,
                        other => self.prepare(*k, other, team)?,
                    };
                    self.update(&update, section, *rows, beside, team, a.reborrow())?;
                    current = Some(update);
                }
            }
        }
        if let Some(update) = current {
            self.memory = update.into_memory();
        }
        Ok(())
    }

    /// Adds what this thread did for panel `k` since `start` to the phases of the step; returns the present.
    fn record(&mut self, k: usize, phase: Phase, part: Option<Part>, start: Instant) -> Instant {
        let now = self.phases.add(self.step, phase, start);
        self.trace.span(0, k, phase, part, (start, now));
        now
    }

    /// Factors a panel of `a` by the threads of `team` and leaves its U there.
    fn fact(&mut self, shape: &PanelShape, a: MatMut<'_>, team: &mut Team<'_>) -> Result<(), Error> {
        let start = Instant::now();
        let jj = self.plan.layout.cols.local(shape.ia);
        let cols = a.sub(shape.ii, jj, shape.mp, shape.jb);
        let mut threads = 1;
        let msg = self.grid.row_comm.buffers().panels.message(shape.words(), |data| -> Result<(), Error> {
            let fact = Fact {
                recipe: Recipe::new(self.params),
                kernels: self.kernels,
                column: &self.grid.col_comm,
                rows: &self.plan.layout.rows,
                shape: *shape,
                from: cols.as_ref(),
                panel: panel::parts_mut(shape, self.params.l1, data),
            };
            threads = fact.run_by(team, &self.scratch)?;
            Ok(())
        })?;
        // Only U is read again, by the back substitution.
        if shape.diag_rows > 0 {
            Panel::new(*shape, self.params.l1, msg.clone()).l1().copy_to(cols.sub(0, 0, shape.jb, shape.jb));
        }
        self.factored = Some(msg);
        let end = self.record(shape.k, Phase::Fact, None, start);
        // They meet at every column.
        (1..threads).for_each(|thread| self.trace.span(thread, shape.k, Phase::Fact, None, (start, end)));
        Ok(())
    }

    /// Starts the broadcast of a panel, as its root or as one who expects it.
    fn start_bcast(&mut self, shape: &PanelShape) {
        let (start, row, bcast) = (Instant::now(), &self.grid.row_comm, self.params.bcast);
        let broadcast = match self.factored.take() {
            Some(msg) => Broadcast::send(row, bcast, shape.k, msg),
            None => Broadcast::receive(row, bcast, shape.k, shape.col, shape.words()),
        };
        self.bcasts_in_flight.push_back((*shape, broadcast));
        self.record(shape.k, Phase::Lbcast, None, start);
    }

    /// Panel `k`, waited for if need be.
    fn panel(&mut self, k: usize) -> Result<&mut Panel, PeerGone> {
        while self.panels.back().is_none_or(|panel| panel.shape().k < k) {
            let start = Instant::now();
            self.arrived()?;
            self.record(k, Phase::Lbcast, None, start);
        }
        let at = k - self.panels[0].shape().k;
        Ok(&mut self.panels[at])
    }

    /// Waits for the oldest panel on its way.
    fn arrived(&mut self) -> Result<(), PeerGone> {
        let (shape, broadcast) =
            self.bcasts_in_flight.pop_front().expect("the plan sends a panel before what needs it");
        let (msg, sends) = broadcast.finish(&self.grid.row_comm)?;
        self.sends.extend(sends);
        let panel = Panel::new(shape, self.params.l1, msg);
        if self.info == 0 {
            self.info = panel.info();
        }
        self.panels.push_back(panel);
        Ok(())
    }

    /// Passes on what has arrived: panels along the process row, rows along the process column.
    fn poll(&mut self) -> Result<(), Error> {
        for (shape, broadcast) in std::mem::take(&mut self.bcasts_in_flight) {
            self.bcasts_in_flight.push_back((shape, broadcast.poll(&self.grid.row_comm)?));
        }
        while self.bcasts_in_flight.front_mut().is_some_and(|(_, broadcast)| broadcast.ready()) {
            self.arrived()?;
        }
        self.swaps_in_flight.iter_mut().try_for_each(|rows| rows.rows.poll())?;
        self.sends.retain_mut(|send| !send.ready());
        Ok(())
    }

    /// Whether there are messages that this rank waits for or sends.
    fn messages_in_flight(&self) -> bool {
        !(self.sends.is_empty() && self.bcasts_in_flight.is_empty() && self.swaps_in_flight.is_empty())
    }

    /// What all sections of panel `k` share, in the memory of the panel before: L2 is packed once.
    fn prepare(
        &mut self,
        k: usize,
        before: Option<Update<'a, K>>,
        team: &mut Team<'_>,
    ) -> Result<Update<'a, K>, Error> {
        let (kernels, scratch) = (self.kernels, Arc::clone(&self.scratch));
        let memory = before.map_or_else(|| std::mem::take(&mut self.memory), Update::into_memory);
        let panel = self.panel(k)?;
        let start = Instant::now();
        let update = Update::new(kernels, panel, scratch, memory, team)?;
        self.record(k, Phase::Update, None, start);
        Ok(update)
    }

    /// Updates a section by all threads. Meanwhile the first of them do the tasks `beside` as soon as they can: a
    /// factorization, which is the first task if there is one, as many as the plan says, all else the very first.
    fn update(
        &mut self,
        update: &Update<'_, K>,
        section: &Section,
        rows_of: Part,
        beside: &[Task],
        team: &mut Team<'_>,
        a: MatMut<'_>,
    ) -> Result<(), Error> {
        let (mut before, from) = a.split_cols(section.cols.start);
        let (panel, shape) = (update.panel(), update.panel().shape());
        let (top, c) = from.sub(shape.ii, 0, shape.mp, section.cols.len()).split_rows(shape.diag_rows);
        let swap = take_swap(&mut self.swaps_done, shape.k, rows_of);
        let first = swap.as_ref().map_or(0, |swap| section.cols.start - swap.section.cols.start);
        let rows = self.rows(panel, swap.as_ref());
        let queue = Queue::new(Slab { first, top, c }, team.threads(), self.kernels.widest_slab());
        let (k, part, trace) = (shape.k, section.part, self.trace);
        let (next, beside) = match beside.split_first() {
            Some((Task::Fact(next), others)) => (Some(next), others),
            _ => (None, beside),
        };
        let crew = team.crew(next.map_or(1, |next| plan::crew(team.threads(), next, shape, section.cols.len())));
        let lead = crew.lead();
        let helper = |thread| {
            crew.serve(thread);
            let mut recorder = trace.recorder(thread, k, part);
            while let Some(slab) = queue.next() {
                let ready = update.place_rows(slab, &rows);
                recorder.done(Phase::Rs);
                update.multiply(ready);
                recorder.done(Phase::Update);
            }
        };
        let first_thread = || -> Result<Instant, Error> {
            let mut lead = lead;
            if let Some(next) = next {
                self.fact(next, before.reborrow(), &mut lead)?;
            }
            drop(lead);
            let mut beside = beside.iter().peekable();
            loop {
                while let Some(task) = beside.next_if(|task| self.can_start(task)) {
                    self.beside(task, before.as_ref())?;
                }
                let Some(slab) = queue.next() else { break };
                let mut left = Some(slab);
                while let Some(slab) = left {
                    let looks = !C::ASYNC_PROGRESS && self.messages_in_flight();
                    let (piece, rest) = slab.cut(if looks { POLL_COLS } else { usize::MAX });
                    left = rest;
                    let clock = Instant::now();
                    let ready = update.place_rows(piece, &rows);
                    let clock = self.record(k, Phase::Rs, Some(part), clock);
                    update.multiply(ready);
                    self.record(k, Phase::Update, Some(part), clock);
                    self.poll()?;
                }
            }
            beside.try_for_each(|task| self.beside(task, before.as_ref()))?;
            Ok(Instant::now())
        };
        let clock = team.fork(&helper, first_thread)??;
        // Counted, but not recorded as work: this thread waited for the others.
        self.phases.add(self.step, Phase::Update, clock);
        self.keep_swap(swap, section);
        Ok(())
    }

    /// Whether a task would not have to wait for a panel.
    fn can_start(&self, task: &Task) -> bool {
        match task {
            Task::RsStart { panel, .. } => self.panels.back().is_some_and(|last| last.shape().k >= *panel),
            _ => true,
        }
    }

    /// A task of the first thread while the others update.
    fn beside(&mut self, task: &Task, before: Mat<'_>) -> Result<(), Error> {
        match task {
            Task::Lbcast(shape) => self.start_bcast(shape),
            Task::RsStart { panel, section, u_cols } => {
                self.start_laswp(*panel, section, *u_cols, Hands::Alone, before)?;
            }
            Task::Fact(_) | Task::RsWait { .. } | Task::Update { .. } => {
                unreachable!("the plan puts nothing else beside an update, and a factorization first")
            }
        }
        Ok(())
    }
}

/// Mean rate until `done` of `n` columns are factored: flops that the trailing matrix no longer needs.
fn rate_gflops(n: usize, done: usize, time: Duration) -> f64 {
    let cube = |n: usize| (n as f64).powi(3);
    2.0 / 3.0 * (cube(n) - cube(n - done)) / time.as_secs_f64() * 1e-9
}

mod lookahead;
mod row_swaps;

#[cfg(test)]
mod tests;
