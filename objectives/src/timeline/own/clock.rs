//! The clocks of the walked ranks, moved from task to task: who waits for whom, and what runs beside what.
//!
//! One walk serves several variants at once that differ in PFACT, RFACT, NBMIN, NDIV and BCAST: the tasks of a step are made
//! once, then each variant does them by its own clocks.

use hpl::plan::Part;

use super::forms::PanelWork;
use super::network::Links;
use super::routes::Routes;
use super::sampling::Sampling;
use super::tasks::{FactRows, Leaving, Lists, Maker, Op};
use crate::timeline::Step;

/// Parts of a step's columns, for tables.
const PARTS: usize = 3;

fn part_index(part: Part) -> usize {
    match part {
        Part::LookAhead => 0,
        Part::Left => 1,
        Part::Rest => 2,
    }
}

/// What distinguishes the variants that are walked together.
pub(super) struct Variant<'a> {
    /// Work of panels of NB columns, and of the last one.
    pub(super) panels: [&'a PanelWork; 2],
    /// How a panel travels.
    pub(super) routes: &'a Routes,
}

/// What all of them share.
pub(super) struct Costs<'a> {
    /// Seconds of some work on the part of a panel.
    pub(super) fact_s: &'a dyn Fn(&PanelWork, &FactRows) -> f64,
    pub(super) links: &'a Links,
    pub(super) threads: usize,
}

/// One rank.
#[derive(Debug, Clone, Copy, Default)]
struct Rank {
    now_s: f64,
    /// When helpers began the section.
    forked_s: f64,
    /// Rows that set out when a panel comes: its arrival, seconds of copying, seconds of their way, and where they are
    /// waited for.
    early: Option<(f64, f64, f64, usize)>,
}

/// A panel that its owner has sent: its number, and for each row when, and how many words.
#[derive(Debug, Clone, Default)]
struct Sent {
    panel: Option<usize>,
    owner: usize,
    weight: f64,
    rows: Vec<(f64, f64)>,
}

/// The clocks of one variant.
struct Clocks {
    /// By process column, then row.
    ranks: Vec<Rank>,
    /// Task of the list that each column does next.
    next: Vec<usize>,
    /// Panels under way, by their number modulo the length.
    sent: Vec<Sent>,
    /// When the rows of a panel and part are with all ranks of a column, by column, panel modulo the length, and part.
    rows: Vec<(usize, f64)>,
    /// A power of two.
    in_flight: usize,
}

/// What is done with the phases of each step.
type Record<'a> = Option<&'a mut Vec<Step>>;

/// Seconds until the last rank of each variant is done; the phases of the first one's steps go to `record`, means over
/// the walked ranks.
pub(super) fn walk(maker: &Maker<'_>, costs: &Costs<'_>, variants: &[Variant<'_>], mut record: Record<'_>) -> Vec<f64> {
    let sampling = maker.sampling;
    let mut lists = Lists::default();
    let mut all: Vec<Clocks> = variants.iter().map(|_| Clocks::new(sampling)).collect();
    if sampling.steps.is_empty() {
        return vec![0.0; variants.len()];
    }
    maker.prologue(&mut lists);
    let ranks = (sampling.columns * sampling.rows) as f64;
    // What the prologue takes belongs to the first step.
    let mut before = Step::default();
    for index in 0..=sampling.steps.len() {
        for (i, (clocks, variant)) in all.iter_mut().zip(variants).enumerate() {
            let mut step = Step::default();
            Walk { sampling, lists: &lists, costs, variant, step: &mut step }.run(clocks, index.saturating_sub(1));
            if let (0, Some(record)) = (i, &mut record) {
                let sum = |a: f64, b: f64| a + b / ranks;
                before.fact_s = sum(before.fact_s, step.fact_s);
                before.lbcast_s = sum(before.lbcast_s, step.lbcast_s);
                before.rs_s = sum(before.rs_s, step.rs_s);
                before.update_s = sum(before.update_s, step.update_s);
                if index > 0 {
                    record.push(Step { end_s: clocks.end_s(), ..std::mem::take(&mut before) });
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
        let Sampling { columns, rows, .. } = *sampling;
        let sent = Sent { rows: vec![(0.0, 0.0); rows], ..Sent::default() };
        Self {
            ranks: vec![Rank::default(); columns * rows],
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
struct Walk<'a> {
    sampling: &'a Sampling,
    lists: &'a Lists,
    costs: &'a Costs<'a>,
    variant: &'a Variant<'a>,
    /// Sums over the ranks.
    step: &'a mut Step,
}

impl Walk<'_> {
    /// All columns do their lists; who needs a panel that is not yet sent is asked again when others have gone on.
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

    /// Does a task of a column if all that it needs is known; whether it did.
    fn advance(&mut self, clocks: &mut Clocks, column: usize, op: &Op) -> bool {
        let rows = self.sampling.rows;
        let all = column * rows..(column + 1) * rows;
        match *op {
            Op::Fact { rows: ref parts, last, weight } => {
                let work = self.variant.panels[usize::from(last)];
                let parts = self.lists.facts[parts.clone()].iter();
                let cost_s = parts.map(|part| part.slowness * (self.costs.fact_s)(work, part)).fold(0.0, f64::max);
                // All ranks of the process column factor together, column by column: they end together.
                let latest_s = clocks.ranks[all.clone()].iter().map(|rank| rank.now_s).fold(0.0, f64::max);
                for rank in &mut clocks.ranks[all] {
                    let end_s = latest_s + weight * cost_s;
                    self.step.fact_s += end_s - rank.now_s;
                    rank.now_s = end_s;
                }
            }
            Op::Lbcast { panel, owner, words, weight } => {
                if owner == column {
                    let sent = &mut clocks.sent[panel & (clocks.in_flight - 1)];
                    (sent.panel, sent.owner, sent.weight) = (Some(panel), owner, weight);
                    let words = &self.lists.times[words..];
                    for ((row, rank), &words) in sent.rows.iter_mut().zip(&clocks.ranks[all]).zip(words) {
                        *row = (rank.now_s, words);
                    }
                }
            }
            Op::Await { panel } => {
                if !clocks.is_sent(panel) {
                    return false;
                }
                for row in 0..rows {
                    let arrival_s = self.arrival_s(clocks, column, row, panel);
                    let rank = &mut clocks.ranks[column * rows + row];
                    self.step.lbcast_s += (arrival_s - rank.now_s).max(0.0);
                    rank.now_s = rank.now_s.max(arrival_s);
                }
            }
            Op::Pack { s, .. } => {
                for (rank, s) in clocks.ranks[all].iter_mut().zip(&self.lists.times[s..]) {
                    rank.now_s += s;
                    self.step.update_s += s;
                }
            }
            Op::RsStart { panel, part, rows: leaving } => {
                let at = clocks.rows_at(column, panel, part);
                for row in 0..rows {
                    self.start_rows(clocks, column * rows + row, at, self.lists.times[leaving.copy_s + row], &leaving);
                }
            }
            Op::EarlyRows { panel, part, rows: leaving } => {
                if !clocks.is_sent(panel) {
                    return false;
                }
                let at = clocks.rows_at(column, panel, part);
                for row in 0..rows {
                    let copy_s = self.lists.times[leaving.copy_s + row];
                    let arrival_s = self.arrival_s(clocks, column, row, panel);
                    let rank = column * rows + row;
                    // Until the panel is here the first thread updates with the others.
                    if arrival_s <= clocks.ranks[rank].now_s {
                        self.start_rows(clocks, rank, at, copy_s, &leaving);
                    } else {
                        clocks.ranks[rank].early = Some((arrival_s, copy_s, self.way_s(&leaving), at));
                    }
                }
            }
            Op::RsWait { panel, part } => {
                let at = clocks.slot(column, panel, part);
                // Where steps are left out, rows may be waited for that the step before did not send.
                let (of, here_s) = clocks.rows[at];
                for rank in clocks.ranks[all].iter_mut().filter(|_| of == panel) {
                    self.step.rs_s += (here_s - rank.now_s).max(0.0);
                    rank.now_s = rank.now_s.max(here_s);
                }
            }
            Op::Fork => clocks.ranks[all].iter_mut().for_each(|rank| rank.forked_s = rank.now_s),
            Op::Update { s } => {
                for (i, rank) in all.enumerate() {
                    let [rows_s, update_s] = [0, 1].map(|j| self.lists.times[s + 2 * i + j]);
                    self.update(clocks, rank, rows_s, update_s);
                }
            }
        }
        true
    }

    /// When a sent panel is on a rank.
    fn arrival_s(&self, clocks: &Clocks, column: usize, row: usize, panel: usize) -> f64 {
        let sent = &clocks.sent[panel & (clocks.in_flight - 1)];
        let (start_s, words) = sent.rows[row];
        let before = if column < sent.owner { self.sampling.columns } else { 0 };
        let position = column + before - sent.owner;
        start_s + self.variant.routes.arrival_s(position, words, sent.weight)
    }

    /// How long rows are under way.
    fn way_s(&self, rows: &Leaving) -> f64 {
        let link = self.costs.links.swap;
        rows.weight * (link.alpha_s + rows.words * link.beta_s)
    }

    /// A rank copies its rows, which are with the others some time later.
    fn start_rows(&mut self, clocks: &mut Clocks, rank: usize, at: usize, copy_s: f64, rows: &Leaving) {
        let now_s = &mut clocks.ranks[rank].now_s;
        *now_s += copy_s;
        self.step.rs_s += copy_s;
        let here_s = *now_s + self.way_s(rows);
        clocks.rows[at].1 = clocks.rows[at].1.max(here_s);
    }

    /// The threads share a section; the first one joins after what it had to do beside.
    fn update(&mut self, clocks: &mut Clocks, rank: usize, rows_s: f64, update_s: f64) {
        let threads = self.costs.threads as f64;
        let Rank { now_s, forked_s, early } = clocks.ranks[rank];
        let work_s = rows_s + update_s;
        let end_with = |extra_s: f64| {
            // What the helpers have done while the first thread was busy.
            let left_s = work_s + extra_s - (threads - 1.0) * (now_s - forked_s);
            if left_s > 0.0 { now_s + left_s / threads } else { now_s }
        };
        let mut end_s = end_with(0.0);
        let mut copied = 0.0;
        if let Some((arrival_s, copy_s, way_s, at)) = early {
            let copied_s = arrival_s + copy_s;
            end_s = if arrival_s < end_s { end_with(copy_s).max(copied_s) } else { copied_s };
            clocks.rows[at].1 = clocks.rows[at].1.max(copied_s + way_s);
            self.step.rs_s += copy_s;
            copied = copy_s;
        }
        let passed_s = (end_s - now_s).max(0.0);
        let own_s = passed_s - copied.min(passed_s);
        let rows_share = if work_s > 0.0 { rows_s / work_s } else { 0.0 };
        self.step.rs_s += own_s * rows_share;
        self.step.update_s += own_s * (1.0 - rows_share);
        clocks.ranks[rank] = Rank { now_s: end_s, forked_s, early: None };
    }
}

impl Clocks {
    fn is_sent(&self, panel: usize) -> bool {
        self.sent[panel & (self.in_flight - 1)].panel == Some(panel)
    }

    fn slot(&self, column: usize, panel: usize, part: Part) -> usize {
        (column * self.in_flight + (panel & (self.in_flight - 1))) * PARTS + part_index(part)
    }

    /// Where the rows of a panel are waited for, which set out now.
    fn rows_at(&mut self, column: usize, panel: usize, part: Part) -> usize {
        let at = self.slot(column, panel, part);
        self.rows[at] = (panel, 0.0);
        at
    }
}
