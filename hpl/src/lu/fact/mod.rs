//! Panel factorization by one process column: the operations of the [recursion](crate::plan::recursion), carried out.
//!
//! The rows of a panel are dealt to some threads of the rank. Each does every operation on its own rows; they meet at
//! every column to choose the pivot. The first has the diagonal block and the messages.
//!
//! L1 is held by every process row and every thread, so that the triangular solves need nobody. It lies in the panel as
//! L1 of HPL.dat says, as it is or transposed; the recursion does not see which.

mod panel_thread;
mod pivot;
mod slots;

use std::sync::{Mutex, PoisonError};

use self::panel_thread::{Ended, MainThread, PanelThread, Shared};
use self::pivot::Candidate;
use self::slots::PivotSlots;
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{Barrier, HelperPanicked, Team};
use crate::backend::host::update::Scratch;
use crate::comm::{Comm, PeerGone};
use crate::lu::panel::PanelMut;
use crate::mat::{Mat, StoredMut};
use crate::plan::PanelShape;
use crate::plan::layout::Axis;
use crate::plan::recursion::Recipe;

/// Rows of a thread's part are a multiple of this, which suits the vectors of the kernels.
const TILE: usize = 8;

/// Elements that a thread has at least: with fewer the meetings cost more than the others' help saves.
const PER_THREAD: usize = 100_000;

/// A panel factorization under way on one rank.
pub(crate) struct Fact<'a, C, K> {
    /// How the recursion goes.
    pub(crate) recipe: Recipe,
    /// The kernels for products of more than one column.
    pub(crate) kernels: &'a K,
    /// The process column.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Axis,
    /// Size and owners of the panel.
    pub(crate) shape: PanelShape,
    /// The columns to be factored, from the diagonal block on.
    pub(crate) from: Mat<'a>,
    /// The panel's parts, of any content.
    pub(crate) panel: PanelMut<'a>,
}

impl<'a, C: Comm, K: Kernels> Fact<'a, C, K> {
    /// Factors the panel: A ← L (multipliers), L1 with U, pivots, info; by this thread.
    ///
    /// # Errors
    /// [`PeerGone`] when the process column breaks.
    pub(crate) fn run(self) -> Result<(), PeerGone> {
        let shared = self.share(Barrier::new(1, false));
        let Self { column, shape, from, panel: PanelMut { a: tile, l1, pivots, info }, .. } = self;
        *info = 0.0;
        let main = Some(MainThread { column, pivots, info });
        let part =
            PanelThread { shared: &shared, thread: 0, main, above: 0, tile, l1, best: Candidate::none(shape.jb) };
        match part.run(from) {
            Err(Ended::Peer(error)) => Err(error),
            Ok(()) | Err(Ended::BarrierBroken) => Ok(()),
        }
    }

    /// The same by the threads of the rank, by as many as the rows are worth; returns how many.
    ///
    /// # Errors
    /// When the process column breaks or a thread fails.
    pub(crate) fn run_by(self, team: &mut Team<'_>, scratch: &Scratch) -> Result<usize, Error> {
        let threads = (self.shape.mp * self.shape.jb / PER_THREAD).clamp(1, team.threads());
        self.run_by_some(team, threads, scratch)
    }

    /// The same by at most `threads` of them, whose L1 are in `scratch`.
    fn run_by_some(self, team: &mut Team<'_>, threads: usize, scratch: &Scratch) -> Result<usize, Error> {
        let lengths = lengths(self.shape.mp, self.shape.diag_rows, threads);
        let threads = lengths.len();
        if threads <= 1 {
            self.run()?;
            return Ok(1);
        }
        let shared = &self.share(team.barrier(threads));
        let Self { column, shape: PanelShape { jb, .. }, from, panel, .. } = self;
        let PanelMut { mut a, l1, pivots, info } = panel;
        *info = 0.0;
        let form = l1.as_ref().form();
        let (mut places, mut above) = (Vec::new(), 0);
        for rows in lengths {
            let (tile, below) = a.split_rows(rows);
            places.push(Mutex::new(Some((above, tile))));
            (above, a) = (above + rows, below);
        }
        let take = |thread: usize| places.get(thread)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        let helper = |thread| {
            if let Some((above, tile)) = take(thread) {
                let mut own = scratch.lend(jb, jb);
                let (l1, best) = (StoredMut::new(own.mat(), form), Candidate::none(jb));
                let part = PanelThread { shared, thread, main: None::<MainThread<'_, C>>, above, tile, l1, best };
                // The first thread hears of a failure at its next meeting.
                let _ = shared.barrier.guard(|| part.run(from));
            }
        };
        let first_thread = || {
            let (above, tile) = take(0).expect("nobody else takes it");
            let (main, best) = (Some(MainThread { column, pivots, info }), Candidate::none(jb));
            let part = PanelThread { shared, thread: 0, main, above, tile, l1, best };
            shared.barrier.guard(|| part.run(from))
        };
        match team.fork(&helper, first_thread)? {
            Ok(()) => Ok(threads),
            Err(Ended::Peer(error)) => Err(error.into()),
            Err(Ended::BarrierBroken) => Err(HelperPanicked.into()),
        }
    }

    /// What all threads see.
    fn share(&self, barrier: Barrier) -> Shared<'a, K> {
        Shared {
            recipe: self.recipe,
            kernels: self.kernels,
            rows: self.rows,
            shape: self.shape,
            row: self.column.rank(),
            procs: self.column.size(),
            slots: PivotSlots::new(barrier.threads() + 1, Candidate::none(self.shape.jb).len(true)),
            barrier,
        }
    }
}

/// Rows of each of at most `threads` threads, from top to bottom. The first gets the diagonal block, whose rows leave
/// the work one after the other: they count half.
fn lengths(mp: usize, top: usize, threads: usize) -> Vec<usize> {
    let each = (mp - top / 2).div_ceil(threads.max(1)).next_multiple_of(TILE);
    let mut lengths = vec![(each + top / 2).next_multiple_of(TILE).max(top).min(mp)];
    let mut left = mp - lengths[0];
    while left > 0 {
        lengths.push(each.min(left));
        left -= each.min(left);
    }
    lengths
}

#[cfg(test)]
mod tests;
