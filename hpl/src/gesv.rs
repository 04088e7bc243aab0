//! The factorization: [A | b] ← [L\U | L⁻¹ P b], step by step as the plan says.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use space::HplParams;

use crate::Error;
use crate::bcast::Broadcast;
use crate::comm::{Comm, Msg, PeerGone, Request};
use crate::fact::{Fact, Recipe};
use crate::grid::Grid;
use crate::kernels::Kernels;
use crate::mat::MatMut;
use crate::panel::{self, Panel, PanelMut, Pool};
use crate::phases::{Phase, Phases};
use crate::plan::{PanelShape, Part, Plan, Section, Step, Task};
use crate::swap::{Exchange, Moves};
use crate::team::{HelperPanicked, Team};
use crate::trace::Trace;
use crate::update::{self, Queue, Slab, Update};
use crate::watch::Watch;

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
    /// The panel on its way.
    coming: Option<(PanelShape, Broadcast<C>)>,
    /// The panel that this rank has factored and not yet sent.
    factored: Option<Msg>,
    /// Sends under way.
    sends: Vec<C::Send>,
    /// Column + 1 of the first zero pivot, else 0.
    info: usize,
    panel_pool: Pool,
    row_pool: Pool,
    pub(crate) phases: Phases,
    trace: &'a Trace,
    step: usize,
}

impl<'a, C: Comm, K: Kernels> Lu<'a, C, K> {
    /// Takes the memory for the panels that this rank factors.
    pub(crate) fn new(
        plan: &'a Plan,
        grid: &'a Grid<C>,
        kernels: &'a K,
        params: &'a HplParams,
        rank: usize,
        trace: &'a Trace,
    ) -> Self {
        // Every panel that this process column factors is at most as long as its first.
        let own = (0..plan.steps()).find(|&k| plan.layout.cols.block_owner(k) == grid.col);
        let words = own.map_or(0, |k| plan.panel(k, grid.row).words());
        Self {
            plan,
            grid,
            kernels,
            params,
            panels: VecDeque::new(),
            coming: None,
            factored: None,
            sends: Vec::new(),
            info: 0,
            panel_pool: Pool::new(plan.depth + 1, words),
            row_pool: Pool::default(),
            phases: Phases::new(rank, plan.steps() + 1),
            trace,
            step: 0,
        }
    }

    /// Doubles of the memory for U that [`factor`](Self::factor) needs.
    pub(crate) fn u_words(plan: &Plan, grid: &Grid<C>) -> usize {
        let jb = plan.layout.rows.nb().min(plan.layout.n());
        if grid.p > 1 { jb * plan.layout.cols.local_len(grid.col) } else { 0 }
    }

    /// Factors the local matrix `a`; `u` is memory for one section of U. Returns info: column + 1 of the first
    /// zero pivot, 0 if there is none.
    ///
    /// # Errors
    /// When a rank or thread fails.
    pub(crate) fn factor(
        &mut self,
        team: &mut Team<'_>,
        mut a: MatMut<'_>,
        u: &mut [f64],
        watch: Option<&dyn Watch>,
    ) -> Result<usize, Error> {
        let start = Instant::now();
        let mut report = start + REPORT_EVERY;
        for k in 0..self.plan.steps() {
            let step = self.plan.step(k, self.grid.row, self.grid.col);
            self.step(&step, team, a.reborrow(), u)?;
            if let Some(watch) = watch.filter(|_| Instant::now() >= report) {
                let (n, done) = (self.params.n, step.panel.ia + step.panel.jb);
                watch.column(done, n, rate_gflops(n, done, start.elapsed()));
                report = Instant::now() + REPORT_EVERY;
            }
        }
        self.sends.drain(..).try_for_each(Request::wait)?;
        Ok(self.info)
    }

    fn step(&mut self, step: &Step, team: &mut Team<'_>, mut a: MatMut<'_>, u: &mut [f64]) -> Result<(), Error> {
        self.step = step.panel.k;
        let panel = OnceCell::new();
        let mut prepared = None;
        for task in &step.tasks {
            match task {
                // Panel ← L\U
                Task::Fact(shape) => self.fact(shape, a.reborrow())?,
                // Everybody gets L, L1 and the pivots
                Task::Lbcast(shape) => {
                    self.send_or_expect(shape);
                    self.receive()?;
                }
                // [U; C] ← P·[U; C]
                Task::Rs(section) => self.row_swap(section, team, a.reborrow(), u)?,
                // U ← L1⁻¹ U, C ← C − L2 U, with the next panel beside
                Task::Update { section, beside } => {
                    let panel = panel.get_or_init(|| self.current().clone());
                    let update = match &prepared {
                        Some(update) => update,
                        None => prepared.insert(self.prepare(panel, team)?),
                    };
                    self.update(update, section, beside, team, a.reborrow(), u)?;
                }
            }
        }
        self.panels.pop_front();
        self.sends.retain_mut(|send| !send.ready());
        Ok(())
    }

    /// Adds what this thread did for panel `k` since `start` to the phases of the step; returns the present.
    fn record(&mut self, k: usize, phase: Phase, part: Option<Part>, start: Instant) -> Instant {
        let now = self.phases.add(self.step, phase, start);
        self.trace.span(0, k, phase, part, (start, now));
        now
    }

    /// Factors a panel of `a` and leaves its U there.
    fn fact(&mut self, shape: &PanelShape, a: MatMut<'_>) -> Result<(), PeerGone> {
        let start = Instant::now();
        let jj = self.plan.layout.cols.local(shape.ia);
        let mut cols = a.sub(shape.ii, jj, shape.mp, shape.jb);
        let msg = self.panel_pool.message(shape.words(), |data| {
            let PanelMut { a: mut local, l1, pivots, info } = panel::parts_mut(shape, data);
            for j in 0..shape.jb {
                local.col_mut(j).copy_from_slice(cols.col(j));
            }
            let fact = Fact {
                recipe: Recipe::new(self.params),
                kernels: self.kernels,
                column: &self.grid.col_comm,
                rows: &self.plan.layout.rows,
                shape: *shape,
                panel: PanelMut { a: local, l1, pivots, info },
            };
            fact.run()
        })?;
        let panel = Panel::new(*shape, msg);
        // Only U is read again, by the back substitution.
        for j in 0..shape.top {
            cols.col_mut(j)[..=j].copy_from_slice(&panel.l1().col(j)[..=j]);
        }
        self.factored = Some(panel.msg().clone());
        self.record(shape.k, Phase::Fact, None, start);
        Ok(())
    }

    /// Starts the broadcast of a panel, as its root or as one who expects it.
    fn send_or_expect(&mut self, shape: &PanelShape) {
        let (start, row, bcast) = (Instant::now(), &self.grid.row_comm, self.params.bcast);
        let broadcast = match self.factored.take() {
            Some(msg) => Broadcast::send(row, bcast, shape.k, msg),
            None => Broadcast::receive(row, bcast, shape.k, shape.col, shape.words()),
        };
        self.coming = Some((*shape, broadcast));
        self.record(shape.k, Phase::Lbcast, None, start);
    }

    /// Passes the coming panel on if it has arrived.
    fn poll(&mut self) -> Result<(), PeerGone> {
        if let Some((shape, broadcast)) = self.coming.take() {
            self.coming = Some((shape, broadcast.poll(&self.grid.row_comm)?));
        }
        Ok(())
    }

    /// Waits for the coming panel, if one is.
    fn receive(&mut self) -> Result<(), PeerGone> {
        let Some((shape, broadcast)) = self.coming.take() else { return Ok(()) };
        let start = Instant::now();
        let (msg, sends) = broadcast.finish(&self.grid.row_comm)?;
        self.sends.extend(sends);
        let panel = Panel::new(shape, msg);
        if self.info == 0 {
            self.info = panel.info();
        }
        self.panels.push_back(panel);
        self.record(shape.k, Phase::Lbcast, None, start);
        Ok(())
    }

    /// Exchanges the rows of a section with the other process rows; with one process row the update does it.
    fn row_swap(&mut self, section: &Section, team: &mut Team<'_>, a: MatMut<'_>, u: &mut [f64]) -> Result<(), Error> {
        if self.grid.p == 1 {
            return Ok(());
        }
        let start = Instant::now();
        let panel = self.current();
        let shape = panel.shape();
        let rows = &self.plan.layout.rows;
        let moves = Moves::new(rows, shape.ia, &panel.pivots());
        let (local_rows, n) = (a.rows(), section.cols.len());
        let cols = a.sub(0, section.cols.start, local_rows, n);
        let u = MatMut::new(u, shape.jb, n, shape.jb);
        let exchange = Exchange { column: &self.grid.col_comm, rows, swap: self.params.swap };
        exchange.run(team, &moves, cols, u, &mut self.row_pool)?;
        self.record(self.step, Phase::Rs, Some(section.part), start);
        Ok(())
    }

    /// The panel that the current step applies.
    fn current(&self) -> &Panel {
        self.panels.front().expect("the plan brings a panel before what needs it")
    }

    /// What all sections of a step share: L2 is packed once.
    fn prepare<'p>(&mut self, panel: &'p Panel, team: &mut Team<'_>) -> Result<Update<'p, K>, HelperPanicked>
    where
        'a: 'p,
    {
        let start = Instant::now();
        let (rows, ii) = (&self.plan.layout.rows, panel.shape().ii);
        let in_place = || panel.pivots().iter().map(|&pivot| rows.local(pivot) - ii).collect();
        let l2 = update::pack(self.kernels, team, panel.l2())?;
        self.record(self.step, Phase::Update, None, start);
        Ok(Update { kernels: self.kernels, l1: panel.l1(), l2, interchanges: (self.grid.p == 1).then(in_place) })
    }

    /// Updates a section by all threads, the first of which does the tasks `beside` before it joins.
    fn update(
        &mut self,
        update: &Update<'_, K>,
        section: &Section,
        beside: &[Task],
        team: &mut Team<'_>,
        a: MatMut<'_>,
        u: &mut [f64],
    ) -> Result<(), Error> {
        let (mut before, from) = a.split_cols(section.cols.start);
        let shape = self.current().shape();
        let trailing = from.sub(shape.ii, 0, shape.mp, section.cols.len());
        let queue = Queue::new(slab(shape, u, trailing, self.grid.p), team.threads());
        let (step, part, trace) = (self.step, section.part, self.trace);
        let helper = |thread| {
            let mut recorder = trace.recorder(thread, step, part);
            while let Some(mut slab) = queue.next() {
                update.interchange(&mut slab);
                recorder.done(Phase::Rs);
                update.multiply(slab);
                recorder.done(Phase::Update);
            }
        };
        let first_thread = || -> Result<Instant, Error> {
            for task in beside {
                match task {
                    Task::Fact(shape) => self.fact(shape, before.reborrow())?,
                    Task::Lbcast(shape) => self.send_or_expect(shape),
                    Task::Rs(_) | Task::Update { .. } => unreachable!("the plan puts only panels beside an update"),
                }
            }
            let mut clock = Instant::now();
            while let Some(mut slab) = queue.next() {
                update.interchange(&mut slab);
                clock = self.record(step, Phase::Rs, Some(part), clock);
                update.multiply(slab);
                clock = self.record(step, Phase::Update, Some(part), clock);
                self.poll()?;
            }
            Ok(clock)
        };
        let clock = team.fork(&helper, first_thread)??;
        // Counted, but not recorded as work: this thread waited for the others.
        self.phases.add(self.step, Phase::Update, clock);
        Ok(self.receive()?)
    }
}

/// The columns of one section: U in place with one process row, gathered otherwise.
fn slab<'a>(shape: &PanelShape, u: &'a mut [f64], trailing: MatMut<'a>, p: usize) -> Slab<'a> {
    let n = trailing.cols();
    let (top, c) = trailing.split_rows(shape.top);
    if p == 1 {
        return Slab { u: top, c, top: None };
    }
    let u = MatMut::new(u, shape.jb, n, shape.jb);
    Slab { u, c, top: (shape.top > 0).then_some(top) }
}

/// Mean rate until `done` of `n` columns are factored: flops that the trailing matrix no longer needs.
fn rate_gflops(n: usize, done: usize, time: Duration) -> f64 {
    let cube = |n: usize| (n as f64).powi(3);
    2.0 / 3.0 * (cube(n) - cube(n - done)) / time.as_secs_f64() * 1e-9
}

#[cfg(test)]
mod tests;
