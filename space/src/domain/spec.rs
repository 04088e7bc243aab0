//! What a domain is built for, and what every domain of candidates answers.

use crate::dims::{Point, Space};
use crate::{Candidate, KernelChoice, Unequal};

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
    pub(super) fn has_nodes(&self) -> bool {
        self.most_threads.is_some_and(|most| most < self.cores)
    }
}

/// Cores or accelerators of all nodes together beyond which a wrong number is likelier than a large machine.
pub const MAX_PLACES: usize = 1 << 24;

/// Points that a domain may have; a suggestion looks at all of them.
pub const MAX_POINTS: usize = 200_000;

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
