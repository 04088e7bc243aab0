//! A candidate: all parameters of one run.

use serde::{Deserialize, Serialize};

use crate::{Bcast, EngineParams, HplParams, Share, Swap, Weights};

/// The parameters of HPL and of our engine for one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// The parameters in HPL.dat.
    pub hpl: HplParams,
    /// The parameters in `engine-params.toml`.
    pub engine: EngineParams,
}

/// The program whose rules decide which parameters have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineProfile {
    /// Our engine: DEPTH is also look-ahead by threads, and at P = 1 there is no row exchange.
    Ours,
    /// Netlib's program: DEPTH has no effect at Q = 1, and the parameters of our engine have none.
    Netlib,
    /// A program that factors the next panel beside the update, as ours on a device: as Netlib's, but DEPTH acts at Q = 1, too.
    LookAhead,
}

impl Candidate {
    /// This candidate at matrix order `n`.
    #[must_use]
    pub fn at_n(&self, n: usize) -> Self {
        Self { hpl: HplParams { n, ..self.hpl }, engine: self.engine.clone() }
    }

    /// This candidate with the kernels of rank `rank` for all, where ranks have their own.
    #[must_use]
    pub fn with_kernels_of(&self, rank: usize) -> Self {
        let mut candidate = self.clone();
        if let Some(kernels) = self.engine.rank_kernels.get(rank) {
            candidate.engine.kernels = kernels.clone();
        }
        candidate
    }

    /// The candidate with a fixed value for every parameter without effect, so that equal runs are equal.
    /// Idempotent. The values taken are those of [`HplParams::baseline`], and DEPTH 0 where there is nothing
    /// to look ahead with. Threads, kernels and huge pages stay as they are.
    pub fn canonical(&self, profile: EngineProfile) -> Self {
        let EngineParams { threads, split, weights, .. } = &self.engine;
        let hpl = canonical_hpl(&self.hpl, *threads, profile);
        let (split, weights) = match profile {
            EngineProfile::Ours => {
                let weights = canonical_weights(weights);
                (canonical_split(&hpl, *split, &weights), weights)
            }
            EngineProfile::Netlib | EngineProfile::LookAhead => (Share::ZERO, Weights::default()),
        };
        Self { hpl, engine: EngineParams { split, weights, ..self.engine.clone() } }
    }
}

/// Split of a canonical run: 0 where no process ever has two blocks of columns behind a panel.
pub(crate) fn canonical_split(hpl: &HplParams, split: Share, weights: &Weights) -> Share {
    // Column N is b.
    let blocks = hpl.n / hpl.nb.max(1) + 1;
    // The first panel is process column 0's; column 1, if there is one, has blocks 1 and Q + 1. With weights
    // both may be anybody's.
    let needed = if weights.columns.is_empty() { hpl.q + 2 } else { 3 };
    if hpl.p == 1 || blocks < needed { Share::ZERO } else { split }
}

/// Equal speeds become an empty list.
pub(crate) fn canonical_weights(weights: &Weights) -> Weights {
    let unequal = |speeds: &[Share]| {
        let equal = speeds.windows(2).all(|pair| pair[0] == pair[1]);
        if equal { Vec::new() } else { speeds.to_vec() }
    };
    Weights { rows: unequal(&weights.rows), columns: unequal(&weights.columns) }
}

/// [`Candidate::canonical`] of the parameters, run with `threads` threads per rank.
pub(crate) fn canonical_hpl(hpl: &HplParams, threads: usize, profile: EngineProfile) -> HplParams {
    let mut hpl = canonical_panel(*hpl);
    let usual = HplParams::baseline(hpl.n, hpl.p, hpl.q);
    if hpl.p == 1 || hpl.q == 1 {
        hpl.pmap = usual.pmap;
    }
    // A panel that is sent to at most one other process column is sent as one message by every variant but Netlib's long, which
    // exchanges its halves there: more messages for the same words, and not searched apart.
    if hpl.q <= 2 {
        hpl.bcast = usual.bcast;
    }
    hpl.swap = canonical_swap(&hpl);
    match profile {
        EngineProfile::Ours => {
            // A panel of one column has nothing to transpose.
            if hpl.nb <= 1 {
                hpl.l1 = usual.l1;
            }
            // Up to four process columns two rings, with or without M, have 1ringM's senders and receivers. The
            // long ones cut the panel in pieces wherever three share it.
            if hpl.q <= 4 && matches!(hpl.bcast, Bcast::TwoRing | Bcast::TwoRingM) {
                hpl.bcast = Bcast::OneRingM;
            }
            // One thread in all: there is nobody to look ahead.
            let alone = hpl.ranks() == 1 && threads <= 1;
            hpl.depth = if alone { 0 } else { canonical_depth(&hpl) };
        }
        EngineProfile::LookAhead => hpl.depth = canonical_depth(&hpl),
        EngineProfile::Netlib => {
            if hpl.q == 1 {
                hpl.depth = 0;
            }
        }
    }
    // At P = 1 the rows are swapped in place: no U is stored.
    if hpl.p == 1 {
        hpl.u = usual.u;
    }
    // Only spread-roll has lengths to balance.
    if hpl.p == 1 || hpl.swap == Swap::BinExch {
        hpl.equil = usual.equil;
    }
    hpl
}

/// DEPTH of a program that looks ahead: with one panel there is nothing to look ahead; all panels in flight are the most there can
/// be.
fn canonical_depth(hpl: &HplParams) -> usize {
    let panels = hpl.n.div_ceil(hpl.nb.max(1));
    if panels <= 1 { 0 } else { hpl.depth.min(panels) }
}

/// The recursion of the panel: it splits NB columns into blocks of NBMIN, NDIV parts at a time.
fn canonical_panel(mut hpl: HplParams) -> HplParams {
    let usual = HplParams::baseline(hpl.n, hpl.p, hpl.q);
    // One block holds the matrix whatever NB is above N.
    hpl.nb = hpl.nb.min(hpl.n.max(1));
    // The recursion stops at n ≤ NBMIN, so at once from NBMIN = NB on.
    hpl.nbmin = hpl.nbmin.min(hpl.nb);
    let blocks = hpl.nb.div_ceil(hpl.nbmin.max(1));
    // jb = ceil(blocks/NDIV)·NBMIN is one block for every NDIV ≥ blocks.
    hpl.ndiv = hpl.ndiv.min(blocks.max(2));
    if blocks <= 1 {
        hpl.rfact = usual.rfact;
    }
    // The variants differ in the columns left and right of the current one: a single one has none.
    if hpl.nbmin == 1 {
        hpl.pfact = usual.pfact;
    }
    hpl
}

/// No row exchange at P = 1; mix is one of its parts where the threshold is out of reach of all N+1 columns.
fn canonical_swap(hpl: &HplParams) -> Swap {
    let swap = if hpl.p == 1 { HplParams::baseline(hpl.n, hpl.p, hpl.q).swap } else { hpl.swap };
    match swap {
        Swap::Mix { threshold: 0 } => Swap::Long,
        Swap::Mix { threshold } if threshold > hpl.n => Swap::BinExch,
        other => other,
    }
}
