//! The sample of steps, process columns and process rows of a run that is walked.
//!
//! Equal process rows are represented by the one with the most rows, many equal process columns by some that are spread
//! over the row, many steps by some, each for an odd number of steps around it. If steps are left out, the column with the
//! most blocks represents all columns that own none of the next panels. Of unequal ranks all columns are walked, and of each kind
//! of process rows one.

use std::collections::HashMap;

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
    /// Up to this number, process rows are walked one by one; of more, equal ones are represented by one.
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
}

/// Steps per process column, so that every column is the owner of an early and of a late panel.
const STEPS_PER_COLUMN: usize = 3;

/// The sample of one run.
pub(super) struct Sampling {
    pub(super) plan: Plan,
    /// Each walked step: its panel, and the number of steps that it represents.
    pub(super) steps: Vec<(usize, f64)>,
    /// Number of walked process columns.
    pub(super) columns: usize,
    /// For each walked process row those that it represents, rising; it has the time of the slowest.
    classes: Vec<Vec<usize>>,
    /// For each process column a number that those have in common whose walked rows are equally fast; none where all ranks are.
    kinds: Vec<usize>,
    /// Whether rows are block-cyclic, not dealt by weights.
    cyclic_rows: bool,
    /// Whether columns are selected by their distance from the owner of the panel, otherwise by number.
    by_position: bool,
}

impl Sampling {
    /// The sample of size `detail` of the run of `candidate` with its `layout`; `slowness`: factor on the computing time of each rank by
    /// process row, then column, none where they are equal; `in_process`: whether they are threads of one process.
    pub(super) fn new(
        candidate: &Candidate,
        layout: Layout,
        slowness: &[f64],
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
        let alike = slowness.is_empty() && engine.weights.is_empty();
        let columns = if alike { detail.columns.max(depth + 3).min(hpl.q) } else { hpl.q };
        let classes = match hpl.p > detail.rows {
            true => classes(candidate, slowness),
            false => (0..hpl.p).map(|row| vec![row]).collect(),
        };
        let cycle = if alike { 1 } else { lcm(hpl.p, hpl.q) };
        let few = plan.steps().saturating_mul(columns) <= detail.whole;
        let kept =
            if few { plan.steps() } else { detail.steps.max(if alike { STEPS_PER_COLUMN * columns } else { 1 }) };
        let steps = chosen(plan.steps(), depth, kept.max(1), cycle);
        let kinds = numbered((0..hpl.q).filter(|_| !slowness.is_empty()).map(|column| {
            let fast = |class: &Vec<usize>| slowness[class[0] * hpl.q + column].to_bits();
            classes.iter().map(fast).collect()
        }));
        Self { plan, steps, columns, classes, kinds, cyclic_rows: engine.weights.rows.is_empty(), by_position: alike }
    }

    /// Number of walked process rows.
    pub(super) fn rows(&self) -> usize {
        self.classes.len()
    }

    /// Number of process rows that walked row `row` represents.
    pub(super) fn count(&self, row: usize) -> f64 {
        self.classes[row].len() as f64
    }

    /// A number that process columns with equally fast rows have in common.
    pub(super) fn kind(&self, column: usize) -> usize {
        self.kinds.get(column).copied().unwrap_or(0)
    }

    /// One of the process rows that walked row `row` represents.
    pub(super) fn one_of(&self, row: usize) -> usize {
        self.classes[row][0]
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

    /// The process rows that represent walked row `row` for panel `k`: of equal rows the owner of the diagonal block, or the next one after
    /// it, and the one that has the most rows below.
    pub(super) fn rows_of(&self, k: usize, row: usize) -> [usize; 2] {
        let class = &self.classes[row];
        if let [only] = class[..] {
            return [only; 2];
        }
        let rows = &self.plan.layout.rows;
        let owner = rows.block_owner(k);
        let at = class.partition_point(|&row| row < owner) % class.len();
        let most = if self.cyclic_rows {
            class[(at + usize::from(class[at] == owner)) % class.len()]
        } else {
            let below = |row: usize| rows.local_len(row) - rows.local_from(row, rows.len().min((k + 1) * rows.nb()));
            class.iter().copied().max_by_key(|&row| below(row)).unwrap_or(class[at])
        };
        [class[at], most]
    }

    /// Local shapes of panel `k` on these rows.
    pub(super) fn shapes(&self, k: usize, row: usize) -> [PanelShape; 2] {
        self.rows_of(k, row).map(|row| self.plan.panel(k, row))
    }
}

/// The process rows of `candidate` that have equal shares, and equal `slowness` in each column.
fn classes(candidate: &Candidate, slowness: &[f64]) -> Vec<Vec<usize>> {
    let Candidate { hpl, engine } = candidate;
    if slowness.is_empty() && engine.weights.rows.is_empty() {
        return vec![(0..hpl.p).collect()];
    }
    let kinds = numbered((0..hpl.p).map(|row| {
        let share = engine.weights.rows.get(row).map(|share| share.get());
        let speeds = slowness.chunks(hpl.q).nth(row).unwrap_or_default();
        speeds.iter().copied().chain(share).map(f64::to_bits).collect()
    }));
    let mut classes = vec![Vec::new(); kinds.iter().max().map_or(0, |last| last + 1)];
    for (row, kind) in kinds.into_iter().enumerate() {
        classes[kind].push(row);
    }
    classes
}

/// A number for each key, the same for equal ones.
fn numbered(keys: impl Iterator<Item = Vec<u64>>) -> Vec<usize> {
    let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
    keys.map(|key| {
        let next = known.len();
        *known.entry(key).or_insert(next)
    })
    .collect()
}

/// The walked ones of `steps` steps, at least `kept` or all: (panel, number of steps that it represents). The stride is 1 plus
/// a multiple of `cycle`, so that every owner is sampled, and odd, so that it has a middle step.
fn chosen(steps: usize, depth: usize, kept: usize, cycle: usize) -> Vec<(usize, f64)> {
    let cycle = lcm(cycle, 2);
    let stride = (steps / kept).saturating_sub(1) / cycle * cycle + 1;
    if stride <= depth.max(1) {
        return (0..steps).map(|k| (k, 1.0)).collect();
    }
    let one = |first: usize| {
        let count = stride.min(steps - first);
        ((first + stride / 2).min(steps - 1), count as f64)
    };
    (0..steps).step_by(stride).map(one).collect()
}

#[cfg(test)]
mod tests;
