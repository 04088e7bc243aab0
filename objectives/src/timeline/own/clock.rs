//! The clocks of the walked ranks, advanced task by task with their waits and overlaps.
//!
//! One walk serves several variants that differ in PFACT, RFACT, NBMIN, NDIV and BCAST: the tasks of a step are made
//! once, then each variant executes them with its own clocks.

use std::ops::Range;

use hpl::plan::Part;

use super::forms::PanelWork;
use super::network::MessageCosts;
use super::routes::Routes;
use super::sampling::Sampling;
use super::tasks::{FactRows, Lists, Maker, RowSend, TimedTask};
use crate::timeline::StepTimes;

/// Number of parts of a step's columns.
const PARTS: usize = 3;

fn part_index(part: Part) -> usize {
    match part {
        Part::LookAhead => 0,
        Part::Left => 1,
        Part::Rest => 2,
    }
}

/// One of the variants that are walked together.
pub(super) struct Variant<'a> {
    /// Work of panels of NB columns, and of the last one.
    pub(super) panels: [&'a PanelWork; 2],
    /// Arrival times of the panel broadcast.
    pub(super) routes: &'a Routes,
}

/// Costs that are common to all variants.
pub(super) struct CommonCosts<'a> {
    /// Seconds of a factorization on one process row's part of a panel.
    pub(super) fact_s: &'a dyn Fn(&PanelWork, &FactRows) -> f64,
    pub(super) links: &'a MessageCosts,
    pub(super) threads: usize,
}

/// One rank.
#[derive(Debug, Clone, Copy, Default)]
struct RankClock {
    now_s: f64,
    /// Moment at which the helper threads began the section.
    forked_s: f64,
    /// A row exchange that starts when a panel arrives: arrival, seconds of copying, seconds of its messages, and its index in
    /// [`Clocks::rows`].
    early: Option<(f64, f64, f64, usize)>,
}

/// A panel that its owner has sent: its number, and for each process row the moment and the number of words.
#[derive(Debug, Clone, Default)]
struct SentPanel {
    panel: Option<usize>,
    owner: usize,
    weight: f64,
    rows: Vec<(f64, f64)>,
}

/// The clocks of one variant.
struct Clocks {
    /// By process column, then row.
    ranks: Vec<RankClock>,
    /// Index of the next task of each column's list.
    next: Vec<usize>,
    /// Panels in flight, by their number modulo the length.
    sent: Vec<SentPanel>,
    /// Moment at which a row exchange ends on all ranks of a column, by column, panel modulo the length, and part.
    rows: Vec<(usize, f64)>,
    /// A power of two.
    in_flight: usize,
}

/// Receives the phases of each step.
type Record<'a> = Option<&'a mut Vec<StepTimes>>;

/// Seconds until the last rank of each variant is done; the phases of the first variant's steps are added to `record`, as
/// means over the ranks of the walked columns.
pub(super) fn walk(
    maker: &Maker<'_>,
    costs: &CommonCosts<'_>,
    variants: &[Variant<'_>],
    mut record: Record<'_>,
) -> Vec<f64> {
    let sampling = maker.sampling;
    let mut lists = Lists::default();
    let mut all: Vec<Clocks> = variants.iter().map(|_| Clocks::new(sampling)).collect();
    if sampling.steps.is_empty() {
        return vec![0.0; variants.len()];
    }
    maker.prologue(&mut lists);
    let ranks = (sampling.columns * sampling.plan.layout.rows.procs()) as f64;
    // The time of the prologue is part of the first step.
    let mut before = StepTimes::default();
    for index in 0..=sampling.steps.len() {
        for (i, (clocks, variant)) in all.iter_mut().zip(variants).enumerate() {
            let mut step = StepTimes::default();
            StepWalk { sampling, lists: &lists, costs, variant, step: &mut step }.run(clocks, index.saturating_sub(1));
            if let (0, Some(record)) = (i, &mut record) {
                let sum = |a: f64, b: f64| a + b / ranks;
                before.fact_s = sum(before.fact_s, step.fact_s);
                before.lbcast_s = sum(before.lbcast_s, step.lbcast_s);
                before.rs_s = sum(before.rs_s, step.rs_s);
                before.update_s = sum(before.update_s, step.update_s);
                if index > 0 {
                    record.push(StepTimes { end_s: clocks.end_s(), ..std::mem::take(&mut before) });
                }
            }
        }
        if index < sampling.steps.len() {
            maker.step(&mut lists, index);
        }
    }
    all.iter().map(Clocks::end_s).collect()
}

impl Clocks {
    fn new(sampling: &Sampling) -> Self {
        let in_flight = (sampling.plan.depth + 3).next_power_of_two();
        let (columns, rows) = (sampling.columns, sampling.rows());
        let sent = SentPanel { rows: vec![(0.0, 0.0); rows], ..SentPanel::default() };
        Self {
            ranks: vec![RankClock::default(); columns * rows],
            next: vec![0; columns],
            sent: vec![sent; in_flight],
            rows: vec![(usize::MAX, 0.0); columns * in_flight * PARTS],
            in_flight,
        }
    }

    fn end_s(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.now_s).fold(0.0, f64::max)
    }
}

/// One step of one variant.
struct StepWalk<'a> {
    sampling: &'a Sampling,
    lists: &'a Lists,
    costs: &'a CommonCosts<'a>,
    variant: &'a Variant<'a>,
    /// Sums over the ranks.
    step: &'a mut StepTimes,
}

impl StepWalk<'_> {
    /// All columns execute their lists; a column that needs a panel which is not yet sent is tried again after the others.
    fn run(&mut self, clocks: &mut Clocks, index: usize) {
        let columns = self.sampling.columns;
        clocks.next.fill(0);
        // The owner of the panel that is factored in this step first: others may need it.
        let first = self.sampling.owner(index + self.sampling.plan.depth);
        loop {
            let (mut waiting, mut moved) = (false, false);
            for column in (first..columns).chain(0..first) {
                let list = self.lists.of(column);
                while let Some(op) = list.get(clocks.next[column]) {
                    if !self.advance(clocks, column, op) {
                        waiting = true;
                        break;
                    }
                    clocks.next[column] += 1;
                    moved = true;
                }
            }
            if !waiting {
                return;
            }
            assert!(moved, "every panel that is needed is sent");
        }
    }

    /// Executes a task of a column if its panel is already sent; returns whether it did.
    fn advance(&mut self, clocks: &mut Clocks, column: usize, op: &TimedTask) -> bool {
        match *op {
            TimedTask::WaitPanel { panel } | TimedTask::RsStartOverlapped { panel, .. } if !clocks.is_sent(panel) => {
                return false;
            }
            TimedTask::Fact { rows: ref parts, last, weight } => {
                let parts = &self.lists.facts[parts.clone()];
                self.factor(clocks, column, parts, last, weight);
            }
            TimedTask::Lbcast { owner, .. } if owner != column => {}
            TimedTask::Lbcast { panel, owner, words, weight } => {
                let sent = &mut clocks.sent[panel & (clocks.in_flight - 1)];
                (sent.panel, sent.owner, sent.weight) = (Some(panel), owner, weight);
                let ranks = &clocks.ranks[self.ranks_of(column)];
                for ((row, rank), &words) in sent.rows.iter_mut().zip(ranks).zip(&self.lists.times[words..]) {
                    *row = (rank.now_s, words);
                }
            }
            TimedTask::WaitPanel { panel } => self.receive(clocks, column, panel),
            TimedTask::Pack { s, .. } => {
                let ranks = clocks.ranks[self.ranks_of(column)].iter_mut();
                for (row, (rank, s)) in ranks.zip(&self.lists.times[s..]).enumerate() {
                    rank.now_s += s;
                    self.step.update_s += self.sampling.count(row) * s;
                }
            }
            TimedTask::RsStart { panel, part, rows } => {
                let at = clocks.rows_at(column, panel, part);
                for (row, rank) in self.ranks_of(column).enumerate() {
                    self.start_rows(clocks, rank, at, self.lists.times[rows.copy_s + row], &rows);
                }
            }
            TimedTask::RsStartOverlapped { panel, part, rows } => {
                let at = clocks.rows_at(column, panel, part);
                self.start_rows_overlapped(clocks, column, panel, at, &rows);
            }
            TimedTask::RsWait { panel, part } => {
                let at = clocks.slot(column, panel, part);
                self.wait_for_rows(clocks, column, panel, at);
            }
            TimedTask::Fork => {
                clocks.ranks[self.ranks_of(column)].iter_mut().for_each(|rank| rank.forked_s = rank.now_s);
            }
            TimedTask::Update { s } => {
                for (i, rank) in self.ranks_of(column).enumerate() {
                    let [rows_s, update_s] = [0, 1].map(|j| self.lists.times[s + 2 * i + j]);
                    self.update(clocks, rank, rows_s, update_s);
                }
            }
        }
        true
    }

    /// Indices of the ranks of a process column.
    fn ranks_of(&self, column: usize) -> Range<usize> {
        let rows = self.sampling.rows();
        column * rows..(column + 1) * rows
    }

    /// All ranks of the process column factor a panel together, one pivot exchange per column: they end together.
    fn factor(&mut self, clocks: &mut Clocks, column: usize, parts: &[FactRows], last: bool, weight: f64) {
        let work = self.variant.panels[usize::from(last)];
        let cost_s = parts.iter().map(|part| part.slowness * (self.costs.fact_s)(work, part)).fold(0.0, f64::max);
        let ranks = &mut clocks.ranks[self.ranks_of(column)];
        let latest_s = ranks.iter().map(|rank| rank.now_s).fold(0.0, f64::max);
        let end_s = latest_s + weight * cost_s;
        for (row, rank) in ranks.iter_mut().enumerate() {
            self.step.fact_s += self.sampling.count(row) * (end_s - rank.now_s);
            rank.now_s = end_s;
        }
    }

    /// The ranks of a column wait for a panel that is sent.
    fn receive(&mut self, clocks: &mut Clocks, column: usize, panel: usize) {
        for (row, rank) in self.ranks_of(column).enumerate() {
            let arrival_s = self.arrival_s(clocks, column, row, panel);
            let rank = &mut clocks.ranks[rank];
            self.step.lbcast_s += self.sampling.count(row) * (arrival_s - rank.now_s).max(0.0);
            rank.now_s = rank.now_s.max(arrival_s);
        }
    }

    /// The first threads of a column start a row exchange during an update, as soon as the panel arrives.
    fn start_rows_overlapped(&mut self, clocks: &mut Clocks, column: usize, panel: usize, at: usize, rows: &RowSend) {
        for (row, rank) in self.ranks_of(column).enumerate() {
            let copy_s = self.lists.times[rows.copy_s + row];
            let arrival_s = self.arrival_s(clocks, column, row, panel);
            // Until the panel arrives the first thread updates with the others.
            if arrival_s <= clocks.ranks[rank].now_s {
                self.start_rows(clocks, rank, at, copy_s, rows);
            } else {
                clocks.ranks[rank].early = Some((arrival_s, copy_s, self.message_s(rows), at));
            }
        }
    }

    /// The ranks of a column wait for the end of a row exchange, which the step before may not have started where steps are sampled.
    fn wait_for_rows(&mut self, clocks: &mut Clocks, column: usize, panel: usize, at: usize) {
        let (of, arrival_s) = clocks.rows[at];
        if of != panel {
            return;
        }
        for (row, rank) in clocks.ranks[self.ranks_of(column)].iter_mut().enumerate() {
            self.step.rs_s += self.sampling.count(row) * (arrival_s - rank.now_s).max(0.0);
            rank.now_s = rank.now_s.max(arrival_s);
        }
    }

    /// Moment at which a sent panel arrives on a rank.
    fn arrival_s(&self, clocks: &Clocks, column: usize, row: usize, panel: usize) -> f64 {
        let sent = &clocks.sent[panel & (clocks.in_flight - 1)];
        let (start_s, words) = sent.rows[row];
        let before = if column < sent.owner { self.sampling.columns } else { 0 };
        let position = column + before - sent.owner;
        start_s + self.variant.routes.arrival_s(position, words, sent.weight)
    }

    /// Seconds of the messages of a row exchange.
    fn message_s(&self, rows: &RowSend) -> f64 {
        let link = self.costs.links.swap;
        rows.weight * (link.alpha_s + rows.words * link.beta_s)
    }

    /// A rank copies its rows into messages and starts the row exchange.
    fn start_rows(&mut self, clocks: &mut Clocks, rank: usize, at: usize, copy_s: f64, rows: &RowSend) {
        let now_s = &mut clocks.ranks[rank].now_s;
        *now_s += copy_s;
        self.step.rs_s += self.sampling.count(rank % self.sampling.rows()) * copy_s;
        let arrival_s = *now_s + self.message_s(rows);
        clocks.rows[at].1 = clocks.rows[at].1.max(arrival_s);
    }

    /// All threads of a rank update a section; the first thread joins after its panel tasks.
    fn update(&mut self, clocks: &mut Clocks, rank: usize, rows_s: f64, update_s: f64) {
        let (threads, count) = (self.costs.threads as f64, self.sampling.count(rank % self.sampling.rows()));
        let RankClock { now_s, forked_s, early } = clocks.ranks[rank];
        let work_s = rows_s + update_s;
        let end_with = |extra_s: f64| {
            // Work left after what the helpers did while the first thread was busy.
            let left_s = work_s + extra_s - (threads - 1.0) * (now_s - forked_s);
            if left_s > 0.0 { now_s + left_s / threads } else { now_s }
        };
        let mut end_s = end_with(0.0);
        let mut copied = 0.0;
        if let Some((arrival_s, copy_s, message_s, at)) = early {
            let copied_s = arrival_s + copy_s;
            end_s = if arrival_s < end_s { end_with(copy_s).max(copied_s) } else { copied_s };
            clocks.rows[at].1 = clocks.rows[at].1.max(copied_s + message_s);
            self.step.rs_s += count * copy_s;
            copied = copy_s;
        }
        let passed_s = (end_s - now_s).max(0.0);
        let own_s = passed_s - copied.min(passed_s);
        let rows_share = if work_s > 0.0 { rows_s / work_s } else { 0.0 };
        self.step.rs_s += count * own_s * rows_share;
        self.step.update_s += count * own_s * (1.0 - rows_share);
        clocks.ranks[rank] = RankClock { now_s: end_s, forked_s, early: None };
    }
}

impl Clocks {
    fn is_sent(&self, panel: usize) -> bool {
        self.sent[panel & (self.in_flight - 1)].panel == Some(panel)
    }

    fn slot(&self, column: usize, panel: usize, part: Part) -> usize {
        (column * self.in_flight + (panel & (self.in_flight - 1))) * PARTS + part_index(part)
    }

    /// Index in `rows` of a row exchange that starts now.
    fn rows_at(&mut self, column: usize, panel: usize, part: Part) -> usize {
        let at = self.slot(column, panel, part);
        self.rows[at] = (panel, 0.0);
        at
    }
}
