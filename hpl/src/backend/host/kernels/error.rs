//! Errors of loading kernels.

use std::path::PathBuf;

use space::KernelChoice;

/// Why kernels cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// The path is no shared library that this machine can load.
    #[error("{} cannot be loaded as a library: {why}; give another path, or builtin", path.display())]
    NoLibrary {
        /// The path.
        path: PathBuf,
        /// The loader's reason.
        why: String,
    },
    /// The processor lacks the instructions.
    #[error("this processor does not run {choice}; give builtin, or builtin-portable")]
    NoSet {
        /// The kernels.
        choice: KernelChoice,
    },
    /// The library is no BLAS.
    #[error("{} lacks {routine}: it is not a complete BLAS; give another path, or builtin", path.display())]
    Lacks {
        /// The path.
        path: PathBuf,
        /// The missing routine.
        routine: &'static str,
    },
    /// The library computes wrongly.
    #[error("{kernels} computes wrongly: {operation} is off by {error:.1e}; give another path, or builtin")]
    Wrong {
        /// Name of the kernels.
        kernels: String,
        /// Operation and shape of the test.
        operation: String,
        /// Largest relative error.
        error: f64,
    },
}
