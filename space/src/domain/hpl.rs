//! The space of our engine.

use super::build::{GridKind, emptied, level, level_from, level_or_first, narrowed, splits};
use super::error::DomainError;
use super::grids::{aspect, grid_of};
use super::limits::Limits;
use super::spec::{Candidates, DomainSpec, MAX_POINTS, TOO_MANY_POINTS};
use super::usual::{default_candidate, engine};
use super::values::{DETAILS, Values};
use crate::candidate::{EngineProfile, canonical_hpl, canonical_split};
use crate::dims::{Dim, Point, Space, enumerate, exceeds};
use crate::{Candidate, EngineParams, HplParams, Share, Weights};

/// One level of each dimension, in the order of [`Values::dims`].
type Levels = [u16; 12];

/// Where DEPTH is among them.
const DEPTH_AT: usize = 8;

/// The values of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chosen {
    hpl: HplParams,
    threads: usize,
    split: Share,
}

impl Chosen {
    /// The canonical form of all equal runs on the nodes of `spec`.
    fn canonical(self, spec: &DomainSpec) -> Self {
        let mut hpl = canonical_hpl(&self.hpl, self.threads, EngineProfile::Ours);
        // A rank has its node to itself, or all ranks are on one: none has a neighbour by another order.
        if !spec.has_neighbours(self.threads) {
            hpl.pmap = HplParams::baseline(hpl.n, hpl.p, hpl.q).pmap;
        }
        Self { hpl, split: canonical_split(&hpl, self.split, &Weights::default()), ..self }
    }
}

/// All canonical candidates of our engine at one N; see the [module](super).
#[derive(Debug, Clone)]
pub struct HplDomain {
    spec: DomainSpec,
    values: Values,
    dims: Vec<Dim>,
    points: Vec<Point>,
}

impl HplDomain {
    /// The domain of `spec`. If there are many grids, it has fewer values of the parameters with the smallest effect: first
    /// NDIV, NBMIN and RFACT, then NB, then PFACT, then DEPTH and split, then the most elongated grids, then the variants of SWAP
    /// and BCAST, last again NB. L1, U and EQUIL always have their baseline value: they would multiply the points by up to eight,
    /// with differences within noise.
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

    /// The domain of `spec` with the values that `limits` allow and at most `most` points, unless the coarsest values make more.
    ///
    /// # Errors
    /// As [`HplDomain::within`], and [`DomainError::TooMany`] where these make more than [`TOO_MANY_POINTS`].
    pub fn with_at_most(spec: &DomainSpec, limits: &Limits, most: usize) -> Result<Self, DomainError> {
        let splits = splits(spec)?;
        let usual = default_candidate(spec);
        usual.check()?;
        if !spec.has_nodes() {
            usual.check_in_one_process()?;
        }
        let limit = |index| if index + 1 == DETAILS.len() { TOO_MANY_POINTS.max(most) } else { most };
        let finest = DETAILS[0].values(spec, &splits);
        for (index, detail) in DETAILS.iter().enumerate() {
            let values = narrowed(detail.values(spec, &splits), &finest, limits, spec.n)?;
            let mut domain = Self { spec: spec.clone(), dims: values.dims(), values, points: Vec::new() };
            if domain.exceeds(limit(index)) {
                continue;
            }
            if let Some(points) =
                enumerate(&domain.dims, limit(index), |levels, known| domain.begins_a_point(levels, known))
            {
                domain.points = points;
                return if domain.points.is_empty() {
                    let shape_of = |hpl: &HplParams, threads| spec.shape(hpl, threads);
                    Err(emptied(spec, &domain.values, (spec.workspace(), &shape_of)))
                } else {
                    Ok(domain)
                };
            }
        }
        Err(DomainError::TooMany { most: TOO_MANY_POINTS.max(most) })
    }

    /// The specification of the domain.
    pub fn spec(&self) -> &DomainSpec {
        &self.spec
    }

    /// The candidate of a canonical point.
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

    /// The levels of the canonical form of a run with these levels of ranks and grid; fields that are no dimension must have
    /// their single value. If the canonical value of a parameter without effect is not allowed, the first allowed one is used.
    fn levels(&self, run: Chosen, [ranks, grid]: [Option<u16>; 2]) -> Option<Levels> {
        let run = run.canonical(&self.spec);
        let levels = self.allowed(&run, [ranks, grid]);
        (self.chosen(&levels)?.canonical(&self.spec) == run).then_some(levels)
    }

    /// The level of each value of a canonical run, the first one for a value that is not allowed.
    fn allowed(&self, run: &Chosen, [ranks, grid]: [Option<u16>; 2]) -> Levels {
        let (Chosen { hpl, split, .. }, values) = (run, &self.values);
        [
            ranks.unwrap_or_default(),
            grid.unwrap_or_default(),
            level_or_first(&values.nb, &hpl.nb),
            level_or_first(&values.nbmin, &hpl.nbmin),
            level_from(&values.ndiv, hpl.ndiv),
            level_or_first(&values.pfact, &hpl.pfact),
            level_or_first(&values.rfact, &hpl.rfact),
            level_or_first(&values.bcast, &hpl.bcast),
            level_from(&values.depth, hpl.depth),
            level_or_first(&values.swap, &hpl.swap),
            level_or_first(&values.split, &split.get()),
            level_or_first(&values.pmap, &hpl.pmap),
        ]
    }

    /// [`Space::canonical`] on levels.
    fn canonical_levels(&self, levels: &Levels) -> Option<Levels> {
        let run = self.chosen(levels)?;
        let valid = self.is_valid(&run);
        // Neither changes in the canonical form.
        valid.then(|| self.levels(run, [Some(levels[0]), Some(levels[1])])).flatten()
    }

    /// Whether there are more points than `limit`.
    fn exceeds(&self, limit: usize) -> bool {
        let kind = |levels: &[u16]| {
            let levels: &Levels = levels.try_into().ok()?;
            let Chosen { hpl, threads, .. } = self.chosen(levels)?;
            let has_split = canonical_split(&hpl, share(0.5), &Weights::default()) != Share::ZERO;
            let has_neighbours = self.spec.has_neighbours(threads);
            Some((GridKind::of(&hpl), hpl.ranks() * threads == 1, has_neighbours, has_split, levels[2]))
        };
        exceeds(&self.dims, limit, 3, kind, |levels, known| self.begins_a_point(levels, known))
    }

    fn is_valid(&self, Chosen { hpl, threads, .. }: &Chosen) -> bool {
        hpl.nbmin <= hpl.nb && self.fits(hpl, *threads)
    }

    /// Whether the memory holds a run whose ranks have `threads` threads each.
    fn fits(&self, hpl: &HplParams, threads: usize) -> bool {
        self.spec.needed_bytes(hpl, threads) <= self.spec.memory_bytes
    }

    /// Whether a canonical point begins with the first `known` of `levels`, behind which are zeros. Without look-ahead a rank borrows threads, whose
    /// memory may be more than that of a panel: another DEPTH may need the least.
    fn begins_a_point(&self, levels: &[u16], known: usize) -> bool {
        let Ok(levels) = <&Levels>::try_from(levels) else { return false };
        let Some(run) = self.chosen(levels) else { return false };
        let with_depth = |&depth: &usize| Chosen { hpl: HplParams { depth, ..run.hpl }, ..run };
        let fits = if known > DEPTH_AT {
            self.is_valid(&run)
        } else {
            self.values.depth.iter().map(with_depth).any(|run| self.is_valid(&run))
        };
        fits && self.is_canonical(levels)
    }

    /// Whether the levels are those of a canonical run, which may not fit the memory.
    fn is_canonical(&self, levels: &Levels) -> bool {
        let Some(run) = self.chosen(levels) else { return false };
        let canonical = run.canonical(&self.spec);
        // A parameter without effect may have the first allowed value.
        canonical == run || self.allowed(&canonical, [levels[0], levels[1]].map(Some)) == *levels
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

impl Candidates for HplDomain {
    fn spec(&self) -> &DomainSpec {
        self.spec()
    }

    fn candidate(&self, point: &Point) -> Candidate {
        self.candidate(point)
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        self.point(candidate)
    }

    fn has_memory_for(&self, candidate: &Candidate) -> bool {
        self.fits(&candidate.hpl, candidate.engine.threads)
    }
}

/// One of [`SPLIT`].
fn share(split: f64) -> Share {
    Share::new(split).unwrap_or_default()
}
