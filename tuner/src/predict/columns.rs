//! Netlib's program on a described cluster, by the column recursion.

use objectives::scenario::{Placement, ScenarioError};
use objectives::timeline::{Platform, Schedule, Timeline, recursion};
use space::machine::Machine;

use super::Question;
use crate::exit::bad_input;

/// Steps × Q that are walked at most: a minute of a core.
const LARGEST: usize = 1_000_000_000;

/// Whether the description states what the recursion needs besides the rates of kernels.
pub(super) fn described(machine: &Machine) -> bool {
    machine.timeline.is_some() && Platform::new(machine).is_ok()
}

/// The run as Netlib's program makes it.
///
/// # Errors
/// Bad input: a run that does not fit the machine or that the description's costs do not reach down to.
pub(super) fn timeline(machine: &Machine, question: &Question) -> anyhow::Result<Timeline> {
    let hpl = &question.hpl;
    let placement = Placement::new(machine, &question.run()).map_err(bad_input)?;
    if question.threads > 1 {
        return Err(bad_input(format!(
            "timeline knows ranks of one thread by [timeline], found --threads {}; leave it out, or give --model mcl",
            question.threads
        )));
    }
    let mut platform = Platform::new(machine).map_err(bad_input)?;
    // The platform takes messages beyond its layers as messages of the last one.
    let joined = machine.layers.last().map_or(1, |layer| layer.ranks);
    if hpl.ranks() > joined {
        return Err(bad_input(ScenarioError::Layers { joined, ranks: hpl.ranks() }));
    }
    if !machine.nodes.is_empty() {
        // Ranks that spread over more nodes than they fill are fewer on each.
        platform.ranks_per_node = placement.ranks_per_node.min(platform.ranks_per_node);
    }
    let smallest = smallest_nb(&platform);
    if hpl.nb < smallest {
        return Err(bad_input(format!(
            "NB = {}: [timeline] dgemm_mn_s takes back more than the multiply–adds of such narrow panels cost; raise NB \
             to at least {smallest}",
            hpl.nb
        )));
    }
    let steps = hpl.n.div_ceil(hpl.nb);
    if steps.saturating_mul(hpl.q) > LARGEST {
        return Err(bad_input(format!(
            "N = {}, NB = {}: {steps} steps on Q = {} process columns are too many to compute; raise NB, or give --model mcl",
            hpl.n, hpl.nb, hpl.q
        )));
    }
    Ok(recursion::timeline(hpl, &platform, Schedule::Netlib))
}

/// NB from which on DGEMM's time is at least half of what its multiply–adds take.
fn smallest_nb(platform: &Platform) -> usize {
    let quickest = platform.multiply_add_s.iter().copied().fold(f64::INFINITY, f64::min);
    (2.0 * -platform.gemm.mn_s / quickest).ceil().max(1.0) as usize
}

/// What the recursion takes for granted of this run.
pub(super) fn notes(machine: &Machine, question: &Question) -> Vec<String> {
    let hpl = &question.hpl;
    let mut notes = vec![
        "PFACT, RFACT, NBMIN, NDIV, L1, U, EQUIL and ALIGN are in the description's costs or not at all".to_owned(),
    ];
    if hpl.q == 1 && hpl.depth > 0 {
        notes.push(format!("DEPTH {}: Netlib's program does not look ahead where Q = 1", hpl.depth));
    } else if hpl.depth > 1 {
        notes.push(format!("DEPTH {} is taken as 1", hpl.depth));
    }
    let dgemm = machine.rates.iter().find(|rate| rate.kernel == space::machine::RateKernel::Dgemm);
    if let Some([_, largest]) = dgemm.and_then(|rate| rate.valid.get(2)).filter(|k| hpl.nb as f64 > k[1]) {
        notes.push(format!("NB = {} is beyond the {largest} columns that DGEMM's rate is stated for", hpl.nb));
    }
    notes
}
