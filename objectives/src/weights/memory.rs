//! What memory does to shares.

use super::{Cluster, WeightsError};

/// How memory enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryRule {
    /// A node takes at most what it can hold; what is left over goes to the others.
    #[default]
    Cap,
    /// Shares are multiplied by the node's part of all memory, equation (3) of \[SLEM-HPL\]. Kept to compare with that
    /// paper: it squares a bias towards nodes with much memory, and a node may be given more than it can hold.
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

    /// The shares with memory minded, together 1.
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

/// Largest share of one node of each group that it can hold at order `n`: (M − OS)/(8N²).
pub fn caps(cluster: &Cluster, n: usize) -> Vec<f64> {
    let matrix_bytes = 8.0 * (n as f64).powi(2);
    room_bytes(cluster).map(|room| room / matrix_bytes).collect()
}

/// Largest order that all nodes together hold: equation (2) of \[SLEM-HPL\], sqrt(Σ (M − OS)/8).
pub fn largest_n(cluster: &Cluster) -> usize {
    let total: f64 = room_bytes(cluster).zip(cluster.groups()).map(|(room, group)| room * group.count as f64).sum();
    (total / 8.0).sqrt() as usize
}

/// Largest order of which every node holds the same part.
pub fn largest_equal_n(cluster: &Cluster) -> usize {
    let tightest = room_bytes(cluster).fold(f64::INFINITY, f64::min);
    (tightest * cluster.nodes() as f64 / 8.0).sqrt() as usize
}

/// Part of all memory that one node of each group has: equation (1) of \[SLEM-HPL\], (M − OS)/(C − Σ OS).
pub fn paper_factors(cluster: &Cluster) -> Vec<f64> {
    let total: f64 = room_bytes(cluster).zip(cluster.groups()).map(|(room, group)| room * group.count as f64).sum();
    room_bytes(cluster).map(|room| room / total).collect()
}

/// The shares, none above its node's cap: who would have more keeps the cap, the others take the rest in the proportions
/// they had, until no node has too much. Nodes without a share take what no other node can hold.
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
