//! Why a machine description is insufficient for a prediction.

use space::machine::RateKernel;

/// Why a machine description is insufficient for a prediction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A kernel has no rate at all.
    #[error(
        "the machine description has no [[rate]] of kernel {kernel:?}; calibrate the machine again, or survey it with --machine and a calibrated description"
    )]
    MissingRate {
        /// The kernel.
        kernel: RateKernel,
    },
    /// A rate has the wrong number of entries.
    #[error("[[rate]] {kernel:?} for {threads} threads: {key} has {found} entries, its form needs {needed}")]
    Shape {
        /// The kernel.
        kernel: RateKernel,
        /// Its threads.
        threads: usize,
        /// `coefficients` or `valid`.
        key: &'static str,
        /// Entries needed.
        needed: usize,
        /// Entries found.
        found: usize,
    },
    /// A coefficient is negative or not a number, or all are zero.
    #[error("[[rate]] {kernel:?} for {threads} threads: coefficients must be non-negative numbers, not all 0")]
    Coefficients {
        /// The kernel.
        kernel: RateKernel,
        /// Its threads.
        threads: usize,
    },
    /// A layer without its latency.
    #[error("[[layer]] {layer}: alpha_s is unknown; state it, in seconds per message")]
    MissingLatency {
        /// Name of the layer.
        layer: String,
    },
    /// No node has cores.
    #[error("the machine description has no [[node]] with cores")]
    NoCores,
}
