//! The reason for the searched values of each dimension, with the source of the guideline.

/// The reason for the values of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guideline {
    /// The dimension, as in [`crate::dims::Dim::name`].
    pub dim: &'static str,
    /// Why these values.
    pub why: &'static str,
    /// The source; keys in brackets are those of REFERENCES.md.
    pub source: &'static str,
}

/// The guidelines of all dimensions of the HPL space, in their order.
pub const GUIDELINES: [Guideline; 12] = {
    const fn of(dim: &'static str, why: &'static str, source: &'static str) -> Guideline {
        Guideline { dim, why, source }
    }
    [
        of(
            "ranks",
            "every divisor of the cores, the others of which become threads of a rank and divide those of a node; with accelerators every divisor of these",
            "rule: ranks x threads = cores, or one accelerator for each rank",
        ),
        of(
            "grid",
            "every P x Q of the ranks, fewer where the candidates would be too many; near square with P slightly below Q is usual, a factor of 11 lies between best and worst",
            "[HPL] tuning page; [Cornebize] 28 grids of 960 ranks",
        ),
        of(
            "nb",
            "dense where small changes matter, fewer where the candidates would be too many; on processors with 192, 240 and 384, which vendors recommend; at most N",
            "[HPL] tuning page; [Cornebize]: 37 % of the variance",
        ),
        of(
            "nbmin",
            "powers of two, fewer where the candidates would be too many; where the recursion of the panel ends, at most NB",
            "[HPL] tuning page; rule: NBMIN <= NB",
        ),
        of("ndiv", "2 to 4 parts of a panel, fewer where the candidates would be too many", "[HPL] tuning page"),
        of(
            "pfact",
            "all three, fewer where the candidates would be too many; nearly no effect in published runs",
            "[HPL] tuning page",
        ),
        of(
            "rfact",
            "all three, fewer where the candidates would be too many; nearly no effect in published runs",
            "[HPL] tuning page",
        ),
        of(
            "bcast",
            "all six, fewer where the candidates would be too many; one value where Q = 1",
            "[Cornebize]: 25 % of the variance; rule: nothing to send where Q = 1",
        ),
        of(
            "depth",
            "0 to 2 panels of look-ahead, fewer where the candidates would be too many",
            "[HPL] tuning page; [Cornebize]: 12 % of the variance",
        ),
        of(
            "swap",
            "all three, fewer where the candidates would be too many, mix with threshold 64; one value where P = 1",
            "[HPL] tuning page; rule: no rows to exchange where P = 1",
        ),
        of(
            "split",
            "no split, and the range in which the split update is useful, fewer where the candidates would be too many; none where P = 1",
            "[rocHPL]; rule: no row exchange to overlap where P = 1",
        ),
        of(
            "pmap",
            "both where the ranks of several nodes share them, as it decides which messages stay on a node; else one value",
            "rule: nothing to choose where a node has one rank, or one node all",
        ),
    ]
};

/// The guideline of the dimensions that only ranks of unequal speed have.
pub const WEIGHTS: Guideline = Guideline {
    dim: "weights",
    why: "speed of the slower ranks relative to the fastest: the measured one, some near it, and equal weights",
    source: "rule: only where ranks differ by more than 2 %",
};

/// The guidelines of the settings of the nodes.
pub const SETTINGS: [Guideline; 3] = [
    Guideline {
        dim: "max_clock_mhz",
        why: "highest clock of all processors, from that which the node was found with down; lower ones may do more per watt",
        source: "rule: only with --vary clock; AmpereOne: +3 % efficiency for -9 % speed at 2.6 GHz",
    },
    Guideline {
        dim: "package_limit_w",
        why: "power limit of every processor package, from that which the node was found with down",
        source: "rule: only with --vary power-cap",
    },
    Guideline {
        dim: "gpu_limit_w",
        why: "power limit of every accelerator, from that which the node was found with down",
        source: "rule: only with --vary gpu-power-cap",
    },
];

/// The guideline of a dimension, `None` for one that the HPL space does not have.
pub fn guideline(dim: &str) -> Option<&'static Guideline> {
    if dim.starts_with(WEIGHTS.dim) {
        return Some(&WEIGHTS);
    }
    GUIDELINES.iter().chain(&SETTINGS).find(|guideline| guideline.dim == dim)
}
