//! Weights of unequal nodes: the part of the matrix of each.
//!
//! A [`Cluster`] is groups of equal nodes with their links. A [`Method`] gives each node a share, with sum 1;
//! [`memory`] limits the shares to the memory of the nodes; a [`NodeGrid`] converts them into row and column weights of the
//! engine; [`makespan`] predicts the time. [`advise`] does all of these for one method, including the choice of N.

mod cluster;
mod error;
mod grid;
pub mod makespan;
pub mod memory;
mod methods;
pub mod slem;

pub use cluster::{Cluster, NodeGroup};
pub use error::WeightsError;
pub use grid::{Combine, NodeGrid, NodeOrder};
pub use memory::MemoryRule;
pub use methods::{Method, rank_counts};

use self::slem::{Slem, SlemOptions};

/// The options of [`advise`].
#[derive(Debug, Clone, Copy)]
pub struct AdviceRequest {
    /// The method that computes the shares.
    pub method: Method,
    /// How memory limits the shares.
    pub memory: MemoryRule,
    /// How the shares of the nodes of a row or column are combined.
    pub combine: Combine,
    /// Process rows and columns, one process per node.
    pub grid: (usize, usize),
    /// Which node has which place there.
    pub order: NodeOrder,
    /// Blocking factor, at least 1.
    pub nb: usize,
    /// Order; `None` for the one with the best predicted rate.
    pub n: Option<usize>,
    /// Units of SLEM.
    pub slem: SlemOptions,
}

impl AdviceRequest {
    /// The nodes with these shares on the grid.
    ///
    /// # Errors
    /// [`WeightsError::GridSize`] unless P·Q is the number of nodes.
    pub fn placed(&self, cluster: &Cluster, shares: &[f64]) -> Result<NodeGrid, WeightsError> {
        let (p, q) = self.grid;
        match self.order {
            NodeOrder::ByShare => NodeGrid::place(cluster, shares, p, q, self.combine),
            NodeOrder::OfRanks => NodeGrid::of_ranks(cluster, shares, p, q, self.combine),
        }
    }
}

/// Weights by one method, with their predicted rate.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The method that computed the shares.
    pub method: Method,
    /// The order of the run.
    pub n: usize,
    /// Share of one node of each group, in the order of the cluster's groups.
    pub shares: Vec<f64>,
    /// The shares on the grid.
    pub grid: NodeGrid,
    /// Predicted time in seconds, see [`makespan`].
    pub predicted_time_s: f64,
    /// GFLOP/s of the predicted time.
    pub predicted_rate_gflops: f64,
    /// The report of the SLEM method.
    pub slem: Option<Slem>,
}

/// Fractions of the largest order that are tried when N is free.
const ORDERS: std::ops::RangeInclusive<usize> = 16..=40;

/// Shares by one method, limited by memory, on the grid, with the order of the best predicted rate.
///
/// With N free, 25 orders from 0.4 to 1 times the largest are tried: a large order has less communication, a smaller one
/// leaves memory for shares in proportion to the speeds.
///
/// # Errors
/// [`WeightsError`].
pub fn advise(cluster: &Cluster, request: &AdviceRequest) -> Result<Advice, WeightsError> {
    if request.nb == 0 {
        return Err(WeightsError::NoBlock);
    }
    if let Some(n) = request.n {
        return advise_at(cluster, request, n);
    }
    let largest = match request.method {
        Method::Equal => memory::largest_equal_n(cluster),
        _ => memory::largest_n(cluster),
    };
    let order = |part: usize| (largest * part / ORDERS.end() / request.nb * request.nb).max(1);
    let mut best: Result<Advice, WeightsError> = Err(WeightsError::NoRoom { n: order(*ORDERS.start()), largest_n: 0 });
    for advice in ORDERS.map(|part| advise_at(cluster, request, order(part))) {
        match (&best, advice) {
            (Ok(best), Ok(advice)) if advice.predicted_rate_gflops <= best.predicted_rate_gflops => (),
            (Ok(_), Err(_)) => (),
            (_, advice) => best = advice,
        }
    }
    best
}

/// The weights for runs of order `n`.
fn advise_at(cluster: &Cluster, request: &AdviceRequest, n: usize) -> Result<Advice, WeightsError> {
    let (wanted, slem) = request.method.shares(cluster, n, &request.slem)?;
    // Equal weights are HPL's own distribution: memory limits N instead of the weights.
    let shares = match request.method {
        Method::Equal => wanted,
        _ => request.memory.cap_to_memory(cluster, &wanted, n)?,
    };
    let grid = request.placed(cluster, &shares)?;
    grid.check_memory(cluster, n)?;
    let predicted_time_s = makespan::time_s(cluster, &grid, n, request.nb);
    let predicted_rate_gflops = space::flops::rate_gflops(n, predicted_time_s);
    Ok(Advice { method: request.method, n, shares, grid, predicted_time_s, predicted_rate_gflops, slem })
}

#[cfg(test)]
mod tests;
