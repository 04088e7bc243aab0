//! A run as lists of timed tasks, one list per rank, made from the engine's plan.
//!
//! What is left open is the panel factorization, so that the many variants of PFACT, RFACT, NBMIN and NDIV share one
//! skeleton. A long run is thinned: of every `stride` steps one stands for all, with their number as its weight; the
//! stride keeps the turns of the process rows and columns.

use hpl::layout::Layout;
use hpl::plan::{PanelShape, Part, Plan, Section, Task, crew};
use space::Candidate;

use super::forms::{Exchange, Shape, dot};
use super::rates::PhaseRates;

/// Steps that a thinned run has at least.
const STEPS_KEPT: usize = 64;

/// A task of a rank. Times are in seconds of wall clock where all threads work, of one thread where said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// The panel is factored with the process column, by this many threads.
    Fact { panel: usize, mp: usize, owns_diagonal: bool, jb: usize, threads: usize, weight: f64 },
    /// The panel sets out along the process row.
    Lbcast { panel: usize, words: f64, weight: f64 },
    /// The panel has to be here.
    Await { panel: usize },
    /// L2 is packed.
    Pack { s: f64 },
    /// Rows set out, copied by all threads.
    RsStart { panel: usize, part: Part, rows: Leaving },
    /// The same by the first thread beside an update, as soon as the panel is here.
    EarlyRows { panel: usize, part: Part, rows: Leaving },
    /// The rows are here.
    RsWait { panel: usize, part: Part },
    /// From here on helpers update a section.
    Fork,
    /// The first thread joins them: rows to their places and products, in seconds of one thread.
    Update { rows_s: f64, update_s: f64 },
    /// The step ends.
    EndStep,
}

/// Rows that set out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leaving {
    /// Seconds of copying them into messages.
    pub(super) copy_s: f64,
    /// Words that come from the others.
    pub(super) words: f64,
    /// Steps that this one stands for.
    pub(super) weight: f64,
}

/// The tasks of all ranks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Skeleton {
    /// By process row, then column.
    pub(super) ranks: Vec<Vec<Op>>,
    pub(super) p: usize,
    pub(super) q: usize,
    pub(super) threads: usize,
    /// Process column of each panel.
    pub(super) owners: Vec<usize>,
    /// Weight of each step.
    pub(super) weights: Vec<f64>,
}

/// What the tasks are made with.
struct Maker<'a> {
    plan: &'a Plan,
    candidate: &'a Candidate,
    rates: &'a PhaseRates,
    /// How much slower everything is because threads share cores.
    shared: f64,
}

/// The steps that are walked: (panel, number of steps that it stands for).
fn chosen(plan: &Plan, exact: bool) -> Vec<(usize, f64)> {
    let steps = plan.steps();
    let turns = lcm(plan.layout.rows.procs(), plan.layout.cols.procs());
    let rounds = (steps / STEPS_KEPT).saturating_sub(1) / turns;
    let stride = rounds * turns + 1;
    if exact || stride <= plan.depth.max(1) {
        return (0..steps).map(|k| (k, 1.0)).collect();
    }
    let one = |first: usize| {
        let count = stride.min(steps - first);
        ((first + stride / 2).min(steps - 1), count as f64)
    };
    (0..steps).step_by(stride).map(one).collect()
}

fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

impl Skeleton {
    /// The tasks of `candidate`; all steps if `exact`.
    pub(super) fn new(candidate: &Candidate, rates: &PhaseRates, shared: f64, exact: bool) -> Self {
        let hpl = &candidate.hpl;
        let layout = Layout::of(hpl, &candidate.engine.weights);
        let depth = hpl.depth.min(layout.rows.blocks());
        let plan = Plan { layout, depth, split: candidate.engine.split.get(), strip: None };
        let maker = Maker { plan: &plan, candidate, rates, shared };
        let chosen = chosen(&plan, exact);
        let places = (0..hpl.p).flat_map(|row| (0..hpl.q).map(move |col| (row, col)));
        let ranks = places.map(|(row, col)| maker.rank(row, col, &chosen)).collect();
        // Of panels beyond the last, too, which a thinned run may still have in flight.
        let panels = chosen.last().map_or(0, |&(last, _)| last + plan.depth + 2);
        let in_flight = (panels - panels.min(plan.depth + 1)..panels).filter(|_| panels > 0);
        let owner = |k: usize| plan.layout.cols.block_owner(k.min(plan.steps() - 1));
        let owners = chosen.iter().map(|step| step.0).chain(in_flight).map(owner).collect();
        let weights = chosen.iter().map(|step| step.1).collect();
        Self { ranks, p: hpl.p, q: hpl.q, threads: candidate.engine.threads.max(1), owners, weights }
    }
}

impl Skeleton {
    /// The same with ranks that take longer for all that they compute, each by its factor; messages of a pivot search
    /// count as computing.
    pub(super) fn slowed(mut self, factors: &[f64]) -> Self {
        for (ops, factor) in self.ranks.iter_mut().zip(factors) {
            for op in ops {
                match op {
                    Op::Fact { weight, .. } => *weight *= factor,
                    Op::Pack { s } => *s *= factor,
                    Op::RsStart { rows, .. } | Op::EarlyRows { rows, .. } => rows.copy_s *= factor,
                    Op::Update { rows_s, update_s } => {
                        *rows_s *= factor;
                        *update_s *= factor;
                    }
                    Op::Lbcast { .. } | Op::Await { .. } | Op::RsWait { .. } | Op::Fork | Op::EndStep => (),
                }
            }
        }
        self
    }
}

/// The tasks of one rank as they are made.
struct Tasks<'a> {
    maker: &'a Maker<'a>,
    row: usize,
    ops: Vec<Op>,
    /// Exchanges under way or done: (panel, part), numbered as in the skeleton.
    started: Vec<(usize, Part)>,
    /// Panels packed in this step.
    packed: Vec<usize>,
    /// Number of the step in the skeleton, and its panel.
    step: (usize, usize),
    weight: f64,
}

impl Maker<'_> {
    fn rank(&self, row: usize, col: usize, chosen: &[(usize, f64)]) -> Vec<Op> {
        let first = (0, 0);
        let (ops, started, packed) = (Vec::new(), Vec::new(), Vec::new());
        let mut tasks = Tasks { maker: self, row, ops, started, packed, step: first, weight: 1.0 };
        if chosen.is_empty() {
            return tasks.ops;
        }
        tasks.add(&self.plan.prologue(0, row, col));
        for (index, &(k, weight)) in chosen.iter().enumerate() {
            (tasks.step, tasks.weight) = ((index, k), weight);
            tasks.packed.clear();
            tasks.started.retain(|&(panel, _)| panel >= index);
            tasks.add(&self.plan.step(k, row, col).tasks);
            tasks.ops.push(Op::Await { panel: index });
            tasks.ops.push(Op::EndStep);
        }
        tasks.ops
    }
}

impl Tasks<'_> {
    fn add(&mut self, tasks: &[Task]) {
        for task in tasks {
            match task {
                Task::Fact(shape) => self.fact(shape, self.threads()),
                Task::Lbcast(shape) => self.lbcast(shape),
                Task::RsStart { panel, section } => self.start(*panel, section),
                Task::RsWait { panel, part } => self.wait(*panel, *part),
                Task::Update { panel, section, beside, .. } => self.update(*panel, section, beside),
            }
        }
    }

    /// Number in the skeleton of panel `k`.
    fn index(&self, k: usize) -> usize {
        k + self.step.0 - self.step.1
    }

    fn seconds(&self, s: f64) -> f64 {
        s * self.weight * self.maker.shared
    }

    fn threads(&self) -> usize {
        self.maker.candidate.engine.threads.max(1)
    }

    fn fact(&mut self, shape: &PanelShape, threads: usize) {
        let (panel, weight) = (self.index(shape.k), self.weight * self.maker.shared);
        let &PanelShape { mp, jb, top, .. } = shape;
        self.ops.push(Op::Fact { panel, mp, owns_diagonal: top > 0, jb, threads, weight });
    }

    fn lbcast(&mut self, shape: &PanelShape) {
        let (panel, weight) = (self.index(shape.k), self.weight);
        self.ops.push(Op::Lbcast { panel, words: shape.words() as f64, weight });
    }

    /// Local sizes of a section of `n` columns when panel `k` updates it.
    fn shape(&self, k: usize, n: usize) -> (Shape, PanelShape) {
        let panel = self.maker.plan.panel(k, self.row);
        (Shape { m: (panel.mp - panel.top) as f64, n, k: panel.jb as f64, threads: self.threads() }, panel)
    }

    fn exchange(&self, k: usize, n: usize) -> Exchange {
        let (shape, panel) = self.shape(k, n);
        let below = (self.maker.plan.layout.n() - panel.ia - panel.jb) as f64;
        let p = self.maker.candidate.hpl.p;
        let share = if below > 0.0 { shape.m / below } else { 1.0 / p as f64 };
        Exchange { shape, p, share, owns_diagonal: panel.top > 0, swap: self.maker.candidate.hpl.swap }
    }

    /// The rows of `n` columns that panel `k` moves, copied by `hands` threads.
    fn leaving(&self, k: usize, n: usize, hands: usize) -> Leaving {
        let exchange = self.exchange(k, n);
        let copy_s = self.seconds(dot(&exchange.start(hands), &self.maker.rates.exchanged));
        Leaving { copy_s, words: exchange.shape.k * n as f64, weight: self.weight }
    }

    fn start(&mut self, k: usize, section: &Section) {
        let (panel, part) = (self.index(k), section.part);
        let rows = self.leaving(k, section.cols.len(), self.threads());
        self.ops.extend([Op::Await { panel }, Op::RsStart { panel, part, rows }]);
        self.started.push((panel, part));
    }

    fn wait(&mut self, k: usize, part: Part) {
        let panel = self.index(k);
        // Where steps are left out, rows may be waited for that the step before did not send.
        if !self.started.contains(&(panel, part)) {
            let rows = Leaving { copy_s: 0.0, words: 0.0, weight: self.weight };
            self.ops.extend([Op::Await { panel }, Op::RsStart { panel, part, rows }]);
            self.started.push((panel, part));
        }
        self.ops.push(Op::RsWait { panel, part });
    }

    fn update(&mut self, k: usize, section: &Section, beside: &[Task]) {
        let panel = self.index(k);
        let rates = self.maker.rates;
        let (shape, updater) = self.shape(k, section.cols.len());
        if !self.packed.contains(&panel) {
            let s = self.seconds(dot(&shape.pack(), &rates.update));
            self.ops.extend([Op::Await { panel }, Op::Pack { s }]);
            self.packed.push(panel);
        }
        let rows_s = if self.maker.candidate.hpl.p == 1 {
            dot(&shape.rows_here(), &rates.here)
        } else {
            dot(&self.exchange(k, section.cols.len()).place(), &rates.exchanged)
        };
        let threads = shape.threads as f64;
        let update_s = self.seconds(dot(&shape.update(), &rates.update)) * threads;
        self.ops.push(Op::Fork);
        for task in beside {
            match task {
                Task::Fact(next) => self.fact(next, crew(shape.threads, next, &updater, shape.n)),
                _ => self.beside(task),
            }
        }
        self.ops.push(Op::Update { rows_s: self.seconds(rows_s) * threads, update_s });
    }

    fn beside(&mut self, task: &Task) {
        match task {
            Task::Lbcast(shape) => self.lbcast(shape),
            Task::RsStart { panel: k, section } => {
                let (panel, part) = (self.index(*k), section.part);
                let rows = self.leaving(*k, section.cols.len(), 1);
                self.ops.push(Op::EarlyRows { panel, part, rows });
                self.started.push((panel, part));
            }
            Task::Fact(_) | Task::RsWait { .. } | Task::Update { .. } => {
                unreachable!("the plan puts nothing else beside an update")
            }
        }
    }
}
