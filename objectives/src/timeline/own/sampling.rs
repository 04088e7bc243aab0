//! Which steps, process columns and process rows of a run are walked.
//!
//! Ranks that are alike are walked once: of equal process rows the one with the most rows counts, of many equal process
//! columns some that are spread over the row, of many steps some, each for an odd number of them around it. Where steps are left
//! out, the column with the most blocks stands for all that own none of the next panels. Unequal ranks are all walked.

use hpl::plan::layout::Layout;
use hpl::plan::{PanelShape, Plan};
use num_integer::lcm;
use space::Candidate;

/// How much of a run is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detail {
    /// Steps at least, or all where there are fewer.
    steps: usize,
    /// Process columns, where ranks are alike.
    columns: usize,
    /// Steps times columns up to which all steps are walked.
    whole: usize,
    /// Process rows that are walked one by one though they are alike; where there are more, one stands for all.
    rows: usize,
}

impl Detail {
    /// All steps on all ranks.
    pub(super) const EXACT: Self = Self { steps: usize::MAX, columns: usize::MAX, whole: 0, rows: usize::MAX };
    /// All steps, ranks that are alike once.
    pub(super) const ALL_STEPS: Self = Self { steps: usize::MAX, columns: 64, whole: 0, rows: 2 };
    /// For an answer that counts.
    pub(super) const FINE: Self = Self { steps: 64, columns: 64, whole: 1024, rows: 2 };
    /// For a first look at very many candidates.
    pub(super) const COARSE: Self = Self { steps: 14, columns: 6, whole: 64, rows: 1 };
}

/// Steps for each process column, so that every column has its turn as the owner of a panel early and late.
const TURNS: usize = 3;

/// What is walked of one run.
pub(super) struct Sampling {
    pub(super) plan: Plan,
    /// Each walked step: its panel, and how many steps it stands for.
    pub(super) steps: Vec<(usize, f64)>,
    /// Process columns.
    pub(super) columns: usize,
    /// Process rows that are walked one by one; of fewer than there are, the slowest counts.
    pub(super) rows: usize,
    /// Whether columns are taken by their distance from the owner of the panel, rather than by number.
    by_position: bool,
}

impl Sampling {
    /// What `detail` asks for of the run of `candidate` with its `layout`; `unequal` where its ranks are not equally fast.
    pub(super) fn new(candidate: &Candidate, layout: Layout, unequal: bool, detail: Detail) -> Self {
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let depth = hpl.depth.min(layout.rows.blocks());
        let plan = Plan { layout, depth, split: engine.split.get(), strip: None };
        let alike = !unequal && engine.weights.is_empty();
        let columns = if alike { detail.columns.max(depth + 3).min(hpl.q) } else { hpl.q };
        let rows = if alike && hpl.p > detail.rows { 1 } else { hpl.p };
        let turns = if alike { 1 } else { lcm(hpl.p, hpl.q) };
        let few = plan.steps().saturating_mul(columns) <= detail.whole;
        let kept = if few { plan.steps() } else { detail.steps.max(if alike { TURNS * columns } else { 1 }) };
        let steps = chosen(plan.steps(), depth, kept.max(1), turns);
        Self { plan, steps, columns, rows, by_position: alike }
    }

    /// The walked column that owns walked panel `index`; of panels beyond the last, too, which may still be in flight.
    pub(super) fn owner(&self, index: usize) -> usize {
        if self.by_position {
            return index % self.columns;
        }
        let beyond = (index + 1).saturating_sub(self.steps.len());
        let k = self.steps.get(index).or(self.steps.last()).map_or(0, |step| step.0 + beyond);
        self.plan.layout.cols.block_owner(k.min(self.plan.steps() - 1))
    }

    /// The process column that walked column `column` stands for when panel `k` is walked panel `index`.
    pub(super) fn column(&self, index: usize, k: usize, column: usize) -> usize {
        if !self.by_position {
            return column;
        }
        let q = self.plan.layout.cols.procs();
        let owner = self.plan.layout.cols.block_owner(k);
        let position = (column + self.columns - self.owner(index)) % self.columns;
        (owner + self.position(position)) % q
    }

    /// Distance from the owner of the panel of the column that is walked at this one: those that own the next panels are
    /// their own. Where steps are left out, the next one stands for all others: a column keeps its width until it owns a
    /// panel, and the widest, who own the next ones, set the pace. Else the others are spread.
    fn position(&self, walked: usize) -> usize {
        let (q, near) = (self.plan.layout.cols.procs(), self.plan.depth + 1);
        let all_steps = self.steps.len() == self.plan.steps();
        if walked <= near || (self.columns == q && all_steps) {
            return walked;
        }
        if !all_steps {
            return near;
        }
        near + (walked - near) * (q - 1 - near) / (self.columns - 1 - near)
    }

    /// The process rows that count for walked row `row` where panel `k` is factored or updates: of equal ones that of the
    /// diagonal block and the next, which has no fewer rows than any other.
    pub(super) fn rows_of(&self, k: usize, row: usize) -> [usize; 2] {
        let p = self.plan.layout.rows.procs();
        if self.rows == p {
            return [row; 2];
        }
        let owner = self.plan.layout.rows.block_owner(k);
        [owner, (owner + 1) % p]
    }

    /// Panel `k` as those rows see it.
    pub(super) fn shapes(&self, k: usize, row: usize) -> [PanelShape; 2] {
        self.rows_of(k, row).map(|row| self.plan.panel(k, row))
    }
}

/// The steps that are walked of `steps`, at least `kept` or all: (panel, number of steps that it stands for). The stride
/// keeps `turns`, and is odd, so that there is a middle step of as many.
fn chosen(steps: usize, depth: usize, kept: usize, turns: usize) -> Vec<(usize, f64)> {
    let turns = lcm(turns, 2);
    let stride = (steps / kept).saturating_sub(1) / turns * turns + 1;
    if stride <= depth.max(1) {
        return (0..steps).map(|k| (k, 1.0)).collect();
    }
    let one = |first: usize| {
        let count = stride.min(steps - first);
        ((first + stride / 2).min(steps - 1), count as f64)
    };
    (0..steps).step_by(stride).map(one).collect()
}
