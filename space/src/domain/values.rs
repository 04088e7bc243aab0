//! The values of each dimension of the HPL space, from fine to coarse.

use super::grids::aspects;
use super::spec::DomainSpec;
use crate::dims::{Dim, DimKind, Level};
use crate::params::Coded;
use crate::{Bcast, Looking, Pmap, Swap};

/// Values of NB: dense where small changes matter, with the vendors' 192, 240 and 384.
const NB: [usize; 26] = [
    16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 448,
    512,
];
/// Values of NB if there are many grids.
const NB_COARSE: [usize; 12] = [32, 64, 96, 128, 160, 192, 224, 240, 256, 320, 384, 512];
/// Values of NB if each candidate is run at many settings of the nodes or with many weights: the vendors' and that of the default.
const NB_FEW: [usize; 5] = [64, 128, 192, 240, 384];
/// PFACT, RFACT, BCAST and SWAP with the baseline's value first, which is used if they have no effect.
const PFACT: [Looking; 3] = [Looking::Right, Looking::Left, Looking::Crout];
const RFACT: [Looking; 3] = [Looking::Crout, Looking::Left, Looking::Right];
const BCAST: [Bcast; 6] = [Bcast::OneRingM, Bcast::OneRing, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];
/// One of each kind: a ring, two rings, in pieces.
const BCAST_FEW: [Bcast; 3] = [Bcast::OneRingM, Bcast::TwoRingM, Bcast::LongM];
const SWAP: [Swap; 3] = [Swap::Mix { threshold: 64 }, Swap::BinExch, Swap::Long];
/// Mix has binary exchange for what is narrow.
const SWAP_FEW: [Swap; 2] = [SWAP[0], SWAP[2]];

const DEPTH: [usize; 3] = [0, 1, 2];
/// Right sections of the split update, none first; \[rocHPL\] has 0.3 to 0.7.
const SPLIT: [f64; 4] = [0.0, 0.3, 0.5, 0.7];

/// PMAP if some nodes have several ranks; otherwise only the first value.
const PMAP: [Pmap; 2] = [Pmap::Row, Pmap::Column];

/// The dimensions, in the order of [`Values::dims`].
pub(super) const NAMES: [&str; 12] =
    ["ranks", "grid", "nb", "nbmin", "ndiv", "pfact", "rfact", "bcast", "depth", "swap", "split", "pmap"];

/// Number of values of the dimensions with the smallest effect.
pub(super) struct Detail {
    pub(super) nb: &'static [usize],
    pub(super) nbmin: &'static [usize],
    pub(super) ndiv: &'static [usize],
    pub(super) pfact: &'static [Looking],
    pub(super) rfact: &'static [Looking],
    pub(super) bcast: &'static [Bcast],
    pub(super) depth: &'static [usize],
    pub(super) swap: &'static [Swap],
    pub(super) split: &'static [f64],
    /// Without effect where no nodes have several ranks.
    pub(super) pmap: &'static [Pmap],
    /// P/Q or Q/P of the most elongated grid.
    pub(super) elongation: usize,
}

impl Detail {
    /// The usual values for `spec` at this detail.
    pub(super) fn values(&self, spec: &DomainSpec, splits: &[(usize, usize)]) -> Values {
        Values {
            splits: splits.to_vec(),
            aspects: aspects(splits, self.elongation),
            // NB above N is NB = N; NBMIN above NB likewise.
            nb: up_to(self.nb, spec.n),
            nbmin: up_to(self.nbmin, spec.n),
            ndiv: self.ndiv.to_vec(),
            pfact: self.pfact.to_vec(),
            rfact: self.rfact.to_vec(),
            bcast: self.bcast.to_vec(),
            depth: self.depth.to_vec(),
            swap: swaps(self.swap, spec.n),
            split: self.split.to_vec(),
            pmap: if spec.has_nodes() { self.pmap.to_vec() } else { self.pmap[..1].to_vec() },
        }
    }
}

/// From fine to coarse. The last has some hundred candidates on any number of cores, as each of them is a point for all
/// settings of the nodes and weights.
pub(super) const DETAILS: [Detail; 14] = {
    let finest = Detail {
        nb: &NB,
        nbmin: &[1, 2, 4, 8, 16, 32],
        ndiv: &[2, 3, 4],
        pfact: &PFACT,
        rfact: &RFACT,
        bcast: &BCAST,
        depth: &DEPTH,
        swap: &SWAP,
        split: &SPLIT,
        pmap: &PMAP,
        elongation: usize::MAX,
    };
    let small_recursion = Detail { nbmin: &[2, 4, 8, 16], ndiv: &[2], ..finest };
    let no_rfact = Detail { rfact: RFACT.split_at(1).0, ..small_recursion };
    let coarse = Detail { nb: &NB_COARSE, ..no_rfact };
    let no_pfact = Detail { nbmin: &[4, 8], pfact: PFACT.split_at(1).0, ..coarse };
    let coarsest = Detail { depth: &[0, 1], split: &[0.0, 0.5], ..no_pfact };
    // Thousands of ranks have hundreds of grids, and those of a few process rows are never good.
    let elongation_32 = Detail { elongation: 32, ..coarsest };
    let near_square = Detail { elongation: 8, ..coarsest };
    let few_swaps = Detail { nbmin: &[4], swap: &SWAP_FEW, ..near_square };
    // Also without settings, as on thousands of cores that have many divisors, NB matters more.
    let few_bcasts = Detail { bcast: &BCAST_FEW, ..few_swaps };
    let few_nb = Detail { nb: &NB_FEW, ..few_bcasts };
    let no_swap = Detail { swap: SWAP.split_at(1).0, split: SPLIT.split_at(1).0, ..few_nb };
    let no_bcast = Detail { bcast: BCAST.split_at(1).0, pmap: PMAP.split_at(1).0, elongation: 4, ..no_swap };
    let fewest = Detail { nb: NB_FEW.split_at(1).1, depth: &[1], elongation: 2, ..no_bcast };
    [
        finest,
        small_recursion,
        no_rfact,
        coarse,
        no_pfact,
        coarsest,
        elongation_32,
        near_square,
        few_swaps,
        few_bcasts,
        few_nb,
        no_swap,
        no_bcast,
        fewest,
    ]
};

/// The values of every dimension.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    /// (ranks, threads), by rising ranks.
    pub(super) splits: Vec<(usize, usize)>,
    /// P:Q in lowest terms, by rising P/Q.
    pub(super) aspects: Vec<(usize, usize)>,
    pub(super) nb: Vec<usize>,
    pub(super) nbmin: Vec<usize>,
    pub(super) ndiv: Vec<usize>,
    pub(super) pfact: Vec<Looking>,
    pub(super) rfact: Vec<Looking>,
    pub(super) bcast: Vec<Bcast>,
    pub(super) depth: Vec<usize>,
    pub(super) swap: Vec<Swap>,
    pub(super) split: Vec<f64>,
    pub(super) pmap: Vec<Pmap>,
}

impl Values {
    pub(super) fn dims(&self) -> Vec<Dim> {
        let log2 = |value: usize| (value as f64).log2();
        let sizes =
            |name, values: &[usize]| ordered(name, values.iter().map(|&value| (value.to_string(), log2(value))));
        let aspects = self.aspects.iter().map(|&(p, q)| (format!("{p}:{q}"), log2(p) - log2(q)));
        vec![
            ordered("ranks", self.splits.iter().map(|&(ranks, _)| (ranks.to_string(), log2(ranks)))),
            ordered("grid", aspects),
            sizes("nb", &self.nb),
            sizes("nbmin", &self.nbmin),
            sizes("ndiv", &self.ndiv),
            categorical("pfact", self.pfact.iter().map(|value| value.name())),
            categorical("rfact", self.rfact.iter().map(|value| value.name())),
            categorical("bcast", self.bcast.iter().map(|value| value.name())),
            ordered("depth", self.depth.iter().map(|&value| (value.to_string(), value as f64))),
            categorical("swap", self.swap.iter().map(|value| value.name())),
            ordered("split", self.split.iter().map(|&value| (value.to_string(), value))),
            categorical("pmap", self.pmap.iter().map(|value| value.name())),
        ]
    }
}

/// `values` at order `n`, below whose threshold mix is binary exchange.
fn swaps(values: &[Swap], n: usize) -> Vec<Swap> {
    let acting = |&swap: &Swap| match swap {
        Swap::Mix { threshold } if threshold > n => Swap::BinExch,
        other => other,
    };
    let mut values: Vec<_> = values.iter().map(acting).collect();
    values.dedup();
    values
}

/// `values` with `max` in place of all larger ones.
pub(super) fn up_to(values: &[usize], max: usize) -> Vec<usize> {
    let mut values: Vec<_> = values.iter().map(|&value| value.min(max)).collect();
    values.dedup();
    values
}

fn ordered(name: &str, levels: impl Iterator<Item = (String, f64)>) -> Dim {
    let levels = levels.map(|(label, feature)| Level { label, feature }).collect();
    Dim { name: name.to_owned(), kind: DimKind::Ordered, levels }
}

fn categorical(name: &str, labels: impl Iterator<Item = &'static str>) -> Dim {
    let levels = labels.enumerate().map(|(i, label)| Level { label: label.to_owned(), feature: i as f64 }).collect();
    Dim { name: name.to_owned(), kind: DimKind::Categorical, levels }
}
