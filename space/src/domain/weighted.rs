//! The HPL space of ranks or nodes of unequal speed: their weights are dimensions, too.
//!
//! Weights are points of a simplex; its coordinates here are log-ratios to the fastest ranks (Aitchison's additive
//! log-ratio). Slower ranks are one class or two, each with an ordered dimension: its levels are the measured
//! log-ratio, some around it, and 0, with which the class has the weight of the fastest. So equal weights are a point, the
//! measured ones another, and the space between and around is searched like NB. Weights that deal the same blocks to the
//! same ranks are one run and one point: that of equal weights if they are among them, otherwise of those nearest to the
//! measured ones.

use std::collections::HashMap;

use super::error::DomainError;
use super::hpl::HplDomain;
use super::limits::Limits;
use super::spec::{Candidates, DomainSpec, MAX_POINTS, TOO_MANY_POINTS};
use crate::candidate::canonical_weights;
use crate::dims::{Dim, DimKind, Level, Point, Space};
use crate::unequal::ALIKE;
use crate::{Candidate, Pmap, Share, Weights, deal};

/// Steps of the log-ratio around the measured one, of one class of slower ranks and of each of two.
const AROUND: [&[f64]; 2] = [&[-0.16, -0.08, -0.04, 0.0, 0.04, 0.08, 0.16], &[-0.08, 0.0, 0.08]];

/// The measured one alone, where the steps around it would leave fewer than [`ENOUGH`] points of all other dimensions.
const MEASURED: [&[f64]; 2] = [&[0.0], &[0.0]];

/// Points that have NB, BCAST and SWAP of each kind on some hundred cores; what the steps around the measured weights do is less.
const ENOUGH: usize = 2000;

/// Up to this number of blocks times process rows and columns, weights are compared by the blocks that they deal; in larger
/// runs different weights nearly always deal different blocks.
const DEALT: usize = 16_384;

/// Weights are relative to the largest and rounded to this.
const RESOLUTION: f64 = 1e4;

/// P, Q, PMAP, NB and the threads of a rank: the owners of the blocks depend on these.
type Key = (usize, usize, Pmap, usize, usize);

fn key(candidate: &Candidate) -> Key {
    let Candidate { hpl, engine } = candidate;
    (hpl.p, hpl.q, hpl.pmap, hpl.nb, engine.threads)
}

/// Slower ranks, or nodes, that share a dimension.
#[derive(Debug, Clone)]
struct Class {
    /// Each with its measured log-ratio to the fastest.
    members: Vec<(usize, f64)>,
    /// Log-ratio of the class at each level, rising; the last is 0, equal weights.
    levels: Vec<f64>,
}

impl Class {
    /// The middle of its measured log-ratios.
    fn middle(&self) -> f64 {
        self.members.iter().map(|(_, log)| log).sum::<f64>() / self.members.len() as f64
    }

    /// The level of the measured log-ratios.
    fn measured(&self) -> u16 {
        let middle = self.middle();
        let distance = |&at: &usize| (self.levels[at] - middle).abs();
        let nearest = (0..self.levels.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map_or(0, |at| at as u16)
    }

    fn dim(&self, name: &str) -> Dim {
        let level = |&log: &f64| Level { label: format!("{:.3}", log.exp()), feature: log };
        Dim { name: name.to_owned(), kind: DimKind::Ordered, levels: self.levels.iter().map(level).collect() }
    }
}

/// One level of each class, on some grid.
#[derive(Debug, Clone, Default)]
struct Combination {
    weights: Weights,
    /// The first of the combinations that deal the same blocks.
    stands_for: usize,
}

/// The key by which combinations are equal.
#[derive(PartialEq, Eq, Hash)]
enum Dealt {
    /// The owners of all block rows and block columns.
    Blocks(Vec<usize>, Vec<usize>),
    /// The weights themselves.
    By(Weights),
}

/// All canonical candidates of our engine on ranks of unequal speed.
#[derive(Debug, Clone)]
pub struct WeightedDomain {
    inner: HplDomain,
    classes: Vec<Class>,
    dims: Vec<Dim>,
    points: Vec<Point>,
    /// For each P, Q, PMAP, NB and number of threads: all combinations of levels.
    weights: HashMap<Key, Vec<Combination>>,
}

impl WeightedDomain {
    /// The domain of `spec` with the values that `limits` allow; the weights are not limited.
    ///
    /// # Errors
    /// [`DomainError`] as that of [`HplDomain::within`]; [`DomainError::Idle`] of a rank of speed 0, and
    /// [`DomainError::Alike`] when the speeds do not differ.
    pub fn within(spec: &DomainSpec, limits: &Limits) -> Result<Self, DomainError> {
        Self::with_at_most(spec, limits, MAX_POINTS)
    }

    /// [`WeightedDomain::within`] with at most `most` points, unless the coarsest values make more.
    ///
    /// # Errors
    /// As [`WeightedDomain::within`], and [`DomainError::TooMany`] where these make more than [`TOO_MANY_POINTS`].
    pub fn with_at_most(spec: &DomainSpec, limits: &Limits, most: usize) -> Result<Self, DomainError> {
        if let Some(rank) = spec.unequal.speeds.iter().position(|&speed| speed == Share::ZERO) {
            return Err(DomainError::Idle { rank });
        }
        let combinations = |classes: &[Class]| classes.iter().map(|class| class.levels.len()).product::<usize>();
        let relative = spec.unequal.relative();
        let mut classes = classes_with(&relative, &AROUND);
        if classes.is_empty() {
            return Err(DomainError::Alike);
        }
        if most / combinations(&classes) < ENOUGH {
            classes = classes_with(&relative, &MEASURED);
        }
        let combinations = combinations(&classes);
        let inner = HplDomain::with_at_most(spec, limits, most / combinations)?;
        let names = if classes.len() == 1 { &["weights"][..] } else { &["weights", "weights-slowest"] };
        let own = classes.iter().zip(names).map(|(class, name)| class.dim(name));
        let dims = inner.dims().iter().cloned().chain(own).collect();
        let mut domain = Self { inner, classes, dims, points: Vec::new(), weights: HashMap::new() };
        let mut points = Vec::new();
        for point in domain.inner.points() {
            let candidate = domain.inner.candidate(point);
            let key = key(&candidate);
            if !domain.weights.contains_key(&key) {
                let weights = domain.combinations(&candidate, combinations);
                domain.weights.insert(key, weights);
            }
            let all = domain.weights[&key].iter().enumerate();
            let own = all
                .filter(|&(at, own)| own.stands_for == at && domain.fits(&candidate, &own.weights))
                .map(|(at, _)| at);
            points.extend(own.map(|at| domain.joined(point, at)));
            if points.len() > TOO_MANY_POINTS {
                return Err(DomainError::TooMany { most: TOO_MANY_POINTS });
            }
        }
        domain.points = points;
        Ok(domain)
    }

    /// Whether the rank with most of the matrix has memory for it; ranks of one node share theirs.
    fn fits(&self, candidate: &Candidate, weights: &Weights) -> bool {
        let spec = self.inner.spec();
        // The largest is 1.
        let most = |shares: &[Share]| match shares.iter().map(|share| share.get()).sum::<f64>() {
            sum if sum > 0.0 => shares.len() as f64 / sum,
            _ => 1.0,
        };
        let more = most(&weights.rows) * most(&weights.columns);
        let share_one = spec.unequal.node_cores.is_none() && !spec.has_nodes();
        share_one
            || spec.needed_bytes(&candidate.hpl, candidate.engine.threads) as f64 * more <= spec.memory_bytes as f64
    }

    /// All combinations on the grid of `candidate`. Those that deal the same blocks are represented by equal weights if
    /// possible, otherwise by the nearest to the measured ones.
    fn combinations(&self, candidate: &Candidate, combinations: usize) -> Vec<Combination> {
        let hpl = &candidate.hpl;
        let mut order: Vec<usize> = (0..combinations).collect();
        let distance = |at: usize| -> f64 {
            let logs = self.logs(at);
            if logs.iter().all(|log| *log == 0.0) {
                return -1.0;
            }
            logs.iter().zip(&self.classes).map(|(log, class)| (log - class.middle()).abs()).sum()
        };
        order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        let quick = hpl.n.div_ceil(hpl.nb) * (hpl.p + hpl.q) <= DEALT;
        let mut first = HashMap::new();
        let mut found = vec![Combination::default(); combinations];
        for at in order {
            let weights = self.weigh(at, candidate);
            let owners = |len: usize, procs: usize, of: &[Share]| {
                let equal = vec![1.0; procs];
                let shares: Vec<f64> = of.iter().map(|share| share.get()).collect();
                deal(len.div_ceil(hpl.nb), if of.is_empty() { &equal } else { &shares })
            };
            // Column N is b.
            let dealt = if quick {
                Dealt::Blocks(owners(hpl.n, hpl.p, &weights.rows), owners(hpl.n + 1, hpl.q, &weights.columns))
            } else {
                Dealt::By(weights.clone())
            };
            found[at] = Combination { stands_for: *first.entry(dealt).or_insert(at), weights };
        }
        found
    }

    /// Log-ratio of each class in a combination of levels; the last class changes fastest.
    fn logs(&self, combination: usize) -> Vec<f64> {
        let levels = self.levels(combination);
        self.classes.iter().zip(levels).map(|(class, level)| class.levels[usize::from(level)]).collect()
    }

    fn levels(&self, mut combination: usize) -> Vec<u16> {
        let mut levels = vec![0; self.classes.len()];
        for (level, class) in levels.iter_mut().zip(&self.classes).rev() {
            *level = (combination % class.levels.len()) as u16;
            combination /= class.levels.len();
        }
        levels
    }

    fn combination(&self, levels: &[u16]) -> usize {
        self.classes.iter().zip(levels).fold(0, |at, (class, &level)| at * class.levels.len() + usize::from(level))
    }

    /// The canonical weights of a combination on the grid of `candidate`.
    fn weigh(&self, combination: usize, candidate: &Candidate) -> Weights {
        let unequal = &self.inner.spec().unequal;
        let mut speeds = vec![1.0; unequal.speeds.len()];
        for (class, log) in self.classes.iter().zip(self.logs(combination)) {
            for &(member, measured) in &class.members {
                speeds[member] = if log == 0.0 { 1.0 } else { (measured + log - class.middle()).exp() };
            }
        }
        let Candidate { hpl, engine } = candidate;
        let (rows, columns) = within(&unequal.on_grid(&speeds, hpl, engine.threads), hpl.p, hpl.q);
        let shares = |parts: Vec<f64>| {
            let largest = parts.iter().copied().fold(0.0, f64::max);
            let share = |part: f64| Share::new((part / largest * RESOLUTION).round() / RESOLUTION).unwrap_or_default();
            parts.into_iter().map(share).collect()
        };
        canonical_weights(&Weights { rows: shares(rows), columns: shares(columns) })
    }

    /// The point that represents `combination`; `None` if there is none.
    fn standing_for(&self, inner: &Point, combination: usize) -> Option<Point> {
        let candidate = self.inner.candidate(inner);
        let all = self.weights.get(&key(&candidate))?;
        let at = all[combination].stands_for;
        self.fits(&candidate, &all[at].weights).then(|| self.joined(inner, at))
    }

    fn joined(&self, inner: &Point, combination: usize) -> Point {
        Point([inner.0.as_slice(), &self.levels(combination)].concat())
    }

    fn cut(&self, point: &Point) -> Option<(Point, usize)> {
        let whole = point.0.len() == self.dims.len();
        let (inner, own) = whole.then(|| point.0.split_at(point.0.len() - self.classes.len()))?;
        Some((Point(inner.to_vec()), self.combination(own)))
    }
}

/// Parts r of the process rows and c of the columns with r·c at most the speed of each rank, `speeds` by row, then column:
/// the work of every rank is within its speed. Of several such parts, those with the largest sum of all r·c.
fn within(speeds: &[f64], p: usize, q: usize) -> (Vec<f64>, Vec<f64>) {
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let columns = |rows: &[f64]| -> Vec<f64> {
        (0..q).map(|j| least(&mut (0..p).map(|i| speeds[i * q + j] / rows[i]))).collect()
    };
    let rows = |columns: &[f64]| -> Vec<f64> {
        (0..p).map(|i| least(&mut (0..q).map(|j| speeds[i * q + j] / columns[j]))).collect()
    };
    let by_columns = columns(&vec![1.0; p]);
    let of_columns = (rows(&by_columns), by_columns);
    let by_rows = rows(&vec![1.0; q]);
    let of_rows = (by_rows.clone(), columns(&by_rows));
    let means: Vec<f64> = (0..p).map(|i| speeds[i * q..][..q].iter().sum()).collect();
    let by_means = columns(&means);
    let of_means = (rows(&by_means), by_means);
    let all = |(rows, columns): &(Vec<f64>, Vec<f64>)| rows.iter().sum::<f64>() * columns.iter().sum::<f64>();
    [of_rows, of_means].into_iter().fold(of_columns, |best, other| if all(&other) > all(&best) { other } else { best })
}

/// The slower ranks or nodes by the log of their relative `speeds`: none, one class, or two cut at the widest gap; their levels by the
/// `steps` of one class and of each of two.
fn classes_with(speeds: &[f64], steps: &[&[f64]; 2]) -> Vec<Class> {
    let mut slower: Vec<(usize, f64)> = speeds.iter().map(|speed| speed.ln()).enumerate().collect();
    slower.retain(|(_, log)| *log < (1.0 - ALIKE).ln());
    slower.sort_by(|a, b| b.1.total_cmp(&a.1));
    let gap = |at: usize| slower[at - 1].1 - slower[at].1;
    let cut = (1..slower.len()).max_by(|&a, &b| gap(a).total_cmp(&gap(b)).then(b.cmp(&a)));
    let parts = match cut.filter(|&at| gap(at) > ALIKE) {
        Some(at) => vec![slower[..at].to_vec(), slower[at..].to_vec()],
        None if slower.is_empty() => Vec::new(),
        None => vec![slower.clone()],
    };
    let around = if parts.len() > 1 { steps[1] } else { steps[0] };
    let class = |members| {
        let mut class = Class { members, levels: Vec::new() };
        let middle = class.middle();
        // Nearer to 0 than half a step is equal weights.
        class.levels = around.iter().map(|step| middle + step).filter(|log| *log < -0.5 * ALIKE).collect();
        class.levels.push(0.0);
        class
    };
    parts.into_iter().map(class).collect()
}

impl Space for WeightedDomain {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        let (inner, combination) = self.cut(point)?;
        self.standing_for(&self.inner.canonical(&inner)?, combination)
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

impl Candidates for WeightedDomain {
    fn spec(&self) -> &DomainSpec {
        self.inner.spec()
    }

    fn candidate(&self, point: &Point) -> Candidate {
        let (inner, combination) = self.cut(point).expect("a point of this domain");
        let mut candidate = self.inner.candidate(&inner);
        candidate.engine.weights = self.weights[&key(&candidate)][combination].weights.clone();
        candidate
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        let mut equal = candidate.clone();
        let weights = canonical_weights(&std::mem::take(&mut equal.engine.weights));
        let inner = self.inner.point(&equal)?;
        let all = self.weights.get(&key(&self.inner.candidate(&inner)))?;
        let same = all.iter().position(|combination| combination.weights == weights)?;
        self.standing_for(&inner, same)
    }

    fn has_memory_for(&self, candidate: &Candidate) -> bool {
        self.inner.has_memory_for(candidate) && self.fits(candidate, &candidate.engine.weights)
    }

    /// Of weights that do not fit the memory as measured, `point` itself.
    fn balanced(&self, point: &Point) -> Point {
        let measured: Vec<u16> = self.classes.iter().map(Class::measured).collect();
        let cut = self.cut(point);
        cut.and_then(|(inner, _)| self.standing_for(&inner, self.combination(&measured)))
            .unwrap_or_else(|| point.clone())
    }
}
