//! The predicted time of shares: a run on unequal nodes, step by step.
//!
//! In each step every node updates its part of the trailing matrix, solves for its columns of U, receives its rows of the panel when
//! Q > 1, and exchanges its part of U when P > 1; those that own the panel factor their rows of it, as fast as they update; the slowest
//! node ends the step. Parts are counted in blocks as the engine deals them, which includes the imbalance of few blocks per node.
//! Latencies, look-ahead and the lower rate of panels are ignored: the result compares shares with each other, and is an upper bound
//! of the rate if messages are few. If the phases of our engine are measured, its timeline includes all of these
//! ([`timeline_rate_gflops`]).

use std::collections::{BTreeMap, HashMap};

use hpl::plan::layout::Distribution;
use space::machine::{Layer, Machine, Node};
use space::{Candidate, EngineParams, HplParams, flops};

use super::{Cluster, NodeGrid};
use crate::timeline::own::OwnModel;

/// Lower limit of a node's speed relative to the fastest; slower nodes have almost no work.
const SLOWEST: f64 = 1e-9;

/// Predicted time of factoring order `n` in blocks of `nb` on the nodes of `grid`, in seconds.
pub fn time_s(cluster: &Cluster, grid: &NodeGrid, n: usize, nb: usize) -> f64 {
    let (rows, columns) = (Distribution::weighted(n, nb, &grid.rows), Distribution::weighted(n, nb, &grid.columns));
    let cost = |i: usize, j: usize| Cost::new(cluster, grid.groups[i + j * grid.p]);
    let mut rows_left = Axis::new(&rows, |i| (0..grid.q).map(|j| cost(i, j).bits()).collect());
    let mut columns_left = Axis::new(&columns, |j| (0..grid.p).map(|i| cost(i, j).bits()).collect());
    let mut total_s = 0.0;
    for k in 0..rows.blocks() {
        let (jb, owner) = (rows.block(k).len(), columns.block_owner(k));
        rows_left.finish(rows.block_owner(k), jb);
        columns_left.finish(owner, jb);
        // The column that factors the panel, and of the others those with the most to update.
        let panel = (owner, columns_left.left[owner], true);
        let step_s = columns_left.longest().map(|(j, nq)| (j, nq, false)).chain([panel]).map(|(j, nq, factors)| {
            let of_node = |(i, mp)| cost(i, j).step_s([mp, nq, jb], factors, grid);
            rows_left.longest().map(of_node).fold(0.0, f64::max)
        });
        total_s += step_s.fold(0.0, f64::max);
    }
    total_s
}

/// What a node takes for its part of a step.
#[derive(Debug, Clone, Copy)]
struct Cost {
    flop_s: f64,
    byte_s: f64,
}

impl Cost {
    fn new(cluster: &Cluster, group: usize) -> Self {
        Self { flop_s: 1e-9 / cluster.groups()[group].speed_gflops, byte_s: 1e-9 / cluster.port(group) }
    }

    /// Equal for nodes that take the same time.
    fn bits(&self) -> [u64; 2] {
        [self.flop_s, self.byte_s].map(f64::to_bits)
    }

    /// Seconds for `mp` rows and `nq` columns of the trailing matrix with `jb` columns of the panel, which the node may factor.
    fn step_s(&self, [mp, nq, jb]: [usize; 3], factors: bool, grid: &NodeGrid) -> f64 {
        let [mp, nq, jb] = [mp, nq, jb].map(|size| size as f64);
        let factored = if factors { mp * jb * jb } else { 0.0 };
        let flops = 2.0 * mp * nq * jb + nq * jb * jb + factored;
        let compute_s = if flops > 0.0 { flops * self.flop_s } else { 0.0 };
        let panel = if grid.q > 1 && nq > 0.0 { mp * jb } else { 0.0 };
        let u = if grid.p > 1 { nq * jb } else { 0.0 };
        compute_s + 8.0 * (panel + u) * self.byte_s
    }
}

/// What the process rows, or columns, have left during a run. Of those with nodes of equal costs the one with the most takes longest.
#[derive(Debug)]
struct Axis {
    left: Vec<usize>,
    /// The class of each: all of a class have nodes of equal costs at each place.
    class: Vec<usize>,
    /// One of each class.
    first: Vec<usize>,
    /// How many of each class have how much left.
    counts: Vec<BTreeMap<usize, usize>>,
}

impl Axis {
    fn new(axis: &Distribution, costs: impl Fn(usize) -> Vec<[u64; 2]>) -> Self {
        let left: Vec<usize> = (0..axis.procs()).map(|at| axis.local_len(at)).collect();
        let (mut known, mut first) = (HashMap::new(), Vec::new());
        let class_of = |at: usize| {
            *known.entry(costs(at)).or_insert_with(|| {
                first.push(at);
                first.len() - 1
            })
        };
        let class: Vec<usize> = (0..axis.procs()).map(class_of).collect();
        let mut counts = vec![BTreeMap::new(); first.len()];
        class.iter().zip(&left).for_each(|(&class, &left)| *counts[class].entry(left).or_default() += 1);
        Self { left, class, first, counts }
    }

    /// Takes a block of `len` from the one at `at`.
    fn finish(&mut self, at: usize, len: usize) {
        let (left, counts) = (&mut self.left[at], &mut self.counts[self.class[at]]);
        if let Some(count) = counts.get_mut(left) {
            *count -= 1;
            if *count == 0 {
                counts.remove(left);
            }
        }
        *left -= len;
        *counts.entry(*left).or_default() += 1;
    }

    /// One of each class, with the most that any of it has left.
    fn longest(&self) -> impl Iterator<Item = (usize, usize)> {
        let most = |counts: &BTreeMap<usize, usize>| counts.last_key_value().map_or(0, |(&left, _)| left);
        self.first.iter().copied().zip(self.counts.iter().map(most))
    }
}

/// The machine with one process of `threads` threads on each node: all nodes have so many cores, as what other numbers of them do is
/// part of their speeds, and the layers within a node carry nothing.
pub fn one_process_per_node(machine: &Machine, threads: usize) -> Machine {
    let largest = machine.nodes.iter().map(|node| node.cores).max().unwrap_or(1);
    let nodes = machine.nodes.iter().map(|node| Node { cores: threads, ..node.clone() }).collect();
    let outer = |layer: &&Layer| layer.ranks > largest;
    Machine { nodes, layers: machine.layers.iter().filter(outer).cloned().collect(), ..machine.clone() }
}

/// Predicted GFLOP/s of a run of order `n` with the weights of `grid` and ranks of `threads` threads on each node, including
/// panels, messages and look-ahead. The phases of `model` are those of the fastest node, and its machine has
/// [`one_process_per_node`]; on another node all computation takes longer by the ratio of the speeds.
pub fn timeline_rate_gflops(
    model: &OwnModel,
    cluster: &Cluster,
    grid: &NodeGrid,
    n: usize,
    nb: usize,
    threads: usize,
) -> f64 {
    let groups = cluster.groups();
    let fastest = groups.iter().map(|group| group.speed_gflops).fold(0.0, f64::max);
    let slowness = |at: usize| fastest / groups[grid.groups[at]].speed_gflops.max(SLOWEST * fastest);
    let places = (0..grid.p).flat_map(|i| (0..grid.q).map(move |j| i + j * grid.p));
    let slowness: Vec<f64> = places.map(slowness).collect();
    let hpl = HplParams { nb, ..HplParams::baseline(n, grid.p, grid.q) };
    let engine = EngineParams { threads, weights: grid.weights(), ..EngineParams::default() };
    flops::rate_gflops(n, model.unequal_time_s(&Candidate { hpl, engine }, &slowness))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedCluster;
    use crate::weights::{Combine, NodeGroup};

    /// The time by every node of every step, as [`time_s`] says it.
    fn each_node_s(cluster: &Cluster, grid: &NodeGrid, n: usize, nb: usize) -> f64 {
        let (rows, columns) = (Distribution::weighted(n, nb, &grid.rows), Distribution::weighted(n, nb, &grid.columns));
        let step_s = |k: usize| {
            let (start, jb) = (rows.block(k).start, rows.block(k).len());
            let left = |axis: &Distribution, at: usize| axis.local_len(at) - axis.local_from(at, start + jb);
            let places = (0..grid.q).flat_map(|j| (0..grid.p).map(move |i| (i, j)));
            let of_node = |(i, j): (usize, usize)| {
                let cost = Cost::new(cluster, grid.groups[i + j * grid.p]);
                cost.step_s([left(&rows, i), left(&columns, j), jb], columns.block_owner(k) == j, grid)
            };
            places.map(of_node).fold(0.0, f64::max)
        };
        (0..rows.blocks()).map(step_s).sum()
    }

    #[test]
    fn nodes_that_are_alike_are_counted_once() {
        let group = |count: usize, speed_gflops: f64| NodeGroup {
            name: format!("{speed_gflops}"),
            count,
            speed_gflops,
            memory_bytes: 1 << 40,
            reserved_bytes: 0,
        };
        let groups = vec![group(7, 300.0), group(3, 200.0), group(1, 90.0), group(1, 50.0)];
        let cluster = Cluster::new(groups, vec![vec![2.0; 4]; 4]).unwrap();
        let shares = cluster.normalised(&[3.0, 2.0, 0.9, 0.5]).unwrap();
        for (p, q) in [(1, 12), (12, 1), (2, 6), (3, 4), (4, 3)] {
            let grid = NodeGrid::place(&cluster, &shares, p, q, Combine::Mean).unwrap();
            for (n, nb) in [(0, 8), (5, 8), (1000, 64), (3001, 32)] {
                assert_eq!(time_s(&cluster, &grid, n, nb), each_node_s(&cluster, &grid, n, nb), "{p}x{q} {n} {nb}");
            }
        }
    }

    /// Two nodes of four cores and two of half as many, which are half as fast: at N = 8000 a run on them is no slower than on four-core
    /// nodes of that speed.
    #[test]
    fn nodes_of_fewer_cores_share_none() {
        let four =
            SimulatedCluster::parse(include_str!("../../../datasets/simulated/four-nodes.toml")).unwrap().machine;
        let node = |name: &str, cores: usize, rate_gflops: f64| Node {
            name: name.into(),
            count: 2,
            cores,
            rate_gflops,
            ..four.nodes[0].clone()
        };
        let rate_gflops = |slow_cores: usize, fast_cores: usize| {
            let nodes = vec![node("fast", fast_cores, 200.0), node("slow", slow_cores, 100.0)];
            let machine = Machine { nodes, ..four.clone() };
            let cluster = Cluster::from_machine(&machine).unwrap();
            let grid = NodeGrid::place(&cluster, &[1.0 / 3.0, 1.0 / 6.0], 2, 2, Combine::Mean).unwrap();
            let model = OwnModel::new(&one_process_per_node(&machine, 4)).unwrap();
            timeline_rate_gflops(&model, &cluster, &grid, 8000, 128, 4)
        };
        let alike = rate_gflops(4, 4);
        assert!(alike > 0.0);
        assert_eq!(rate_gflops(2, 4), alike);
        // More cores of a slower kind do not put two processes on a node either.
        assert_eq!(rate_gflops(8, 4), alike);
    }
}
