//! Placement of the ranks of a grid on nodes: which messages stay within a node.

use num_integer::gcd;
use space::{HplParams, Pmap};

use super::Platform;

/// Placement of process rows and columns on nodes.
///
/// Nodes are filled with ranks in order. If a row or a column does not end with a node, nodes differ; the
/// numbers are then means over nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct GridPlacement {
    /// Whether one node holds all ranks.
    pub one_node: bool,
    /// Whether each process column is within a node.
    pub whole_columns: bool,
    /// Process rows of one process column on a node.
    pub rows: f64,
    /// Process columns of one process row on a node.
    pub columns: f64,
    /// Number of neighbouring columns in a group within which all messages of a row stay within a node.
    together: usize,
}

impl GridPlacement {
    /// Placement of a run's grid.
    pub(super) fn new(hpl: &HplParams, platform: &Platform) -> Self {
        let (p, q, on_node) = (hpl.p, hpl.q, platform.ranks_per_node);
        let node = on_node as f64;
        if p * q <= on_node {
            return Self { one_node: true, whole_columns: true, rows: p as f64, columns: q as f64, together: q };
        }
        match hpl.pmap {
            Pmap::Row => Self {
                one_node: false,
                whole_columns: p == 1,
                rows: (node / q as f64).max(1.0),
                columns: node.min(q as f64),
                together: if on_node % q == 0 { q } else { gcd(q, on_node) },
            },
            Pmap::Column => Self {
                one_node: false,
                whole_columns: on_node % p == 0,
                rows: node.min(p as f64),
                columns: (node / p as f64).max(1.0),
                together: if on_node % p == 0 { on_node / p } else { 1 },
            },
        }
    }

    /// Whether the messages of all rows from column `from` to column `to` stay within a node.
    pub(super) fn inside(&self, from: usize, to: usize) -> bool {
        self.one_node || from / self.together == to / self.together
    }
}

/// Rank number at a place of the grid.
pub(super) fn rank(hpl: &HplParams, row: usize, column: usize) -> usize {
    match hpl.pmap {
        Pmap::Row => row * hpl.q + column,
        Pmap::Column => column * hpl.p + row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::small_cluster;

    /// Against counting the ranks of each node.
    #[test]
    fn messages_leave_a_node_where_ranks_do() {
        for (p, q) in [(1, 7), (4, 8), (8, 4), (16, 2), (3, 10), (32, 1), (2, 2), (5, 6)] {
            for pmap in [Pmap::Row, Pmap::Column] {
                let hpl = HplParams { pmap, ..HplParams::baseline(1000, p, q) };
                let platform = small_cluster(8);
                let placement = GridPlacement::new(&hpl, &platform);
                let node = |row, column| platform.node(rank(&hpl, row, column));
                for from in 0..q {
                    for to in from + 1..q {
                        let inside = (0..p).all(|row| node(row, from) == node(row, to));
                        // Groups may be too small where rows do not end with nodes, but never too large.
                        assert!(inside || !placement.inside(from, to), "{p}×{q} {pmap:?}: {from} to {to}");
                    }
                }
                assert_eq!(placement.one_node, p * q <= 8);
                let whole = (0..q).all(|column| (1..p).all(|row| node(row, column) == node(0, column)));
                assert_eq!(placement.whole_columns, whole, "{p}×{q} {pmap:?}");
            }
        }
    }
}
