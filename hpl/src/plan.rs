//! The schedule as data: what each step of the factorization consists of, for each rank.
//!
//! The engine runs these values and a model may walk them; nothing here moves data. HPL's local names are
//! used throughout the engine: `jb` is the width of a panel, `ia` its first global row and column, `ii` the
//! first local row at or below it, `mp` the local rows from there on, and `nq` counts local columns.

use std::ops::Range;

use crate::layout::Layout;

/// The steps of one factorization of the N×(N+1) matrix `[A | b]`.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who owns what.
    pub layout: Layout,
    /// Look-ahead: panels factored before the update that precedes them is complete; 0 or 1.
    pub depth: usize,
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
    pub top: usize,
}

impl PanelShape {
    /// Length of the panel's message in doubles: L, L1, pivots and info.
    pub fn words(&self) -> usize {
        self.mp * self.jb + self.jb * self.jb + self.jb + 1
    }
}

/// Which part of the local trailing columns a task works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The columns of the next panel.
    LookAhead,
    /// All others.
    Rest,
}

/// Local trailing columns that are exchanged and updated together.
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
    /// The panel travels along the process rows.
    Lbcast(PanelShape),
    /// Pivot rows are exchanged and U is gathered, along the process column.
    Rs(Section),
    /// U ← L1⁻¹ U, then C ← C − L2 U.
    Update {
        /// The columns of U and C.
        section: Section,
        /// Tasks of the first thread meanwhile. It joins the update when they are done.
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
            top: if row == owner { end - ia } else { 0 },
        }
    }

    /// Step `k` of the rank in process row `row` and process column `col`.
    pub fn step(&self, k: usize, row: usize, col: usize) -> Step {
        let panel = self.panel(k, row);
        let mut tasks = Vec::new();
        if self.depth == 0 || k == 0 {
            tasks.extend(arrival(panel, col));
        }
        let next = (self.depth > 0 && k + 1 < self.steps()).then(|| self.panel(k + 1, row));
        let trailing = self.trailing(&panel, col);
        let mut ahead = trailing.start..trailing.start;
        if let Some(next) = next.filter(|next| next.col == col) {
            ahead.end += next.jb;
        }
        let rest = ahead.end..trailing.end;
        if !ahead.is_empty() {
            let section = Section { part: Part::LookAhead, cols: ahead };
            tasks.extend([Task::Rs(section.clone()), Task::Update { section, beside: Vec::new() }]);
        }
        let beside: Vec<Task> = next.into_iter().flat_map(|next| arrival(next, col)).collect();
        if rest.is_empty() {
            tasks.extend(beside);
        } else {
            let section = Section { part: Part::Rest, cols: rest };
            tasks.extend([Task::Rs(section.clone()), Task::Update { section, beside }]);
        }
        Step { panel, tasks }
    }

    /// Local columns right of a panel.
    fn trailing(&self, panel: &PanelShape, col: usize) -> Range<usize> {
        let cols = &self.layout.cols;
        cols.local_from(col, panel.ia + panel.jb)..cols.local_len(col)
    }
}

/// How a panel comes to a rank of process column `col`.
fn arrival(panel: PanelShape, col: usize) -> Vec<Task> {
    let fact = (panel.col == col).then_some(Task::Fact(panel));
    fact.into_iter().chain([Task::Lbcast(panel)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flatten(tasks: &[Task]) -> Vec<&Task> {
        let mut all = Vec::new();
        for task in tasks {
            all.push(task);
            if let Task::Update { beside, .. } = task {
                all.extend(flatten(beside));
            }
        }
        all
    }

    /// Each panel is factored once by each rank of its process column and broadcast once to everybody; each
    /// trailing column is exchanged and then updated once per step, and a panel is factored after the
    /// updates before it.
    #[test]
    fn steps_cover_the_matrix_once() {
        for (n, nb, p, q) in [(1, 1, 1, 1), (7, 3, 2, 2), (9, 3, 1, 3), (64, 8, 3, 2), (5, 8, 2, 2), (40, 7, 1, 5)] {
            for depth in [0, 1] {
                let plan = Plan { layout: Layout::block_cyclic(n, nb, p, q), depth };
                for (row, col) in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                    check(&plan, row, col);
                }
            }
        }
    }

    fn check(plan: &Plan, row: usize, col: usize) {
        let cols = &plan.layout.cols;
        let (mut factored, mut sent) = (Vec::new(), Vec::new());
        // Updates that each local column has seen.
        let mut updates = vec![0; cols.local_len(col)];
        for k in 0..plan.steps() {
            let step = plan.step(k, row, col);
            let mut exchanged = Vec::new();
            for task in flatten(&step.tasks) {
                match task {
                    Task::Fact(panel) => {
                        let first = cols.local(panel.ia);
                        assert!(updates[first..first + panel.jb].iter().all(|&seen| seen == panel.k));
                        factored.push(panel.k);
                    }
                    Task::Lbcast(panel) => sent.push(panel.k),
                    Task::Rs(section) => exchanged.extend(section.cols.clone()),
                    Task::Update { section, .. } => {
                        assert!(sent.contains(&k) && section.cols.clone().all(|c| exchanged.contains(&c)));
                        section.cols.clone().for_each(|c| updates[c] += 1);
                    }
                }
            }
            let right = cols.local_from(col, step.panel.ia + step.panel.jb);
            assert!(exchanged.iter().copied().eq(right..cols.local_len(col)));
        }
        assert!(sent.into_iter().eq(0..plan.steps()));
        assert!(factored.into_iter().eq((0..plan.steps()).filter(|&k| cols.block_owner(k) == col)));
        for (c, &seen) in updates.iter().enumerate() {
            // Column N is b, which every panel updates.
            let global = cols.global(col, c);
            assert_eq!(seen, if global < plan.layout.n() { global / cols.nb() } else { plan.steps() });
        }
    }

    #[test]
    fn rows_of_a_panel_sum_to_what_is_left() {
        let plan = Plan { layout: Layout::block_cyclic(29, 4, 3, 2), depth: 1 };
        for k in 0..plan.steps() {
            let panels: Vec<_> = (0..3).map(|row| plan.panel(k, row)).collect();
            assert_eq!(panels.iter().map(|panel| panel.mp).sum::<usize>(), 29 - 4 * k);
            assert_eq!(panels.iter().map(|panel| panel.top).sum::<usize>(), panels[0].jb);
        }
    }
}
