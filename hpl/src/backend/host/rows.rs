//! Copies rows into messages.

use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::laswp::{RowBufferMut, Source};

/// For each pair (i, k): row k of `to` ← row i of `from`; by all threads of `team`, or by the calling thread without a team.
pub(super) fn write(
    from: Source<'_>,
    pairs: &[(usize, usize)],
    to: &mut RowBufferMut,
    team: Option<&mut Team<'_>>,
) -> Result<(), HelperPanicked> {
    let form = to.form();
    match team {
        Some(team) => team.columns([to.elements()], |first, [mut part]| from.copy_to(pairs, form, first, &mut part)),
        None => {
            from.copy_to(pairs, form, 0, &mut to.elements());
            Ok(())
        }
    }
}
