//! Spaces whose points are candidates.

use crate::Candidate;
use crate::dims::{Point, Space};
use crate::domain::{DomainSpec, HplDomain};

/// A space in which every point is a run: that of our engine, or of another one.
pub trait Candidates: Space {
    /// What the space was built for.
    fn spec(&self) -> &DomainSpec;

    /// The candidate that a canonical point stands for.
    ///
    /// # Panics
    /// When `point` is no point of this space.
    fn candidate(&self, point: &Point) -> Candidate;

    /// The point of a candidate, `None` where the space does not have it.
    fn point(&self, candidate: &Candidate) -> Option<Point>;
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
}
