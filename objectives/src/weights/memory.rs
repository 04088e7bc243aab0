//! Limits of the shares by memory.

use super::{Cluster, WeightsError};

/// How memory limits the shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryRule {
    /// A node's share is at most what fits into its memory; the rest is given to the others.
    #[default]
    Cap,
    /// Shares are multiplied by the node's part of all memory, equation (3) of \[SLEM-HPL\]. For comparison with that
    /// paper only: it favours nodes with much memory twice, and a share may exceed the node's memory.
    Paper,
}

impl MemoryRule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cap => "cap",
            Self::Paper => "paper",
        }
    }

    /// The shares limited by memory, with sum 1.
    ///
    /// # Errors
    /// [`WeightsError::NoRoom`], with the order that fits.
    pub fn cap_to_memory(self, cluster: &Cluster, shares: &[f64], n: usize) -> Result<Vec<f64>, WeightsError> {
        match self {
            Self::Cap => capped(cluster, shares, n),
            Self::Paper => {
                let factors = paper_factors(cluster);
                cluster
                    .normalised(&shares.iter().zip(factors).map(|(share, factor)| share * factor).collect::<Vec<_>>())
            }
        }
    }
}

/// Memory for the matrix of one node of each group, in bytes.
fn room_bytes(cluster: &Cluster) -> impl Iterator<Item = f64> {
    cluster.groups().iter().map(|group| group.memory_bytes.saturating_sub(group.reserved_bytes) as f64)
}

/// Largest share that fits into the memory of one node of each group at order `n`: (M − OS)/(8N²).
pub fn caps(cluster: &Cluster, n: usize) -> Vec<f64> {
    let matrix_bytes = 8.0 * (n as f64).powi(2);
    room_bytes(cluster).map(|room| room / matrix_bytes).collect()
}

/// Largest order that fits into the memory of all nodes: equation (2) of \[SLEM-HPL\], sqrt(Σ (M − OS)/8).
pub fn largest_n(cluster: &Cluster) -> usize {
    let total: f64 = room_bytes(cluster).zip(cluster.groups()).map(|(room, group)| room * group.count as f64).sum();
    (total / 8.0).sqrt() as usize
}

/// Largest order that fits with equal shares.
pub fn largest_equal_n(cluster: &Cluster) -> usize {
    let tightest = room_bytes(cluster).fold(f64::INFINITY, f64::min);
    (tightest * cluster.nodes() as f64 / 8.0).sqrt() as usize
}

/// Part of all memory that one node of each group has: equation (1) of \[SLEM-HPL\], (M − OS)/(C − Σ OS).
pub fn paper_factors(cluster: &Cluster) -> Vec<f64> {
    let total: f64 = room_bytes(cluster).zip(cluster.groups()).map(|(room, group)| room * group.count as f64).sum();
    room_bytes(cluster).map(|room| room / total).collect()
}

/// The shares, each at most its node's cap: a larger share is set to the cap and the rest is distributed over the others in
/// proportion to their shares, repeatedly, until every cap is kept. Nodes without a share get what fits on no other node.
fn capped(cluster: &Cluster, shares: &[f64], n: usize) -> Result<Vec<f64>, WeightsError> {
    let caps = caps(cluster, n);
    let counts: Vec<f64> = cluster.groups().iter().map(|group| group.count as f64).collect();
    let sum = |of: &dyn Fn(usize) -> f64| (0..counts.len()).map(|g| counts[g] * of(g)).sum::<f64>();
    if sum(&|g| caps[g]) < 1.0 - 1e-9 {
        return Err(WeightsError::NoRoom { n, largest_n: largest_n(cluster) });
    }
    let mut full = vec![false; counts.len()];
    loop {
        let rest = 1.0 - sum(&|g| if full[g] { caps[g] } else { 0.0 });
        let wanted = sum(&|g| if full[g] { 0.0 } else { shares[g] });
        let room = sum(&|g| if full[g] { 0.0 } else { caps[g] });
        let given = |g: usize| match (full[g], wanted > 0.0) {
            (true, _) => caps[g],
            (false, true) => shares[g] / wanted * rest,
            (false, false) if room > 0.0 => caps[g] / room * rest,
            (false, false) => 0.0,
        };
        let too_much = |g: &usize| !full[*g] && given(*g) > caps[*g];
        let new: Vec<usize> = (0..counts.len()).filter(too_much).collect();
        if new.is_empty() {
            return Ok((0..counts.len()).map(given).collect());
        }
        new.into_iter().for_each(|g| full[g] = true);
    }
}
