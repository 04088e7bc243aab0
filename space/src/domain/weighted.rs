//! The HPL space of ranks of unequal speed: their weights are dimensions, too.
//!
//! Weights are points of a simplex; its coordinates here are log-ratios to the fastest ranks (Aitchison's additive
//! log-ratio). Slower ranks are one class or two, each with an ordered dimension: its levels are the measured
//! log-ratio, some around it, and 0, which deals to the class as to the fastest. So equal weights are a point, the measured
//! ones another, and the space between and around is searched like NB. Weights that deal the same blocks to the same
//! ranks are one run and one point: that of equal weights where they are among them, else of those nearest to the measured
//! ones.

use std::collections::HashMap;

use super::{DomainError, DomainSpec, HplDomain, Limits, MAX_POINTS};
use crate::candidate::canonical_weights;
use crate::candidates::Candidates;
use crate::dims::{Dim, Kind, Level, Point, Space};
use crate::unequal::ALIKE;
use crate::{Candidate, HplParams, Share, Weights, deal};

/// Steps of the log-ratio around the measured one, of one class of slower ranks and of each of two.
const AROUND: [&[f64]; 2] = [&[-0.16, -0.08, -0.04, 0.0, 0.04, 0.08, 0.16], &[-0.08, 0.0, 0.08]];

/// Weights are relative to the largest and rounded to this.
const RESOLUTION: f64 = 1e4;

/// Slower ranks that share a dimension.
#[derive(Debug, Clone)]
struct Class {
    /// Each rank with its measured log-ratio to the fastest.
    ranks: Vec<(usize, f64)>,
    /// Log-ratio of the class at each level, rising; the last is 0, equal weights.
    levels: Vec<f64>,
}

impl Class {
    /// The middle of its measured log-ratios.
    fn middle(&self) -> f64 {
        self.ranks.iter().map(|(_, log)| log).sum::<f64>() / self.ranks.len() as f64
    }

    fn dim(&self, name: &str) -> Dim {
        let level = |&log: &f64| Level { label: format!("{:.3}", log.exp()), feature: log };
        Dim { name: name.to_owned(), kind: Kind::Ordered, levels: self.levels.iter().map(level).collect() }
    }
}

/// All canonical candidates of our engine on ranks of unequal speed.
#[derive(Debug, Clone)]
pub struct WeightedDomain {
    inner: HplDomain,
    classes: Vec<Class>,
    dims: Vec<Dim>,
    points: Vec<Point>,
    /// For each P, Q and NB: which combination of levels stands for each.
    alike: HashMap<(usize, usize, usize), Vec<usize>>,
}

impl WeightedDomain {
    /// The domain of `spec` with the values that `limits` allow; the weights are not limited.
    ///
    /// # Errors
    /// [`DomainError`] as that of [`HplDomain::within`]; [`DomainError::Idle`] of a rank of speed 0, and
    /// [`DomainError::Alike`] when the speeds do not differ.
    pub fn within(spec: &DomainSpec, limits: &Limits) -> Result<Self, DomainError> {
        if let Some(rank) = spec.unequal.speeds.iter().position(|&speed| speed == Share::ZERO) {
            return Err(DomainError::Idle { rank });
        }
        let classes = classes(&spec.unequal.relative());
        if classes.is_empty() {
            return Err(DomainError::Alike);
        }
        let combinations: usize = classes.iter().map(|class| class.levels.len()).product();
        let inner = HplDomain::with_at_most(spec, limits, MAX_POINTS / combinations)?;
        let names = if classes.len() == 1 { &["weights"][..] } else { &["weights", "weights-slowest"] };
        let own = classes.iter().zip(names).map(|(class, name)| class.dim(name));
        let dims = inner.dims().iter().cloned().chain(own).collect();
        let mut domain = Self { inner, classes, dims, points: Vec::new(), alike: HashMap::new() };
        let mut points = Vec::new();
        for point in domain.inner.points() {
            let hpl = domain.inner.candidate(point).hpl;
            let key = (hpl.p, hpl.q, hpl.nb);
            if !domain.alike.contains_key(&key) {
                let stands_for = domain.representatives(&hpl, combinations);
                domain.alike.insert(key, stands_for);
            }
            let own = (0..combinations).filter(|&at| domain.alike[&key][at] == at);
            points.extend(own.map(|at| domain.joined(point, at)));
        }
        domain.points = points;
        Ok(domain)
    }

    /// The combination that stands for each: of those that deal alike equal weights, else the nearest to the measured ones.
    fn representatives(&self, hpl: &HplParams, combinations: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..combinations).collect();
        let distance = |at: usize| -> f64 {
            let logs = self.logs(at);
            if logs.iter().all(|log| *log == 0.0) {
                return -1.0;
            }
            logs.iter().zip(&self.classes).map(|(log, class)| (log - class.middle()).abs()).sum()
        };
        order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        let mut first = HashMap::new();
        let mut stands_for = vec![0; combinations];
        for at in order {
            let weights = self.weights(at, hpl.p, hpl.q);
            let owners = |len: usize, procs: usize, of: &[Share]| {
                let equal = vec![1.0; procs];
                let shares: Vec<f64> = of.iter().map(|share| share.get()).collect();
                deal(len.div_ceil(hpl.nb), if of.is_empty() { &equal } else { &shares })
            };
            // Column N is b.
            let dealt = (owners(hpl.n, hpl.p, &weights.rows), owners(hpl.n + 1, hpl.q, &weights.columns));
            stands_for[at] = *first.entry(dealt).or_insert(at);
        }
        stands_for
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

    /// The canonical weights of a combination on a P×Q grid: the part of a process row or column is the mean of its ranks.
    fn weights(&self, combination: usize, p: usize, q: usize) -> Weights {
        let mut speeds = vec![1.0; p * q];
        for (class, log) in self.classes.iter().zip(self.logs(combination)) {
            for &(rank, measured) in &class.ranks {
                speeds[rank] = if log == 0.0 { 1.0 } else { (measured + log - class.middle()).exp() };
            }
        }
        let shares = |sums: Vec<f64>| {
            let largest = sums.iter().copied().fold(0.0, f64::max);
            let share = |sum: f64| Share::new((sum / largest * RESOLUTION).round() / RESOLUTION).unwrap_or_default();
            sums.into_iter().map(share).collect()
        };
        let rows = (0..p).map(|i| (0..q).map(|j| speeds[i * q + j]).sum()).collect();
        let columns = (0..q).map(|j| (0..p).map(|i| speeds[i * q + j]).sum()).collect();
        canonical_weights(&Weights { rows: shares(rows), columns: shares(columns) })
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

/// The slower ranks by the log of their relative `speeds`: none, one class, or two cut at the widest gap.
fn classes(speeds: &[f64]) -> Vec<Class> {
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
    let around = if parts.len() > 1 { AROUND[1] } else { AROUND[0] };
    let class = |ranks| {
        let mut class = Class { ranks, levels: Vec::new() };
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
        let inner = self.inner.canonical(&inner)?;
        let hpl = self.inner.candidate(&inner).hpl;
        // Only what the points have is there.
        let stands_for = self.alike.get(&(hpl.p, hpl.q, hpl.nb))?[combination];
        Some(self.joined(&inner, stands_for))
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
        candidate.engine.weights = self.weights(combination, candidate.hpl.p, candidate.hpl.q);
        candidate
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        let mut equal = candidate.clone();
        let weights = canonical_weights(&std::mem::take(&mut equal.engine.weights));
        let inner = self.inner.point(&equal)?;
        let hpl = self.inner.candidate(&inner).hpl;
        let stands_for = self.alike.get(&(hpl.p, hpl.q, hpl.nb))?;
        let same = (0..stands_for.len()).find(|&at| self.weights(at, hpl.p, hpl.q) == weights)?;
        Some(self.joined(&inner, stands_for[same]))
    }
}
