//! Errors of the SLEM method.

/// Why SLEM failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SlemError {
    /// The scaling to a doubly stochastic matrix did not converge.
    #[error(
        "the scaling (9) leaves row sums {row_error:.1e} from 1 after {iterations} iterations; a node without speed or \
         too slow a link is the cause, leave that node out"
    )]
    NotScaled {
        /// Iterations made.
        iterations: usize,
        /// Largest |row sum − 1|.
        row_error: f64,
    },
    /// The message unit is not a finite number above 0.
    #[error("the message unit must be a finite number above 0, found {found}")]
    Unit {
        /// The unit.
        found: f64,
    },
    /// The semidefinite program was not solved.
    #[error("the semidefinite program stopped at a gap of {gap:.1e}; the speeds or links are too far apart")]
    NotSolved {
        /// Upper bound of the distance from the optimum.
        gap: f64,
    },
}
