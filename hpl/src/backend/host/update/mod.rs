//! The trailing update: [U; C] ← P·[U; C], U ← L1⁻¹ U, C ← C − L2 U.
//!
//! The columns of a section are divided into slabs ([`division`]), which the threads take from a [`queue`]: for each [`slab`] the
//! rows are swapped, then follow the triangular solve and the product with L2 ([`HostL`]), whose rows are divided too where
//! columns are few. The first threads factor the next panel before they join the update.
//!
//! The columns of the next panel, which is factored after their update, are updated by all threads in two steps ([`lookahead`]).

mod division;
mod lookahead;
#[cfg(loom)]
pub mod models;
mod panel_l;
mod queue;
#[cfg(test)]
mod shares;
mod slab;
#[cfg(test)]
mod tests;

use std::time::Instant;

pub use self::division::slab_count;
pub(crate) use self::division::whole_slabs;
pub(crate) use self::panel_l::{HostL, UpdateMemory};

use self::division::Division;
use self::queue::{Queue, QueueTask};
use self::slab::{Slab, SlabUpdate};
use super::earlier_columns::EarlierColumns;
use super::kernels::{Kernels, PackedL};
use super::scratch::ScratchPool;
use super::team::{HelperPanicked, Team};
use crate::Error;
use crate::backend::{Meanwhile, Update};
use crate::comm::Completion;
use crate::lu::panel::Panel;
use crate::mat::MatMut;
use crate::observe::phases::Phase;
use crate::plan::{self, Part};

/// Updates a section by all threads. The first of them, [`plan::fact_threads`] many, factor the next panel and then join the
/// update; the first thread also does the other tasks of `meanwhile`.
pub(super) fn section<M: Meanwhile>(
    l: &HostL,
    update: &Update<'_>,
    meanwhile: &mut M,
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    a: MatMut<'_>,
    scratch: &ScratchPool,
) -> Result<Instant, Error> {
    let cols = update.cols.len();
    let (before, slab) = split_section(update, a);
    if update.part == Part::LookAhead && team.threads() > 1 {
        let alone = team.sub_team(1);
        let mut earlier = EarlierColumns::new(kernels, before, alone.as_team(), scratch);
        let mut clock = Instant::now();
        let between = |phase| {
            meanwhile.record(phase, clock);
            let polled = meanwhile.poll(&mut earlier);
            clock = Instant::now();
            polled
        };
        lookahead::by_all_threads((l.l1(), l.l2()), slab, update, kernels, team, scratch, between)?;
        return Ok(clock);
    }
    let division = Division::of(cols, team.threads(), kernels.widest_slab());
    // Other kernels prepare U of whole slabs: calls for few columns are slow.
    let (group, height) = kernels.strip_rows().map_or((cols, 1), |height| (kernels.group_cols(), height));
    let queue = &Queue::new(slab, division, group.max(1), height);
    let work = &SlabUpdate { kernels, scratch, l, rows: &update.rows };
    let for_fact = update.next.map_or(1, |next| plan::fact_threads(team.threads(), next, update.panel, cols));
    let sub_team = team.sub_team(for_fact);
    let mut earlier = EarlierColumns::new(kernels, before, sub_team.as_team(), scratch);
    let helper = |thread| {
        sub_team.help(thread);
        let mut recorder = update.trace.recorder(thread, update.panel.k, update.part);
        while let Some(task) = queue.next() {
            work.run(task, queue, &mut |phase| recorder.done(phase));
        }
    };
    // Owns `earlier`, so that an error or a panic also releases the threads of the sub-team, for which the fork waits.
    let first_thread = move || -> Result<Instant, Error> {
        meanwhile.fact(&mut earlier)?;
        earlier.release_threads();
        loop {
            meanwhile.start(&mut earlier, Completion::Test)?;
            let Some(task) = queue.next() else { break };
            let mut left = Some(task);
            while let Some(task) = left {
                let (some, rest) = task.cut(meanwhile.cols_to_poll());
                left = rest;
                let mut clock = Instant::now();
                work.run(some, queue, &mut |phase| clock = meanwhile.record(phase, clock));
                meanwhile.poll(&mut earlier)?;
            }
        }
        meanwhile.start(&mut earlier, Completion::Wait)?;
        Ok(Instant::now())
    };
    team.fork(&helper, first_thread)?
}

impl<'a> SlabUpdate<'a> {
    /// Executes one task of the queue and records its phases.
    fn run(&self, task: QueueTask<'a>, queue: &Queue<'a>, done: &mut dyn FnMut(Phase)) {
        match task {
            QueueTask::Whole(slab) => {
                let swapped = self.swap_rows(slab);
                done(Phase::Rs);
                let (solved, c) = self.solve(swapped);
                self.multiply(&solved, c);
            }
            QueueTask::Prepare(at, slab) => queue.prepare(at, || {
                let swapped = self.swap_rows(slab);
                done(Phase::Rs);
                self.solve(swapped)
            }),
            QueueTask::Tile(at) => {
                if let Some(tile) = queue.tile(at) {
                    self.multiply_tile(tile);
                }
            }
        }
        done(Phase::Update);
    }
}

/// Updates the columns of one panel by all threads, with L1 and L2 as stored in `panel`. Returns the time at which the row swap
/// was complete.
pub(super) fn by_panel(
    panel: &Panel,
    update: &Update<'_>,
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    a: MatMut<'_>,
    scratch: &ScratchPool,
) -> Result<Instant, HelperPanicked> {
    let mut l1 = scratch.take(update.panel.jb, update.panel.jb);
    panel.l1().copy_to(l1.mat());
    let l = (l1.view(), PackedL::InPlace(panel.l2()));
    let (_, slab) = split_section(update, a);
    let mut swapped = Instant::now();
    lookahead::by_all_threads(l, slab, update, kernels, team, scratch, |phase| {
        if phase == Phase::Rs {
            swapped = Instant::now();
        }
        Ok::<_, HelperPanicked>(())
    })?;
    Ok(swapped)
}

/// Splits `a`: returns the columns before the section of an update, and the section as one slab.
fn split_section<'a>(update: &Update<'_>, a: MatMut<'a>) -> (MatMut<'a>, Slab<'a>) {
    let (shape, cols) = (update.panel, &update.cols);
    let (before, from) = a.split_cols(cols.start);
    let (diag, c) = from.sub(shape.ii, 0, shape.mp, cols.len()).split_rows(shape.diag_rows);
    (before, Slab { first: 0, diag, c })
}
