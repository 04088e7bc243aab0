//! Copies rows into messages.

use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::laswp::{RowBufferMut, RowSource};
use crate::mat::Mat;

/// For each pair (i, k): row k of `to` ← row i of `from`, where `a` is the local matrix; by all threads of `team`, or by the calling
/// thread without a team.
pub(in crate::backend) fn copy(
    a: Mat<'_>,
    from: RowSource<'_>,
    pairs: &[(usize, usize)],
    to: &mut RowBufferMut,
    team: Option<&mut Team<'_>>,
) -> Result<(), HelperPanicked> {
    let form = to.form();
    match team {
        Some(team) => team.columns([to.elements()], |first, [mut part]| from.copy_to(a, pairs, form, first, &mut part)),
        None => {
            from.copy_to(a, pairs, form, 0, &mut to.elements());
            Ok(())
        }
    }
}
