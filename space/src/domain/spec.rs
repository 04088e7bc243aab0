//! The specification of a domain, and the trait of all domains of candidates.

use serde::{Deserialize, Serialize};

use crate::candidate::EngineProfile;
use crate::dims::{Point, Space};
use crate::workspace::{RunShape, Workspace};
use crate::{Candidate, HplParams, KernelChoice, Unequal};

/// The specification of a domain.
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
    /// Maximum threads of a rank where each rank is a process on one node: its cores, or those of the smallest of several. `None` where
    /// ranks are threads of one process, for all cores.
    pub most_threads: Option<usize>,
    /// The greatest number that divides the cores of each node: ranks whose number of threads divides it fill also nodes of unequal size.
    /// `None` where the nodes are unknown.
    pub common_cores: Option<usize>,
    /// Speeds and kernels of the ranks; if they differ, `ranks` is their number.
    pub unequal: Unequal,
}

impl DomainSpec {
    /// Memory that a run takes whose ranks have `threads` threads each, all ranks together, in bytes.
    pub(super) fn needed_bytes(&self, hpl: &HplParams, threads: usize) -> u64 {
        self.workspace().bytes(self.shape(hpl, threads))
    }

    /// The shape of a run of our engine whose ranks have `threads` threads each.
    pub(super) fn shape(&self, hpl: &HplParams, threads: usize) -> RunShape {
        RunShape::on_hosts(hpl, threads, self.most_threads.unwrap_or(self.cores))
    }

    /// What runs keep beside their matrix.
    pub fn workspace(&self) -> Workspace {
        if self.most_threads.is_some() { Workspace::OurProcesses } else { Workspace::Hpl }
    }

    /// Whether the cores are those of several nodes.
    pub(super) fn has_nodes(&self) -> bool {
        self.most_threads.is_some_and(|most| most < self.cores)
    }

    /// Whether PMAP decides with which ranks one of `threads` threads shares its node: there are several nodes with several such ranks.
    pub(super) fn has_neighbours(&self, threads: usize) -> bool {
        self.most_threads.is_some_and(|most| threads < most && most < self.cores)
    }
}

/// Maximum points of a domain; a suggestion evaluates all of them.
pub const MAX_POINTS: usize = 200_000;

/// A domain that the values asked for make larger is refused: each suggestion would take seconds, and memory grows with it.
pub const TOO_MANY_POINTS: usize = 10 * MAX_POINTS;

/// The dimensions that another engine obeys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForeignSpec {
    /// Dimensions of HPL that it obeys besides ranks and grid: of `nb nbmin ndiv pfact rfact bcast depth swap`.
    pub obeys: Vec<String>,
    /// Values of NB, rising; empty for the usual ones.
    pub nb: Vec<usize>,
    /// NB of the usual candidate, of `nb` the value nearest to it; none for that of our default.
    pub usual_nb: Option<usize>,
    /// NBMIN of the usual candidate; none for that of our default.
    pub usual_nbmin: Option<usize>,
    /// Whether DEPTH acts with one process column.
    pub depth_alone: bool,
    /// What its runs keep beside the matrix.
    pub workspace: Workspace,
    /// Whether ranks may have several threads.
    pub threads: bool,
    /// Maximum threads of a rank, if the cores are on several nodes: the cores of one.
    pub most_threads: Option<usize>,
    /// Additional dimensions of this engine.
    pub extra: Vec<Extra>,
}

impl ForeignSpec {
    /// Whose rules decide which parameters have no effect.
    pub(super) fn rules(&self) -> EngineProfile {
        if self.depth_alone { EngineProfile::LookAhead } else { EngineProfile::Netlib }
    }

    /// Whether it obeys this dimension of HPL.
    pub(super) fn acts(&self, name: &str) -> bool {
        self.obeys.iter().map(String::as_str).any(|known| known == name)
    }

    /// Whether devices factor panels with one of its values.
    pub(super) fn may_factor(&self) -> bool {
        self.extra.iter().any(|extra| (0..extra.labels.len()).any(|level| extra.device_factors(level as u16)))
    }

    /// Whether devices factor panels with its usual values.
    pub fn usually_factors(&self) -> bool {
        self.extra.iter().any(|extra| extra.device_factors(0))
    }
}

/// An additional dimension of one engine; its first value is the usual one.
#[derive(Debug, Clone, PartialEq)]
pub struct Extra {
    /// Its name.
    pub name: String,
    /// Its values, at least one.
    pub labels: Vec<String>,
    /// Position of each on the axis.
    pub features: Vec<f64>,
    /// Whether the values are ordered, so that near values behave similarly.
    pub ordered: bool,
    /// On which grids it acts; on others it has its usual value.
    pub acts: ProcessRows,
}

impl Extra {
    /// The dimension of our engine on devices that says how many blocks of their threads factor a panel; with 0 the host does.
    const FACT_BLOCKS: &str = "fact_blocks";

    /// Whether at this level the device factors panels.
    pub(super) fn device_factors(&self, level: u16) -> bool {
        self.name == Self::FACT_BLOCKS && self.labels.get(usize::from(level)).is_some_and(|blocks| blocks != "0")
    }
}

/// Numbers of process rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRows {
    /// Any number.
    #[default]
    Any,
    /// P = 1.
    One,
    /// P > 1.
    Several,
}

impl ProcessRows {
    /// Whether `p` process rows are among them.
    pub fn contain(self, p: usize) -> bool {
        match self {
            Self::Any => true,
            Self::One => p == 1,
            Self::Several => p > 1,
        }
    }

    /// Whether it is any number.
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// A space in which every point is a run: that of our engine, or of another one.
pub trait Candidates: Space {
    /// The specification of the space.
    fn spec(&self) -> &DomainSpec;

    /// The candidate of a canonical point.
    ///
    /// # Panics
    /// When `point` is no point of this space.
    fn candidate(&self, point: &Point) -> Candidate;

    /// The point of a candidate, `None` where the space does not have it.
    fn point(&self, candidate: &Candidate) -> Option<Point>;

    /// Whether a run of `candidate`, at any N, fits the memory; `true` where the space knows of none.
    fn has_memory_for(&self, _candidate: &Candidate) -> bool {
        true
    }

    /// The point of the same run with weights as the speeds were measured; `point` itself where weights are not searched.
    fn balanced(&self, point: &Point) -> Point {
        point.clone()
    }
}
