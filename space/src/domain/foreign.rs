//! The space of another engine: the dimensions of HPL that it obeys, and those that only it has.
//!
//! Points are canonical by Netlib's rules, which most other programs follow.

use super::build::{GridKind, emptied, level, level_from, level_or_first, narrowed};
use super::error::DomainError;
use super::grids::{aspect, grid_of};
use super::limits::Limits;
use super::prepared::{prepared, values};
use super::spec::{Candidates, DomainSpec, Extra, ForeignSpec, MAX_POINTS, TOO_MANY_POINTS};
use super::values::{DETAILS, Detail, Values};
use crate::candidate::{EngineProfile, canonical_hpl};
use crate::dims::{self, Dim, Level, Point, Space, enumerate, exceeds};
use crate::workspace::{RunShape, Workspace};
use crate::{Bcast, Candidate, EngineParams, HplParams, Looking, Swap};

/// One dimension with the values of its levels.
#[derive(Debug, Clone)]
enum ForeignDim {
    Ranks,
    Grid,
    Nb(Vec<usize>),
    Nbmin(Vec<usize>),
    Ndiv(Vec<usize>),
    Pfact(Vec<Looking>),
    Rfact(Vec<Looking>),
    Bcast(Vec<Bcast>),
    Depth(Vec<usize>),
    Swap(Vec<Swap>),
    Extra(Extra),
}

/// All candidates of another engine at one N: the dimensions of HPL that it obeys, and those that only it has.
#[derive(Debug, Clone)]
pub struct ForeignDomain {
    spec: DomainSpec,
    /// Whose rules decide which parameters have no effect.
    rules: EngineProfile,
    workspace: Workspace,
    splits: Vec<(usize, usize)>,
    aspects: Vec<(usize, usize)>,
    axes: Vec<ForeignDim>,
    dims: Vec<Dim>,
    points: Vec<Point>,
    /// The usual value of every parameter, also of those without effect.
    usual: Candidate,
}

/// The shape of a run; `device_factors`: blocks of threads of the device factor panels.
fn shape(&HplParams { n, p, q, nb, depth, .. }: &HplParams, device_factors: bool) -> RunShape {
    RunShape { n, p, q, nb, depth, device_factors, fact_threads: 1 }
}

impl ForeignDomain {
    /// The domain of an engine that obeys `foreign`. Where there would be too many points it has fewer values of what
    /// matters least, as [`HplDomain`](super::HplDomain).
    ///
    /// # Errors
    /// [`DomainError`] naming the rule that leaves no candidate.
    ///
    /// Its ranks are processes on any number of nodes: the largest number of threads of one process is no limit of theirs.
    pub fn new(spec: &DomainSpec, foreign: &ForeignSpec) -> Result<Self, DomainError> {
        Self::within(spec, foreign, &Limits::default())
    }

    /// The domain of an engine that obeys `foreign`, with the values that `limits` allow; these are of [`Limits::parse_for`].
    ///
    /// # Errors
    /// [`DomainError`] naming the rule or the limit that leaves no candidate.
    pub fn within(spec: &DomainSpec, foreign: &ForeignSpec, limits: &Limits) -> Result<Self, DomainError> {
        Self::with_at_most(spec, foreign, limits, MAX_POINTS)
    }

    /// [`ForeignDomain::within`] with at most `most` points, unless the coarsest values make more.
    ///
    /// # Errors
    /// As [`ForeignDomain::within`], and [`DomainError::TooMany`] where these make more than [`TOO_MANY_POINTS`].
    pub fn with_at_most(
        spec: &DomainSpec,
        foreign: &ForeignSpec,
        limits: &Limits,
        most: usize,
    ) -> Result<Self, DomainError> {
        let known = prepared(spec, foreign)?;
        let extra = foreign.extra.iter().map(|extra| limits.extra(extra)).collect::<Result<_, _>>()?;
        let foreign = ForeignSpec { extra, ..foreign.clone() };
        let limits = &limits.besides(&foreign.extra);
        let of = |detail: &Detail| values(detail, &known, &foreign);
        let finest = of(&DETAILS[0]);
        let (spec, _, usual) = &known;
        let domain = DETAILS.iter().enumerate().find_map(|(index, detail)| {
            let limit = if index + 1 == DETAILS.len() { TOO_MANY_POINTS.max(most) } else { most };
            let values = narrowed(of(detail), &finest, limits, spec.n);
            values.map(|values| Self::with(spec, &foreign, usual.clone(), values, limit)).transpose()
        });
        domain.unwrap_or(Err(DomainError::TooMany { most: TOO_MANY_POINTS.max(most) }))?
    }

    /// `None` where there are more points than `limit`.
    fn with(
        spec: &DomainSpec,
        foreign: &ForeignSpec,
        usual: Candidate,
        values: Values,
        limit: usize,
    ) -> Option<Result<Self, DomainError>> {
        let (axes, dims) = axes(&values, foreign);
        let (splits, aspects) = (values.splits.clone(), values.aspects.clone());
        let rules = foreign.rules();
        let (spec, workspace) = (spec.clone(), foreign.workspace);
        let mut domain = Self { usual, spec, rules, workspace, splits, aspects, axes, dims, points: Vec::new() };
        let begins = |levels: &[u16], known: usize| domain.begins_a_point(levels, known);
        let nb = domain.axes.iter().position(|axis| matches!(axis, ForeignDim::Nb(_))).map_or(2, |axis| axis + 1);
        let kind = |levels: &[u16]| domain.chosen(levels).map(|(hpl, _)| (GridKind::of(&hpl), levels[2..nb].to_vec()));
        if exceeds(&domain.dims, limit, nb, kind, begins) {
            return None;
        }
        domain.points = enumerate(&domain.dims, limit, begins)?;
        Some(if domain.points.is_empty() {
            let device_factors = foreign.may_factor();
            let shape_of = |hpl: &HplParams, _: usize| shape(hpl, device_factors);
            Err(emptied(&domain.spec, &values, (workspace, &shape_of)))
        } else {
            Ok(domain)
        })
    }

    /// [`usual`](Self::usual) without making the domain of `spec`, whose N need not fit the memory.
    ///
    /// # Errors
    /// [`DomainError`] when ranks or threads do not fit the cores.
    pub fn usual_of(spec: &DomainSpec, foreign: &ForeignSpec) -> Result<Candidate, DomainError> {
        Ok(prepared(spec, foreign)?.2.canonical(foreign.rules()))
    }

    /// The candidate that users of the engine start from: one rank per core, the grid as square as possible, all else as
    /// [`crate::HplParams::baseline`] where the engine has it.
    pub fn usual(&self) -> Candidate {
        self.usual.canonical(self.rules)
    }

    /// The run at these levels, `None` where its ranks have no such grid.
    fn chosen(&self, levels: &[u16]) -> Option<(HplParams, usize)> {
        let &(ranks, threads) = self.splits.get(usize::from(levels[0]))?;
        let (p, q) = grid_of(ranks, *self.aspects.get(usize::from(levels[1]))?)?;
        Some((self.with_levels(HplParams { p, q, ..self.usual.hpl }, levels)?, threads))
    }

    /// `hpl` with the values of these levels.
    fn with_levels(&self, mut hpl: HplParams, levels: &[u16]) -> Option<HplParams> {
        let at = |axis: usize| usize::from(levels[axis]);
        for (i, axis) in self.axes.iter().enumerate() {
            match axis {
                ForeignDim::Ranks | ForeignDim::Grid | ForeignDim::Extra(_) => {}
                ForeignDim::Nb(values) => hpl.nb = *values.get(at(i))?,
                ForeignDim::Nbmin(values) => hpl.nbmin = *values.get(at(i))?,
                ForeignDim::Ndiv(values) => hpl.ndiv = *values.get(at(i))?,
                ForeignDim::Pfact(values) => hpl.pfact = *values.get(at(i))?,
                ForeignDim::Rfact(values) => hpl.rfact = *values.get(at(i))?,
                ForeignDim::Bcast(values) => hpl.bcast = *values.get(at(i))?,
                ForeignDim::Depth(values) => hpl.depth = *values.get(at(i))?,
                ForeignDim::Swap(values) => hpl.swap = *values.get(at(i))?,
            }
        }
        Some(hpl)
    }

    /// The levels of the canonical form of a run, as [`allowed`](Self::allowed) says. A parameter that is no dimension must have its
    /// single value.
    fn levels(
        &self,
        (hpl, threads): (HplParams, usize),
        known: Option<&[u16]>,
        extra: impl Fn(usize, &Extra) -> Option<u16>,
    ) -> Option<Vec<u16>> {
        let factors = self.axes.iter().enumerate().any(|(i, axis)| match axis {
            ForeignDim::Extra(own) => extra(i, own).is_some_and(|level| own.device_factors(level)),
            _ => false,
        });
        let hpl = self.canonical_of(&hpl, threads, factors);
        let levels = self.allowed((&hpl, threads), known, extra)?;
        let (chosen, same) = self.chosen(&levels)?;
        (self.canonical_of(&chosen, threads, factors) == hpl && same == threads).then_some(levels)
    }

    /// The level of each value of a canonical run, the first one for a value that is not allowed; those of ranks and grid from `known`
    /// if given, those of the additional dimensions of this engine from `extra`.
    fn allowed(
        &self,
        (hpl, threads): (&HplParams, usize),
        known: Option<&[u16]>,
        extra: impl Fn(usize, &Extra) -> Option<u16>,
    ) -> Option<Vec<u16>> {
        let of_axis = |(i, axis): (usize, &ForeignDim)| match axis {
            ForeignDim::Ranks | ForeignDim::Grid if known.is_some() => known.map(|levels| levels[i]),
            ForeignDim::Ranks => level(&self.splits, &(hpl.ranks(), threads)),
            ForeignDim::Grid => level(&self.aspects, &aspect(hpl.p, hpl.q)),
            ForeignDim::Nb(values) => Some(level_or_first(values, &hpl.nb)),
            ForeignDim::Nbmin(values) => Some(level_or_first(values, &hpl.nbmin)),
            ForeignDim::Ndiv(values) => Some(level_from(values, hpl.ndiv)),
            ForeignDim::Pfact(values) => Some(level_or_first(values, &hpl.pfact)),
            ForeignDim::Rfact(values) => Some(level_or_first(values, &hpl.rfact)),
            ForeignDim::Bcast(values) => Some(level_or_first(values, &hpl.bcast)),
            ForeignDim::Depth(values) => Some(level_from(values, hpl.depth)),
            ForeignDim::Swap(values) => Some(level_or_first(values, &hpl.swap)),
            ForeignDim::Extra(own) if !own.acts.contain(hpl.p) => Some(0),
            ForeignDim::Extra(own) => extra(i, own),
        };
        self.axes.iter().enumerate().map(of_axis).collect()
    }

    fn is_valid(&self, hpl: &HplParams, levels: &[u16]) -> bool {
        hpl.nbmin <= hpl.nb && self.fits(hpl, self.device_factors(levels))
    }

    /// Whether the memory holds a run; `device_factors`: blocks of threads of the device factor panels.
    fn fits(&self, hpl: &HplParams, device_factors: bool) -> bool {
        self.workspace.bytes(shape(hpl, device_factors)) <= self.spec.memory_bytes
    }

    /// Whether blocks of threads of the device factor panels at these levels.
    fn device_factors(&self, levels: &[u16]) -> bool {
        let factors =
            |(axis, level): (&ForeignDim, &u16)| matches!(axis, ForeignDim::Extra(own) if own.device_factors(*level));
        self.axes.iter().zip(levels).any(factors)
    }

    /// `hpl` with a fixed value for every parameter without effect; `device_factors`: at P = 1 blocks of threads of the device factor
    /// panels, where PFACT and RFACT have none.
    fn canonical_of(&self, hpl: &HplParams, threads: usize, device_factors: bool) -> HplParams {
        let mut hpl = canonical_hpl(hpl, threads, self.rules);
        if !device_factors || hpl.p > 1 {
            return hpl;
        }
        let usual = |values: &[Looking], usual: Looking| if values.contains(&usual) { usual } else { values[0] };
        for axis in &self.axes {
            match axis {
                ForeignDim::Pfact(values) => hpl.pfact = usual(values, self.usual.hpl.pfact),
                ForeignDim::Rfact(values) => hpl.rfact = usual(values, self.usual.hpl.rfact),
                _ => {}
            }
        }
        hpl
    }

    fn is_canonical(&self, levels: &[u16]) -> bool {
        let Some((hpl, threads)) = self.chosen(levels) else { return false };
        let canonical = self.canonical_of(&hpl, threads, self.device_factors(levels));
        let acts = |(axis, level): (&ForeignDim, &u16)| match axis {
            ForeignDim::Extra(own) => *level == 0 || own.acts.contain(hpl.p),
            _ => true,
        };
        let own = |i: usize, _: &Extra| Some(levels[i]);
        // What is no dimension may differ, and a parameter without effect may have the first allowed value.
        self.is_valid(&hpl, levels)
            && self.axes.iter().zip(levels).all(acts)
            && (canonical == hpl || self.allowed((&canonical, threads), Some(levels), own).as_deref() == Some(levels))
    }

    /// Whether a canonical point may begin with the first `known` of `levels`, behind which are zeros. Whether blocks of threads of
    /// the device factor panels, which decides on PFACT, RFACT and memory, is one of the last dimensions.
    fn begins_a_point(&self, levels: &[u16], known: usize) -> bool {
        let changed = |(at, axis): (usize, &ForeignDim)| {
            let ForeignDim::Extra(own) = axis else { return None };
            let differs = |level: &u16| own.device_factors(*level) != own.device_factors(0);
            let other = (0..own.labels.len() as u16).find(differs)?;
            let mut levels = levels.to_vec();
            levels[at] = other;
            Some(levels)
        };
        let mut others = self.axes.iter().enumerate().skip(known).filter_map(changed);
        self.is_canonical(levels) || others.any(|levels| self.is_canonical(&levels))
    }

    fn canonical_levels(&self, levels: &[u16]) -> Option<Vec<u16>> {
        let run = self.chosen(levels)?;
        let valid = self.is_valid(&run.0, levels);
        let extra = |i: usize, own: &Extra| (usize::from(levels[i]) < own.labels.len()).then_some(levels[i]);
        valid.then(|| self.levels(run, Some(levels), extra)).flatten()
    }

    /// The candidate at these levels.
    fn at(&self, levels: &[u16]) -> Option<Candidate> {
        let (hpl, threads) = self.chosen(levels)?;
        let mut engine = EngineParams { threads, ..self.usual.engine.clone() };
        for (i, axis) in self.axes.iter().enumerate() {
            if let ForeignDim::Extra(own) = axis {
                engine.extra.insert(own.name.clone(), own.labels.get(usize::from(levels[i]))?.clone());
            }
        }
        let hpl = self.canonical_of(&hpl, threads, self.device_factors(levels));
        Some(Candidate { hpl: self.with_levels(hpl, levels)?, engine })
    }
}

/// The dimensions that act, in the order of [`Values::dims`], then those that only this engine has.
fn axes(values: &Values, foreign: &ForeignSpec) -> (Vec<ForeignDim>, Vec<Dim>) {
    let axis = |name: &str| match name {
        "ranks" => ForeignDim::Ranks,
        "grid" => ForeignDim::Grid,
        "nb" => ForeignDim::Nb(values.nb.clone()),
        "nbmin" => ForeignDim::Nbmin(values.nbmin.clone()),
        "ndiv" => ForeignDim::Ndiv(values.ndiv.clone()),
        "pfact" => ForeignDim::Pfact(values.pfact.clone()),
        "rfact" => ForeignDim::Rfact(values.rfact.clone()),
        "bcast" => ForeignDim::Bcast(values.bcast.clone()),
        "depth" => ForeignDim::Depth(values.depth.clone()),
        _ => ForeignDim::Swap(values.swap.clone()),
    };
    let acts = |dim: &Dim| ["ranks", "grid"].contains(&dim.name.as_str()) || foreign.acts(&dim.name);
    let mut dims: Vec<Dim> = values.dims().into_iter().filter(|dim| dim.name != "split" && acts(dim)).collect();
    let mut axes: Vec<ForeignDim> = dims.iter().map(|dim| axis(&dim.name)).collect();
    for extra in &foreign.extra {
        let levels = extra.labels.iter().zip(&extra.features);
        let levels = levels.map(|(label, &feature)| Level { label: label.clone(), feature }).collect();
        let kind = if extra.ordered { dims::DimKind::Ordered } else { dims::DimKind::Categorical };
        dims.push(Dim { name: extra.name.clone(), kind, levels });
        axes.push(ForeignDim::Extra(extra.clone()));
    }
    (axes, dims)
}

impl Space for ForeignDomain {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        let whole = point.0.len() == self.dims.len();
        whole.then(|| self.canonical_levels(&point.0)).flatten().map(Point)
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

impl Candidates for ForeignDomain {
    fn spec(&self) -> &DomainSpec {
        &self.spec
    }

    fn candidate(&self, point: &Point) -> Candidate {
        self.at(&point.0).expect("a point of this domain")
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        let EngineParams { threads, extra, .. } = &candidate.engine;
        let levels =
            self.levels((candidate.hpl, *threads), None, |_, own| level(&own.labels, extra.get(&own.name)?))?;
        let same = self.at(&levels)?.engine == candidate.engine;
        (same && self.canonical_levels(&levels).is_some()).then_some(Point(levels))
    }

    fn has_memory_for(&self, candidate: &Candidate) -> bool {
        let extra = &candidate.engine.extra;
        let own_level = |own: &Extra| level(&own.labels, extra.get(&own.name)?);
        let factors = |axis: &ForeignDim| match axis {
            ForeignDim::Extra(own) => own_level(own).is_some_and(|level| own.device_factors(level)),
            _ => false,
        };
        self.fits(&candidate.hpl, self.axes.iter().any(factors))
    }
}
