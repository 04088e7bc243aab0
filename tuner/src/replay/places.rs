//! A landscape as the candidates of an engine whose one parameter is the place in the table.

use space::dims::{Dim, Point, Space};
use space::domain::DomainSpec;
use space::{Candidate, Candidates, EngineParams, HplParams, KernelChoice, Unequal};

use super::landscape::Landscape;

/// Order of all runs; nothing depends on it.
pub(super) const N: usize = 20_000;

/// The parameter that says which point a candidate is.
const PLACE: &str = "place";

/// A landscape as the candidates of an engine.
pub(super) struct LandscapeDomain<'a> {
    landscape: &'a Landscape,
    spec: DomainSpec,
}

impl<'a> LandscapeDomain<'a> {
    pub(super) fn new(landscape: &'a Landscape) -> Self {
        let spec = DomainSpec {
            n: N,
            cores: 1,
            memory_bytes: u64::MAX,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: Unequal::default(),
        };
        Self { landscape, spec }
    }

    pub(super) fn at(&self, at: usize) -> Candidate {
        let extra = [(PLACE.to_owned(), at.to_string())].into();
        Candidate { hpl: HplParams::baseline(N, 1, 1), engine: EngineParams { extra, ..EngineParams::default() } }
    }

    pub(super) fn place(&self, candidate: &Candidate) -> Option<usize> {
        candidate.engine.extra.get(PLACE)?.parse().ok().filter(|&at| at < self.landscape.len())
    }
}

impl Space for LandscapeDomain<'_> {
    fn dims(&self) -> &[Dim] {
        self.landscape.space.dims()
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        self.landscape.space.canonical(point)
    }

    fn points(&self) -> &[Point] {
        self.landscape.space.points()
    }
}

impl Candidates for LandscapeDomain<'_> {
    fn spec(&self) -> &DomainSpec {
        &self.spec
    }

    fn candidate(&self, point: &Point) -> Candidate {
        self.at(self.landscape.space.position(point).expect("a point of this space"))
    }

    fn point(&self, candidate: &Candidate) -> Option<Point> {
        Some(self.points()[self.place(candidate)?].clone())
    }
}
