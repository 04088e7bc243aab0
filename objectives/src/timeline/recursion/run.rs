//! State of a simulated run: clocks and local sizes of the process columns.

use hpl::lu::bcast::Ring;
use space::{Bcast, HplParams};

use crate::timeline::costs::RunCosts;
use crate::timeline::placement::rank;
use crate::timeline::rows::{RowExchangeCosts, long};
use crate::timeline::shape::{Deal, DealtDims, Trailing};
use crate::timeline::speeds::Speeds;
use crate::timeline::{Platform, Schedule, noise};

/// State of a simulated run.
pub(super) struct RunState<'a> {
    pub(super) costs: RunCosts<'a>,
    pub(super) speeds: Speeds,
    /// Row exchange by bin-exch, by long.
    pub(super) exchanges: [RowExchangeCosts; 2],
    pub(super) hpl: HplParams,
    pub(super) rows: Deal,
    pub(super) cols: Deal,
    pub(super) unequal: DealtDims,
    pub(super) panels: usize,
    pub(super) depth: usize,
    pub(super) blocking: bool,
    /// Clock of each process column.
    pub(super) clock: Vec<f64>,
    /// Moment at which a column has received its panel, or has sent it and can continue.
    pub(super) ready: Vec<f64>,
    /// Moment at which a column has ended its row exchange.
    pub(super) swapped: Vec<f64>,
    /// Columns in the order in which they became ready in the last step.
    pub(super) order: Vec<usize>,
    /// Number of consecutive columns that share a node's link; their traffic on it is multiplied by `load`.
    pub(super) shared: usize,
    pub(super) load: f64,
    /// Time of the slowest of a column's DGEMM calls relative to their mean.
    pub(super) slowness: f64,
    /// Seconds per local column and k of the product, for each class of columns.
    pub(super) product_s: Vec<f64>,
    /// The same minus the value of the class's median row.
    pub(super) behind_s: Vec<f64>,
}

impl<'a> RunState<'a> {
    pub(super) fn new(hpl: &HplParams, platform: &'a Platform, profile: Schedule) -> Self {
        assert!(hpl.n > 0 && hpl.nb > 0 && hpl.p > 0 && hpl.q > 0, "N, NB, P and Q are at least 1");
        platform.check().expect("a platform that can be computed with");
        let costs = RunCosts::new(hpl, platform);
        let speeds = match platform.multiply_add_s[..] {
            [speed] => Speeds::alike(hpl.p, hpl.q, speed),
            _ => Speeds::new(hpl.p, hpl.q, |row, column| platform.rank_s(rank(hpl, row, column))),
        };
        let groups = (hpl.q as f64 / costs.placement.columns).ceil() as usize;
        let shared = hpl.q.div_ceil(groups);
        let rows = Deal { n: hpl.n, nb: hpl.nb, procs: hpl.p };
        let cols = Deal { n: hpl.n + 1, nb: hpl.nb, procs: hpl.q };
        Self {
            exchanges: [false, true].map(|long| RowExchangeCosts::new(&costs, long)),
            costs,
            slowness: 1.0 + platform.spread * noise::slowest_of(hpl.p),
            product_s: vec![0.0; speeds.classes()],
            behind_s: vec![0.0; speeds.classes()],
            speeds,
            hpl: *hpl,
            rows,
            cols,
            unequal: DealtDims::default(),
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

    /// The latest clock of all columns.
    pub(super) fn now_s(&self) -> f64 {
        self.clock.iter().copied().fold(0.0, f64::max)
    }

    /// The row exchange for `n` columns.
    pub(super) fn exchange(&self, n: f64) -> RowExchangeCosts {
        self.exchanges[usize::from(long(self.hpl.swap, n))]
    }

    /// Process column of a panel.
    pub(super) fn owner(&self, panel: usize) -> usize {
        self.unequal.cols.as_ref().map_or(panel % self.hpl.q, |dealt| dealt.owner(panel))
    }

    /// The most rows that a process has from block `block` on.
    pub(super) fn most_rows(&self, block: usize) -> f64 {
        self.unequal.rows.as_ref().map_or_else(|| self.rows.trailing(block).most(), |dealt| dealt.most(block))
    }

    /// Columns of process column `column` in an update.
    pub(super) fn columns(&self, column: usize, sizes: &Sizes) -> f64 {
        let equal = || sizes.cols.of(column, self.hpl.q);
        self.unequal.cols.as_ref().map_or_else(equal, |dealt| dealt.left(column, sizes.from))
    }

    /// Sizes of an update by panel `panel` of the columns from block `from` on.
    pub(super) fn sizes(&mut self, panel: usize, from: usize) -> Sizes {
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

/// Local sizes of an update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Most rows.
    pub rows: f64,
    /// The first updated block of columns.
    pub from: usize,
    /// Columns of each process column, unless they are dealt by weights.
    pub cols: Trailing,
    /// Columns of the panel.
    pub k: f64,
    /// Cost of one DGEMM call for these rows.
    pub pack_s: f64,
}

/// The ring of the panel broadcast; `None` for the long variants, which send the panel in pieces.
pub(in crate::timeline) fn ring(bcast: Bcast, q: usize) -> Option<Ring> {
    match bcast {
        Bcast::OneRing => Some(Ring::One),
        Bcast::OneRingM => Some(Ring::OneM),
        Bcast::TwoRing => Some(Ring::Two),
        Bcast::TwoRingM => Some(Ring::TwoM),
        // With two ranks the panel is sent whole.
        Bcast::Long | Bcast::LongM => (q <= 2).then_some(Ring::One),
    }
}
