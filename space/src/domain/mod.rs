//! The HPL space: every candidate worth considering at one order N on one machine.
//!
//! Ranks and threads share the cores, `ranks · threads = cores`. The grid is two ordered dimensions: `ranks`
//! (log2) and `grid`, the aspect P:Q in lowest terms (log2 P/Q), so that 1×2 and 2×4 are alike and any number
//! of cores fits; a pair that makes no whole P and Q does not exist.

mod error;
mod foreign;
mod limits;
mod usual;
mod values;
mod weighted;

pub use self::error::DomainError;
pub use self::foreign::{Extra, ForeignDomain, ForeignSpec};
pub use self::limits::{LimitError, Limits};
use self::usual::engine;
pub use self::usual::{Expert, default_candidate, squarest};
use self::values::{DETAILS, Values, up_to};
pub use self::weighted::WeightedDomain;
use crate::candidate::{EngineProfile, canonical_hpl, canonical_split};
use crate::dims::{Dim, Point, Space, enumerate, exceeds};
pub use crate::order::{largest_n, orders_near, required_bytes};
use crate::rules::{MAX_THREADS, RuleError};
use crate::{Candidate, EngineParams, HplParams, KernelChoice, Share, Unequal, Weights};

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
    /// Most threads of a rank, which has them on one node; `None` for all cores.
    pub most_threads: Option<usize>,
    /// What distinguishes the ranks; `ranks` is their number where something does.
    pub unequal: Unequal,
}

impl DomainSpec {
    /// Whether the cores are those of several nodes.
    fn has_nodes(&self) -> bool {
        self.most_threads.is_some_and(|most| most < self.cores)
    }
}

/// Cores or accelerators of all nodes together beyond which a wrong number is likelier than a large machine.
pub const MAX_PLACES: usize = 1 << 24;

/// Points that a domain may have; a suggestion looks at all of them.
pub const MAX_POINTS: usize = 200_000;

/// One level of each dimension, in the order of [`Values::dims`].
type Levels = [u16; 12];

/// What a point says of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chosen {
    hpl: HplParams,
    threads: usize,
    split: Share,
}

impl Chosen {
    /// The form that stands for all that run alike on the nodes of `spec`.
    fn canonical(self, spec: &DomainSpec) -> Self {
        let mut hpl = canonical_hpl(&self.hpl, self.threads, EngineProfile::Ours);
        // A rank has its node, or all nodes, to itself: none has a neighbour by another order.
        if spec.most_threads.is_none_or(|most| self.threads >= most) {
            hpl.pmap = HplParams::baseline(hpl.n, hpl.p, hpl.q).pmap;
        }
        Self { hpl, split: canonical_split(&hpl, self.split, &Weights::default()), ..self }
    }
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
    /// NDIV, NBMIN and RFACT, then NB, then PFACT, then DEPTH and split, last the most elongated grids. L1, U and EQUIL are the baseline's
    /// everywhere: they would multiply the points by up to eight for what differs within noise.
    ///
    /// # Errors
    /// [`DomainError`] naming the rule that leaves no candidate.
    pub fn new(spec: &DomainSpec) -> Result<Self, DomainError> {
        Self::within(spec, &Limits::default())
    }

    /// The domain of `spec` with the values that `limits` allow.
    ///
    /// # Errors
    /// [`DomainError`] naming the rule or the limit that leaves no candidate.
    pub fn within(spec: &DomainSpec, limits: &Limits) -> Result<Self, DomainError> {
        Self::with_at_most(spec, limits, MAX_POINTS)
    }

    /// The same with at most `most` points, unless the coarsest values make more.
    fn with_at_most(spec: &DomainSpec, limits: &Limits, most: usize) -> Result<Self, DomainError> {
        if spec.cores > MAX_THREADS {
            return Err(RuleError::TooManyThreads { p: 1, q: spec.cores, threads: 1 }.into());
        }
        let splits = splits(spec)?;
        default_candidate(spec).check()?;
        let limit = |index| if index + 1 == DETAILS.len() { usize::MAX } else { most };
        for (index, detail) in DETAILS.iter().enumerate() {
            let values = narrowed(detail.values(spec, &splits), limits, spec.n)?;
            let mut domain = Self { spec: spec.clone(), dims: values.dims(), values, points: Vec::new() };
            if limit(index) < usize::MAX && domain.exceeds(limit(index)) {
                continue;
            }
            if let Some(points) = enumerate(&domain.dims, limit(index), |levels| domain.is_canonical(levels)) {
                domain.points = points;
                return if domain.points.is_empty() { Err(emptied(spec, &domain.values)) } else { Ok(domain) };
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
        let levels = point.0.as_slice().try_into().expect("a level per dimension");
        let chosen = self.chosen(&levels).expect("a point of this domain");
        Candidate { hpl: chosen.hpl, engine: engine(&self.spec, chosen.threads, chosen.split) }
    }

    /// The point of a candidate, `None` where the domain does not have it.
    pub fn point(&self, candidate: &Candidate) -> Option<Point> {
        let EngineParams { threads, split, .. } = candidate.engine;
        let (hpl, values) = (candidate.hpl, &self.values);
        let ranks = level(&values.splits, &(hpl.ranks(), threads));
        let levels =
            self.levels(Chosen { hpl, threads, split }, [ranks, level(&values.aspects, &aspect(hpl.p, hpl.q))])?;
        // What has a level each may still not fit the memory.
        let exists = self.canonical_levels(&levels).is_some() && candidate.engine == engine(&self.spec, threads, split);
        exists.then(|| Point(levels.to_vec()))
    }

    /// The run at these levels, `None` where there are no such levels, or its ranks have no such grid.
    fn chosen(&self, levels: &Levels) -> Option<Chosen> {
        let [ranks, grid, nb, nbmin, ndiv, pfact, rfact, bcast, depth, swap, split, pmap] = levels.map(usize::from);
        let values = &self.values;
        let &(ranks, threads) = values.splits.get(ranks)?;
        let (p, q) = grid_of(ranks, *values.aspects.get(grid)?)?;
        let hpl = HplParams {
            nb: *values.nb.get(nb)?,
            nbmin: *values.nbmin.get(nbmin)?,
            ndiv: *values.ndiv.get(ndiv)?,
            pfact: *values.pfact.get(pfact)?,
            rfact: *values.rfact.get(rfact)?,
            bcast: *values.bcast.get(bcast)?,
            depth: *values.depth.get(depth)?,
            swap: *values.swap.get(swap)?,
            pmap: *values.pmap.get(pmap)?,
            ..HplParams::baseline(self.spec.n, p, q)
        };
        Some(Chosen { hpl, threads, split: share(*values.split.get(split)?) })
    }

    /// The levels of the canonical form of a run, of ranks and grid these; fields that are no dimension must have their one value. Where the value
    /// that stands for "cannot matter" is not allowed, the first allowed one stands for it.
    fn levels(&self, run: Chosen, [ranks, grid]: [Option<u16>; 2]) -> Option<Levels> {
        let run = run.canonical(&self.spec);
        let levels = self.allowed(&run, [ranks, grid]);
        (self.chosen(&levels)?.canonical(&self.spec) == run).then_some(levels)
    }

    /// The level of each value of a run, the first one for a value that is not allowed.
    fn allowed(&self, run: &Chosen, [ranks, grid]: [Option<u16>; 2]) -> Levels {
        let (Chosen { hpl, split, .. }, values) = (run, &self.values);
        let levels = [
            ranks,
            grid,
            level(&values.nb, &hpl.nb),
            level(&values.nbmin, &hpl.nbmin),
            level(&values.ndiv, &hpl.ndiv),
            level(&values.pfact, &hpl.pfact),
            level(&values.rfact, &hpl.rfact),
            level(&values.bcast, &hpl.bcast),
            level(&values.depth, &hpl.depth),
            level(&values.swap, &hpl.swap),
            level(&values.split, &split.get()),
            level(&values.pmap, &hpl.pmap),
        ];
        levels.map(Option::unwrap_or_default)
    }

    /// [`Space::canonical`] on levels.
    fn canonical_levels(&self, levels: &Levels) -> Option<Levels> {
        let run = self.chosen(levels)?;
        let valid = self.is_valid(&run.hpl);
        // Neither changes in the canonical form.
        valid.then(|| self.levels(run, [Some(levels[0]), Some(levels[1])])).flatten()
    }

    /// Whether there are more points than `limit`.
    fn exceeds(&self, limit: usize) -> bool {
        let kind = |levels: &[u16]| {
            let levels: &Levels = levels.try_into().ok()?;
            let Chosen { hpl, threads, .. } = self.chosen(levels)?;
            let has_split = canonical_split(&hpl, share(0.5), &Weights::default()) != Share::ZERO;
            let alone = self.spec.most_threads.is_none_or(|most| threads >= most);
            Some((Kind::of(&hpl), hpl.ranks() * threads == 1, alone, has_split, levels[2]))
        };
        exceeds(&self.dims, limit, 3, kind, |levels| self.is_canonical(levels))
    }

    fn is_valid(&self, hpl: &HplParams) -> bool {
        let needed = required_bytes(hpl.n, hpl.p, hpl.q, hpl.nb, hpl.depth);
        hpl.nbmin <= hpl.nb && needed <= self.spec.memory_bytes
    }

    fn is_canonical(&self, levels: &[u16]) -> bool {
        let Ok(levels) = <&Levels>::try_from(levels) else { return false };
        let Some(run) = self.chosen(levels) else { return false };
        let canonical = run.canonical(&self.spec);
        // A first allowed value may stand for what cannot matter.
        self.is_valid(&run.hpl)
            && (canonical == run || self.allowed(&canonical, [levels[0], levels[1]].map(Some)) == *levels)
    }
}

impl Space for HplDomain {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        let levels = point.0.as_slice().try_into().ok()?;
        self.canonical_levels(&levels).map(|levels| Point(levels.to_vec()))
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

/// The values of `usual` that `limits` allow, for order `n`.
fn narrowed(usual: Values, limits: &Limits, n: usize) -> Result<Values, DomainError> {
    let values = limits.apply(usual)?;
    // Listed values may be above N too, and NB below every NBMIN has no candidate.
    let mut values = Values { nb: up_to(&values.nb, n), nbmin: up_to(&values.nbmin, n), ..values };
    let (nb, nbmin) = (values.nb[values.nb.len() - 1], values.nbmin[0]);
    values.nb.retain(|&nb| nb >= nbmin);
    if values.nb.is_empty() { Err(DomainError::Recursion { nb, nbmin }) } else { Ok(values) }
}

/// What decides on a grid which other parameters matter.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    one_row: bool,
    /// From 5 on all are alike.
    columns: usize,
}

impl Kind {
    fn of(hpl: &HplParams) -> Self {
        Self { one_row: hpl.p == 1, columns: hpl.q.min(5) }
    }
}

/// Which rule left no point.
fn emptied(spec: &DomainSpec, values: &Values) -> DomainError {
    let has_grid = |&(ranks, _): &(usize, usize)| values.aspects.iter().any(|&pq| grid_of(ranks, pq).is_some());
    if values.splits.iter().any(has_grid) {
        return too_large(spec, values);
    }
    let dims = values.dims();
    let labels = |d: usize| dims[d].levels.iter().map(|level| level.label.clone()).collect();
    DomainError::NoGrid { ranks: labels(0), grids: labels(1) }
}

/// Where there is a grid, memory is the one rule that can leave no point: what the most frugal candidate needs, with the smallest
/// NB, without look-ahead, on the grid that needs least.
fn too_large(spec: &DomainSpec, values: &Values) -> DomainError {
    let DomainSpec { n, memory_bytes, .. } = *spec;
    let grids = values.splits.iter().flat_map(|&(ranks, _)| divisors(ranks).into_iter().map(move |p| (p, ranks / p)));
    let (nb, depth) = (values.nb[0], values.depth[0]);
    let needs = grids.map(|(p, q)| (required_bytes(n, p, q, nb, depth), p, q));
    let (needed_bytes, p, q) = needs.min().expect("there is a grid for any number of ranks");
    let largest_n = largest_n(memory_bytes, p, q, nb, depth);
    DomainError::Memory { n, needed_bytes, memory_bytes, largest_n }
}

/// One of [`SPLIT`].
fn share(split: f64) -> Share {
    Share::new(split).unwrap_or_default()
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
    if cores > MAX_PLACES {
        return Err(DomainError::Places { found: cores });
    }
    let unequal = &spec.unequal;
    let counts = [unequal.rank_speeds().len(), unequal.kernels.len()];
    if let Some(&found) = counts.iter().find(|&&count| count > 0 && Some(count) != spec.ranks) {
        let ranks = spec.ranks.map_or("any number of".to_owned(), |ranks| ranks.to_string());
        return Err(DomainError::Unequal { found, ranks });
    }
    let splits = match (spec.ranks, spec.threads) {
        (None, None) => {
            let most = spec.most_threads.unwrap_or(cores).max(1);
            divisors(cores)
                .into_iter()
                .map(|ranks| (ranks, cores / ranks))
                .filter(|(_, threads)| *threads <= most)
                .collect()
        }
        (Some(ranks), None) => vec![(ranks, (cores / ranks).max(1))],
        (None, Some(threads)) => vec![((cores / threads).max(1), threads)],
        (Some(ranks), Some(threads)) => vec![(ranks, threads)],
    };
    match splits.iter().find(|(ranks, threads)| ranks.saturating_mul(*threads) > cores) {
        Some(&(ranks, threads)) => Err(DomainError::Cores { ranks, threads, cores }),
        None => Ok(splits),
    }
}

/// The aspects that any of the rank counts has, by rising P/Q: those of at most `elongation`, and the squarest of each.
fn aspects(splits: &[(usize, usize)], elongation: usize) -> Vec<(usize, usize)> {
    let grids = |ranks: usize| divisors(ranks).into_iter().map(move |p| (p, ranks / p));
    let usual = |&(p, q): &(usize, usize)| p.max(q) / p.min(q) <= elongation || (p, q) == squarest(p * q);
    let all = splits.iter().flat_map(|&(ranks, _)| grids(ranks).filter(usual));
    let mut aspects: Vec<_> = all.map(|(p, q)| aspect(p, q)).collect();
    aspects.sort_by(|(p, q), (other_p, other_q)| (p * other_q).cmp(&(other_p * q)));
    aspects.dedup();
    aspects
}

/// P:Q in lowest terms.
fn aspect(p: usize, q: usize) -> (usize, usize) {
    let gcd = num_integer::gcd(p, q);
    (p / gcd, q / gcd)
}

/// The grid P×Q of `ranks` ranks with this aspect, if there is one.
fn grid_of(ranks: usize, (p, q): (usize, usize)) -> Option<(usize, usize)> {
    let scale = (ranks / (p * q)).isqrt();
    (scale * scale * p * q == ranks).then_some((scale * p, scale * q))
}

fn divisors(n: usize) -> Vec<usize> {
    let small: Vec<usize> = (1..=n.isqrt()).filter(|d| n.is_multiple_of(*d)).collect();
    let large = small.iter().rev().map(|d| n / d).filter(|d| d * d > n);
    small.iter().copied().chain(large).collect()
}

fn level<T: PartialEq>(values: &[T], value: &T) -> Option<u16> {
    values.iter().position(|known| known == value).and_then(|level| u16::try_from(level).ok())
}
