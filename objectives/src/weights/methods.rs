//! Methods that compute the shares of the nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slem::{self, Slem, SlemOptions};
use super::{Cluster, WeightsError};

/// A method that computes the shares of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Equal shares.
    Equal,
    /// In proportion to the speeds.
    Proportional,
    /// The fastest mixing Markov chain on the graph of work and messages, see [`slem`].
    Slem,
    /// Equal times of computing and messages, in closed form.
    Model,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Equal, Self::Proportional, Self::Slem, Self::Model];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Proportional => "proportional",
            Self::Slem => "slem",
            Self::Model => "model",
        }
    }

    /// Share of one node of each group at order `n`, with sum 1 over all nodes and without limits by memory; and the report
    /// of [`Method::Slem`].
    ///
    /// # Errors
    /// [`WeightsError`] if the method fails.
    pub fn shares(
        self,
        cluster: &Cluster,
        n: usize,
        options: &SlemOptions,
    ) -> Result<(Vec<f64>, Option<Slem>), WeightsError> {
        let of_speeds = |speed: fn(f64) -> f64| {
            let speeds: Vec<f64> = cluster.groups().iter().map(|group| speed(group.speed_gflops)).collect();
            cluster.normalised(&speeds)
        };
        match self {
            Self::Equal => Ok((of_speeds(|_| 1.0)?, None)),
            Self::Proportional => Ok((of_speeds(|speed| speed)?, None)),
            Self::Model => Ok((model(cluster, n)?, None)),
            Self::Slem => {
                let slem = slem::slem(cluster, n, options)?;
                Ok((cluster.normalised(&slem.diagonal)?, Some(slem)))
            }
        }
    }
}

/// The shares at which every node takes the same time T over its flops and words,
///
/// ```text
/// w = max(0, (T − V_L/bw) / (F/ε + V_U/bw)),   F = 2N³/3,   V_L = V_U = 4N² bytes,
/// ```
///
/// with T found by bisection so that the sum of the shares is 1. V_L: bytes of L that a node receives, independent of its
/// share; V_U: bytes of U that it sends and receives, in proportion to its share. Ours; a node that is too slow to receive L
/// has no share.
fn model(cluster: &Cluster, n: usize) -> Result<Vec<f64>, WeightsError> {
    let n = n as f64;
    let (flops, bytes) = (2.0 / 3.0 * n.powi(3), 4.0 * n.powi(2));
    let costs: Vec<(f64, f64)> = cluster
        .groups()
        .iter()
        .enumerate()
        .map(|(g, group)| {
            let message_s = bytes / (cluster.port(g) * 1e9);
            (message_s, flops / (group.speed_gflops * 1e9) + message_s)
        })
        .collect();
    let shares =
        |time_s: f64| costs.iter().map(move |(fixed_s, per_share_s)| ((time_s - fixed_s) / per_share_s).max(0.0));
    let sum = |time_s: f64| shares(time_s).zip(cluster.groups()).map(|(w, group)| w * group.count as f64).sum::<f64>();
    // The time of the fastest node alone is an upper bound.
    let alone = costs.iter().map(|(fixed_s, per_share_s)| fixed_s + per_share_s).fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (0.0, alone);
    // Until the interval consists of two neighbouring numbers.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if sum(middle) < 1.0 { low = middle } else { high = middle }
    }
    cluster.normalised(&shares(high).collect::<Vec<_>>())
}

/// Number of the `ranks` equal ranks on each of the nodes, in proportion to `shares` and at most `most`: each
/// rank in turn is given to the node with the most share per rank (D'Hondt's method, as the engine deals blocks).
/// `None` if the ranks do not fit, or no share is positive.
pub fn rank_counts(shares: &[f64], most: &[usize], ranks: usize) -> Option<Vec<usize>> {
    // Positive numbers are in the order of their bits.
    let worth = |at: usize, count: usize| ((shares[at] / (count + 1) as f64).to_bits(), Reverse(at));
    let has_place = |&at: &usize| most[at] > 0 && shares[at] > 0.0;
    let mut open: BinaryHeap<(u64, Reverse<usize>)> =
        (0..shares.len()).filter(has_place).map(|at| worth(at, 0)).collect();
    let mut counts = vec![0; shares.len()];
    for _ in 0..ranks {
        let (_, Reverse(best)) = open.pop()?;
        counts[best] += 1;
        if counts[best] < most[best] {
            open.push(worth(best, counts[best]));
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at all nodes for each rank took minutes on ten thousand nodes.
    #[test]
    fn ranks_of_many_nodes_are_dealt_at_once() {
        let nodes = 20_000;
        let shares: Vec<f64> = (0..nodes).map(|at| if at % 4 == 3 { 0.5 } else { 1.0 }).collect();
        let counts = rank_counts(&shares, &vec![64; nodes], 28 * nodes).unwrap();
        assert_eq!(counts[..8], [32, 32, 32, 16, 32, 32, 32, 16]);
        assert_eq!(counts.iter().sum::<usize>(), 28 * nodes);
        assert_eq!(rank_counts(&shares, &vec![1; nodes], nodes + 1), None);
        // Of equal ones the first has more.
        assert_eq!(rank_counts(&[1.0, 1.0, 0.0], &[4, 4, 4], 3), Some(vec![2, 1, 0]));
    }
}
