//! The tasks of a run, one after the other, on the rank that matters.

use std::collections::HashMap;

use hpl::plan::{PanelShape, Part, Plan, Section, Task};

use super::clocks::{Awaited, DeviceSums, Operation, StreamClocks};
use super::costs::OperationCosts;
use crate::scenario::FactPlace;
use crate::timeline::StepTimes;

/// FACT counts as hidden in a step of whose time `Main` waits at most this share for it.
const HIDDEN: f64 = 0.01;

/// A run in the making.
pub(super) struct Walk<'a> {
    plan: &'a Plan,
    costs: &'a OperationCosts<'a>,
    fact: FactPlace,
    clocks: StreamClocks,
    /// Process row and column of the rank that is walked.
    place: (usize, usize),
    /// Moments at which the last updates of each part end.
    ended: HashMap<Part, f64>,
    /// Moments at which panels are there: on the host, and on the device.
    arrived: HashMap<usize, f64>,
    on_device: HashMap<usize, f64>,
    /// Moments at which row exchanges are complete on the host.
    exchanges: HashMap<(usize, Part), f64>,
    /// End of `Main` in the last two steps: a copy of L is free when the step before the last is done.
    step_ends: [f64; 2],
}

/// A walked run.
pub(super) struct Walked {
    pub(super) sums: DeviceSums,
    pub(super) steps: Vec<StepTimes>,
    pub(super) fact_hidden: f64,
    pub(super) exposed_order: Option<usize>,
}

impl<'a> Walk<'a> {
    /// A run before its first step.
    pub(super) fn new(plan: &'a Plan, costs: &'a OperationCosts<'a>, fact: FactPlace) -> Self {
        Self {
            plan,
            costs,
            fact,
            clocks: StreamClocks::default(),
            place: (0, 0),
            ended: HashMap::new(),
            arrived: HashMap::new(),
            on_device: HashMap::new(),
            exchanges: HashMap::new(),
            step_ends: [0.0; 2],
        }
    }

    /// Walks all steps.
    pub(super) fn run(mut self) -> Walked {
        let count = self.plan.steps();
        let mut steps: Vec<StepTimes> = Vec::with_capacity(count);
        let (mut before, mut slowed_s) = (DeviceSums::default(), 0.0);
        let mut last_hidden = None;
        self.place = self.owner_of(0);
        self.tasks(&self.plan.prologue(0, self.place.0, self.place.1));
        for k in 0..count {
            self.place = self.owner_of((k + self.plan.depth).min(count - 1));
            self.tasks(&self.plan.step(k, self.place.0, self.place.1).tasks);
            let end_s = if k + 1 == count { self.clocks.finish() } else { self.clocks.main };
            self.step_ends = [self.step_ends[1], end_s];
            let (sums, start_s) = (self.clocks.sums, steps.last().map_or(0.0, |step| step.end_s));
            let fact_s = sums.fact_s - before.fact_s;
            let waited_s = fact_s - (self.clocks.slowed_s - slowed_s);
            if waited_s <= HIDDEN * (end_s - start_s) {
                last_hidden = Some(k);
            }
            steps.push(StepTimes {
                fact_s,
                lbcast_s: sums.lbcast_s - before.lbcast_s,
                rs_s: sums.rs_s + sums.rows_s - before.rs_s - before.rows_s,
                update_s: sums.dgemm_s + sums.trsm_s + sums.launch_s - before.dgemm_s - before.trsm_s - before.launch_s,
                end_s,
            });
            (before, slowed_s) = (sums, self.clocks.slowed_s);
            self.forget(k);
        }
        let StreamClocks { sums, fact_s, .. } = self.clocks;
        let n = self.plan.layout.n();
        // The wait in step k is for what the update of the step before, of all columns from panel k on, did not hide.
        let first_exposed = last_hidden.map_or(0, |k| k + 1);
        let exposed_order = (first_exposed < count).then(|| n - self.plan.layout.rows.block(first_exposed).start);
        let fact_hidden = if fact_s > 0.0 { (1.0 - sums.fact_s / fact_s).max(0.0) } else { 1.0 };
        Walked { sums, steps, fact_hidden, exposed_order }
    }

    /// Process row and column of the diagonal block of panel `k`.
    fn owner_of(&self, k: usize) -> (usize, usize) {
        (self.plan.layout.rows.block_owner(k), self.plan.layout.cols.block_owner(k))
    }

    /// Forgets what only steps before `k` needed.
    fn forget(&mut self, k: usize) {
        self.clocks.forget();
        self.arrived.retain(|&panel, _| panel > k);
        self.on_device.retain(|&panel, _| panel > k);
        self.exchanges.retain(|&(panel, _), _| panel > k);
    }

    fn tasks(&mut self, tasks: &[Task]) {
        for task in tasks {
            match task {
                Task::Fact(shape) => self.fact(shape),
                Task::Lbcast(shape) => self.lbcast(shape),
                Task::RsStart { panel, section, .. } => self.start_rows(*panel, section),
                Task::RsWait { panel, part } => {
                    let complete = self.exchanges.get(&(*panel, *part)).copied().unwrap_or_default();
                    self.clocks.host = self.clocks.host.max(complete);
                }
                Task::Update { panel, section, overlapped, .. } => {
                    self.update(*panel, section);
                    // The host has queued the update and does these meanwhile.
                    self.tasks(overlapped);
                }
            }
        }
    }

    /// Factors a panel as soon as its columns are updated.
    fn fact(&mut self, shape: &PanelShape) {
        let updated = if self.plan.depth == 0 { self.clocks.main } else { self.ended_of(Part::LookAhead) };
        let from = self.clocks.host.max(self.clocks.fact).max(updated);
        let fact_s = self.costs.fact_s(shape);
        match self.fact {
            FactPlace::Host => {
                let on_host = self.clocks.copy_down(from, self.costs.link_s(shape.mp * shape.jb));
                self.clocks.note(from, on_host, Awaited::Fact);
                self.clocks.run_host(on_host, fact_s, Awaited::Fact);
                self.clocks.fact = self.clocks.host;
            }
            FactPlace::Device => {
                let from = from + self.costs.launch_s();
                let to = from + fact_s;
                self.clocks.note(from, to, Awaited::Fact);
                let queued = self.clocks.main;
                self.clocks.slow_main((from, to), self.costs.panel_share());
                let main = self.clocks.main;
                self.ended.values_mut().filter(|ended| **ended >= queued).for_each(|ended| *ended = main);
                self.clocks.fact = to + self.costs.keep_l_s(shape);
                // The host needs the pivots, and where the panel travels all of it.
                let words = if self.costs.sends_panels() { shape.words() } else { shape.jb };
                let on_host = self.clocks.copy_down(to, self.costs.link_s(words));
                self.clocks.note(to, on_host, Awaited::Fact);
                self.clocks.host = self.clocks.host.max(on_host);
                if !self.costs.sends_panels() {
                    self.on_device.insert(shape.k, self.clocks.fact);
                }
            }
        }
    }

    /// A panel reaches the process column that needs it first.
    fn lbcast(&mut self, shape: &PanelShape) {
        let sent = self.clocks.host;
        let arrived = if self.costs.sends_panels() { sent + self.costs.hop_s(shape) } else { sent };
        self.clocks.note(sent, arrived, Awaited::Lbcast);
        self.arrived.insert(shape.k, arrived);
    }

    fn wait_for_panel(&mut self, k: usize) {
        let arrived = self.arrived.get(&k).copied().unwrap_or_default();
        self.clocks.host = self.clocks.host.max(arrived);
    }

    /// Gathers the rows of a section, copies them to the host and starts their exchange.
    fn start_rows(&mut self, k: usize, section: &Section) {
        self.wait_for_panel(k);
        let (jb, cols) = (self.plan.panel(k, self.place.0).jb, section.cols.len());
        let updated = match section.part {
            _ if self.plan.depth == 0 => self.clocks.main,
            Part::Left => self.ended_of(Part::Left),
            Part::LookAhead | Part::Rest => self.ended_of(Part::Rest),
        };
        let from = self.clocks.host.max(self.clocks.copy).max(updated) + self.costs.launch_s();
        let gathered = from + self.costs.gather_s(jb, cols);
        let on_host = self.clocks.copy_down(gathered, self.costs.link_s(jb * cols));
        let complete = on_host + self.costs.exchange_s(jb, cols);
        self.clocks.note(from, complete, Awaited::Rs);
        (self.clocks.copy, self.clocks.host) = (on_host, on_host);
        self.exchanges.insert((k, section.part), complete);
    }

    /// Queues the update of a section.
    fn update(&mut self, k: usize, section: &Section) {
        self.wait_for_panel(k);
        let panel = self.plan.panel(k, self.place.0);
        let l = self.load(&panel);
        let (jb, cols) = (panel.jb, section.cols.len());
        // Rows in two operations, DTRSM, DGEMM.
        self.clocks.host += 4.0 * self.costs.launch_s();
        if self.costs.exchanges_rows() {
            let from = self.clocks.host.max(self.clocks.copy);
            let there = self.clocks.copy_up(from, self.costs.link_s(jb * cols));
            self.clocks.note(from, there, Awaited::Rs);
            self.clocks.copy = there;
            self.clocks.run_main(l.max(there), self.costs.place_s(jb, cols), Operation::Rows);
        } else {
            self.clocks.run_main(l, self.costs.swap_s(jb, cols), Operation::Rows);
        }
        self.clocks.run_main(l, self.costs.trsm_s(jb, cols), Operation::Trsm);
        let below = panel.mp - panel.diag_rows;
        self.clocks.run_main(l, self.costs.gemm_s(below, cols, jb), Operation::Dgemm);
        self.ended.insert(section.part, self.clocks.main);
    }

    /// Copies L of a panel to the device, once; returns when it is there.
    fn load(&mut self, panel: &PanelShape) -> f64 {
        if let Some(&there) = self.on_device.get(&panel.k) {
            return there;
        }
        let from = self.clocks.host.max(self.clocks.fact).max(self.step_ends[0]);
        let there = self.clocks.copy_up(from, self.costs.link_s((panel.mp + panel.jb) * panel.jb));
        self.clocks.note(from, there, Awaited::Fact);
        self.clocks.fact = there;
        self.on_device.insert(panel.k, there);
        there
    }

    fn ended_of(&self, part: Part) -> f64 {
        self.ended.get(&part).copied().unwrap_or_default()
    }
}
