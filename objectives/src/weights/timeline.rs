//! What shares promise, by the timeline of our own engine.

use space::{Candidate, EngineParams, HplParams, flops};

use super::{Advice, Cluster};
use crate::timeline::own::OwnModel;

/// Nodes slower than this part of the fastest one are taken as that slow: they have next to no work.
const SLOWEST: f64 = 1e-9;

/// Predicted GFLOP/s of a run with the weights of `advice`, ranks of `threads` threads on each node: step by step, panels,
/// messages and look-ahead included. The phases of `model` are those of the fastest node; on another node all that is
/// computed takes longer by the ratio of the speeds.
pub fn rate_gflops(model: &OwnModel, cluster: &Cluster, advice: &Advice, nb: usize, threads: usize) -> f64 {
    let (grid, groups) = (&advice.grid, cluster.groups());
    let fastest = groups.iter().map(|group| group.speed_gflops).fold(0.0, f64::max);
    let slowness = |at: usize| fastest / groups[grid.groups[at]].speed_gflops.max(SLOWEST * fastest);
    let places = (0..grid.p).flat_map(|i| (0..grid.q).map(move |j| i + j * grid.p));
    let slowness: Vec<f64> = places.map(slowness).collect();
    let hpl = HplParams { nb, ..HplParams::baseline(advice.n, grid.p, grid.q) };
    let engine = EngineParams { threads, weights: grid.weights(), ..EngineParams::default() };
    flops::rate_gflops(advice.n, model.unequal_time_s(&Candidate { hpl, engine }, &slowness))
}
