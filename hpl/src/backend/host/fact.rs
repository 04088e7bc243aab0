//! Panel factorization by some threads of the rank, each on a part of the rows.

use super::kernels::Kernels;
use super::scratch::ScratchPool;
use super::team::{Barrier, HelperPanicked, Team};
use crate::Error;
use crate::comm::{Comm, PeerGone};
use crate::lu::fact::{Fact, FactShared, FactStopped, MainThread, PanelThread};
use crate::lu::panel::PanelMut;
use crate::mat::{Mat, MatMut, StoredMut};
use crate::plan::PanelShape;
use crate::sync::Mutex;

/// The rows of a thread are a multiple of this, a multiple of the vector length of the kernels.
const TILE: usize = 8;

/// Minimum elements per thread: with fewer, the barriers cost more than the additional threads save.
const PER_THREAD: usize = space::workspace::FACT_ELEMENTS;

/// Factors the panel's columns of `a` by as many threads of `team` as have [`PER_THREAD`] elements each; returns how many.
///
/// # Errors
/// When another rank of the process column or a thread fails.
pub(crate) fn factor<C: Comm>(
    fact: Fact<'_, C>,
    kernels: &dyn Kernels,
    a: MatMut<'_>,
    team: &mut Team<'_>,
    scratch: &ScratchPool,
) -> Result<usize, Error> {
    let threads = (fact.shape.mp * fact.shape.jb / PER_THREAD).clamp(1, team.threads());
    factor_by(threads, fact, kernels, a, team, scratch)
}

/// The same by at most `threads` threads, which take the memory for their L1 from `scratch`.
pub(crate) fn factor_by<C: Comm>(
    threads: usize,
    mut fact: Fact<'_, C>,
    kernels: &dyn Kernels,
    a: MatMut<'_>,
    team: &mut Team<'_>,
    scratch: &ScratchPool,
) -> Result<usize, Error> {
    let PanelShape { mp, jb, diag_rows, ii, .. } = fact.shape;
    let cols = a.sub(ii, fact.col, mp, jb);
    let lengths = lengths(mp, diag_rows, threads);
    let threads = lengths.len();
    if threads == 1 {
        factor_alone(&mut fact, kernels, cols.as_ref())?;
    } else {
        factor_in_team(&mut fact, lengths, kernels, cols.as_ref(), team, scratch)?;
    }
    // Of the panel's columns in the matrix, only U is read again, by the back substitution.
    if diag_rows > 0 {
        fact.panel.l1.as_ref().copy_to(cols.sub(0, 0, jb, jb));
    }
    Ok(threads)
}

/// Factors the panel whose columns are `from` by this thread.
///
/// # Errors
/// When another rank of the process column fails.
pub(crate) fn factor_alone<C: Comm>(
    fact: &mut Fact<'_, C>,
    kernels: &dyn Kernels,
    from: Mat<'_>,
) -> Result<(), PeerGone> {
    let shared = FactShared::new(fact.recipe, kernels, fact.rows, fact.shape, fact.column, Barrier::new(1, false));
    let PanelMut { a, l1, pivots, info } = &mut fact.panel;
    **info = 0.0;
    let main = Some(MainThread { column: fact.column, pivots, info });
    match PanelThread::new(&shared, 0, main, 0, a.reborrow(), l1.reborrow()).run(from) {
        Err(FactStopped::Peer(error)) => Err(error),
        Ok(()) | Err(FactStopped::BarrierBroken) => Ok(()),
    }
}

/// Factors the panel whose columns are `from` by several threads, thread i with `lengths[i]` rows.
fn factor_in_team<C: Comm>(
    fact: &mut Fact<'_, C>,
    lengths: Vec<usize>,
    kernels: &dyn Kernels,
    from: Mat<'_>,
    team: &mut Team<'_>,
    scratch: &ScratchPool,
) -> Result<(), Error> {
    let (column, jb, barrier) = (fact.column, fact.shape.jb, team.barrier(lengths.len()));
    let shared = &FactShared::new(fact.recipe, kernels, fact.rows, fact.shape, column, barrier);
    let PanelMut { a, l1, pivots, info } = &mut fact.panel;
    **info = 0.0;
    let form = l1.as_ref().form();
    let (mut tiles, mut above, mut left) = (Vec::new(), 0, a.reborrow());
    for rows in lengths {
        let (tile, below) = left.split_rows(rows);
        tiles.push(Mutex::new(Some((above, tile))));
        (above, left) = (above + rows, below);
    }
    let take = |thread: usize| tiles.get(thread)?.lock().take();
    let helper = |thread| {
        if let Some((above, tile)) = take(thread) {
            // A failure breaks the barrier, where the first thread finds it; also that there is no memory for L1.
            let _ = shared.barrier.guard(|| {
                let mut buffer = scratch.take_l1(jb);
                let l1 = StoredMut::new(buffer.mat(), form);
                PanelThread::<C>::new(shared, thread, None, above, tile, l1).run(from)
            });
        }
    };
    let first_thread = || {
        let (above, tile) = take(0).expect("no other thread takes it");
        let main = Some(MainThread { column, pivots, info });
        shared.barrier.guard(|| PanelThread::new(shared, 0, main, above, tile, l1.reborrow()).run(from))
    };
    match team.fork(&helper, first_thread)? {
        Ok(()) => Ok(()),
        Err(FactStopped::Peer(error)) => Err(error.into()),
        Err(FactStopped::BarrierBroken) => Err(HelperPanicked.into()),
    }
}

/// Rows of each of at most `threads` threads, from top to bottom. The first gets the diagonal block, whose rows become
/// inactive one after the other: each counts as half a row.
pub(crate) fn lengths(mp: usize, diag_rows: usize, threads: usize) -> Vec<usize> {
    let each = (mp - diag_rows / 2).div_ceil(threads.max(1)).next_multiple_of(TILE);
    let mut lengths = vec![(each + diag_rows / 2).next_multiple_of(TILE).max(diag_rows).min(mp)];
    let mut left = mp - lengths[0];
    while left > 0 {
        lengths.push(each.min(left));
        left -= each.min(left);
    }
    lengths
}
