//! Weights by the second largest eigenvalue modulus: the fastest mixing Markov chain on the graph of the nodes.
//!
//! The method of \[SLEM-HPL\], equations (4)–(13). Work and messages of an equal distribution, multiplied by the speeds of
//! nodes and links, are a data-flow matrix P₀ = Y ∘ A (8); [`scaling`] makes it doubly stochastic (9);
//! [`fastest`] finds the doubly stochastic matrix Q* on the same graph whose second largest eigenvalue modulus is
//! smallest (4)(5); Q* scaled back (12) has the weights on its diagonal, its trace that of A (13).
//!
//! The choice of units decides the result. On a complete graph Q* is 11ᵀ/n for any links, and with physical
//! units the flops of a node are so much larger than its words that the weights equal the proportional ones to 1e-4. They
//! differ only with a large factor on words, see [`SlemOptions::message_unit`]. So this method is reported next to the
//! others and never chosen silently.
//!
//! Equal nodes are always one group: 500 nodes of 6 kinds cost as much as 6 nodes.

mod error;
pub mod fastest;
mod grouped;
mod newton;
pub mod scaling;

pub use error::SlemError;
pub use grouped::Grouped;

use super::cluster::{Cluster, NodeGroup};

/// The cost of a communicated word in SLEM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlemOptions {
    /// Factor on the words of A; with 1, a word sent at 1 GB/s costs the same as a flop computed at 1 GFLOP/s.
    pub message_unit: f64,
}

impl Default for SlemOptions {
    fn default() -> Self {
        Self { message_unit: 1.0 }
    }
}

/// The result, with figures of its computation.
#[derive(Debug, Clone, PartialEq)]
pub struct Slem {
    /// Diagonal of A_o, equation (13), for one node of each group: its number of flops.
    pub diagonal: Vec<f64>,
    /// Second largest eigenvalue modulus of Q*.
    pub modulus: f64,
    /// Upper bound of its difference to the smallest possible modulus.
    pub gap: f64,
    /// Iterations of the scaling (9).
    pub iterations: usize,
    /// Largest |row sum − 1| after them.
    pub row_error: f64,
    /// Asymptotic factor of the error per iteration: (1 − λ)/2 with the smallest eigenvalue λ of the limit.
    pub convergence: f64,
    /// The units, in words.
    pub units: String,
}

/// Weights of the nodes of `cluster` for order `n`.
///
/// # Errors
/// [`SlemError`].
pub fn slem(cluster: &Cluster, n: usize, options: &SlemOptions) -> Result<Slem, SlemError> {
    let found = options.message_unit;
    if !(found.is_finite() && found > 0.0) {
        return Err(SlemError::Unit { found });
    }
    let (joined, became) = cluster.joined();
    let flow = data_flow(&joined, n, found);
    let scaled = scaling::scale(&flow);
    if scaled.row_error >= scaling::TOLERANCE {
        return Err(SlemError::NotScaled { iterations: scaled.iterations, row_error: scaled.row_error });
    }
    let fastest = fastest::fastest(&scaled.matrix)?;
    // (12): Q = E Q* E; only the diagonal is needed.
    let back: Vec<f64> = fastest.matrix.diagonal.iter().zip(&scaled.e).map(|(q, e)| q * e * e).collect();
    let trace: f64 = back.iter().zip(&flow.counts).map(|(q, &count)| q * count as f64).sum();
    let flops = flops(n);
    Ok(Slem {
        // (13), with trace(A) = F.
        diagonal: became.iter().map(|&group| flops / trace * back[group]).collect(),
        modulus: fastest.modulus,
        gap: fastest.gap,
        iterations: scaled.iterations,
        row_error: scaled.row_error,
        convergence: scaling::convergence(&scaled.matrix),
        units: format!(
            "speeds in GFLOP/s times F/n flops, F = 2N³/3; bandwidths in GB/s times 2N²/n words per pair of nodes (L and \
             U), a word counted {found} times"
        ),
    })
}

fn flops(n: usize) -> f64 {
    2.0 / 3.0 * (n as f64).powi(3)
}

/// P₀ = Y ∘ A, equation (8): Y has the speeds in GFLOP/s on its diagonal and the bandwidths in GB/s off it; A has the
/// flops of a node with an equal share, F/n, and the words that HPL sends between two nodes. The n − 1 receivers of L
/// and of U get N²/2 words each; divided by the n(n − 1)/2 pairs this is N²/n per pair.
fn data_flow(cluster: &Cluster, n: usize, message_unit: f64) -> Grouped {
    let (nodes, groups) = (cluster.nodes() as f64, cluster.groups());
    let (work, words) = (flops(n) / nodes, message_unit * 2.0 * (n as f64).powi(2) / nodes);
    let alone = |group: &NodeGroup| group.count == 1;
    let between = |g: usize, h: usize| if g == h && alone(&groups[g]) { 0.0 } else { words * cluster.link(g, h) };
    Grouped {
        counts: groups.iter().map(|group| group.count).collect(),
        diagonal: groups.iter().map(|group| group.speed_gflops * work).collect(),
        between: (0..groups.len()).map(|g| (0..groups.len()).map(|h| between(g, h)).collect()).collect(),
    }
}

#[cfg(test)]
mod tests;
