//! The predicted time of shares: a run on unequal nodes, step by step.
//!
//! In each step every node updates its part of the trailing matrix, solves for its columns of U, receives its rows of the panel when
//! Q > 1, and exchanges its part of U when P > 1; those that own the panel factor their rows of it, as fast as they update; the slowest
//! node ends the step. Parts are counted in blocks as the engine deals them, which includes the imbalance of few blocks per node.
//! Latencies, look-ahead and the lower rate of panels are ignored: the result compares shares with each other, and is an upper bound
//! of the rate if messages are few. If the phases of our engine are measured, its timeline includes all of these
//! ([`timeline_rate_gflops`]).

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
    // Seconds per flop and per byte of the node at each place.
    let costs: Vec<(f64, f64)> =
        grid.groups.iter().map(|&g| (1e-9 / cluster.groups()[g].speed_gflops, 1e-9 / cluster.port(g))).collect();
    let mut total_s = 0.0;
    for k in 0..rows.blocks() {
        let (start, jb) = (rows.block(k).start, rows.block(k).len());
        let left = |axis: &Distribution, at: usize| (axis.local_len(at) - axis.local_from(at, start + jb)) as f64;
        let mp: Vec<f64> = (0..grid.p).map(|i| left(&rows, i)).collect();
        let mut slowest_s: f64 = 0.0;
        for j in 0..grid.q {
            let nq = left(&columns, j);
            for (i, mp) in mp.iter().enumerate() {
                let (flop_s, byte_s) = costs[i + j * grid.p];
                let jb = jb as f64;
                let factored = if columns.block_owner(k) == j { mp * jb * jb } else { 0.0 };
                let flops = 2.0 * mp * nq * jb + nq * jb * jb + factored;
                let compute_s = if flops > 0.0 { flops * flop_s } else { 0.0 };
                let panel = if grid.q > 1 && nq > 0.0 { mp * jb } else { 0.0 };
                let u = if grid.p > 1 { nq * jb } else { 0.0 };
                slowest_s = slowest_s.max(compute_s + 8.0 * (panel + u) * byte_s);
            }
        }
        total_s += slowest_s;
    }
    total_s
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
    use crate::weights::Combine;

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
