//! The memory check of a run.

use space::{Candidate, HplParams, order};

use super::RunError;
use crate::lu::solve::matrix_len;

/// Checks that a run fits into `free_bytes` of main memory. A GPU checks its own memory when it gets the matrix.
///
/// # Errors
/// [`RunError::TooLarge`], [`RunError::Padded`].
pub fn check_memory(Candidate { hpl, engine }: &Candidate, free_bytes: u64) -> Result<(), RunError> {
    if engine.device.is_gpu() {
        return Ok(());
    }
    let &HplParams { n, nb, p, q, depth, align, .. } = hpl;
    let needed_bytes = order::required_bytes(n, p, q, nb, depth);
    if needed_bytes <= free_bytes {
        let padded_bytes = padded_bytes(hpl);
        return if padded_bytes <= free_bytes {
            Ok(())
        } else {
            Err(RunError::Padded { align, padded_bytes, free_bytes })
        };
    }
    let largest_n = order::largest_n(free_bytes, p, q, nb, depth);
    Err(RunError::TooLarge { n, p, q, nb, needed_bytes, free_bytes, largest_n })
}

/// Memory of [A | b] on all ranks, the local rows of each column rounded up to ALIGN.
fn padded_bytes(hpl: &HplParams) -> u64 {
    let [n, p, align] = [hpl.n, hpl.p, hpl.align].map(|size| size as u128);
    let rows = n.div_ceil(p.max(1)).next_multiple_of(align.max(1));
    u64::try_from(p.saturating_mul(rows).saturating_mul(8 * (n + 1))).unwrap_or(u64::MAX)
}

/// Elements of the local matrices of all ranks.
pub(super) fn matrix_lens(candidate: &Candidate) -> Vec<usize> {
    (0..candidate.hpl.ranks()).map(|rank| matrix_len(candidate, rank)).collect()
}
