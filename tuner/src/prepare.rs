//! What a session needs to know before its first trial: the machine's rates, the target N, the domain.

use objectives::predict::Predictor;
use space::domain::{DomainError, DomainSpec, HplDomain, largest_n, squarest};
use space::machine::{Machine, Node};

use crate::cost;

/// Multiple that a chosen N is rounded down to: the customary small NB values divide it.
const ROUND_TO: usize = 64;

/// Smallest N that is chosen; below it a run measures its own overhead.
pub const SMALLEST_N: usize = 256;

/// Largest NB of the domain, whose workspace a safe N has to leave room for.
const LARGEST_NB: usize = 512;

/// The target order of a search and what limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Order N.
    pub n: usize,
    /// The largest order that memory allows.
    pub n_memory: usize,
    /// Whether the budget, rather than memory or the user, limits N.
    pub limited_by_budget: bool,
}

/// Memory that runs may fill: what is available less what is kept for the system, in bytes; none where the
/// description does not say.
pub fn usable_bytes(machine: &Machine) -> u64 {
    let usable = |node: &Node| node.memory_bytes.saturating_sub(node.reserved_bytes);
    machine.nodes.iter().map(usable).sum()
}

/// The largest order whose matrix and workspace fit for any candidate.
pub fn largest_safe_n(spec: &DomainSpec) -> usize {
    let (p, q) = squarest(spec.ranks.unwrap_or(spec.cores));
    largest_n(spec.memory_bytes, p, q, LARGEST_NB, 1)
}

/// Chooses N: the largest safe one whose run is predicted to take at most `run_s` wall-clock seconds.
///
/// `spec.n` is not read.
///
/// # Errors
/// [`DomainError`] when no candidate fits the machine at all.
pub fn choose_n(spec: &DomainSpec, predictor: &Predictor, run_s: f64) -> Result<Target, DomainError> {
    let n_memory = largest_safe_n(spec);
    if n_memory < SMALLEST_N {
        // Says what the smallest N needs and what there is.
        HplDomain::new(&DomainSpec { n: SMALLEST_N, ..spec.clone() })?;
    }
    let mut n = n_memory.min(8192);
    // The time grows with N³ and a little less for small N: a few corrections settle it.
    for _ in 0..6 {
        let ratio = (run_s / best_run_s(&DomainSpec { n, ..spec.clone() }, predictor)?).cbrt();
        n = ((n as f64 * ratio) as usize).clamp(SMALLEST_N.min(n_memory), n_memory);
    }
    let limited_by_budget = n < n_memory;
    Ok(Target { n: round(n), n_memory, limited_by_budget })
}

/// Predicted wall clock of the best candidate of a domain, in seconds.
///
/// # Errors
/// [`DomainError`] when there is none.
pub fn best_run_s(spec: &DomainSpec, predictor: &Predictor) -> Result<f64, DomainError> {
    use space::dims::Space;
    let domain = HplDomain::new(spec)?;
    let cost = |point| cost::model_s(predictor, &domain.candidate(point));
    Ok(domain.points().iter().map(cost).fold(f64::INFINITY, f64::min))
}

fn round(n: usize) -> usize {
    if n > ROUND_TO { n / ROUND_TO * ROUND_TO } else { n }
}
