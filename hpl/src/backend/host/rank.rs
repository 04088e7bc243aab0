//! The host backend of one rank: its matrix and threads.

use std::time::Instant;

use super::kernels::Kernels;
use super::scratch::ScratchPool;
use super::team::{HelperPanicked, Team};
use super::update::{self, HostL, UpdateMemory};
use super::{fact, rows};
use crate::Error;
use crate::backend::{Backend, Columns, Meanwhile, Update};
use crate::comm::Comm;
use crate::lu::fact::Fact;
use crate::lu::laswp::{RowBufferMut, RowSource};
use crate::lu::panel::Panel;
use crate::mat::{Mat, MatMut};

/// The local matrix with the threads of the rank.
pub(crate) struct HostBackend<'r, 't> {
    pub(super) kernels: &'r dyn Kernels,
    pub(super) team: &'r mut Team<'t>,
    pub(super) a: MatMut<'r>,
    pub(super) workspace: &'r mut Workspace,
}

/// Memory besides the matrix, reused in each step.
#[derive(Default)]
pub(crate) struct Workspace {
    scratch: ScratchPool,
    update: UpdateMemory,
}

impl<'r, 't> HostBackend<'r, 't> {
    /// The local matrix `a` with the threads of `team`.
    pub(crate) fn new(
        kernels: &'r dyn Kernels,
        team: &'r mut Team<'t>,
        a: MatMut<'r>,
        workspace: &'r mut Workspace,
    ) -> Self {
        Self { kernels, team, a, workspace }
    }
}

impl Workspace {
    /// Touches the memory for updates by panels of the shape of `panel`, so that the first update runs as later ones do.
    ///
    /// # Errors
    /// When a thread fails.
    pub(super) fn warm_up(
        &mut self,
        kernels: &dyn Kernels,
        team: &mut Team<'_>,
        panel: Mat<'_>,
    ) -> Result<(), HelperPanicked> {
        self.update.warm_up(kernels, team, panel)
    }
}

impl Columns for HostBackend<'_, '_> {
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        // The ranks that wait for this panel are idle: their cores are borrowed.
        let team = self.team.borrowed_team();
        fact::factor(fact, self.kernels, self.a.reborrow(), team, &self.workspace.scratch)
    }

    fn copy_rows(&mut self, from: RowSource<'_>, pairs: &[(usize, usize)], to: &mut RowBufferMut) -> Result<(), Error> {
        Ok(rows::copy(self.a.as_ref(), from, pairs, to, Some(self.team))?)
    }
}

impl Backend for HostBackend<'_, '_> {
    type L = HostL;

    fn load(&mut self, panel: &mut Panel) -> Result<HostL, Error> {
        Ok(HostL::new(self.kernels, self.team, panel, std::mem::take(&mut self.workspace.update))?)
    }

    fn unload(&mut self, l: HostL) {
        self.workspace.update = l.into_memory();
    }

    fn update<M: Meanwhile>(&mut self, l: &HostL, update: &Update<'_>, meanwhile: &mut M) -> Result<Instant, Error> {
        update::section(l, update, meanwhile, self.kernels, self.team, self.a.reborrow(), &self.workspace.scratch)
    }

    fn update_lookahead(&mut self, panel: &Panel, update: &Update<'_>) -> Result<Instant, Error> {
        Ok(update::by_panel(panel, update, self.kernels, self.team, self.a.reborrow(), &self.workspace.scratch)?)
    }

    /// Each update is complete when it returns.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
