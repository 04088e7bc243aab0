//! The schedule as data: the tasks of each step of the factorization, for each rank.
//!
//! The engine executes these values and models iterate over them; this module moves no data. HPL's local names are
//! used throughout the engine: `jb` is the number of columns of a panel, `ia` its first global row and column, `ii` the
//! first local row at or below `ia`, `mp` the local rows from `ii` on, and `nq` counts local columns.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::plan::layout::Layout;

/// The steps of one factorization of the N×(N+1) matrix `[A | b]`.
///
/// **Look-ahead** of `depth` d ≥ 1: in step k, which updates the matrix by panel k, panel k + d is factored and its
/// broadcast starts. Its columns first get the missing updates, by panels k to k + d − 1. A run, or a window of a run,
/// starts with a prologue that factors the first d panels.
///
/// **Split update**: the last fraction `split` of a rank's columns is its right section, of fixed width; the left section is
/// the part of the trailing matrix before it, which shrinks to nothing first. The row swap of one section overlaps the
/// update of the other: during the update of the left section, the rows of the right section are swapped; during the update
/// of the right section, the next panel is factored and *its* row swap of the left section starts [rocHPL, section III.C].
///
/// **Strips**: without a split, the rows of the last section may be swapped strip by strip, each right before its update, so
/// that the columns of a strip stay in cache between the row swap and the update. The next panel is factored during the update of
/// the first strip.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Owners of the blocks.
    pub layout: Layout,
    /// Look-ahead: number of panels factored ahead of the update.
    pub depth: usize,
    /// Fraction of a rank's columns in the right section; 0 for no split. Without effect at P = 1, which has no row exchange.
    pub split: f64,
    /// Strips of the last section. Without effect at P = 1 and with a split.
    pub strips: ColumnStrips,
}

/// The strips in which the rows of a section are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnStrips {
    /// All columns at once.
    Whole,
    /// Strips of this many columns, the last one narrower.
    Each(usize),
    /// A strip of this many columns, then all others at once: what a model walks for [`Each`](Self::Each). Between the strips
    /// after the first there are no other tasks.
    FirstAndRest(usize),
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
    /// All other columns.
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

/// One task of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Factorization of a panel by its process column.
    Fact(PanelShape),
    /// Starts the broadcast of a panel along the process rows. A later task that needs the panel waits for it.
    Lbcast(PanelShape),
    /// Starts the row exchange of a section by the pivots of panel `panel` along the process column. Only at P > 1.
    RsStart {
        /// The panel with the pivots.
        panel: usize,
        /// The columns.
        section: Section,
        /// Columns of U: those of the section, or for a strip those of the section it is a part of. SWAP mix compares its
        /// threshold with them, as `HPL_pdupdate` does with its columns.
        u_cols: usize,
    },
    /// Waits until the row exchange of a section is complete.
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
        /// The section of the row exchange that these columns were part of; it may have more columns.
        rows: Part,
        /// Whether L2 is packed first, once for all sections of the panel: where these have more columns than the panel
        /// that is factored next. If false, `overlapped` is empty.
        packs: bool,
        /// Tasks executed during the update, each as soon as it can start: a factorization, always the first of them, by
        /// [some of the threads](fact_threads), the others by the first thread. These threads join the update when their
        /// tasks are done, or while they wait for messages.
        overlapped: Vec<Task>,
    },
}

/// One step: the update of the matrix by panel `panel`, and the look-ahead tasks done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The panel of the update.
    pub panel: PanelShape,
    /// The tasks in order.
    pub tasks: Vec<Task>,
}

/// Cost of one flop of a panel factorization, counted as mp·jb² flops, in flops of an update: one thread factors 8000×128 at
/// a third of its DGEMM rate, and the barriers between the threads of a factorization cost some time.
const PANEL_FLOP: f64 = 4.0;

/// Number of threads, of the `threads` of a rank, that factor `next` while the others update `cols` columns by `panel`; they
/// join the update afterwards. The smallest number with which the factorization ends no later than a perfectly balanced
/// update.
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

    /// Tasks before step `first` when the run, or a window of it, begins there: factors the panels that are in flight at
    /// that step, one after the other. Empty without look-ahead.
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
            // At DEPTH 0 the panel has just been broadcast: this is the earliest start of its row exchange.
            if self.depth == 0 {
                tasks.extend(self.start_laswp(k, Part::Left, ahead.start..left.end));
                tasks.extend(self.start_laswp(k, Part::Rest, right_section.clone()));
            }
            tasks.push(Task::RsWait { panel: k, part: Part::Left });
        } else if !ahead.is_empty() {
            tasks.extend(self.laswp(k, Part::LookAhead, ahead.clone(), ahead.len()));
        }
        if !ahead.is_empty() {
            let rows = if split { Part::Left } else { Part::LookAhead };
            let packs = split || !right_section.is_empty();
            tasks.push(update(k, Part::LookAhead, ahead, rows, packs, Vec::new()));
            tasks.extend(self.missing_updates(k + 1..next, next, col));
        }
        if split {
            if self.depth > 0 {
                tasks.extend(self.start_laswp(k, Part::Rest, right_section.clone()));
            }
            tasks.push(update(k, Part::Left, left, Part::Left, true, Vec::new()));
            tasks.push(Task::RsWait { panel: k, part: Part::Rest });
            // The row exchange starts after the factorization, whose small messages would queue behind the rows.
            let early = if self.depth > 0 { self.start_left_laswp(k + 1, col) } else { None };
            let overlapped = fact_and_bcast.chain(early).collect();
            tasks.push(update(k, Part::Rest, right_section, Part::Rest, true, overlapped));
        } else if right_section.is_empty() {
            tasks.extend(fact_and_bcast);
        } else {
            let (u_cols, strips) = (right_section.len(), self.strips(right_section));
            let overlapped = std::iter::once(fact_and_bcast.collect()).chain(std::iter::repeat_with(Vec::new));
            for (strip, overlapped) in strips.zip(overlapped) {
                tasks.extend(self.laswp(k, Part::Rest, strip.clone(), u_cols));
                tasks.push(update(k, Part::Rest, strip, Part::Rest, true, overlapped));
            }
        }
        Step { panel: self.panel(k, row), tasks }
    }

    /// Tasks that bring the trailing matrix to one common state before step `end`: each panel in flight, except the last
    /// unless it is asked for, updates the columns that have only the updates of the steps before `end`.
    pub fn drain(&self, end: usize, col: usize, last: bool) -> Vec<Task> {
        let cols = self.first_pending_col(end, col)..self.layout.cols.local_len(col);
        let panels = end..self.steps().min((end + self.depth).saturating_sub(usize::from(!last)));
        let one = |k: usize| {
            // The row exchange of the first panel's left section may be in flight already.
            let left = if k == end { self.left(k, col) } else { 0..0 };
            let middle = if left.is_empty() { cols.start } else { left.end };
            let mut tasks = Vec::new();
            if middle > cols.start {
                tasks.push(Task::RsWait { panel: k, part: Part::Left });
                tasks.push(update(k, Part::Left, cols.start..middle, Part::Left, true, Vec::new()));
            }
            if middle < cols.end {
                tasks.extend(self.laswp(k, Part::Rest, middle..cols.end, cols.end - middle));
                tasks.push(update(k, Part::Rest, middle..cols.end, Part::Rest, true, Vec::new()));
            }
            tasks
        };
        panels.flat_map(one).collect()
    }

    /// First local column that panel `k` has not updated when its step begins: look-ahead has updated the columns before it.
    fn first_pending_col(&self, k: usize, col: usize) -> usize {
        let cols = &self.layout.cols;
        // Column N is b, which belongs to no panel.
        cols.local_from(col, self.layout.n().min((k + self.depth.max(1)) * cols.nb()))
    }

    /// Local columns of panel `t`; empty outside its process column.
    fn panel_cols(&self, t: usize, col: usize) -> Range<usize> {
        let start = self.layout.cols.local_from(col, self.layout.rows.block(t).start);
        let jb = if self.layout.cols.block_owner(t) == col { self.layout.rows.block(t).len() } else { 0 };
        start..start + jb
    }

    /// Local columns that are updated first in step `k`: those of the panel that is factored in it.
    fn ahead(&self, k: usize, col: usize) -> Range<usize> {
        let (next, first_pending_col) = (k + self.depth, self.first_pending_col(k, col));
        if self.depth > 0 && next < self.steps() {
            self.panel_cols(next, col)
        } else {
            first_pending_col..first_pending_col
        }
    }

    /// Local columns of the left section in step `k`; empty without a split, at P = 1, or once the section is used up.
    fn left(&self, k: usize, col: usize) -> Range<usize> {
        let start = self.ahead(k, col).end;
        let (len, nb) = (self.layout.cols.local_len(col), self.layout.cols.nb());
        // Whole blocks, as in [rocHPL].
        let right = ((len as f64 * (1.0 - self.split)) as usize) / nb * nb;
        let exchanges_rows = self.layout.rows.procs() > 1 && self.split > 0.0;
        if exchanges_rows && start < right && right < len { start..right } else { start..start }
    }

    /// The columns in strips: the rows of each strip are exchanged together.
    fn strips(&self, cols: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let exchanges_rows = self.layout.rows.procs() > 1;
        let (first, other) = match self.strips {
            ColumnStrips::Each(width) if exchanges_rows => (width.max(1), width.max(1)),
            ColumnStrips::FirstAndRest(width) if exchanges_rows => (width.max(1), cols.len().max(1)),
            _ => (cols.len().max(1), 1),
        };
        let Range { start, end } = cols;
        let from = move |start: usize, width: usize| (start < end).then(|| start..end.min(start + width));
        std::iter::successors(from(start, first), move |strip| from(strip.end, other))
    }

    /// Starts the row exchange of the left section, look-ahead columns included, for panel `k` before its step.
    fn start_left_laswp(&self, k: usize, col: usize) -> Option<Task> {
        if self.depth == 0 || k >= self.steps() {
            return None;
        }
        let left = self.left(k, col);
        let cols = self.first_pending_col(k, col)..left.end;
        (!left.is_empty()).then(|| rs_start(k, Part::Left, cols.clone(), cols.len()))
    }

    /// Updates of the columns of panel `t` by `panels`, one after the other.
    fn missing_updates(&self, panels: Range<usize>, t: usize, col: usize) -> impl Iterator<Item = Task> {
        let cols = if t < self.steps() { self.panel_cols(t, col) } else { 0..0 };
        let panels = if cols.is_empty() { 0..0 } else { panels };
        panels.flat_map(move |j| {
            let laswp = self.laswp(j, Part::LookAhead, cols.clone(), cols.len());
            laswp.chain([update(j, Part::LookAhead, cols.clone(), Part::LookAhead, false, Vec::new())])
        })
    }

    /// Factorization of panel `k` in its process column, and its broadcast on all ranks.
    fn fact_and_bcast(&self, k: usize, row: usize, col: usize) -> impl Iterator<Item = Task> + use<> {
        let panel = self.panel(k, row);
        let fact = (panel.col == col).then_some(Task::Fact(panel));
        fact.into_iter().chain([Task::Lbcast(panel)])
    }

    /// Starts the row exchange of all columns of U; none at P = 1.
    fn start_laswp(&self, panel: usize, part: Part, cols: Range<usize>) -> Option<Task> {
        let u_cols = cols.len();
        (self.layout.rows.procs() > 1).then(|| rs_start(panel, part, cols, u_cols))
    }

    /// Starts the row exchange of some of the `u_cols` columns of U and waits for it; empty at P = 1.
    fn laswp(&self, panel: usize, part: Part, cols: Range<usize>, u_cols: usize) -> impl Iterator<Item = Task> + use<> {
        let start = (self.layout.rows.procs() > 1).then(|| rs_start(panel, part, cols, u_cols));
        start.into_iter().flat_map(move |start| [start, Task::RsWait { panel, part }])
    }
}

fn rs_start(panel: usize, part: Part, cols: Range<usize>, u_cols: usize) -> Task {
    Task::RsStart { panel, section: Section { part, cols }, u_cols }
}

fn update(panel: usize, part: Part, cols: Range<usize>, rows: Part, packs: bool, overlapped: Vec<Task>) -> Task {
    Task::Update { panel, section: Section { part, cols }, rows, packs, overlapped }
}

#[cfg(test)]
mod tests;
