//! A step as lists of timed tasks, one list for each kind of process column, made from the engine's plan.
//!
//! The lists contain no time of the panel factorization, so that the many variants of PFACT, RFACT, NBMIN and NDIV share
//! them. A task of a list is executed by all process rows of a column; it has a time for every walked row.

use std::ops::Range;

use hpl::plan::{ColumnStrips, PanelShape, Part, Section, Task, fact_threads};
use space::Candidate;

use super::forms::{Exchange, Shape, dot};
use super::rates::PhaseRates;
use super::sampling::Sampling;

/// A task of a process column. Times are wall-clock seconds with all threads, or of one thread if stated; an index points to
/// the first walked row's time in [`Lists::times`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TimedTask {
    /// All process rows factor a panel together; `rows` are their [`Lists::facts`], `last` is the last, narrower panel.
    Fact { rows: Range<usize>, last: bool, weight: f64 },
    /// The owner starts the broadcast of the panel; `words`: index of the words of each row's message.
    Lbcast { panel: usize, owner: usize, words: usize, weight: f64 },
    /// Wait for the panel.
    WaitPanel { panel: usize },
    /// Pack L2 of the panel.
    Pack { panel: usize, s: usize },
    /// Start a row exchange; all threads copy the rows into messages.
    RsStart { panel: usize, part: Part, rows: RowSend },
    /// The same by the first thread during an update, as soon as the panel arrives.
    RsStartOverlapped { panel: usize, part: Part, rows: RowSend },
    /// Wait for the end of a row exchange.
    RsWait { panel: usize, part: Part },
    /// The helper threads begin to update a section.
    Fork,
    /// The first thread joins the update: rows are copied to their places, then U and C are computed. A pair of seconds of one
    /// thread for each row.
    Update { s: usize },
}

/// The rows of an exchange that starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowSend {
    /// Index of the seconds of copying them into messages.
    pub(super) copy_s: usize,
    /// Words received from the other ranks.
    pub(super) words: f64,
    /// Number of steps that this one represents.
    pub(super) weight: f64,
}

/// One process row's part of a panel factorization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FactRows {
    pub(super) mp: usize,
    pub(super) owns_diagonal: bool,
    /// Threads of the rank that factor.
    pub(super) threads: usize,
    /// Factor on its computing time.
    pub(super) slowness: f64,
}

/// The tasks of one step.
#[derive(Debug, Default)]
pub(super) struct Lists {
    ops: Vec<TimedTask>,
    /// Range in `ops` of each walked column; equal columns share it.
    columns: Vec<Range<usize>>,
    pub(super) times: Vec<f64>,
    pub(super) facts: Vec<FactRows>,
    /// Local shapes of the panels of the step on the walked rows: the first panel's by row, then the next one's.
    shapes: Vec<[PanelShape; 2]>,
}

impl Lists {
    /// The tasks of a walked column.
    pub(super) fn of(&self, column: usize) -> &[TimedTask] {
        &self.ops[self.columns[column].clone()]
    }
}

/// Makes the lists of a run.
pub(super) struct Maker<'a> {
    pub(super) sampling: &'a Sampling,
    pub(super) candidate: &'a Candidate,
    pub(super) rates: &'a PhaseRates,
    /// Factor on all times because threads share cores.
    pub(super) shared: f64,
    /// Factor on the computing time of each rank, by process row, then column; empty if all ranks are equal.
    pub(super) slowness: &'a [f64],
}

impl Maker<'_> {
    /// The tasks before the first step.
    pub(super) fn prologue(&self, lists: &mut Lists) {
        let place = Place { index: 0, k: 0, weight: 1.0 };
        self.fill(lists, place, |column| column.add(&self.sampling.plan.prologue(0, 0, column.col)));
    }

    /// The tasks of walked step `index`.
    pub(super) fn step(&self, lists: &mut Lists, index: usize) {
        let (k, weight) = self.sampling.steps[index];
        self.fill(lists, Place { index, k, weight }, |column| {
            column.add(&self.sampling.plan.step(k, 0, column.col).tasks);
            // A column takes part in the step even if it has no columns left.
            column.wait_for(index);
        });
    }

    fn fill(&self, lists: &mut Lists, place: Place, add: impl Fn(&mut Column<'_>)) {
        let Lists { ops, columns, times, facts, shapes } = lists;
        ops.clear();
        columns.clear();
        times.clear();
        facts.clear();
        shapes.clear();
        let (rows, plan) = (self.sampling.rows(), &self.sampling.plan);
        let panels = place.k..plan.steps().min(place.k + plan.depth.max(1) + 1);
        shapes.extend(panels.flat_map(|k| (0..rows).map(move |row| self.sampling.shapes(k, row))));
        // The keys of the lists made so far, with the first column of each.
        let mut known: Vec<([usize; 5], usize)> = Vec::new();
        let mut last = None;
        for walked in 0..self.sampling.columns {
            let col = self.sampling.column(place.index, place.k, walked);
            if last == Some(col) {
                columns.extend_from_within(walked - 1..);
                continue;
            }
            last = Some(col);
            let alike = self.alike(place.k, col);
            if let Some((_, first)) = known.iter().find(|(other, _)| *other == alike) {
                columns.extend_from_within(*first..=*first);
                continue;
            }
            known.push((alike, walked));
            let start = ops.len();
            add(&mut Column { maker: self, place, col, start, ops, times, facts, shapes, u_cols: 0 });
            columns.push(start..ops.len());
        }
    }

    /// The key of a process column's tasks: columns with equal keys have equal tasks.
    fn alike(&self, k: usize, col: usize) -> [usize; 5] {
        let plan = &self.sampling.plan;
        let (cols, ahead) = (&plan.layout.cols, plan.depth.max(1));
        // The panels that are factored before this step's update is complete.
        let owned = (k..=k + ahead).filter(|&t| t < plan.steps() && cols.block_owner(t) == col);
        let owned = owned.fold(0, |bits, t| bits | 1 << (t - k).min(62));
        let from = |k: usize| cols.local_from(col, plan.layout.n().min(k * cols.nb()));
        [owned, from(k), from(k + ahead), cols.local_len(col), self.sampling.kind(col)]
    }

    fn threads(&self) -> usize {
        self.candidate.engine.threads.max(1)
    }

    /// Local sizes of a section of `n` columns when `panel` updates it.
    fn shape(&self, panel: &PanelShape, n: usize) -> Shape {
        Shape { m: (panel.mp - panel.diag_rows) as f64, n, k: panel.jb as f64, threads: self.threads() }
    }

    /// The row exchange of `panel` over `n` columns.
    fn exchange(&self, panel: &PanelShape, n: usize) -> Exchange {
        let (shape, p) = (self.shape(panel, n), self.candidate.hpl.p);
        let below = (self.sampling.plan.layout.n() - panel.ia - panel.jb) as f64;
        let share = if below > 0.0 { shape.m / below } else { 1.0 / p as f64 };
        Exchange { shape, p, share, owns_diagonal: panel.diag_rows > 0, swap: self.candidate.hpl.swap }
    }

    /// Seconds of copying rows to their places in `n` columns, and of the update, by all threads.
    fn update_s(&self, panel: &PanelShape, n: usize) -> [f64; 2] {
        let rows_s = if self.candidate.hpl.p == 1 {
            dot(&self.shape(panel, n).rows_here(), &self.rates.here)
        } else {
            dot(&self.exchange(panel, n).place(), &self.rates.exchanged)
        };
        [rows_s, dot(&self.shape(panel, n).update(), &self.rates.update)]
    }

    /// Factor on the computing time of the rank in walked row `row` and process column `col`.
    fn slowness(&self, row: usize, col: usize) -> f64 {
        self.slowness.get(self.sampling.one_of(row) * self.candidate.hpl.q + col).copied().unwrap_or(1.0)
    }
}

/// Position of a list in the run.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Number of the walked step; `k` is its panel.
    index: usize,
    k: usize,
    weight: f64,
}

/// The tasks of one process column as they are made.
struct Column<'a> {
    maker: &'a Maker<'a>,
    place: Place,
    col: usize,
    /// Index of its first task.
    start: usize,
    ops: &'a mut Vec<TimedTask>,
    times: &'a mut Vec<f64>,
    facts: &'a mut Vec<FactRows>,
    shapes: &'a [[PanelShape; 2]],
    /// Columns of U of the last row exchange.
    u_cols: usize,
}

impl Column<'_> {
    fn add(&mut self, tasks: &[Task]) {
        let threads = self.maker.threads();
        for task in tasks {
            match task {
                Task::Fact(shape) => self.fact(shape, |_, _| threads),
                Task::Lbcast(shape) => self.lbcast(shape),
                Task::RsStart { panel, section, u_cols } => {
                    self.u_cols = *u_cols;
                    let rows = self.row_send(*panel, section, *u_cols, threads);
                    let panel = self.walked(*panel);
                    self.wait_for(panel);
                    self.ops.push(TimedTask::RsStart { panel, part: section.part, rows });
                }
                Task::RsWait { panel, part } => {
                    self.ops.push(TimedTask::RsWait { panel: self.walked(*panel), part: *part });
                }
                Task::Update { panel, section, overlapped, .. } => self.update(*panel, section, overlapped),
            }
        }
    }

    /// Waits for a panel once; later tasks of the step need no further wait.
    fn wait_for(&mut self, panel: usize) {
        if !self.ops[self.start..].contains(&TimedTask::WaitPanel { panel }) {
            self.ops.push(TimedTask::WaitPanel { panel });
        }
    }

    /// Number of panel `k` among the walked ones.
    fn walked(&self, k: usize) -> usize {
        self.place.index + (k - self.place.k)
    }

    /// Local shapes of panel `k` that represent walked row `row`.
    fn shape(&self, k: usize, row: usize) -> &[PanelShape; 2] {
        &self.shapes[(k - self.place.k) * self.maker.sampling.rows() + row]
    }

    /// `s` seconds of one step, scaled to all steps that it represents and to the speed of walked row `row`.
    fn seconds(&self, s: f64, row: usize) -> f64 {
        s * self.place.weight * self.maker.shared * self.maker.slowness(row, self.col)
    }

    /// Stores the time of each walked row for its part of panel `k`; returns the index.
    fn store(&mut self, k: usize, time_s: impl Fn(&PanelShape) -> f64) -> usize {
        let at = self.times.len();
        for row in 0..self.maker.sampling.rows() {
            let [first, second] = self.shape(k, row);
            // Rows that are walked one by one have two equal shapes.
            let slowest_s = if first == second { time_s(first) } else { time_s(first).max(time_s(second)) };
            self.times.push(self.seconds(slowest_s, row));
        }
        at
    }

    /// Adds the factorization of the panel `shape`; `threads`: threads of a process row, by its number and local shape.
    fn fact(&mut self, shape: &PanelShape, threads: impl Fn(usize, &PanelShape) -> usize) {
        let (start, sampling) = (self.facts.len(), self.maker.sampling);
        for walked in 0..sampling.rows() {
            let slowness = self.maker.slowness(walked, self.col);
            for (row, seen) in sampling.rows_of(shape.k, walked).into_iter().zip(*self.shape(shape.k, walked)) {
                let (mp, owns_diagonal, threads) = (seen.mp, seen.diag_rows > 0, threads(row, &seen));
                let part = FactRows { mp, owns_diagonal, threads, slowness };
                if !self.facts[start..].contains(&part) {
                    self.facts.push(part);
                }
            }
        }
        let (last, weight) = (shape.jb != self.maker.candidate.hpl.nb, self.place.weight * self.maker.shared);
        self.ops.push(TimedTask::Fact { rows: start..self.facts.len(), last, weight });
    }

    fn lbcast(&mut self, shape: &PanelShape) {
        let words = self.times.len();
        for row in 0..self.maker.sampling.rows() {
            let [first, second] = self.shape(shape.k, row);
            self.times.push(first.words().max(second.words()) as f64);
        }
        let panel = self.walked(shape.k);
        let owner = self.maker.sampling.owner(panel);
        self.ops.push(TimedTask::Lbcast { panel, owner, words, weight: self.place.weight });
    }

    /// The rows of a section that panel `k` exchanges, copied by `copiers` threads. Those of a strip take its share of the time of
    /// the `u_cols` columns that it is a part of: what a strip costs more is in the measured phases, which are sums over strips.
    fn row_send(&mut self, k: usize, section: &Section, u_cols: usize, copiers: usize) -> RowSend {
        let (maker, n) = (self.maker, section.cols.len());
        let share = n as f64 / u_cols.max(1) as f64;
        let copy_s =
            self.store(k, |panel| share * dot(&maker.exchange(panel, u_cols).start(copiers), &maker.rates.exchanged));
        let words = self.shape(k, 0)[0].jb as f64 * n as f64;
        RowSend { copy_s, words, weight: self.place.weight }
    }

    fn update(&mut self, k: usize, section: &Section, overlapped: &[Task]) {
        let (maker, panel, n) = (self.maker, self.walked(k), section.cols.len());
        let packed = |op: &TimedTask| matches!(op, TimedTask::Pack { panel: other, .. } if *other == panel);
        if !self.ops[self.start..].iter().any(packed) {
            let s = self.store(k, |panel| dot(&maker.shape(panel, n).pack(), &maker.rates.update));
            self.wait_for(panel);
            self.ops.push(TimedTask::Pack { panel, s });
        }
        self.ops.push(TimedTask::Fork);
        for task in overlapped {
            match task {
                Task::Fact(next) => {
                    let plan = &maker.sampling.plan;
                    self.fact(next, |row, seen| fact_threads(maker.threads(), seen, &plan.panel(k, row), n));
                }
                Task::Lbcast(shape) => self.lbcast(shape),
                Task::RsStart { panel: k, section, u_cols } => {
                    let rows = self.row_send(*k, section, *u_cols, 1);
                    self.ops.push(TimedTask::RsStartOverlapped { panel: self.walked(*k), part: section.part, rows });
                }
                Task::RsWait { .. } | Task::Update { .. } => {
                    unreachable!("the plan has nothing else during an update")
                }
            }
        }
        let (s, threads) = (self.times.len(), maker.threads() as f64);
        // As in `row_send`.
        let of_strip =
            maker.sampling.plan.strips != ColumnStrips::Whole && section.part == Part::Rest && self.u_cols > n;
        let whole = if of_strip { self.u_cols } else { n };
        let share = n as f64 / whole.max(1) as f64;
        for row in 0..maker.sampling.rows() {
            let [first, second] = self.shape(k, row);
            let mut slowest = maker.update_s(first, whole).map(|s| share * s);
            if first != second {
                let other = maker.update_s(second, whole).map(|s| share * s);
                if other.iter().sum::<f64>() > slowest.iter().sum() {
                    slowest = other;
                }
            }
            let pair = slowest.map(|s| threads * self.seconds(s, row));
            self.times.extend(pair);
        }
        self.ops.push(TimedTask::Update { s });
    }
}
