//! Ranks or nodes of unequal speed or with different kernels.

use serde::{Deserialize, Serialize};

use crate::{HplParams, KernelChoice, Pmap, Share};

/// Maximum relative difference of equal speeds; outliers differ by more.
pub const ALIKE: f64 = 0.02;

/// Speeds and kernels of the ranks of a run; equal ranks by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unequal {
    /// Relative speed of each rank, or of each node where `node_cores` says so; none where they are alike or unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<Share>,
    /// Cores of each node where `speeds` are those of nodes, which any number of ranks fill one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cores: Option<usize>,
    /// Kernels of each rank; none where all have the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelChoice>,
}

impl Unequal {
    /// Nodes of `cores` cores each and these relative speeds.
    pub fn nodes(speeds: Vec<Share>, cores: usize) -> Self {
        Self { speeds, node_cores: Some(cores), kernels: Vec::new() }
    }

    /// Whether all ranks are equal.
    pub fn is_empty(&self) -> bool {
        self.speeds.is_empty() && self.kernels.is_empty()
    }

    /// Ranks that it describes, `None` for any number; the larger number where speeds and kernels disagree.
    pub fn ranks(&self) -> Option<usize> {
        Some(self.rank_speeds().len().max(self.kernels.len())).filter(|&ranks| ranks > 0)
    }

    /// Speeds of ranks; none where they are those of nodes.
    pub fn rank_speeds(&self) -> &[Share] {
        if self.node_cores.is_some() { &[] } else { &self.speeds }
    }

    /// Each speed as part of the fastest; none without speeds.
    pub fn relative(&self) -> Vec<f64> {
        let fastest = self.speeds.iter().map(|speed| speed.get()).fold(0.0, f64::max);
        self.speeds.iter().map(|speed| speed.get() / fastest).collect()
    }

    /// The values of `of` for each speed, for each rank of a run with `threads` threads per rank: by process row, then column.
    /// Empty if they are unknown for this number of ranks.
    pub fn on_grid(&self, of: &[f64], hpl: &HplParams, threads: usize) -> Vec<f64> {
        let ranks = hpl.ranks();
        let each = match self.node_cores {
            Some(cores) => (cores / threads.max(1)).max(1),
            None if of.len() == ranks => 1,
            None => return Vec::new(),
        };
        let Some(last) = of.len().checked_sub(1) else { return Vec::new() };
        let rank = |at: usize| match hpl.pmap {
            Pmap::Row => at,
            Pmap::Column => at % hpl.q * hpl.p + at / hpl.q,
        };
        (0..ranks).map(|at| of[(rank(at) / each).min(last)]).collect()
    }

    /// Computing time of each rank of a run relative to the fastest, as [`on_grid`](Self::on_grid).
    pub fn slowness(&self, hpl: &HplParams, threads: usize) -> Vec<f64> {
        let slowness: Vec<f64> = self.relative().into_iter().map(f64::recip).collect();
        self.on_grid(&slowness, hpl, threads)
    }

    /// Part of the memory of all nodes that a matrix may take: where shares follow speeds the fastest node has more than its
    /// part, and by both rows and columns twice as much more. 1 where all ranks share one memory; `apart`: they are on several nodes.
    pub fn fillable(&self, apart: bool) -> f64 {
        let relative = self.relative();
        let mean = relative.iter().sum::<f64>() / relative.len().max(1) as f64;
        if (apart || self.node_cores.is_some()) && mean > 0.0 { mean.powi(2) } else { 1.0 }
    }

    /// Whether the speeds differ by more than [`ALIKE`].
    pub fn differs(&self) -> bool {
        self.relative().iter().any(|&speed| speed < 1.0 - ALIKE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fill_nodes_one_after_the_other_on_any_grid() {
        let speeds = [1.0, 0.5].map(|speed| Share::new(speed).unwrap()).to_vec();
        let nodes = Unequal::nodes(speeds.clone(), 4);
        let grid = |p, q, pmap| HplParams { pmap, ..HplParams::baseline(100, p, q) };
        assert_eq!(nodes.slowness(&grid(2, 4, Pmap::Row), 1), [[1.0; 4], [2.0; 4]].concat());
        assert_eq!(nodes.slowness(&grid(2, 4, Pmap::Column), 1), [[1.0, 1.0, 2.0, 2.0]; 2].concat());
        assert_eq!(nodes.slowness(&grid(1, 2, Pmap::Row), 4), [1.0, 2.0]);
        assert_eq!((nodes.ranks(), nodes.differs()), (None, true));
        // Speeds of ranks are those of that number of ranks alone.
        let ranks = Unequal { speeds, ..Unequal::default() };
        assert_eq!(ranks.slowness(&grid(2, 1, Pmap::Row), 1), [1.0, 2.0]);
        assert!(ranks.slowness(&grid(2, 2, Pmap::Row), 1).is_empty());
        assert_eq!(ranks.ranks(), Some(2));
    }

    #[test]
    fn a_faster_node_holds_more_of_the_matrix() {
        let speeds = [1.0, 0.5].map(|speed| Share::new(speed).unwrap()).to_vec();
        let (nodes, ranks) = (Unequal::nodes(speeds.clone(), 4), Unequal { speeds, ..Unequal::default() });
        assert_eq!([nodes.fillable(false), ranks.fillable(true), ranks.fillable(false)], [0.5625, 0.5625, 1.0]);
        assert_eq!(Unequal::default().fillable(true), 1.0);
    }
}
