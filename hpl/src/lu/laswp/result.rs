//! The result of a row exchange: U and the displaced rows, in the received messages.

use super::row_buffer::RowBuffer;
use crate::backend::host::kernels::rows;
use crate::mat::{Mat, MatMut};

/// A buffer with the pairs (row of the buffer, destination row).
pub(crate) type PlacedRows = (RowBuffer, Vec<(usize, usize)>);

/// The exchanged rows of this rank. In-process ranks share the buffers with their senders and receivers.
pub(crate) struct LaswpResult {
    /// Rows of U.
    pub(crate) upper: Vec<PlacedRows>,
    /// Displaced rows, with destinations below the diagonal block.
    pub(crate) displaced: Vec<PlacedRows>,
    /// On the owner of the diagonal block, displaced rows of its own: (row of the block, row below it).
    pub(crate) local: Vec<(usize, usize)>,
}

impl LaswpResult {
    /// Copies the columns of the section from `first` on, as many as `u` has: `u` (jb rows) becomes U before the
    /// triangular solve, and the displaced rows are copied to `below`, the local rows below the diagonal block. `top`:
    /// the local rows of the diagonal block before the exchange.
    pub(crate) fn fill(&self, first: usize, u: &mut MatMut<'_>, top: Mat<'_>, below: &mut MatMut<'_>) {
        for (buffer, pairs) in &self.upper {
            buffer.put(first, pairs, u);
        }
        for (buffer, pairs) in &self.displaced {
            buffer.put(first, pairs, below);
        }
        if !self.local.is_empty() {
            rows::copy(below, top, self.local.iter().copied());
        }
    }
}
