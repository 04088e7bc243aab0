//! The space of another engine: the dimensions of HPL that it obeys, and those that only it has.
//!
//! Points are canonical by Netlib's rules, which other programs follow.

use super::values::{DETAILS, Values, up_to};
use super::{
    DomainError, DomainSpec, Limits, MAX_POINTS, aspect, emptied, grid_of, level, narrowed, required_bytes, splits,
};
use crate::candidate::EngineProfile;
use crate::candidates::Candidates;
use crate::dims::{Dim, Kind, Level, Point, Space, enumerate};
use crate::rules::RuleError;
use crate::{Bcast, Candidate, Looking, Swap};

/// What another engine obeys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForeignSpec {
    /// Dimensions of HPL that act besides ranks and grid: of `nb nbmin ndiv pfact rfact bcast depth swap`.
    pub obeys: Vec<String>,
    /// Values of NB, rising; empty for the usual ones.
    pub nb: Vec<usize>,
    /// Whether ranks may have several threads.
    pub threads: bool,
    /// Threads of a rank at most, where not all cores are of one node.
    pub most_threads: Option<usize>,
    /// Dimensions that only this engine has.
    pub extra: Vec<Extra>,
}

/// A dimension that only one engine has; its first value is the usual one.
#[derive(Debug, Clone, PartialEq)]
pub struct Extra {
    /// Its name.
    pub name: String,
    /// Its values, at least one.
    pub labels: Vec<String>,
    /// Where each lies on its axis.
    pub features: Vec<f64>,
    /// Whether near values behave alike.
    pub ordered: bool,
}

/// One dimension with the values that its levels stand for.
#[derive(Debug, Clone)]
enum Axis {
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

/// Whose rules say what cannot matter.
const NETLIB: EngineProfile = EngineProfile::Netlib;

/// All candidates of another engine at one N: the dimensions of HPL that it obeys, and those that only it has.
#[derive(Debug, Clone)]
pub struct ForeignDomain {
    spec: DomainSpec,
    splits: Vec<(usize, usize)>,
    aspects: Vec<(usize, usize)>,
    axes: Vec<Axis>,
    dims: Vec<Dim>,
    points: Vec<Point>,
    /// The usual value of everything, also where it cannot matter.
    usual: Candidate,
}

impl ForeignDomain {
    /// The domain of an engine that obeys `foreign`. Where there would be too many points it has fewer values of what
    /// matters least, as [`HplDomain`].
    ///
    /// # Errors
    /// [`DomainError`] naming the rule that leaves no candidate.
    ///
    /// Its ranks are processes on any number of nodes: the largest number of threads of one process is no limit of theirs.
    pub fn new(spec: &DomainSpec, foreign: &ForeignSpec) -> Result<Self, DomainError> {
        Self::within(spec, foreign, &Limits::default())
    }

    /// The same with the values that `limits` allow; they are of [`Limits::parse_for`].
    ///
    /// # Errors
    /// [`DomainError`] naming the rule or the limit that leaves no candidate.
    pub fn within(spec: &DomainSpec, foreign: &ForeignSpec, limits: &Limits) -> Result<Self, DomainError> {
        let threads = if foreign.threads { spec.threads } else { Some(1) };
        let spec = DomainSpec { threads, ..spec.clone() };
        let mut splits = splits(&spec)?;
        let (ranks, threads) = splits[0];
        let most = foreign.most_threads.unwrap_or(usize::MAX);
        if spec.ranks.is_some() && spec.threads.is_none() {
            // The cores that are over stay idle.
            splits.iter_mut().for_each(|(_, threads)| *threads = (*threads).min(most));
        }
        splits.retain(|(_, threads)| *threads <= most);
        if splits.is_empty() {
            return Err(DomainError::Cores { ranks, threads, cores: most });
        }
        let max = i32::MAX as usize;
        if spec.n > max {
            return Err(RuleError::TooLarge { max, found: spec.n }.into());
        }
        let mut usual = usual(&spec, foreign);
        usual.engine.threads = usual.engine.threads.min(most);
        let extra = foreign.extra.iter().map(|extra| limits.extra(extra)).collect::<Result<_, _>>()?;
        let foreign = ForeignSpec { extra, ..foreign.clone() };
        let last = DETAILS.len() - 1;
        let domain = DETAILS.iter().enumerate().find_map(|(index, detail)| {
            let limit = if index == last { usize::MAX } else { MAX_POINTS };
            let mut values = detail.values(&spec, &splits);
            if !foreign.nb.is_empty() {
                values.nb = up_to(&foreign.nb, spec.n);
            }
            let values = narrowed(Values { split: vec![0.0], ..values }, limits, spec.n);
            values.map(|values| Self::with(&spec, &foreign, usual.clone(), values, limit)).transpose()
        });
        domain.expect("the last detail has no limit")?
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
        let mut domain = Self { usual, spec: spec.clone(), splits, aspects, axes, dims, points: Vec::new() };
        let is_canonical = |levels: &[u16]| domain.canonical_levels(levels).as_deref() == Some(levels);
        domain.points = enumerate(&domain.dims, limit, is_canonical)?;
        Some(if domain.points.is_empty() { Err(emptied(spec, &values)) } else { Ok(domain) })
    }

    /// The candidate that users of the engine start from: one rank per core, the grid as square as possible, all else as
    /// [`crate::HplParams::baseline`] where the engine has it.
    pub fn usual(&self) -> Candidate {
        self.usual.canonical(NETLIB)
    }

    /// The candidate at these levels, `None` where its ranks have no such grid.
    fn chosen(&self, levels: &[u16]) -> Option<Candidate> {
        let mut candidate = self.usual.clone();
        let (hpl, engine) = (&mut candidate.hpl, &mut candidate.engine);
        let at = |axis: usize| usize::from(levels[axis]);
        let &(ranks, threads) = self.splits.get(at(0))?;
        (hpl.p, hpl.q) = grid_of(ranks, *self.aspects.get(at(1))?)?;
        engine.threads = threads;
        for (i, axis) in self.axes.iter().enumerate() {
            match axis {
                Axis::Ranks | Axis::Grid => {}
                Axis::Nb(values) => hpl.nb = *values.get(at(i))?,
                Axis::Nbmin(values) => hpl.nbmin = *values.get(at(i))?,
                Axis::Ndiv(values) => hpl.ndiv = *values.get(at(i))?,
                Axis::Pfact(values) => hpl.pfact = *values.get(at(i))?,
                Axis::Rfact(values) => hpl.rfact = *values.get(at(i))?,
                Axis::Bcast(values) => hpl.bcast = *values.get(at(i))?,
                Axis::Depth(values) => hpl.depth = *values.get(at(i))?,
                Axis::Swap(values) => hpl.swap = *values.get(at(i))?,
                Axis::Extra(extra) => {
                    engine.extra.insert(extra.name.clone(), extra.labels.get(at(i))?.clone());
                }
            }
        }
        Some(candidate)
    }

    /// The levels of the canonical form of a candidate; what is no dimension must have its one value.
    fn levels(&self, candidate: &Candidate) -> Option<Vec<u16>> {
        let candidate = candidate.canonical(NETLIB);
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let of_axis = |axis: &Axis| match axis {
            Axis::Ranks => level(&self.splits, &(hpl.ranks(), engine.threads)),
            Axis::Grid => level(&self.aspects, &aspect(hpl.p, hpl.q)),
            Axis::Nb(values) => level(values, &hpl.nb),
            Axis::Nbmin(values) => level(values, &hpl.nbmin),
            Axis::Ndiv(values) => level(values, &hpl.ndiv),
            Axis::Pfact(values) => level(values, &hpl.pfact),
            Axis::Rfact(values) => level(values, &hpl.rfact),
            Axis::Bcast(values) => level(values, &hpl.bcast),
            Axis::Depth(values) => level(values, &hpl.depth),
            Axis::Swap(values) => level(values, &hpl.swap),
            Axis::Extra(extra) => level(&extra.labels, engine.extra.get(&extra.name)?),
        };
        let levels = self.axes.iter().map(of_axis).collect::<Option<Vec<u16>>>()?;
        (self.chosen(&levels)?.canonical(NETLIB) == candidate).then_some(levels)
    }

    fn canonical_levels(&self, levels: &[u16]) -> Option<Vec<u16>> {
        let candidate = self.chosen(levels)?;
        let hpl = &candidate.hpl;
        let fits = required_bytes(hpl.n, hpl.p, hpl.q, hpl.nb, hpl.depth) <= self.spec.memory_bytes;
        let valid = hpl.nbmin <= hpl.nb && fits;
        valid.then(|| self.levels(&candidate)).flatten()
    }
}

/// The usual candidate, with the usual value of every dimension that only this engine has.
fn usual(spec: &DomainSpec, foreign: &ForeignSpec) -> Candidate {
    let mut usual = super::default_candidate(spec);
    let far = |nb: &usize| (*nb as f64 / usual.hpl.nb as f64).ln().abs();
    if foreign.obeys.iter().any(|name| name == "nb") {
        let known = up_to(&foreign.nb, spec.n).into_iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        usual.hpl.nb = known.unwrap_or(usual.hpl.nb.min(spec.n));
    }
    usual.engine.extra = foreign.extra.iter().map(|extra| (extra.name.clone(), extra.labels[0].clone())).collect();
    usual
}

/// The dimensions that act, in the order of [`Values::dims`], then those that only this engine has.
fn axes(values: &Values, foreign: &ForeignSpec) -> (Vec<Axis>, Vec<Dim>) {
    let axis = |name: &str| match name {
        "ranks" => Axis::Ranks,
        "grid" => Axis::Grid,
        "nb" => Axis::Nb(values.nb.clone()),
        "nbmin" => Axis::Nbmin(values.nbmin.clone()),
        "ndiv" => Axis::Ndiv(values.ndiv.clone()),
        "pfact" => Axis::Pfact(values.pfact.clone()),
        "rfact" => Axis::Rfact(values.rfact.clone()),
        "bcast" => Axis::Bcast(values.bcast.clone()),
        "depth" => Axis::Depth(values.depth.clone()),
        _ => Axis::Swap(values.swap.clone()),
    };
    let acts = |dim: &Dim| ["ranks", "grid"].contains(&dim.name.as_str()) || foreign.obeys.contains(&dim.name);
    let mut dims: Vec<Dim> = values.dims().into_iter().filter(|dim| dim.name != "split" && acts(dim)).collect();
    let mut axes: Vec<Axis> = dims.iter().map(|dim| axis(&dim.name)).collect();
    for extra in &foreign.extra {
        let levels = extra.labels.iter().zip(&extra.features);
        let levels = levels.map(|(label, &feature)| Level { label: label.clone(), feature }).collect();
        let kind = if extra.ordered { Kind::Ordered } else { Kind::Categorical };
        dims.push(Dim { name: extra.name.clone(), kind, levels });
        axes.push(Axis::Extra(extra.clone()));
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
        self.chosen(&point.0).expect("a point of this domain").canonical(NETLIB)
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        let levels = self.levels(candidate)?;
        let same = self.chosen(&levels)?.canonical(NETLIB) == *candidate;
        (same && self.canonical_levels(&levels).is_some()).then_some(Point(levels))
    }
}
