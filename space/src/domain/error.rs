//! Errors of a domain and of its limits.

use crate::counted;
use crate::nearest::hint;
use crate::rules::MAX_PLACES;
use crate::rules::RuleError;

/// Why there is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Ranks or threads do not fit the cores.
    #[error(
        "{} with {} each need more than {}; lower ranks or threads",
        counted(*ranks, "rank"), counted(*threads, "thread"), counted(*cores, "core")
    )]
    Cores {
        /// Ranks asked for.
        ranks: usize,
        /// Threads of each.
        threads: usize,
        /// Cores there are.
        cores: usize,
    },
    /// More cores than any machine has.
    #[error("{found} cores or accelerators over all nodes are more than {MAX_PLACES}; see count and cores of [[node]]")]
    Places {
        /// How many there would be.
        found: usize,
    },
    /// The number of ranks with speeds or kernels differs from the number of ranks of a candidate.
    #[error("speeds or kernels of {found} ranks for {ranks} ranks; give those of each rank, or fix the ranks")]
    Unequal {
        /// Number of ranks with speeds or kernels.
        found: usize,
        /// Ranks of the candidates.
        ranks: String,
    },
    /// A rank of speed 0.
    #[error("rank {rank} has speed 0; leave it out, or give it a speed")]
    Idle {
        /// The rank.
        rank: usize,
    },
    /// Ranks whose weights need no search.
    #[error("the speeds of the ranks differ by less than 2 %; search without weights")]
    Alike,
    /// No candidate fits into the memory.
    #[error("N={n} needs {needed_bytes} bytes, {memory_bytes} are usable; lower N to at most {largest_n}")]
    Memory {
        /// Target order.
        n: usize,
        /// Memory of the candidate that needs the least.
        needed_bytes: u64,
        /// Usable memory.
        memory_bytes: u64,
        /// Largest order that fits.
        largest_n: usize,
    },
    /// A value of the specification breaks a rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The user's limits cannot be kept.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The allowed grids are of no allowed number of ranks.
    #[error("[ranks] and [grid] contradict each other: none of {} ranks makes a grid of {}; allow more values of one of them", ranks.join(", "), grids.join(", "))]
    NoGrid {
        /// Allowed numbers of ranks.
        ranks: Vec<String>,
        /// Allowed aspects P:Q.
        grids: Vec<String>,
    },
    /// More candidates than can be searched, also with the fewest of the values that are not asked for.
    #[error(
        "there are more than {most} candidates; allow fewer values in the limits of the space, or in the dimensions of \
        the engine's profile"
    )]
    TooMany {
        /// The most there may be.
        most: usize,
    },
    /// NBMIN is above NB everywhere.
    #[error(
        "[nb] and [nbmin] contradict each other: the rule NBMIN <= NB excludes all of NB up to {nb} with NBMIN from {nbmin}; \
        allow more values of one of them"
    )]
    Recursion {
        /// Largest allowed NB.
        nb: usize,
        /// Smallest allowed NBMIN.
        nbmin: usize,
    },
}

/// Limits that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No TOML, or not of this form.
    #[error("{0}")]
    Syntax(String),
    /// A dimension that the space does not have.
    #[error("[{name}] is not a dimension; the dimensions are {}{}", known.join(", "), hint(name, known.iter().map(String::as_str)))]
    NoDimension {
        /// The name.
        name: String,
        /// The dimensions there are.
        known: Vec<String>,
    },
    /// A value that the dimension cannot take.
    #[error("[{name}]: '{found}' is {wrong}")]
    NoValue {
        /// The dimension.
        name: String,
        /// The value.
        found: String,
        /// Why not, and what can be.
        wrong: String,
    },
    /// Keys that contradict each other.
    #[error("[{name}]: {wrong}")]
    Contradiction {
        /// The dimension.
        name: String,
        /// Which keys.
        wrong: String,
    },
    /// Nothing is left of a dimension.
    #[error("[{name}] leaves no value of {}; allow more values, or leave it out", usual.join(", "))]
    Empty {
        /// The dimension.
        name: String,
        /// The values without limits.
        usual: Vec<String>,
    },
}
