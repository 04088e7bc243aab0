//! Errors of a solve.

use crate::backend::device::DeviceError;
use crate::backend::host::team::HelperPanicked;
use crate::comm::PeerGone;
use crate::mat::NoMemory;

/// Error of [`crate::lu::solve`]. All ranks of a run return one; the ranks that did not cause it return [`Error::Peer`] or
/// [`Error::DeviceMemoryElsewhere`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another rank failed or its process ended.
    #[error(transparent)]
    Peer(#[from] PeerGone),
    /// The number of ranks differs from the size P·Q of the grid.
    #[error("P={p} Q={q} needs {} ranks, the group has {found}; start as many ranks as the grid has", p * q)]
    Ranks {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Ranks in the group.
        found: usize,
    },
    /// The system refused the memory of the local matrix.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// The system refused a thread.
    #[error("cannot start thread {index} of {threads}: {reason}; lower the number of threads")]
    Thread {
        /// Index of the thread in its rank.
        index: usize,
        /// Requested threads per rank.
        threads: usize,
        /// Error message of the system.
        reason: String,
    },
    /// The device of this rank failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device of this rank has no memory for its part of the matrix, which all ranks know before the run begins.
    #[error(transparent)]
    DeviceMemory(DeviceError),
    /// The device of another rank has none, see [`DeviceMemory`](Self::DeviceMemory).
    #[error("the device of another rank has no memory for its part of the matrix")]
    DeviceMemoryElsewhere,
    /// A thread of this rank panicked; its message went to stderr.
    #[error(transparent)]
    Panicked(#[from] HelperPanicked),
}

impl Error {
    /// Whether a device lacks memory: another run may fit.
    pub fn lacks_device_memory(&self) -> bool {
        self.is_agreed() || matches!(self, Self::Device(error) if error.lacks_memory)
    }

    /// Whether all ranks know of it when they return it, and none waits for another one.
    pub(crate) fn is_agreed(&self) -> bool {
        matches!(self, Self::DeviceMemory(_) | Self::DeviceMemoryElsewhere)
    }
}
