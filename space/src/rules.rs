//! Hard rules: what a run must satisfy, each with its reason.

use crate::order::MAX_N;
use crate::{Candidate, KernelChoice, Share};

/// Maximum threads over all ranks of one process; a larger number is taken as an input error.
pub const MAX_THREADS: usize = 16_384;

/// Maximum cores or accelerators of all nodes together; a larger number is taken as an input error.
pub const MAX_PLACES: usize = 1 << 24;

/// Largest DEPTH of which that many panels and one more can be on their way along a process row: each has a tag of its own, of which MPI
/// has 32768 at least.
pub const MAX_DEPTH: usize = 4095;

const IN_ONE_PROCESS: &str = " in one process";

/// A hard rule that a candidate breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A parameter is below its smallest value.
    #[error("{name} must be at least {min}, found {found}")]
    TooSmall {
        /// HPL's name of the parameter.
        name: &'static str,
        /// Its smallest value.
        min: usize,
        /// The value.
        found: usize,
    },
    /// The order overflows the arithmetic of HPL's formats, which hold a C `int`.
    #[error("N must be at most {max}, found {found}")]
    TooLarge {
        /// Largest order.
        max: usize,
        /// The order.
        found: usize,
    },
    /// More panels on their way than can be told apart.
    #[error("DEPTH must be at most {max} with N={n}, NB={nb} and Q={q}, found {found}; lower DEPTH, or raise NB")]
    TooDeep {
        /// Largest DEPTH of a run with more panels.
        max: usize,
        /// The order.
        n: usize,
        /// NB.
        nb: usize,
        /// Process columns.
        q: usize,
        /// The value.
        found: usize,
    },
    /// Too many threads of one process, or of all.
    #[error(
        "P={p} Q={q} with {threads} threads per rank is more than {most} threads{place}; lower P, Q or the threads"
    )]
    TooManyThreads {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Threads of each rank.
        threads: usize,
        /// As many as there may be.
        most: usize,
        /// ` in one process`, or nothing.
        place: &'static str,
    },
    /// A right section of all columns.
    #[error("split must be at least 0 and below 1, found {found}")]
    Split {
        /// The value.
        found: Share,
    },
    /// Weights that do not fit the grid.
    #[error("weights.{axis} must hold {name}={expected} speeds or none, found {found}")]
    Weights {
        /// `rows` or `columns`.
        axis: &'static str,
        /// P or Q.
        name: &'static str,
        /// Its value.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Kernels of ranks that do not fit the grid.
    #[error("rank_kernels must hold P·Q={expected} kernels or none, found {found}")]
    RankKernels {
        /// P·Q.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Kernels of a rank that are yet to be chosen.
    #[error("rank_kernels must be builtin, builtin-avx2, builtin-portable or a path; auto is not possible for it")]
    AutoKernels,
    /// A dimension of another engine.
    #[error("extra.{name} is a dimension of another engine, ours has none of that name; take it out")]
    Extra {
        /// Its name.
        name: String,
    },
    /// Weights that leave no rank a part of the matrix.
    #[error("weights.{axis} are all 0, so that no process would own the matrix; make one of them positive")]
    NoWeight {
        /// `rows` or `columns`.
        axis: &'static str,
    },
}

impl Candidate {
    /// Checks the hard rules of our engine.
    ///
    /// NBMIN above NB is valid: the recursion ends at once, in Netlib's program and in ours, and
    /// Netlib's own sample HPL.dat has it.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), RuleError> {
        let hpl = &self.hpl;
        let smallest = [
            ("NB", 1, hpl.nb),
            ("P", 1, hpl.p),
            ("Q", 1, hpl.q),
            ("NBMIN", 1, hpl.nbmin),
            ("NDIV", 2, hpl.ndiv),
            ("ALIGN", 1, hpl.align),
            ("threads", 1, self.engine.threads),
        ];
        for (name, min, found) in smallest {
            if found < min {
                return Err(RuleError::TooSmall { name, min, found });
            }
        }
        if hpl.n > MAX_N {
            return Err(RuleError::TooLarge { max: MAX_N, found: hpl.n });
        }
        // No DEPTH has more panels than the matrix.
        if hpl.q > 1 && hpl.depth > MAX_DEPTH && hpl.n.div_ceil(hpl.nb) > MAX_DEPTH + 1 {
            return Err(RuleError::TooDeep { max: MAX_DEPTH, n: hpl.n, nb: hpl.nb, q: hpl.q, found: hpl.depth });
        }
        if self.engine.threads > MAX_THREADS {
            return Err(self.too_many_threads(MAX_THREADS, IN_ONE_PROCESS));
        }
        if self.all_threads().is_none_or(|all| all > MAX_PLACES) {
            return Err(self.too_many_threads(MAX_PLACES, ""));
        }
        if let Some(name) = self.engine.extra.keys().next() {
            return Err(RuleError::Extra { name: name.clone() });
        }
        self.check_shares()
    }

    /// Checks that all ranks with their threads can be in one process.
    ///
    /// # Errors
    /// [`RuleError::TooManyThreads`].
    pub fn check_in_one_process(&self) -> Result<(), RuleError> {
        let fits = self.all_threads().is_some_and(|all| all <= MAX_THREADS);
        if fits { Ok(()) } else { Err(self.too_many_threads(MAX_THREADS, IN_ONE_PROCESS)) }
    }

    fn all_threads(&self) -> Option<usize> {
        self.hpl.p.checked_mul(self.hpl.q)?.checked_mul(self.engine.threads)
    }

    fn too_many_threads(&self, most: usize, place: &'static str) -> RuleError {
        RuleError::TooManyThreads { p: self.hpl.p, q: self.hpl.q, threads: self.engine.threads, most, place }
    }

    /// The rules of split, weights and kernels of ranks.
    fn check_shares(&self) -> Result<(), RuleError> {
        let engine = &self.engine;
        if engine.split.get() >= 1.0 {
            return Err(RuleError::Split { found: engine.split });
        }
        let (expected, found) = (self.hpl.ranks(), engine.rank_kernels.len());
        if found > 0 && found != expected {
            return Err(RuleError::RankKernels { expected, found });
        }
        if engine.rank_kernels.contains(&KernelChoice::Auto) {
            return Err(RuleError::AutoKernels);
        }
        let axes =
            [("rows", "P", self.hpl.p, &engine.weights.rows), ("columns", "Q", self.hpl.q, &engine.weights.columns)];
        for (axis, name, expected, weights) in axes {
            if weights.is_empty() {
                continue;
            }
            if weights.len() != expected {
                return Err(RuleError::Weights { axis, name, expected, found: weights.len() });
            }
            if weights.iter().all(|&weight| weight == Share::ZERO) {
                return Err(RuleError::NoWeight { axis });
            }
        }
        Ok(())
    }
}
