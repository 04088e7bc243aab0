//! The HPL space: every candidate worth considering at one order N on one machine.
//!
//! Ranks and threads share the cores, `ranks · threads = cores`. The grid is two ordered dimensions: `ranks`
//! (log2) and `grid`, the aspect P:Q in lowest terms (log2 P/Q), so that 1×2 and 2×4 are alike and any number
//! of cores fits; a pair that makes no whole P and Q does not exist.

use crate::candidate::{EngineProfile, canonical_hpl};
use crate::dims::{Dim, Kind, Level, Point, Space};
pub use crate::order::{largest_n, orders_near, required_bytes};
use crate::params::Coded;
use crate::rules::{MAX_THREADS, RuleError};
use crate::{Bcast, Candidate, EngineParams, HplParams, KernelChoice, Looking, Swap};

/// What a domain is built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSpec {
    /// Target order N.
    pub n: usize,
    /// Cores to use.
    pub cores: usize,
    /// Memory that a run may take, in bytes.
    pub memory_bytes: u64,
    /// Kernels of all candidates, resolved.
    pub kernels: KernelChoice,
    /// Ranks of all candidates; `None` for every divisor of the cores.
    pub ranks: Option<usize>,
    /// Threads of each rank of all candidates; `None` for the cores over the ranks.
    pub threads: Option<usize>,
}

/// Why there is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Ranks or threads do not fit the cores.
    #[error("{ranks} ranks with {threads} threads each need more than {cores} cores; lower ranks or threads")]
    Cores {
        /// Ranks asked for.
        ranks: usize,
        /// Threads of each.
        threads: usize,
        /// Cores there are.
        cores: usize,
    },
    /// Nothing fits the memory.
    #[error("N={n} needs {needed_bytes} bytes, {memory_bytes} are usable; lower N to at most {largest_n}")]
    Memory {
        /// Target order.
        n: usize,
        /// What the most frugal candidate takes.
        needed_bytes: u64,
        /// What there is.
        memory_bytes: u64,
        /// Largest order that fits.
        largest_n: usize,
    },
    /// A value of the specification breaks a rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Points that a domain may have; a suggestion looks at all of them.
pub const MAX_POINTS: usize = 200_000;

/// Values of NB: dense where small changes matter, with the vendors' 192, 240 and 384.
const NB: [usize; 26] = [
    16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 448,
    512,
];
/// Values of NB where there are many grids.
const NB_COARSE: [usize; 12] = [32, 64, 96, 128, 160, 192, 224, 240, 256, 320, 384, 512];
/// PFACT, RFACT, BCAST and SWAP with the baseline's value first: it stands where none can matter.
const PFACT: [Looking; 3] = [Looking::Right, Looking::Left, Looking::Crout];
const RFACT: [Looking; 3] = [Looking::Crout, Looking::Left, Looking::Right];
const BCAST: [Bcast; 4] = [Bcast::OneRingM, Bcast::OneRing, Bcast::TwoRing, Bcast::TwoRingM];
const SWAP: [Swap; 3] = [Swap::Mix { threshold: 64 }, Swap::BinExch, Swap::Long];

/// The values of every dimension.
#[derive(Debug, Clone, PartialEq)]
struct Values {
    /// (ranks, threads), by rising ranks.
    splits: Vec<(usize, usize)>,
    /// P:Q in lowest terms, by rising P/Q.
    aspects: Vec<(usize, usize)>,
    nb: Vec<usize>,
    nbmin: Vec<usize>,
    ndiv: Vec<usize>,
    pfact: &'static [Looking],
    rfact: &'static [Looking],
    depth: [usize; 2],
}

/// All canonical candidates of our engine at one N; see the [module](self).
#[derive(Debug, Clone)]
pub struct HplDomain {
    spec: DomainSpec,
    values: Values,
    dims: Vec<Dim>,
    points: Vec<Point>,
}

impl HplDomain {
    /// The domain of `spec`. Where there are many grids it has fewer values of what matters least: first
    /// NDIV, NBMIN and RFACT, then NB, then PFACT.
    ///
    /// # Errors
    /// [`DomainError`] naming the rule that leaves no candidate.
    pub fn new(spec: &DomainSpec) -> Result<Self, DomainError> {
        let splits = splits(spec)?;
        default_candidate(spec).check()?;
        check_memory(spec, &splits)?;
        let details = [
            (&NB[..], &[1, 2, 4, 8, 16, 32][..], &[2, 3, 4][..], &PFACT[..], &RFACT[..]),
            (&NB, &[2, 4, 8, 16], &[2], &PFACT, &RFACT),
            (&NB, &[2, 4, 8, 16], &[2], &PFACT, &RFACT[..1]),
            (&NB_COARSE, &[2, 4, 8, 16], &[2], &PFACT, &RFACT[..1]),
            (&NB_COARSE, &[4, 8], &[2], &PFACT[..1], &RFACT[..1]),
        ];
        let last = details.len() - 1;
        for (i, (nb, nbmin, ndiv, pfact, rfact)) in details.into_iter().enumerate() {
            let values = Values {
                splits: splits.clone(),
                aspects: aspects(&splits),
                // NB above N is NB = N; NBMIN above NB likewise.
                nb: up_to(nb, spec.n),
                nbmin: up_to(nbmin, spec.n),
                ndiv: ndiv.to_vec(),
                pfact,
                rfact,
                depth: [0, 1],
            };
            let mut domain = Self { spec: spec.clone(), dims: values.dims(), values, points: Vec::new() };
            let limit = if i == last { usize::MAX } else { MAX_POINTS };
            if let Some(points) = domain.enumerate(limit) {
                domain.points = points;
                return Ok(domain);
            }
        }
        unreachable!("the last detail has no limit")
    }

    /// What the domain was built for.
    pub fn spec(&self) -> &DomainSpec {
        &self.spec
    }

    /// The candidate that a canonical point stands for.
    ///
    /// # Panics
    /// When `point` is no point of this domain.
    pub fn candidate(&self, point: &Point) -> Candidate {
        let (hpl, threads) = self.params(point).expect("a point of this domain");
        Candidate { hpl, engine: engine(&self.spec, threads) }
    }

    /// The point of a candidate, `None` where the domain does not have it.
    pub fn point(&self, candidate: &Candidate) -> Option<Point> {
        let same_engine = candidate.engine == engine(&self.spec, candidate.engine.threads);
        let point = self.find(&candidate.hpl, candidate.engine.threads)?;
        (same_engine && self.canonical(&point).as_ref() == Some(&point)).then_some(point)
    }

    /// Parameters and threads at a point, `None` where its ranks have no such grid.
    fn params(&self, point: &Point) -> Option<(HplParams, usize)> {
        let &[ranks, grid, nb, nbmin, ndiv, pfact, rfact, bcast, depth, swap] = point.0.as_slice() else {
            return None;
        };
        let values = &self.values;
        let &(ranks, threads) = values.splits.get(usize::from(ranks))?;
        let (p, q) = grid_of(ranks, *values.aspects.get(usize::from(grid))?)?;
        let hpl = HplParams {
            nb: *values.nb.get(usize::from(nb))?,
            nbmin: *values.nbmin.get(usize::from(nbmin))?,
            ndiv: *values.ndiv.get(usize::from(ndiv))?,
            pfact: *values.pfact.get(usize::from(pfact))?,
            rfact: *values.rfact.get(usize::from(rfact))?,
            bcast: *BCAST.get(usize::from(bcast))?,
            depth: *values.depth.get(usize::from(depth))?,
            swap: *SWAP.get(usize::from(swap))?,
            ..HplParams::baseline(self.spec.n, p, q)
        };
        Some((hpl, threads))
    }

    /// The levels of the canonical form of `hpl`; fields that are no dimension must have their one value.
    fn find(&self, hpl: &HplParams, threads: usize) -> Option<Point> {
        let hpl = canonical_hpl(hpl, threads, EngineProfile::Ours);
        let values = &self.values;
        let point = Point(vec![
            level(&values.splits, &(hpl.ranks(), threads))?,
            level(&values.aspects, &aspect(hpl.p, hpl.q))?,
            level(&values.nb, &hpl.nb)?,
            level(&values.nbmin, &hpl.nbmin)?,
            level(&values.ndiv, &hpl.ndiv)?,
            level(values.pfact, &hpl.pfact)?,
            level(values.rfact, &hpl.rfact)?,
            level(&BCAST, &hpl.bcast)?,
            level(&values.depth, &hpl.depth)?,
            level(&SWAP, &hpl.swap)?,
        ]);
        (self.params(&point)? == (hpl, threads)).then_some(point)
    }

    /// All canonical points in lexicographic order, `None` when there are more than `limit`.
    fn enumerate(&self, limit: usize) -> Option<Vec<Point>> {
        let lengths: Vec<_> = self.dims.iter().map(|dim| dim.levels.len()).collect();
        let mut points = Vec::new();
        let mut stack = vec![Vec::new()];
        while let Some(levels) = stack.pop() {
            if let [ranks, grid] = levels[..] {
                let (ranks, _) = self.values.splits[usize::from(ranks)];
                if grid_of(ranks, self.values.aspects[usize::from(grid)]).is_none() {
                    continue;
                }
            }
            if let Some(&length) = lengths.get(levels.len()) {
                stack.extend((0..length as u16).rev().map(|level| [&levels[..], &[level]].concat()));
                continue;
            }
            let point = Point(levels);
            if self.canonical(&point).as_ref() == Some(&point) {
                if points.len() == limit {
                    return None;
                }
                points.push(point);
            }
        }
        Some(points)
    }
}

impl Space for HplDomain {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        let (hpl, threads) = self.params(point)?;
        let needed = required_bytes(hpl.n, hpl.p, hpl.q, hpl.nb, hpl.depth);
        if hpl.nbmin > hpl.nb || needed > self.spec.memory_bytes {
            return None;
        }
        self.find(&hpl, threads)
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

impl Values {
    fn dims(&self) -> Vec<Dim> {
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
            categorical("bcast", BCAST.iter().map(|value| value.name())),
            ordered("depth", self.depth.iter().map(|&value| (value.to_string(), value as f64))),
            categorical("swap", SWAP.iter().map(|value| value.name())),
        ]
    }
}

/// The grid of `ranks` ranks that is as square as possible with P ≤ Q.
pub fn squarest(ranks: usize) -> (usize, usize) {
    let p = (1..=ranks.isqrt()).rev().find(|p| ranks.is_multiple_of(*p)).unwrap_or(1);
    (p, ranks / p)
}

/// The candidate that users start from: one rank per core, the grid as square as possible with P ≤ Q, all else
/// as in [`HplParams::baseline`]. `spec.ranks` and `spec.threads` are obeyed.
pub fn default_candidate(spec: &DomainSpec) -> Candidate {
    let threads = spec.threads.unwrap_or(spec.ranks.map_or(1, |ranks| (spec.cores / ranks.max(1)).max(1)));
    let (p, q) = squarest(spec.ranks.unwrap_or(spec.cores / threads.max(1)).max(1));
    Candidate { hpl: HplParams::baseline(spec.n, p, q), engine: engine(spec, threads) }
}

fn engine(spec: &DomainSpec, threads: usize) -> EngineParams {
    EngineParams { threads, kernels: spec.kernels.clone(), ..EngineParams::default() }
}

/// All (ranks, threads), by rising ranks.
fn splits(spec: &DomainSpec) -> Result<Vec<(usize, usize)>, DomainError> {
    let cores = spec.cores;
    let sizes = [("N", Some(spec.n)), ("cores", Some(cores)), ("ranks", spec.ranks), ("threads", spec.threads)];
    for (name, found) in sizes {
        if found == Some(0) {
            return Err(RuleError::TooSmall { name, min: 1, found: 0 }.into());
        }
    }
    if cores > MAX_THREADS {
        return Err(RuleError::TooManyThreads { p: 1, q: cores, threads: 1 }.into());
    }
    let splits = match (spec.ranks, spec.threads) {
        (None, None) => divisors(cores).into_iter().map(|ranks| (ranks, cores / ranks)).collect(),
        (Some(ranks), None) => vec![(ranks, (cores / ranks).max(1))],
        (None, Some(threads)) => vec![((cores / threads).max(1), threads)],
        (Some(ranks), Some(threads)) => vec![(ranks, threads)],
    };
    match splits.iter().find(|(ranks, threads)| ranks.saturating_mul(*threads) > cores) {
        Some(&(ranks, threads)) => Err(DomainError::Cores { ranks, threads, cores }),
        None => Ok(splits),
    }
}

/// Whether the most frugal candidate fits: the smallest NB without look-ahead, on the grid that needs least.
fn check_memory(spec: &DomainSpec, splits: &[(usize, usize)]) -> Result<(), DomainError> {
    let nb = NB[0].min(spec.n);
    let grids = splits.iter().flat_map(|&(ranks, _)| divisors(ranks).into_iter().map(move |p| (p, ranks / p)));
    let frugal = grids.min_by_key(|&(p, q)| required_bytes(spec.n, p, q, nb, 0));
    let (p, q) = frugal.expect("splits are never empty");
    let needed_bytes = required_bytes(spec.n, p, q, nb, 0);
    if needed_bytes <= spec.memory_bytes {
        return Ok(());
    }
    let largest_n = largest_n(spec.memory_bytes, p, q, nb, 0);
    Err(DomainError::Memory { n: spec.n, needed_bytes, memory_bytes: spec.memory_bytes, largest_n })
}

/// The aspects that any of the rank counts has, by rising P/Q.
fn aspects(splits: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let grids = splits.iter().flat_map(|&(ranks, _)| divisors(ranks).into_iter().map(move |p| aspect(p, ranks / p)));
    let mut aspects: Vec<_> = grids.collect();
    aspects.sort_by(|(p, q), (other_p, other_q)| (p * other_q).cmp(&(other_p * q)));
    aspects.dedup();
    aspects
}

/// P:Q in lowest terms.
fn aspect(p: usize, q: usize) -> (usize, usize) {
    let gcd = divisors(p).into_iter().rev().find(|d| q.is_multiple_of(*d)).unwrap_or(1);
    (p / gcd, q / gcd)
}

/// The grid P×Q of `ranks` ranks with this aspect, if there is one.
fn grid_of(ranks: usize, (p, q): (usize, usize)) -> Option<(usize, usize)> {
    let scale = (ranks / (p * q)).isqrt();
    (scale * scale * p * q == ranks).then_some((scale * p, scale * q))
}

fn divisors(n: usize) -> Vec<usize> {
    (1..=n).filter(|d| n.is_multiple_of(*d)).collect()
}

/// `values` with `max` in the place of all above it.
fn up_to(values: &[usize], max: usize) -> Vec<usize> {
    let mut values: Vec<_> = values.iter().map(|&value| value.min(max)).collect();
    values.dedup();
    values
}

fn level<T: PartialEq>(values: &[T], value: &T) -> Option<u16> {
    values.iter().position(|known| known == value).and_then(|level| u16::try_from(level).ok())
}

fn ordered(name: &str, levels: impl Iterator<Item = (String, f64)>) -> Dim {
    let levels = levels.map(|(label, feature)| Level { label, feature }).collect();
    Dim { name: name.to_owned(), kind: Kind::Ordered, levels }
}

fn categorical(name: &str, labels: impl Iterator<Item = &'static str>) -> Dim {
    let levels = labels.enumerate().map(|(i, label)| Level { label: label.to_owned(), feature: i as f64 }).collect();
    Dim { name: name.to_owned(), kind: Kind::Categorical, levels }
}
