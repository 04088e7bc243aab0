//! The points of a space that are near to a run.
//!
//! A run of other sessions or machines, or one that a space leaves out, may have a grid, a number of ranks or an NB that is no level there.

use space::dims::{Dim, DimKind, Point};
use space::params::Coded;
use space::{Candidate, Candidates};

/// Distance, in ranges of ordered dimensions and categorical mismatches together, from which on a run is no neighbour.
const FAR: f64 = 1.0;

/// The point of `candidate`, or the nearest one where the space leaves it out.
pub(crate) fn nearest(space: &dyn Candidates, candidate: &Candidate) -> Option<Point> {
    space.point(candidate).or_else(|| {
        let distances = Distances::new(space, candidate, None);
        let nearest = || distances.nearest_of(space.points()).map(|(_, point)| point.clone());
        distances.combined(space).or_else(nearest)
    })
}

/// Cores that the runs of `space` use: fixed ranks or threads may leave some idle.
pub(crate) fn used_cores(space: &dyn Candidates) -> usize {
    let first = space.points().first().map(|first| space.candidate(first));
    first.map_or(space.spec().cores, |first| first.hpl.ranks() * first.engine.threads)
}

/// How far each level of each dimension of a space is from a run.
pub(crate) struct Distances(Vec<Vec<f64>>);

impl Distances {
    pub(crate) fn new(space: &dyn Candidates, candidate: &Candidate, cores: Option<usize>) -> Self {
        // One rank per core is that everywhere.
        let scale = cores.map_or(1.0, |cores| used_cores(space) as f64 / cores.max(1) as f64);
        Self(space.dims().iter().map(|dim| distances(dim, candidate, scale)).collect())
    }

    /// Distance of a point, that of all dimensions together.
    pub(crate) fn to(&self, point: &Point) -> f64 {
        self.0.iter().zip(&point.0).map(|(table, &level)| table[usize::from(level)]).sum()
    }

    /// The nearest level of each dimension. No point is nearer, but there may be no such point.
    fn levels(&self) -> Point {
        let nearest = |table: &Vec<f64>| {
            let level = (0..table.len()).min_by(|&a, &b| table[a].total_cmp(&table[b]));
            level.unwrap_or_default() as u16
        };
        Point(self.0.iter().map(nearest).collect())
    }

    /// Whether no point of any space with these levels is near.
    pub(crate) fn all_far(&self) -> bool {
        self.to(&self.levels()) >= FAR
    }

    /// The point of all nearest levels, or its canonical form where that is as near.
    pub(crate) fn combined(&self, space: &dyn Candidates) -> Option<Point> {
        let levels = self.levels();
        space.canonical(&levels).filter(|point| self.to(point) <= self.to(&levels))
    }

    /// The nearest of all points, where it is near.
    pub(crate) fn nearest(&self, space: &dyn Candidates) -> Option<Point> {
        self.nearest_of(space.points()).filter(|(distance, _)| *distance < FAR).map(|(_, point)| point.clone())
    }

    /// The nearest of `points`, with its distance.
    fn nearest_of<'a>(&self, points: &'a [Point]) -> Option<(f64, &'a Point)> {
        points.iter().map(|point| (self.to(point), point)).min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// How far each level of a dimension is from a candidate: its part of the range, or whether it differs; 0 where the
/// candidate says nothing of this dimension.
fn distances(dim: &Dim, candidate: &Candidate, scale: f64) -> Vec<f64> {
    let hpl = &candidate.hpl;
    let log2 = |value: usize| Some((value as f64).log2());
    // A run without a setting was on the node as it was found, and no level is above that.
    let found = dim.levels.iter().map(|level| level.feature).reduce(f64::max);
    let setting = |value: Option<u32>| value.map(|value| f64::from(value.max(1)).log2()).or(found);
    let feature = match dim.name.as_str() {
        "ranks" => Some((hpl.ranks() as f64 * scale).log2()),
        "grid" => Some((hpl.p as f64 / hpl.q as f64).log2()),
        "nb" => log2(hpl.nb),
        "nbmin" => log2(hpl.nbmin),
        "ndiv" => log2(hpl.ndiv),
        "depth" => Some(hpl.depth as f64),
        // On devices it is a dimension of that engine alone.
        "split" => match candidate.engine.extra.get("split") {
            Some(own) => own.parse().ok(),
            None => Some(candidate.engine.split.get()),
        },
        "max_clock_mhz" => setting(candidate.engine.settings.max_clock_mhz),
        "package_limit_w" => setting(candidate.engine.settings.package_limit_w),
        "gpu_limit_w" => setting(candidate.engine.settings.gpu_limit_w),
        _ => None,
    };
    let label = match dim.name.as_str() {
        "pfact" => Some(hpl.pfact.name()),
        "rfact" => Some(hpl.rfact.name()),
        "bcast" => Some(hpl.bcast.name()),
        "swap" => Some(hpl.swap.name()),
        "pmap" => Some(hpl.pmap.name()),
        name => candidate.engine.extra.get(name).map(String::as_str),
    };
    let features = dim.levels.iter().map(|level| level.feature);
    let range = features.clone().fold(f64::NEG_INFINITY, f64::max) - features.clone().fold(f64::INFINITY, f64::min);
    match (dim.kind, feature, label) {
        (DimKind::Ordered, Some(wanted), _) => features.map(|at| (at - wanted).abs() / range.max(1.0)).collect(),
        (_, _, Some(label)) => dim.levels.iter().map(|level| f64::from(u8::from(level.label != label))).collect(),
        _ => vec![0.0; dim.levels.len()],
    }
}

#[cfg(test)]
mod tests {
    use space::dims::Level;
    use space::domain::{HplDomain, Limits, default_candidate};
    use space::{EngineParams, HplParams, Share};

    use super::*;
    use crate::search::schedule::tests::spec;

    #[test]
    fn what_a_space_leaves_out_has_a_nearest_point_however_far_it_is() {
        let spec = spec();
        let usual = default_candidate(&spec);
        for pfact in ["left", "crout", "right"] {
            let limits = format!("[pfact]\nfixed = \"{pfact}\"\n[nb]\nvalues = [192, 256]\n");
            let domain = HplDomain::within(&spec, &Limits::parse(&limits).unwrap()).unwrap();
            assert_eq!(domain.point(&usual), None);
            let found = domain.candidate(&nearest(&domain, &usual).unwrap()).hpl;
            let [p, q] = [usual.hpl.p, usual.hpl.q];
            assert_eq!((found.pfact.name(), found.nb, [found.p, found.q]), (pfact, 192, [p, q]));
        }
        let whole = HplDomain::new(&spec).unwrap();
        assert_eq!(nearest(&whole, &usual), whole.point(&usual));
    }

    #[test]
    fn the_split_of_an_engine_on_devices_is_that_of_its_own_dimension() {
        let level = |share: f64| Level { label: share.to_string(), feature: share };
        let levels = [0.0, 0.3, 0.5].map(level).to_vec();
        let dim = Dim { name: "split".to_owned(), kind: DimKind::Ordered, levels };
        let engine = EngineParams { split: Share::new(0.5).unwrap(), ..EngineParams::default() };
        let mut candidate = Candidate { hpl: HplParams::baseline(9000, 1, 4), engine };
        assert_eq!(distances(&dim, &candidate, 1.0), [0.5, 0.2, 0.0]);
        candidate.engine.split = Share::ZERO;
        candidate.engine.extra.insert("split".to_owned(), "0.5".to_owned());
        assert_eq!(distances(&dim, &candidate, 1.0), [0.5, 0.2, 0.0]);
    }
}
