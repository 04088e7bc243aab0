//! Cost of the row exchange of one process column, on the node's link and on the rank.

use space::Swap;

use super::costs::RunCosts;

/// Cost of a row exchange per byte of U, and its latency.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowExchangeCosts {
    /// Bytes over the busiest node's link, per byte of U of one column.
    link_share: f64,
    /// Bytes exchanged within the node, per byte of U.
    inside_share: f64,
    /// Seconds independent of the size.
    latency_s: f64,
}

impl RowExchangeCosts {
    /// The exchange by `swap` (mix already resolved, see [`long`]) over the run's process rows.
    pub(super) fn new(costs: &RunCosts, long: bool) -> Self {
        let (p, placement) = (costs.p, &costs.placement);
        if p == 1 {
            return Self { link_share: 0.0, inside_share: 0.0, latency_s: 0.0 };
        }
        let (inside, between) = (costs.platform.inside.latency_s, costs.platform.between.latency_s);
        let rounds = p.next_power_of_two().trailing_zeros() as f64;
        if placement.whole_columns {
            let shares = if long { 2.0 } else { rounds };
            let messages = if long { rounds + (p - 1) as f64 } else { rounds };
            return Self { link_share: 0.0, inside_share: shares, latency_s: messages * inside };
        }
        if long {
            return Self { link_share: 2.0, inside_share: 0.0, latency_s: (rounds + (p - 1) as f64) * between };
        }
        let rr = placement.rows;
        let (mut link_share, mut inside_share, mut latency_s) = (0.0, 0.0, 0.0);
        let mut distance = 1;
        while distance < p {
            let d = distance as f64;
            if d >= rr {
                link_share += rr;
                latency_s += between;
            } else {
                link_share += d / rr * d;
                inside_share += 1.0 - d / rr;
                latency_s += inside;
            }
            distance *= 2;
        }
        if !p.is_power_of_two() {
            link_share += 1.0 + rr;
        }
        Self { link_share, inside_share, latency_s }
    }

    /// Seconds on the node's link for `bytes` of U.
    pub(super) fn link_s(&self, costs: &RunCosts, bytes: f64) -> f64 {
        self.link_share * bytes * costs.platform.between.s_per_byte.near
    }

    /// Seconds on the rank: rows gathered and copied to their places, and messages within the node.
    pub(super) fn solo_s(&self, costs: &RunCosts, bytes: f64) -> f64 {
        let inside = self.inside_share * costs.per_unit(costs.platform.inside.s_per_byte, bytes);
        self.latency_s + bytes * inside + costs.rows_copied_s(bytes)
    }
}

/// Whether `n` columns are exchanged by spread and roll.
pub(super) fn long(swap: Swap, n: f64) -> bool {
    match swap {
        Swap::BinExch => false,
        Swap::Long => true,
        Swap::Mix { threshold } => n > threshold as f64,
    }
}

#[cfg(test)]
mod tests {
    use space::{HplParams, Pmap};

    use super::*;
    use crate::timeline::tests::small_cluster;

    /// Of nodes of eight ranks in column-major order, half of one is a process column of four, two are one of sixteen.
    #[test]
    fn rows_that_stay_within_a_node_do_not_use_its_link() {
        let platform = small_cluster(8);
        for (p, pmap, leaves) in [(4, Pmap::Column, false), (16, Pmap::Column, true), (4, Pmap::Row, true)] {
            let hpl = HplParams { pmap, ..HplParams::baseline(6400, p, 4) };
            let costs = RunCosts::new(&hpl, &platform);
            for by_long in [false, true] {
                let exchange = RowExchangeCosts::new(&costs, by_long);
                assert_eq!(exchange.link_s(&costs, 1e6) > 0.0, leaves, "{p}×4 {pmap:?}, long {by_long}");
            }
        }
    }
}
