//! The usual start candidates: the default, and the rule of thumb of experts.

use serde::{Deserialize, Serialize};

use super::build::fills_all;
use super::grids::squarest;
use super::spec::DomainSpec;
use crate::candidate::EngineProfile;
use crate::workspace::{RunShape, Workspace};
use crate::{Candidate, EngineParams, HplParams, Share};

/// The candidate that users start from: one rank per core, the grid as square as possible with P ≤ Q, all else
/// as in [`HplParams::baseline`]. `spec.ranks` and `spec.threads` are obeyed.
pub fn default_candidate(spec: &DomainSpec) -> Candidate {
    let threads = spec.threads.unwrap_or(spec.ranks.map_or(1, |ranks| (spec.cores / ranks.max(1)).max(1)));
    let (p, q) = squarest(spec.ranks.unwrap_or(spec.cores / threads.max(1)).max(1));
    Candidate { hpl: HplParams::baseline(spec.n, p, q), engine: engine(spec, threads, Share::ZERO) }
}

pub(super) fn engine(spec: &DomainSpec, threads: usize, split: Share) -> EngineParams {
    let (kernels, rank_kernels) = (spec.kernels.clone(), spec.unequal.kernels.clone());
    EngineParams { threads, kernels, rank_kernels, split, ..EngineParams::default() }
}

/// The rule of thumb of experts on one machine: a rank for the cores that share a last-level cache, its threads on these, NB
/// as the vendor of the processor advises, all else as in the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expert {
    /// Ranks, on a grid as square as possible with P ≤ Q.
    pub ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// NB.
    pub nb: usize,
}

impl Expert {
    /// The rule for the cores of `spec`, of which `sharing` share a last-level cache, and the vendor's NB. `spec.ranks` and
    /// `spec.threads` are obeyed.
    ///
    /// # Errors
    /// Why there is none, as a clause.
    pub fn new(spec: &DomainSpec, sharing: usize, nb: usize) -> Result<Self, String> {
        let cores = spec.cores;
        let (ranks, threads) = match (spec.ranks, spec.threads) {
            (None, None) if sharing == 0 || !cores.is_multiple_of(sharing) => {
                return Err(format!("{cores} cores are not a whole number of caches with {sharing} cores each"));
            }
            (None, None) if !fills_all(spec, sharing) => {
                return Err(format!(
                    "ranks of {sharing} threads do not have all cores of the nodes, which are {cores}"
                ));
            }
            (None, None) => (cores / sharing, sharing),
            _ => {
                let usual = default_candidate(spec);
                (usual.hpl.ranks(), usual.engine.threads)
            }
        };
        Ok(Self { ranks, threads, nb })
    }

    /// The candidate that follows the rule, all else as in `default`; canonical by the rules of `profile`.
    pub fn candidate(&self, default: &Candidate, profile: EngineProfile) -> Candidate {
        let (p, q) = squarest(self.ranks);
        let hpl = HplParams { nb: self.nb, ..HplParams::baseline(default.hpl.n, p, q) };
        let engine = EngineParams { threads: self.threads, ..default.engine.clone() };
        Candidate { hpl, engine }.canonical(profile)
    }

    /// [`Expert::candidate`], if it can run in `memory_bytes`, of which it takes what `workspace` says, and differs from the default.
    ///
    /// # Errors
    /// Why not, as a clause.
    pub fn checked(
        self,
        default: &Candidate,
        (memory_bytes, workspace): (u64, Workspace),
        profile: EngineProfile,
    ) -> Result<Self, String> {
        let candidate = self.candidate(default, profile);
        let HplParams { p, q, nb, .. } = candidate.hpl;
        // Other engines keep no L1 for each thread.
        let threads = if profile == EngineProfile::Ours { self.threads } else { 1 };
        let cores = self.ranks.saturating_mul(threads);
        if workspace.bytes(RunShape::on_hosts(&candidate.hpl, threads, cores)) > memory_bytes {
            return Err(format!("the expert's configuration (NB {nb}, {p}×{q}) does not fit the memory"));
        }
        if candidate == default.canonical(profile) {
            return Err("the expert's configuration is the default".to_owned());
        }
        Ok(self)
    }
}
