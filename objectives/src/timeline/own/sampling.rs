//! The sample of steps, process columns and process rows of a run that is walked.
//!
//! Equal process rows are represented by the one with the most rows, many equal process columns by some that are spread
//! over the row, many steps by some, each for an odd number of steps around it. If steps are left out, the column with the
//! most blocks represents all columns that own none of the next panels. Unequal ranks are all walked.

use hpl::backend::host::kernels::SLAB_OF_COPIES;
use hpl::plan::layout::Layout;
use hpl::plan::{ColumnStrips, PanelShape, Plan};
use num_integer::lcm;
use space::{Candidate, DeviceChoice};

/// Size of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SampleSize {
    /// Minimum number of steps, or all if there are fewer.
    steps: usize,
    /// Maximum number of process columns if ranks are equal.
    columns: usize,
    /// Up to this number of steps times columns, all steps are walked.
    whole: usize,
    /// Up to this number, equal process rows are walked one by one; more are represented by one.
    rows: usize,
    /// Whether each strip of the columns is walked, or the first one and the others together: some thirty times fewer tasks.
    each_strip: bool,
}

impl SampleSize {
    /// All steps on all ranks.
    pub(super) const EXACT: Self =
        Self { steps: usize::MAX, columns: usize::MAX, whole: 0, rows: usize::MAX, each_strip: false };
    /// All tasks of the engine.
    pub(super) const EACH_STRIP: Self = Self { each_strip: true, ..Self::EXACT };
    /// All steps, with sampled process columns and rows.
    pub(super) const ALL_STEPS: Self = Self { steps: usize::MAX, columns: 64, whole: 0, rows: 2, each_strip: false };
    /// For a final prediction.
    pub(super) const FINE: Self = Self { steps: 64, columns: 64, whole: 1024, rows: 2, each_strip: false };
    /// For a first prediction of very many candidates.
    pub(super) const COARSE: Self = Self { steps: 14, columns: 6, whole: 64, rows: 1, each_strip: false };

    /// Maximum number of equal ranks that are walked.
    pub(super) fn ranks(self) -> usize {
        self.columns.saturating_mul(self.rows)
    }
}

/// Steps per process column, so that every column is the owner of an early and of a late panel.
const TURNS: usize = 3;

/// The sample of one run.
pub(super) struct Sampling {
    pub(super) plan: Plan,
    /// Each walked step: its panel, and the number of steps that it represents.
    pub(super) steps: Vec<(usize, f64)>,
    /// Number of walked process columns.
    pub(super) columns: usize,
    /// Number of walked process rows; a row that represents several has the time of the slowest.
    pub(super) rows: usize,
    /// Whether columns are selected by their distance from the owner of the panel, otherwise by number.
    by_position: bool,
}

impl Sampling {
    /// The sample of size `detail` of the run of `candidate` with its `layout`; `unequal`: whether its ranks differ in speed;
    /// `in_process`: whether they are threads of one process.
    pub(super) fn new(
        candidate: &Candidate,
        layout: Layout,
        unequal: bool,
        in_process: bool,
        detail: SampleSize,
    ) -> Self {
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let depth = hpl.depth.min(layout.rows.blocks());
        // As the engine decides it, for the slabs of the built-in kernels.
        let by_strips = in_process && engine.threads <= 1 && engine.device == DeviceChoice::None;
        let strips = match (by_strips, detail.each_strip) {
            (false, _) => ColumnStrips::Whole,
            (true, true) => ColumnStrips::Each(SLAB_OF_COPIES),
            (true, false) => ColumnStrips::FirstAndRest(SLAB_OF_COPIES),
        };
        let plan = Plan { layout, depth, split: engine.split.get(), strips };
        let alike = !unequal && engine.weights.is_empty();
        let columns = if alike { detail.columns.max(depth + 3).min(hpl.q) } else { hpl.q };
        let rows = if alike && hpl.p > detail.rows { 1 } else { hpl.p };
        let turns = if alike { 1 } else { lcm(hpl.p, hpl.q) };
        let few = plan.steps().saturating_mul(columns) <= detail.whole;
        let kept = if few { plan.steps() } else { detail.steps.max(if alike { TURNS * columns } else { 1 }) };
        let steps = chosen(plan.steps(), depth, kept.max(1), turns);
        Self { plan, steps, columns, rows, by_position: alike }
    }

    /// The walked column that owns walked panel `index`; also for panels after the last, which may still be in flight.
    pub(super) fn owner(&self, index: usize) -> usize {
        if self.by_position {
            return index % self.columns;
        }
        let beyond = (index + 1).saturating_sub(self.steps.len());
        let k = self.steps.get(index).or(self.steps.last()).map_or(0, |step| step.0 + beyond);
        self.plan.layout.cols.block_owner(k.min(self.plan.steps() - 1))
    }

    /// The process column that walked column `column` represents when panel `k` is walked panel `index`.
    pub(super) fn column(&self, index: usize, k: usize, column: usize) -> usize {
        if !self.by_position {
            return column;
        }
        let q = self.plan.layout.cols.procs();
        let owner = self.plan.layout.cols.block_owner(k);
        let position = (column + self.columns - self.owner(index)) % self.columns;
        (owner + self.position(position)) % q
    }

    /// Distance from the owner of the panel to the column that is walked at position `walked`. The owners of the next panels
    /// represent themselves. If steps are left out, the next owner after them represents all others: a column keeps its width
    /// until it owns a panel, and the step takes as long as on the widest columns, which own the next panels. Otherwise the
    /// others are spread over the row.
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

    /// The process rows that represent walked row `row` for panel `k`: of equal rows the owner of the diagonal block and the
    /// next one, which has the most rows.
    pub(super) fn rows_of(&self, k: usize, row: usize) -> [usize; 2] {
        let p = self.plan.layout.rows.procs();
        if self.rows == p {
            return [row; 2];
        }
        let owner = self.plan.layout.rows.block_owner(k);
        [owner, (owner + 1) % p]
    }

    /// Local shapes of panel `k` on these rows.
    pub(super) fn shapes(&self, k: usize, row: usize) -> [PanelShape; 2] {
        self.rows_of(k, row).map(|row| self.plan.panel(k, row))
    }
}

/// The walked ones of `steps` steps, at least `kept` or all: (panel, number of steps that it represents). The stride is 1 plus
/// a multiple of `turns`, so that every owner is sampled, and odd, so that it has a middle step.
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
