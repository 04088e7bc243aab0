//! The trailing update: [U; C] ← P·[U; C], U ← L1⁻¹ U, C ← C − L2 U.
//!
//! The columns of a section are divided into slabs ([`slabs`]), which the threads take from a queue; for each slab the rows are
//! swapped, then follow the triangular solve and the product with L2 ([`HostL`]). The first threads factor the next panel before
//! they join the update.

mod panel_l;
mod slabs;

use std::time::Instant;

pub(crate) use self::panel_l::{HostL, UpdateMemory};
pub use self::slabs::slab_count;
pub(crate) use self::slabs::widths;

use self::panel_l::copy_of_l1;
use self::slabs::{Queue, Slab};
use super::beside::ColumnsBeside;
use super::kernels::rows::interchange;
use super::kernels::{Kernels, PackedL};
use super::scratch::{ScratchBuffer, ScratchPool};
use super::team::{HelperPanicked, Team};
use crate::Error;
use crate::backend::{Meanwhile, Rows, Update};
use crate::lu::panel::Panel;
use crate::mat::{Buffer, Mat, MatMut};
use crate::observe::phases::Phase;
use crate::plan;

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
    let (before, slab) = split_section(update, a);
    let queue = Queue::new(slab, team.threads(), kernels.widest_slab());
    let slab_update = SlabUpdate { kernels, scratch, l, rows: &update.rows };
    let cols = update.cols.len();
    let for_fact = update.next.map_or(1, |next| plan::fact_threads(team.threads(), next, update.panel, cols));
    let sub_team = team.sub_team(for_fact);
    let mut beside = ColumnsBeside::new(kernels, before, sub_team.as_team(), scratch);
    let helper = |thread| {
        sub_team.help(thread);
        let mut recorder = update.trace.recorder(thread, update.panel.k, update.part);
        while let Some(slab) = queue.next() {
            let swapped = slab_update.swap_rows(slab);
            recorder.done(Phase::Rs);
            slab_update.multiply(swapped);
            recorder.done(Phase::Update);
        }
    };
    let first_thread = || -> Result<Instant, Error> {
        meanwhile.fact(&mut beside)?;
        beside.release_threads();
        loop {
            meanwhile.start(&mut beside, false)?;
            let Some(slab) = queue.next() else { break };
            let mut left = Some(slab);
            while let Some(slab) = left {
                let (some, rest) = slab.cut(meanwhile.cols_to_poll());
                left = rest;
                let clock = Instant::now();
                let swapped = slab_update.swap_rows(some);
                let clock = meanwhile.record(Phase::Rs, clock);
                slab_update.multiply(swapped);
                meanwhile.record(Phase::Update, clock);
                meanwhile.poll(&mut beside)?;
            }
        }
        meanwhile.start(&mut beside, true)?;
        Ok(Instant::now())
    };
    team.fork(&helper, first_thread)?
}

/// Updates the columns of one panel by all threads, each with some rows of L2. Returns the time at which the row swap was
/// complete.
pub(super) fn lookahead(
    panel: &Panel,
    update: &Update<'_>,
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    a: MatMut<'_>,
    scratch: &ScratchPool,
) -> Result<Instant, HelperPanicked> {
    let (_, Slab { mut diag, mut c, .. }) = split_section(update, a);
    let jb = update.panel.jb;
    let mut gathered = None;
    let mut u = match &update.rows {
        Rows::Local(pivots) => {
            team.columns([diag.reborrow(), c.reborrow()], |_, [mut u, mut c]| interchange(&mut u, &mut c, pivots))?;
            diag.reborrow()
        }
        Rows::Exchanged { result, first } => {
            let mut u = gathered.insert(scratch.take(jb, c.cols())).mat();
            team.columns([u.reborrow(), c.reborrow()], |at, [mut u, mut c]| {
                result.fill(first + at, &mut u, diag.as_ref().sub(0, at, diag.rows(), c.cols()), &mut c);
            })?;
            u
        }
    };
    let placed = Instant::now();
    // U ← L1⁻¹ U
    let l1 = copy_of_l1(panel, Buffer::default());
    let l1 = Mat::new(&l1, jb, jb, jb);
    team.columns([u.reborrow()], |_, [u]| kernels.trsm(l1, u))?;
    // C ← C − L2 U
    let (l2, share) = (panel.l2(), team.share(c.rows(), c.cols()));
    let mut parts = Vec::new();
    while c.rows() > 0 {
        let (at, rows) = (l2.rows() - c.rows(), share.min(c.rows()));
        let (part, rest) = c.split_rows(rows);
        parts.push((l2.sub(at, 0, part.rows(), jb), part));
        c = rest;
    }
    team.map(parts, |(l2, c)| kernels.gemm(l2, u.as_ref(), c))?;
    if let Some(mut u) = gathered {
        store_u(u.mat().as_ref(), diag);
    }
    Ok(placed)
}

/// Splits `a`: returns the columns before the section of an update, and the section as one slab.
fn split_section<'a>(update: &Update<'_>, a: MatMut<'a>) -> (MatMut<'a>, Slab<'a>) {
    let (shape, cols) = (update.panel, &update.cols);
    let (before, from) = a.split_cols(cols.start);
    let (diag, c) = from.sub(shape.ii, 0, shape.mp, cols.len()).split_rows(shape.diag_rows);
    (before, Slab { first: 0, diag, c })
}

/// Parameters of an update that all its slabs share.
struct SlabUpdate<'a> {
    kernels: &'a dyn Kernels,
    scratch: &'a ScratchPool,
    l: &'a HostL,
    rows: &'a Rows<'a>,
}

/// A slab after its row swap.
struct SwappedSlab<'a> {
    /// U from the exchanged rows, jb rows; `None` with one process row, where U is `slab.diag`.
    gathered: Option<ScratchBuffer<'a>>,
    slab: Slab<'a>,
}

impl<'a> SlabUpdate<'a> {
    /// [U; C] ← P·[U; C]
    fn swap_rows(&self, mut slab: Slab<'a>) -> SwappedSlab<'a> {
        let gathered = match self.rows {
            Rows::Local(pivots) => {
                interchange(&mut slab.diag, &mut slab.c, pivots);
                None
            }
            Rows::Exchanged { result, first } => {
                let mut u = self.scratch.take(self.l.jb(), slab.c.cols());
                result.fill(first + slab.first, &mut u.mat(), slab.diag.as_ref(), &mut slab.c);
                Some(u)
            }
        };
        SwappedSlab { gathered, slab }
    }

    /// U ← L1⁻¹ U, C ← C − L2 U
    fn multiply(&self, swapped: SwappedSlab<'_>) {
        let SwappedSlab { gathered, slab: Slab { diag, c, .. } } = swapped;
        let update = |u: MatMut<'_>| match self.l.packed() {
            Some(blocks) => self.kernels.update_slab(blocks, self.l.l1(), u, c),
            None => self.kernels.update_slab(&[PackedL::in_place(self.l.l2())], self.l.l1(), u, c),
        };
        let Some(mut u) = gathered else { return update(diag) };
        update(u.mat());
        store_u(u.mat().as_ref(), diag);
    }
}

/// Copies U to the matrix, on the ranks that own the diagonal block.
fn store_u(u: Mat<'_>, mut diag: MatMut<'_>) {
    if diag.rows() > 0 {
        (0..diag.cols()).for_each(|col| diag.col_mut(col).copy_from_slice(u.col(col)));
    }
}
