//! Costs of the parts of a step on a platform.

use space::HplParams;

use super::placement::GridPlacement;
use super::shape::WORD;
use super::{Cached, Platform};

/// Costs of one run's parts, in seconds; sizes are local to a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunCosts<'a> {
    pub(super) platform: &'a Platform,
    pub(super) placement: GridPlacement,
    pub(super) nb: f64,
    pub(super) p: usize,
    /// Seconds per multiply–add of the median CPU, to which the panel rate belongs.
    usual_s: f64,
}

impl<'a> RunCosts<'a> {
    pub(super) fn new(hpl: &HplParams, platform: &'a Platform) -> Self {
        Self {
            platform,
            placement: GridPlacement::new(hpl, platform),
            nb: hpl.nb as f64,
            p: hpl.p,
            usual_s: platform.median_s(),
        }
    }

    /// Cost per unit for `bytes` of data: the fraction that fits into cache at the near cost, the rest at the far cost.
    pub(super) fn per_unit(&self, cost: Cached, bytes: f64) -> f64 {
        let near = (self.platform.cache_bytes / bytes).min(1.0);
        near * cost.near + (1.0 - near) * cost.far
    }

    /// Panel factorization of `rows` rows: computation, and one pivot exchange per column over the process rows, for which all
    /// wait. `product_s` is the largest product of a rank's rows and its seconds per multiply–add.
    pub(super) fn fact_s(&self, rows: f64, product_s: f64) -> f64 {
        let panel_s = self.per_unit(self.platform.panel_s, self.panel_bytes(rows));
        product_s / self.usual_s * self.nb * self.nb * panel_s + self.nb * self.pivot_s()
    }

    /// One pivot exchange: the pivot is found and its row is sent to all rows of the column.
    fn pivot_s(&self) -> f64 {
        let rounds = self.p.next_power_of_two().trailing_zeros() as f64;
        rounds * (self.platform.pivot_s + (2.0 * self.nb + 4.0) * WORD * self.platform.pivot_s_per_byte)
    }

    fn panel_bytes(&self, rows: f64) -> f64 {
        WORD * rows * self.nb
    }

    /// Bytes of a panel's broadcast: L2, L1 and pivots.
    pub(super) fn message_bytes(&self, rows: f64) -> f64 {
        WORD * self.nb * (rows + self.nb + 3.0)
    }

    /// Rows of `bytes` gathered and copied to their places: two passes, or four with messages.
    pub(super) fn rows_copied_s(&self, bytes: f64) -> f64 {
        let passes = if self.p > 1 { 4.0 } else { 2.0 };
        passes * bytes * self.per_unit(self.platform.copy_s, bytes)
    }

    /// One message of `bytes` within a node.
    pub(super) fn inside_s(&self, bytes: f64) -> f64 {
        let link = &self.platform.inside;
        link.latency_s + bytes * self.per_unit(link.s_per_byte, bytes)
    }

    /// One panel message from column `from` to column `to`.
    pub(super) fn hop_s(&self, from: usize, to: usize, bytes: f64) -> f64 {
        if self.placement.inside(from, to) {
            return self.inside_s(bytes);
        }
        let link = &self.platform.between;
        link.latency_s + bytes * self.placement.rows * link.s_per_byte.near
    }

    /// A panel spread in pieces over `members` of a process row, then rolled.
    pub(super) fn long_s(&self, members: usize, bytes: f64) -> f64 {
        let (platform, placement) = (self.platform, &self.placement);
        let rounds = members.next_power_of_two().trailing_zeros() as f64;
        let messages = rounds + members.saturating_sub(1) as f64;
        if placement.inside(0, members - 1) {
            let twice_s = 2.0 * bytes * self.per_unit(platform.inside.s_per_byte, bytes);
            return messages * platform.inside.latency_s + twice_s;
        }
        messages * platform.between.latency_s + 2.0 * bytes * placement.rows * platform.between.s_per_byte.near
    }

    /// DGEMM beyond its multiply–adds, triangular solve excluded: packing A once per call.
    pub(super) fn pack_s(&self, rows: f64) -> f64 {
        self.platform.gemm.mk_s * rows * self.nb + self.platform.gemm.call_s
    }

    /// Update of `n` columns by a rank of `s` seconds per multiply–add, whose product of `rows` rows has `product_s`
    /// seconds per column and k; triangular solve at half the rate of DGEMM.
    pub(super) fn update_s(&self, s: f64, product_s: f64, rows: f64, n: f64) -> f64 {
        let gemm = &self.platform.gemm;
        n * (self.nb * self.nb * s + self.nb * (product_s + gemm.nk_s) + gemm.mn_s * rows)
    }
}
