//! Rows copied into messages, by all threads or by the calling one.

use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::laswp::{RowBufferMut, Source};

/// Row `second` of `to` ← row `first` of `from` for each pair; by this thread where there is no team.
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
