//! The points of this space that earlier runs stand for.
//!
//! A run of the same parameters at another N is the same point. One of another machine may have a grid, a number of ranks
//! or an NB that is not searched here: it stands for the nearest point, or for none where a categorical parameter has no
//! like here.

use std::collections::BTreeMap;

use objectives::real::Extent;
use space::dims::{Dim, DimKind, Point};
use space::params::Coded;
use space::{Candidate, Candidates, HplParams};

use super::Earlier;
use crate::search::strategy::informed::ComparableRuns;

/// Distance, in ranges of ordered dimensions and categorical mismatches together, from which on a run is no neighbour.
const FAR: f64 = 1.0;

/// Which runs were measured alike: source, host, cores, N, and whether by windows.
type Alike<'a> = (&'a str, Option<&'a str>, Option<usize>, usize, bool);

/// The earlier runs as points of `space`, those that were measured alike together. A group counts as of this machine
/// where its host and its cores are.
pub fn groups(space: &dyn Candidates, earlier: &[Earlier], host: &str) -> Vec<ComparableRuns> {
    let cores = used_cores(space);
    let mut groups: BTreeMap<Alike<'_>, Vec<(Point, f64)>> = BTreeMap::new();
    for run in earlier {
        let alike = (&*run.source, run.host.as_deref(), run.cores, run.candidate.hpl.n, run.extent == Extent::Windows);
        if let Some(point) = place(space, &run.candidate, run.cores) {
            groups.entry(alike).or_default().push((point, run.rate_gflops.ln()));
        }
    }
    let group = |((_, from, used, ..), runs): (Alike<'_>, _)| ComparableRuns {
        of_this_machine: from == Some(host) && used == Some(cores),
        runs,
    };
    groups.into_iter().map(group).collect()
}

/// Cores that the runs of `space` use: fixed ranks or threads may leave some idle.
fn used_cores(space: &dyn Candidates) -> usize {
    let first = space.points().first().map(|first| space.candidate(first));
    first.map_or(space.spec().cores, |first| first.hpl.ranks() * first.engine.threads)
}

/// The point that a run of `of` on so many cores stands for.
pub(super) fn place(space: &dyn Candidates, of: &Candidate, cores: Option<usize>) -> Option<Point> {
    let spec = space.spec();
    let mut candidate = space.candidate(space.points().first()?);
    candidate.hpl = HplParams { n: spec.n, ..of.hpl };
    candidate.engine.split = of.engine.split;
    candidate.engine.weights = of.engine.weights.clone();
    candidate.engine.extra = of.engine.extra.clone();
    candidate.engine.settings = of.engine.settings;
    candidate.engine.threads = match cores {
        Some(_) => of.engine.threads,
        None => (spec.cores / candidate.hpl.ranks()).max(1),
    };
    space.point(&candidate).or_else(|| nearest(space, &candidate, cores))
}

fn nearest(space: &dyn Candidates, candidate: &Candidate, cores: Option<usize>) -> Option<Point> {
    // One rank per core is that everywhere.
    let scale = cores.map_or(1.0, |cores| used_cores(space) as f64 / cores.max(1) as f64);
    let distances = |dim: &Dim| distances(dim, candidate, scale);
    let tables: Vec<Vec<f64>> = space.dims().iter().map(distances).collect();
    let distance =
        |point: &Point| -> f64 { tables.iter().zip(&point.0).map(|(table, &level)| table[usize::from(level)]).sum() };
    let near = space.points().iter().map(|point| (distance(point), point));
    let (distance, point) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (distance < FAR).then(|| point.clone())
}

/// How far each level of a dimension is from a candidate: its part of the range, or whether it differs; 0 where the
/// candidate says nothing of this dimension.
fn distances(dim: &Dim, candidate: &Candidate, scale: f64) -> Vec<f64> {
    let hpl = &candidate.hpl;
    let log2 = |value: usize| Some((value as f64).log2());
    let feature = match dim.name.as_str() {
        "ranks" => Some((hpl.ranks() as f64 * scale).log2()),
        "grid" => Some((hpl.p as f64 / hpl.q as f64).log2()),
        "nb" => log2(hpl.nb),
        "nbmin" => log2(hpl.nbmin),
        "ndiv" => log2(hpl.ndiv),
        "depth" => Some(hpl.depth as f64),
        "split" => Some(candidate.engine.split.get()),
        "max_clock_mhz" => candidate.engine.settings.max_clock_mhz.map(|mhz| f64::from(mhz.max(1)).log2()),
        "package_limit_w" => candidate.engine.settings.package_limit_w.map(|watts| f64::from(watts.max(1)).log2()),
        "gpu_limit_w" => candidate.engine.settings.gpu_limit_w.map(|watts| f64::from(watts.max(1)).log2()),
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
    use space::dims::Space;
    use space::domain::{DomainSpec, HplDomain, default_candidate};
    use space::{EngineParams, KernelChoice, Unequal};

    use super::super::tests::run;
    use super::*;

    fn domain() -> HplDomain {
        let kernels = KernelChoice::Builtin;
        let spec = DomainSpec {
            n: 4000,
            cores: 2,
            memory_bytes: 1 << 32,
            kernels,
            ranks: None,
            threads: None,
            most_threads: None,
            unequal: Unequal::default(),
        };
        HplDomain::new(&spec).unwrap()
    }

    #[test]
    fn the_same_parameters_at_another_n_are_the_same_point() {
        let domain = domain();
        let usual = default_candidate(domain.spec());
        let earlier = Earlier { candidate: usual.at_n(9000), ..run(0, "here", 10.0) };
        assert_eq!(domain.candidate(&place(&domain, &earlier.candidate, earlier.cores).unwrap()), usual);
        // HPL.out says nothing of cores or threads.
        let single = HplParams { n: 9000, ..HplParams::baseline(9000, 1, 1) };
        let engine = EngineParams::default();
        let bare = Earlier { cores: None, host: None, candidate: Candidate { hpl: single, engine }, ..earlier };
        assert_eq!(domain.candidate(&place(&domain, &bare.candidate, bare.cores).unwrap()).engine.threads, 2);
    }

    #[test]
    fn a_run_of_a_larger_machine_stands_for_the_nearest_point() {
        let domain = domain();
        let hpl = HplParams { nb: 232, depth: 1, ..HplParams::baseline(100_000, 4, 8) };
        let earlier = Earlier {
            cores: Some(32),
            candidate: Candidate { hpl, engine: EngineParams::default() },
            ..run(0, "cluster", 900.0)
        };
        let found = domain.candidate(&place(&domain, &earlier.candidate, earlier.cores).unwrap());
        assert_eq!((found.hpl.p, found.hpl.q, found.engine.threads), (1, 2, 1));
        assert!([224, 240].contains(&found.hpl.nb) && found.hpl.bcast == hpl.bcast, "{found:?}");
        assert!(domain.points().contains(&place(&domain, &earlier.candidate, earlier.cores).unwrap()));
    }

    #[test]
    fn only_runs_measured_alike_are_together_and_only_here_is_here() {
        let domain = domain();
        let windows = Earlier { extent: Extent::Windows, ..run(2, "here", 12.0) };
        let earlier = [run(0, "here", 10.0), run(1, "here", 11.0), windows, run(0, "there", 99.0)];
        let groups = groups(&domain, &earlier, "here");
        let counts: Vec<(bool, usize)> = groups.iter().map(|group| (group.of_this_machine, group.runs.len())).collect();
        assert_eq!(counts, [(true, 2), (true, 1), (false, 1)]);
    }
}
