//! γ: the speed of a rank, with its origin.

use space::machine::{Machine, Node, RateKernel};

use super::{Choices, Placement, Run, ScenarioError, UsedNodes};
use crate::mcl;

/// Seconds per flop of a rank in matrix products, with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Gamma {
    /// γ in seconds per flop.
    pub s_per_flop: f64,
    /// Its origin, in words.
    pub origin: String,
}

impl Gamma {
    /// The speed of the slowest rank from the best source there is: the user's value, an accelerator's equation (10) of
    /// \[MCL\], a measured rate of the node, the fitted DGEMM at this NB, a measured run of one rank, the peak.
    pub(super) fn new(
        model: &'static str,
        machine: &Machine,
        run: &Run,
        placement: &Placement,
        choices: &Choices,
    ) -> Result<Self, ScenarioError> {
        let of = |gflops: f64, origin: String| Self { s_per_flop: 1e-9 / gflops, origin };
        if let Some(gflops) = choices.rank_gflops {
            return Ok(of(gflops, "--rank-gflops".to_owned()));
        }
        if let Some(accelerator) = &machine.accelerator {
            let origin = "[accelerator]: cores · flops_per_cycle · clock_hz".to_owned();
            return Ok(Self { s_per_flop: mcl::accelerator(accelerator, choices.memory).0, origin });
        }
        let slowest = |key: fn(&Node) -> f64| slowest_rank(&placement.groups, run.threads, key);
        if let Some(gflops) = slowest(|node| node.rate_gflops) {
            return Ok(of(gflops, "[[node]] rate_gflops, per rank of the slowest node".to_owned()));
        }
        if let Some(s_per_flop) = fitted(machine, run) {
            return Ok(Self { s_per_flop, origin: format!("[[rate]] dgemm at k = {}", run.nb) });
        }
        let alone = machine.measured.iter().filter(|measured| measured.ranks() == Some(1));
        if let Some(measured) = alone.max_by_key(|measured| measured.n) {
            return Ok(of(measured.rate_gflops, "[[measured]] run of one rank".to_owned()));
        }
        if let Some(gflops) = slowest(|node| node.peak_gflops) {
            return Ok(of(gflops, "[[node]] peak_gflops: no run reaches it".to_owned()));
        }
        let what = "the speed of a rank ([[node]] rate_gflops or peak_gflops)".to_owned();
        Err(ScenarioError::Missing { model, what, way_out: "give --rank-gflops" })
    }
}

/// GFLOP/s of the slowest rank from a figure of whole nodes; `None` if one of the nodes lacks it.
fn slowest_rank(groups: &[UsedNodes], threads: usize, key: fn(&Node) -> f64) -> Option<f64> {
    let rates = groups.iter().map(|group| of_rank(group.node, threads, key(group.node)));
    let slowest = rates.fold(f64::INFINITY, f64::min);
    (slowest > 0.0 && slowest.is_finite()).then_some(slowest)
}

/// The part that a rank has of `gflops` of its node: that of its accelerator, or of as many cores as it has threads, even if no ranks have
/// the others.
fn of_rank(node: &Node, threads: usize, gflops: f64) -> f64 {
    match node.accelerators {
        Some(accelerators) => gflops / accelerators.max(1) as f64,
        None => (gflops * threads as f64 / node.cores as f64).min(gflops),
    }
}

/// Fitted rate of a large DGEMM at k = NB with the same number of threads.
fn fitted(machine: &Machine, run: &Run) -> Option<f64> {
    let nb = run.nb as f64;
    let distance = |[low, high]: [f64; 2]| (low - nb).max(nb - high).max(0.0);
    let rates = machine.rates.iter().filter(|rate| rate.kernel == RateKernel::Dgemm && rate.threads == run.threads);
    let rate = rates.min_by(|a, b| distance(a.valid[2]).total_cmp(&distance(b.valid[2])))?;
    // c₀ mnk + c₁ mn per 2mnk flops.
    Some((rate.coefficients[0] + rate.coefficients[1] / nb) / 2.0)
}
