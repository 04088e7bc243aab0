//! The columns that an update does not change, for the tasks executed during it.

use super::kernels::Kernels;
use super::scratch::ScratchPool;
use super::team::Team;
use super::{fact, rows};
use crate::Error;
use crate::backend::Columns;
use crate::comm::Comm;
use crate::lu::fact::Fact;
use crate::lu::laswp::{RowBufferMut, RowSource};
use crate::mat::MatMut;

/// The columns before a section that is updated, with the threads that factor the next panel.
pub(super) struct EarlierColumns<'b> {
    kernels: &'b dyn Kernels,
    a: MatMut<'b>,
    /// `None` once its threads have joined the update.
    team: Option<Team<'b>>,
    scratch: &'b ScratchPool,
}

impl<'b> EarlierColumns<'b> {
    /// The columns `a` with the threads of `team`.
    pub(super) fn new(kernels: &'b dyn Kernels, a: MatMut<'b>, team: Team<'b>, scratch: &'b ScratchPool) -> Self {
        Self { kernels, a, team: Some(team), scratch }
    }

    /// Lets the other threads join the update; the first thread continues with its tasks.
    pub(super) fn release_threads(&mut self) {
        self.team = None;
    }
}

impl Columns for EarlierColumns<'_> {
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        let team = self.team.as_mut().expect("the panel is factored before the threads join the update");
        fact::factor(fact, self.kernels, self.a.reborrow(), team, self.scratch)
    }

    fn copy_rows(&mut self, from: RowSource<'_>, pairs: &[(usize, usize)], to: &mut RowBufferMut) -> Result<(), Error> {
        Ok(rows::copy(self.a.as_ref(), from, pairs, to, None)?)
    }
}
