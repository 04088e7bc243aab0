//! Shares of nodes as weights of process rows and columns.

use space::{Share, Weights};

use super::{Cluster, WeightsError, memory};

/// How the shares of the nodes of a row or column are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combine {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest, as in \[HPL-GPU\]: all wait for the slowest node.
    Minimum,
}

/// Which node has which place on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeOrder {
    /// By falling share: the ranks are still to be started on their nodes.
    #[default]
    ByShare,
    /// In the order of the cluster: the nodes are those of ranks, as a survey has found them.
    OfRanks,
}

/// Nodes on a P×Q grid, one process each.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeGrid {
    /// Process rows.
    pub p: usize,
    /// Process columns.
    pub q: usize,
    /// Group of the node at row i and column j: entry i + j·P.
    pub groups: Vec<usize>,
    /// Share of each process row, together 1.
    pub rows: Vec<f64>,
    /// Share of each process column, together 1.
    pub columns: Vec<f64>,
}

impl NodeGrid {
    /// Places the nodes by falling share, down one process column after the other, so that equal nodes are in the same
    /// column: a node's part is its row's share times its column's, which matches unequal nodes better if the nodes of a
    /// column are equal.
    ///
    /// # Errors
    /// [`WeightsError::GridSize`] unless P·Q is the number of nodes.
    pub fn place(
        cluster: &Cluster,
        shares: &[f64],
        p: usize,
        q: usize,
        combine: Combine,
    ) -> Result<Self, WeightsError> {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        let speed = |g: usize| cluster.groups()[g].speed_gflops;
        order.sort_by(|&g, &h| shares[h].total_cmp(&shares[g]).then(speed(h).total_cmp(&speed(g))));
        Self::with_groups(each_node(cluster, order, p, q)?, shares, (p, q), combine)
    }

    /// The nodes as those of ranks in the order of the cluster, along one process row after the other as PMAP row-major has them.
    ///
    /// # Errors
    /// [`WeightsError::GridSize`] unless P·Q is the number of nodes.
    pub fn of_ranks(
        cluster: &Cluster,
        shares: &[f64],
        p: usize,
        q: usize,
        combine: Combine,
    ) -> Result<Self, WeightsError> {
        let ranks = each_node(cluster, (0..shares.len()).collect(), p, q)?;
        let groups = (0..q).flat_map(|j| (0..p).map(move |i| i * q + j)).map(|rank| ranks[rank]).collect();
        Self::with_groups(groups, shares, (p, q), combine)
    }

    /// The grid with these groups, entry i + j·P at row i and column j.
    fn with_groups(
        groups: Vec<usize>,
        shares: &[f64],
        (p, q): (usize, usize),
        combine: Combine,
    ) -> Result<Self, WeightsError> {
        let combined = |of: &mut dyn Iterator<Item = usize>| {
            let shares: Vec<f64> = of.map(|at| shares[groups[at]]).collect();
            match combine {
                Combine::Mean => shares.iter().sum::<f64>() / shares.len() as f64,
                Combine::Minimum => shares.into_iter().fold(f64::INFINITY, f64::min),
            }
        };
        let rows = (0..p).map(|i| combined(&mut (0..q).map(|j| i + j * p))).collect();
        let columns = (0..q).map(|j| combined(&mut (0..p).map(|i| i + j * p))).collect();
        Ok(Self { p, q, rows: normalised(rows)?, columns: normalised(columns)?, groups })
    }

    /// Part of the matrix of the node at row `i` and column `j`.
    pub fn part(&self, i: usize, j: usize) -> f64 {
        self.rows[i] * self.columns[j]
    }

    /// The weights for the engine; a single row or column needs none.
    ///
    /// # Panics
    /// When a share is negative or no number, which no grid made by [`place`](Self::place) has.
    pub fn weights(&self) -> Weights {
        let share = |share: &f64| Share::new(*share).expect("a share of a grid");
        let shares = |of: &[f64]| if of.len() == 1 { Vec::new() } else { of.iter().map(share).collect() };
        Weights { rows: shares(&self.rows), columns: shares(&self.columns) }
    }

    /// Checks that every node has enough memory for its part of the matrix.
    ///
    /// # Errors
    /// [`WeightsError::Memory`] of the node that lacks the most memory.
    pub fn check_memory(&self, cluster: &Cluster, n: usize) -> Result<(), WeightsError> {
        let caps = memory::caps(cluster, n);
        let places = (0..self.q).flat_map(|j| (0..self.p).map(move |i| (i, j)));
        let tight = |&(i, j): &(usize, usize)| self.part(i, j) / caps[self.groups[i + j * self.p]];
        let Some((i, j)) = places.max_by(|a, b| tight(a).total_cmp(&tight(b))) else { return Ok(()) };
        let ratio = tight(&(i, j));
        // A share that just fits is accepted despite rounding errors.
        if ratio <= 1.0 + 1e-9 {
            return Ok(());
        }
        let group = &cluster.groups()[self.groups[i + j * self.p]];
        let matrix_bytes = 8.0 * (n as f64).powi(2);
        Err(WeightsError::Memory {
            node: group.name.clone(),
            has_bytes: caps[self.groups[i + j * self.p]] * matrix_bytes,
            needed_bytes: self.part(i, j) * matrix_bytes,
            n,
            largest_n: (n as f64 / ratio.sqrt()) as usize,
        })
    }
}

/// The group of each node, group after group in this order.
fn each_node(cluster: &Cluster, order: Vec<usize>, p: usize, q: usize) -> Result<Vec<usize>, WeightsError> {
    let nodes = cluster.nodes();
    if p.checked_mul(q) != Some(nodes) {
        return Err(WeightsError::GridSize { p, q, nodes });
    }
    Ok(order.into_iter().flat_map(|g| std::iter::repeat_n(g, cluster.groups()[g].count)).collect())
}

fn normalised(shares: Vec<f64>) -> Result<Vec<f64>, WeightsError> {
    let sum: f64 = shares.iter().sum();
    // Every column has an idle node, so the minimum is 0.
    if sum > 0.0 { Ok(shares.into_iter().map(|share| share / sum).collect()) } else { Err(WeightsError::AllZero) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::NodeGroup;

    #[test]
    fn the_nodes_of_ranks_stay_where_these_are() {
        let speeds = [1.0, 4.0, 2.0, 3.0];
        let group = |(rank, &speed_gflops): (usize, &f64)| NodeGroup {
            name: format!("n-{rank}"),
            count: 1,
            speed_gflops,
            memory_bytes: 1 << 30,
            reserved_bytes: 0,
        };
        let groups = speeds.iter().enumerate().map(group).collect();
        let cluster = Cluster::new(groups, vec![vec![1.0; 4]; 4]).unwrap();
        let shares = cluster.normalised(&speeds).unwrap();
        let of_ranks = |p, q| NodeGrid::of_ranks(&cluster, &shares, p, q, Combine::Mean).unwrap();
        assert_eq!(of_ranks(1, 4).columns, [0.1, 0.4, 0.2, 0.3]);
        // Ranks 0 and 1 in the first row, 0 and 2 in the first column.
        let two = of_ranks(2, 2);
        assert_eq!((&two.rows[..], two.groups), (&[0.5, 0.5][..], vec![0, 2, 1, 3]));
        assert!((two.columns[0] - 0.3).abs() < 1e-12, "{:?}", two.columns);
        assert!(NodeGrid::of_ranks(&cluster, &shares, 3, 1, Combine::Mean).is_err());
    }
}
