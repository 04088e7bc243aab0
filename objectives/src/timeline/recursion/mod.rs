//! The column recursion: one clock per process column, step after step.
//!
//! A process column is taken as one: its rows meet in every row exchange. Between columns the clocks drift, as ranks
//! do: each waits for its panel only, and for its turn on the node's link, which serves the row exchanges of
//! the node's columns in the order in which they become ready. O(steps × Q); nothing is allocated in a step, but with row
//! weights.
//!
//! A look-ahead deeper than 1 is computed as 1. PFACT, RFACT, NBMIN, NDIV, L1, U, EQUIL and ALIGN are in the platform's
//! rates or not at all. Differences to \[HPL\]: DEPTH 1 forwards a panel when the row exchange has begun, between slabs of
//! NB columns of the update, and at its end, not between every two messages.

mod step;

use hpl::lu::bcast::Ring;
use space::{Bcast, HplParams, Weights};

use super::costs::{Costs, WORD};
use super::placement::rank;
use super::rows::{Rows, long};
use super::shape::{Deal, Unequal};
use super::speeds::Speeds;
use super::{Platform, Profile, Step, Timeline, noise};
use step::Sizes;

/// The predicted run.
///
/// # Panics
/// When N, NB, P or Q is 0, or the platform fails its [check](Platform::check).
pub fn timeline(hpl: &HplParams, platform: &Platform, profile: Profile) -> Timeline {
    let mut run = Run::new(hpl, platform, profile);
    let mut steps = Vec::with_capacity(run.cols.blocks());
    run.walk(|step| steps.push(step));
    let trsv_s = trsv_s(hpl, platform);
    Timeline { total_s: run.now_s() + trsv_s, steps, trsv_s }
}

/// Its time in seconds, without the steps.
///
/// # Panics
/// As [`timeline`].
pub fn time_s(hpl: &HplParams, platform: &Platform, profile: Profile) -> f64 {
    let mut run = Run::new(hpl, platform, profile);
    run.walk(|_| ());
    run.now_s() + trsv_s(hpl, platform)
}

/// The time in seconds with rows and columns dealt by `weights`, as our engine does it.
///
/// # Panics
/// As [`timeline`], and when weights are there but not one per process row or column.
pub fn weighted_time_s(hpl: &HplParams, weights: &Weights, platform: &Platform, profile: Profile) -> f64 {
    let mut run = Run::new(hpl, platform, profile);
    run.unequal = Unequal::new(hpl, weights);
    run.walk(|_| ());
    run.now_s() + trsv_s(hpl, platform)
}

/// A run under way.
struct Run<'a> {
    costs: Costs<'a>,
    speeds: Speeds,
    /// Row exchange by bin-exch, by long.
    exchanges: [Rows; 2],
    hpl: HplParams,
    rows: Deal,
    cols: Deal,
    unequal: Unequal,
    panels: usize,
    depth: usize,
    blocking: bool,
    /// Clock of each process column.
    clock: Vec<f64>,
    /// When a column has its panel, or may go on after it has sent it.
    ready: Vec<f64>,
    /// When a column has done its row exchange.
    swapped: Vec<f64>,
    /// Columns in the order in which they became ready in the last step.
    order: Vec<usize>,
    /// Columns that share a node's link: this many consecutive ones, whose traffic on it is as that of `load` times as many.
    shared: usize,
    load: f64,
    /// What the slowest of a column's calls of DGEMM takes, as part of their mean.
    slowness: f64,
    /// Seconds per local column and k of the product, for each class of columns.
    product_s: Vec<f64>,
    /// By how much that exceeds what its median row takes.
    behind_s: Vec<f64>,
}

impl<'a> Run<'a> {
    fn new(hpl: &HplParams, platform: &'a Platform, profile: Profile) -> Self {
        assert!(hpl.n > 0 && hpl.nb > 0 && hpl.p > 0 && hpl.q > 0, "N, NB, P and Q are at least 1");
        platform.check().expect("a platform that can be computed with");
        let costs = Costs::new(hpl, platform);
        let speeds = match platform.multiply_add_s[..] {
            [speed] => Speeds::alike(hpl.p, hpl.q, speed),
            _ => Speeds::new(hpl.p, hpl.q, |row, column| platform.rank_s(rank(hpl, row, column))),
        };
        let groups = (hpl.q as f64 / costs.placement.columns).ceil() as usize;
        let shared = hpl.q.div_ceil(groups);
        let rows = Deal { n: hpl.n, nb: hpl.nb, procs: hpl.p };
        let cols = Deal { n: hpl.n + 1, nb: hpl.nb, procs: hpl.q };
        Self {
            exchanges: [false, true].map(|long| Rows::new(&costs, long)),
            costs,
            slowness: 1.0 + platform.spread * noise::slowest_of(hpl.p),
            product_s: vec![0.0; speeds.classes()],
            behind_s: vec![0.0; speeds.classes()],
            speeds,
            hpl: *hpl,
            rows,
            cols,
            unequal: Unequal::default(),
            panels: rows.blocks(),
            depth: profile.depth(hpl.depth, hpl.q).min(1),
            blocking: profile.forwards_block(),
            clock: vec![0.0; hpl.q],
            ready: vec![0.0; hpl.q],
            swapped: vec![0.0; hpl.q],
            order: (0..hpl.q).collect(),
            shared,
            load: costs.placement.columns / shared as f64,
        }
    }

    /// All steps, each handed to `record`.
    fn walk(&mut self, mut record: impl FnMut(Step)) {
        if self.depth == 0 {
            (0..self.panels).for_each(|k| record(self.step(k)));
            return;
        }
        record(self.first_panel());
        (1..self.panels).for_each(|k| record(self.step_ahead(k)));
        // What is left to update with the last panel is b.
        self.finish();
    }

    /// Moment at which the last column has come so far.
    fn now_s(&self) -> f64 {
        self.clock.iter().copied().fold(0.0, f64::max)
    }

    /// The exchange that `n` columns get.
    fn exchange(&self, n: f64) -> Rows {
        self.exchanges[usize::from(long(self.hpl.swap, n))]
    }

    /// Process column of a panel.
    fn owner(&self, panel: usize) -> usize {
        self.unequal.cols.as_ref().map_or(panel % self.hpl.q, |dealt| dealt.owner(panel))
    }

    /// The most rows that a process has from block `block` on.
    fn most_rows(&self, block: usize) -> f64 {
        self.unequal.rows.as_ref().map_or_else(|| self.rows.trailing(block).most(), |dealt| dealt.most(block))
    }

    /// Columns of process column `column` in an update.
    fn columns(&self, column: usize, sizes: &Sizes) -> f64 {
        let equal = || sizes.cols.of(column, self.hpl.q);
        self.unequal.cols.as_ref().map_or_else(equal, |dealt| dealt.left(column, sizes.from))
    }

    /// Sizes of an update by panel `panel` of the columns from block `from` on.
    fn sizes(&mut self, panel: usize, from: usize) -> Sizes {
        let (rows, most) = (self.rows.trailing(panel + 1), self.most_rows(panel + 1));
        for class in 0..self.speeds.classes() {
            (self.product_s[class], self.behind_s[class]) = match &self.unequal.rows {
                None => {
                    let behind = self.slowness * self.speeds.slowest(class) - self.speeds.median(class);
                    (self.slowness * self.speeds.product_s(class, &rows), behind * most)
                }
                Some(dealt) => {
                    let [largest, median] = self.speeds.products_with(class, |row| dealt.left(row, panel + 1));
                    (self.slowness * largest, self.slowness * largest - median)
                }
            };
        }
        Sizes {
            rows: most,
            from,
            cols: self.cols.trailing(from),
            k: self.rows.len(panel) as f64,
            pack_s: self.costs.pack_s(most),
        }
    }
}

/// Back substitution: the matrix is read once from memory, and a piece of x goes round in every block.
pub(super) fn trsv_s(hpl: &HplParams, platform: &Platform) -> f64 {
    let (n, ranks) = (hpl.n as f64, hpl.ranks());
    let read = WORD * n * n / 2.0 / ranks as f64 * platform.copy_s.far;
    let link = if ranks <= platform.ranks_per_node { platform.inside } else { platform.between };
    let messages = if ranks > 1 { 2 * hpl.n.div_ceil(hpl.nb) } else { 0 };
    read + messages as f64 * link.latency_s
}

/// The ring along which the panel travels as a whole; `None` for the long variants, which cut it.
pub(super) fn ring(bcast: Bcast, q: usize) -> Option<Ring> {
    match bcast {
        Bcast::OneRing => Some(Ring::One),
        Bcast::OneRingM => Some(Ring::OneM),
        Bcast::TwoRing => Some(Ring::Two),
        Bcast::TwoRingM => Some(Ring::TwoM),
        // Two ranks send the panel whole.
        Bcast::Long | Bcast::LongM => (q <= 2).then_some(Ring::One),
    }
}
