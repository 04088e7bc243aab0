//! The schedule as data: what each step of the factorization consists of, for each rank.
//!
//! The engine runs these values and a model may walk them; nothing here moves data. HPL's local names are
//! used throughout the engine: `jb` is the width of a panel, `ia` its first global row and column, `ii` the
//! first local row at or below it, `mp` the local rows from there on, and `nq` counts local columns.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::plan::layout::Layout;

/// The steps of one factorization of the N×(N+1) matrix `[A | b]`.
///
/// **Look-ahead** of `depth` d ≥ 1: in step k, which updates the matrix by panel k, panel k + d is factored and sets
/// out. Its columns first get all updates that are still missing, those by panels k to k + d − 1. A run, or a window of
/// one, starts with a prologue that factors the first d panels.
///
/// **Split update**: the last `split` of a rank's columns are its right section, a fixed width; the left section is
/// what the trailing matrix has before it, and vanishes first. While one section is updated, the rows of the other
/// travel: those of the right section during the update of the left; the next panel is factored, and the rows of the
/// left section that *it* moves travel, during the update of the right [rocHPL, section III.C].
///
/// **Strips**: without a split, the rows of the last section may travel strip by strip, each right before its update, so
/// that a place is still in the cache when its new row comes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who owns what.
    pub layout: Layout,
    /// Look-ahead: panels factored before the update that precedes them is complete.
    pub depth: usize,
    /// Share of a rank's columns in the right section; 0 for no split. Without effect at P = 1, where no rows travel.
    pub split: f64,
    /// Columns of a strip; `None` for all at once, as models walk it. Without effect at P = 1 and with a split.
    pub strip: Option<usize>,
}

/// Size and owners of one panel, as seen from one process row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelShape {
    /// Index of the panel, from 0.
    pub k: usize,
    /// First global row and column.
    pub ia: usize,
    /// Columns, at least 1.
    pub jb: usize,
    /// Process row that owns the diagonal block.
    pub row: usize,
    /// Process column that owns the panel.
    pub col: usize,
    /// First local row at or below `ia`.
    pub ii: usize,
    /// Local rows from `ii` on.
    pub mp: usize,
    /// Local rows of the diagonal block: `jb` in the process row that owns it, else 0.
    pub diag_rows: usize,
}

impl PanelShape {
    /// Length of the panel's message in doubles: L, L1, pivots and info.
    pub fn words(&self) -> usize {
        self.mp * self.jb + self.jb * self.jb + self.jb + 1
    }
}

/// Which part of the local trailing columns a task works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The columns of the panel that is factored next.
    LookAhead,
    /// With the split update, the columns before the right section. Their rows are exchanged together with those of
    /// the look-ahead columns.
    Left,
    /// All others.
    Rest,
}

/// Local trailing columns that are exchanged or updated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Which part.
    pub part: Part,
    /// Local column indices, not empty.
    pub cols: Range<usize>,
}

/// One piece of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Factorization of a panel by its process column.
    Fact(PanelShape),
    /// The panel sets out along the process rows. Who needs it later waits then.
    Lbcast(PanelShape),
    /// The rows of a section that panel `panel` moves set out along the process column. Only at P > 1.
    RsStart {
        /// The panel whose pivots say which.
        panel: usize,
        /// The columns.
        section: Section,
        /// Columns of U: those of the section, or of all that it is a strip of. SWAP mix compares its threshold with them,
        /// as `HPL_pdupdate` does with its columns.
        u_cols: usize,
    },
    /// The rows of a section are all here.
    RsWait {
        /// As in [`Task::RsStart`].
        panel: usize,
        /// As in [`Task::RsStart`].
        part: Part,
    },
    /// [U; C] ← P·[U; C], U ← L1⁻¹ U, then C ← C − L2 U.
    Update {
        /// The panel with L1 and L2.
        panel: usize,
        /// The columns of U and C.
        section: Section,
        /// The exchange that brought their rows; it may span more columns.
        rows: Part,
        /// Whether L2 is packed first, once for all sections of the panel: where these have more columns than the panel
        /// that is factored next. If not, nothing is beside.
        packs: bool,
        /// Tasks meanwhile, each as soon as what it needs is there: a factorization, the first of them if there is one,
        /// by the [few threads](fact_threads), all else by the first thread. They join the update when these are done, or while
        /// they have to wait.
        beside: Vec<Task>,
    },
}

/// One step: everything that panel `panel` does to the matrix, and what look-ahead adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The panel whose update this is.
    pub panel: PanelShape,
    /// In order.
    pub tasks: Vec<Task>,
}

/// What a flop of a panel costs, counted as mp·jb², in flops of an update: one thread factors 8000×128 at a third of the
/// rate of its products, and helpers lose some time where they meet.
const PANEL_FLOP: f64 = 4.0;

/// Of the `threads` threads of a rank, those that factor `next` while the others update `cols` columns by `panel`, and then
/// join them: as few as end no later than the update does when all are busy all the time.
pub fn fact_threads(threads: usize, next: &PanelShape, panel: &PanelShape, cols: usize) -> usize {
    let fact = PANEL_FLOP * (next.mp * next.jb * next.jb) as f64;
    let update = 2.0 * (panel.mp - panel.diag_rows) as f64 * (panel.jb * cols) as f64;
    let share = fact / (fact + update).max(1.0);
    ((threads as f64 * share).ceil() as usize).clamp(1, threads.max(1))
}

impl Plan {
    /// Number of steps, one per panel.
    pub fn steps(&self) -> usize {
        self.layout.rows.blocks()
    }

    /// Panel `k` as seen from process row `row`.
    pub fn panel(&self, k: usize, row: usize) -> PanelShape {
        let (rows, cols) = (&self.layout.rows, &self.layout.cols);
        let Range { start: ia, end } = rows.block(k);
        let (owner, ii) = (rows.block_owner(k), rows.local_from(row, ia));
        PanelShape {
            k,
            ia,
            jb: end - ia,
            row: owner,
            col: cols.block_owner(k),
            ii,
            mp: rows.local_len(row) - ii,
            diag_rows: if row == owner { end - ia } else { 0 },
        }
    }

    /// What comes before step `first` when the run, or a window of it, begins there: the panels in flight at that
    /// moment are factored one after the other. Nothing without look-ahead.
    pub fn prologue(&self, first: usize, row: usize, col: usize) -> Vec<Task> {
        let ahead = first..self.steps().min(first + self.depth);
        let mut tasks: Vec<Task> = ahead
            .flat_map(|t| self.missing_updates(first..t, t, col).chain(self.fact_and_bcast(t, row, col)))
            .collect();
        tasks.extend(self.start_left_laswp(first, col));
        tasks
    }

    /// Step `k` of the rank in process row `row` and process column `col`.
    pub fn step(&self, k: usize, row: usize, col: usize) -> Step {
        let mut tasks = Vec::new();
        if self.depth == 0 {
            tasks.extend(self.fact_and_bcast(k, row, col));
        }
        let next = k + self.depth.max(1);
        let fact_and_bcast = (self.depth > 0 && next < self.steps()).then(|| self.fact_and_bcast(next, row, col));
        let fact_and_bcast = fact_and_bcast.into_iter().flatten();
        let left = self.left(k, col);
        let ahead = self.ahead(k, col);
        let right_section = ahead.end.max(left.end)..self.layout.cols.local_len(col);
        let split = !left.is_empty();
        if split {
            // At DEPTH 0 the panel has just come: nothing could set out earlier.
            if self.depth == 0 {
                tasks.extend(self.rows(k, Part::Left, ahead.start..left.end));
                tasks.extend(self.rows(k, Part::Rest, right_section.clone()));
            }
            tasks.push(Task::RsWait { panel: k, part: Part::Left });
        } else if !ahead.is_empty() {
            tasks.extend(self.exchange(k, Part::LookAhead, ahead.clone(), ahead.len()));
        }
        if !ahead.is_empty() {
            let rows = if split { Part::Left } else { Part::LookAhead };
            let packs = split || !right_section.is_empty();
            tasks.push(update(k, Part::LookAhead, ahead, rows, packs, Vec::new()));
            tasks.extend(self.missing_updates(k + 1..next, next, col));
        }
        if split {
            if self.depth > 0 {
                tasks.extend(self.rows(k, Part::Rest, right_section.clone()));
            }
            tasks.push(update(k, Part::Left, left, Part::Left, true, Vec::new()));
            tasks.push(Task::RsWait { panel: k, part: Part::Rest });
            // The factorization has the link to itself: its small messages would queue up behind rows.
            let early = if self.depth > 0 { self.start_left_laswp(k + 1, col) } else { None };
            let beside = fact_and_bcast.chain(early).collect();
            tasks.push(update(k, Part::Rest, right_section, Part::Rest, true, beside));
        } else if right_section.is_empty() {
            tasks.extend(fact_and_bcast);
        } else {
            let (u_cols, strips) = (right_section.len(), self.strips(right_section));
            let beside = std::iter::once(fact_and_bcast.collect()).chain(std::iter::repeat_with(Vec::new));
            for (strip, beside) in strips.zip(beside) {
                tasks.extend(self.exchange(k, Part::Rest, strip.clone(), u_cols));
                tasks.push(update(k, Part::Rest, strip, Part::Rest, true, beside));
            }
        }
        Step { panel: self.panel(k, row), tasks }
    }

    /// What makes one matrix of what is left before step `end`: all panels in flight but the last update the columns
    /// that none of them has looked ahead to.
    pub fn drain(&self, end: usize, col: usize) -> Vec<Task> {
        let cols = self.first_pending_col(end, col)..self.layout.cols.local_len(col);
        let panels = end..self.steps().min((end + self.depth).saturating_sub(1));
        let one = |k: usize| {
            // Those of the first panel may be under way already.
            let left = if k == end { self.left(k, col) } else { 0..0 };
            let middle = if left.is_empty() { cols.start } else { left.end };
            let mut tasks = Vec::new();
            if middle > cols.start {
                tasks.push(Task::RsWait { panel: k, part: Part::Left });
                tasks.push(update(k, Part::Left, cols.start..middle, Part::Left, true, Vec::new()));
            }
            if middle < cols.end {
                tasks.extend(self.exchange(k, Part::Rest, middle..cols.end, cols.end - middle));
                tasks.push(update(k, Part::Rest, middle..cols.end, Part::Rest, true, Vec::new()));
            }
            tasks
        };
        panels.flat_map(one).collect()
    }

    /// First local column that panel `k` has not updated when its step begins: those before it were looked ahead to.
    fn first_pending_col(&self, k: usize, col: usize) -> usize {
        let cols = &self.layout.cols;
        // Column N is b, which is nobody's panel.
        cols.local_from(col, self.layout.n().min((k + self.depth.max(1)) * cols.nb()))
    }

    /// Local columns of panel `t`, none elsewhere than in its process column.
    fn columns(&self, t: usize, col: usize) -> Range<usize> {
        let start = self.layout.cols.local_from(col, self.layout.rows.block(t).start);
        let jb = if self.layout.cols.block_owner(t) == col { self.layout.rows.block(t).len() } else { 0 };
        start..start + jb
    }

    /// Local columns that are updated first in step `k`: those of the panel that is factored in it.
    fn ahead(&self, k: usize, col: usize) -> Range<usize> {
        let (next, first_pending_col) = (k + self.depth, self.first_pending_col(k, col));
        if self.depth > 0 && next < self.steps() {
            self.columns(next, col)
        } else {
            first_pending_col..first_pending_col
        }
    }

    /// Local columns of the left section in step `k`; empty where there is none, or no rows travel.
    fn left(&self, k: usize, col: usize) -> Range<usize> {
        let start = self.ahead(k, col).end;
        let (len, nb) = (self.layout.cols.local_len(col), self.layout.cols.nb());
        // Whole blocks, as in [rocHPL].
        let right = ((len as f64 * (1.0 - self.split)) as usize) / nb * nb;
        let travels = self.layout.rows.procs() > 1 && self.split > 0.0;
        if travels && start < right && right < len { start..right } else { start..start }
    }

    /// The columns whose rows travel together.
    fn strips(&self, cols: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let travels = self.layout.rows.procs() > 1;
        let width = self.strip.filter(|_| travels).unwrap_or(cols.len()).max(1);
        cols.clone().step_by(width).map(move |first| first..cols.end.min(first + width))
    }

    /// The rows of the left section, look-ahead columns included, set out for panel `k` before its step.
    fn start_left_laswp(&self, k: usize, col: usize) -> Option<Task> {
        if self.depth == 0 || k >= self.steps() {
            return None;
        }
        let left = self.left(k, col);
        let cols = self.first_pending_col(k, col)..left.end;
        (!left.is_empty()).then(|| rs_start(k, Part::Left, cols.clone(), cols.len()))
    }

    /// The columns of panel `t` get the updates by `panels`, one after the other.
    fn missing_updates(&self, panels: Range<usize>, t: usize, col: usize) -> impl Iterator<Item = Task> {
        let cols = if t < self.steps() { self.columns(t, col) } else { 0..0 };
        let panels = if cols.is_empty() { 0..0 } else { panels };
        panels.flat_map(move |j| {
            let exchange = self.exchange(j, Part::LookAhead, cols.clone(), cols.len());
            exchange.chain([update(j, Part::LookAhead, cols.clone(), Part::LookAhead, false, Vec::new())])
        })
    }

    /// How panel `k` comes to a rank.
    fn fact_and_bcast(&self, k: usize, row: usize, col: usize) -> impl Iterator<Item = Task> + use<> {
        let panel = self.panel(k, row);
        let fact = (panel.col == col).then_some(Task::Fact(panel));
        fact.into_iter().chain([Task::Lbcast(panel)])
    }

    /// Rows of all columns of U set out, if there is where to.
    fn rows(&self, panel: usize, part: Part, cols: Range<usize>) -> Option<Task> {
        let u_cols = cols.len();
        (self.layout.rows.procs() > 1).then(|| rs_start(panel, part, cols, u_cols))
    }

    /// Rows of some of the `u_cols` columns of U set out and are waited for.
    fn exchange(
        &self,
        panel: usize,
        part: Part,
        cols: Range<usize>,
        u_cols: usize,
    ) -> impl Iterator<Item = Task> + use<> {
        let start = (self.layout.rows.procs() > 1).then(|| rs_start(panel, part, cols, u_cols));
        start.into_iter().flat_map(move |start| [start, Task::RsWait { panel, part }])
    }
}

fn rs_start(panel: usize, part: Part, cols: Range<usize>, u_cols: usize) -> Task {
    Task::RsStart { panel, section: Section { part, cols }, u_cols }
}

fn update(panel: usize, part: Part, cols: Range<usize>, rows: Part, packs: bool, beside: Vec<Task>) -> Task {
    Task::Update { panel, section: Section { part, cols }, rows, packs, beside }
}

#[cfg(test)]
mod tests;
