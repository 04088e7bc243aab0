//! The rows after an exchange: U and the displaced rows, in the messages that brought them.

use super::row_buffer::RowBuffer;
use crate::backend::host::kernels::rows;
use crate::mat::{Mat, MatMut};

/// A piece with the pairs (row of it, row where that goes).
pub(super) type Placed = (RowBuffer, Vec<(usize, usize)>);

/// What an exchange has brought to this rank. Its pieces are shared with the ranks that sent them or got them.
pub(crate) struct LaswpResult {
    /// To rows of U.
    pub(super) upper: Vec<Placed>,
    /// To rows below the diagonal block.
    pub(super) displaced: Vec<Placed>,
    /// On the owner of the diagonal block: (row of the block, row below it).
    pub(super) staying: Vec<(usize, usize)>,
}

impl LaswpResult {
    /// For the columns of the section from `first` on, as many as `u` has: `u` (jb rows) becomes U before the
    /// triangular solve, and the displaced rows go to their places in `below`, the local rows below the
    /// diagonal block. `top` are the local rows of that block, as they were before the exchange.
    pub(crate) fn fill(&self, first: usize, u: &mut MatMut<'_>, top: Mat<'_>, below: &mut MatMut<'_>) {
        for (piece, pairs) in &self.upper {
            piece.put(first, pairs, u);
        }
        for (piece, pairs) in &self.displaced {
            piece.put(first, pairs, below);
        }
        if !self.staying.is_empty() {
            rows::copy(below, top, self.staying.iter().copied());
        }
    }
}
