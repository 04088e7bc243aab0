//! The update of the columns of a panel that is factored next: by all threads, in two steps.
//!
//! These columns are few, and nothing else is done until they are updated. So the threads first share the columns, for the row
//! swap and the triangular solve, and then rows and columns of the product.

use std::ops::RangeInclusive;

use super::division::{COLS, WIDEST_TILE, tile_rows};
use super::slab::{Slab, store_u};
use crate::backend::host::kernels::rows::interchange;
use crate::backend::host::kernels::{Kernels, PackedL, PackedU};
use crate::backend::host::scratch::ScratchPool;
use crate::backend::host::team::{HelperPanicked, Team};
use crate::backend::{SectionSwap, Update};
use crate::mat::{Mat, MatMut};
use crate::observe::phases::Phase;

/// Tiles per thread to choose from; all threads begin together, so that few are enough.
const TILES_PER_THREAD: RangeInclusive<usize> = 1..=6;

/// Updates `section` by all threads. The first one calls `between` with the phase that ends: once the row swap is complete, and after
/// each of its tiles. The other threads record their solves and tiles.
///
/// # Errors
/// That of `between`, or when a thread fails.
pub(super) fn by_all_threads<E: From<HelperPanicked>>(
    (l1, l2): (Mat<'_>, PackedL<'_>),
    section: Slab<'_>,
    update: &Update<'_>,
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    scratch: &ScratchPool,
    mut between: impl FnMut(Phase) -> Result<(), E>,
) -> Result<(), E> {
    let Slab { mut diag, mut c, .. } = section;
    let (jb, cols) = (l1.rows(), c.cols());
    // [U; C] ← P·[U; C]
    let mut gathered = None;
    let mut u = match &update.rows {
        SectionSwap::Local(pivots) => {
            team.columns([diag.reborrow(), c.reborrow()], |_, [mut u, mut c]| interchange(&mut u, &mut c, pivots))?;
            diag.reborrow()
        }
        SectionSwap::Exchanged { result, first } => {
            let mut u = gathered.insert(scratch.take(jb, cols)).mat();
            team.columns([u.reborrow(), c.reborrow()], |at, [mut u, mut c]| {
                result.fill(first + at, &mut u, diag.as_ref().sub(0, at, diag.rows(), c.cols()), &mut c);
            })?;
            u
        }
    };
    between(Phase::Rs)?;
    // U ← L1⁻¹ U, with the copy that the product reads
    let packs = matches!(l2, PackedL::Strips(_));
    let mut groups = scratch.take(if packs { jb } else { 0 }, cols);
    let share = team.share(cols, jb).next_multiple_of(kernels.group_cols());
    let copies = groups.elements().chunks_mut(share * jb).map(Some).chain(std::iter::repeat_with(|| None));
    let parts = u.reborrow().chunks_cols(share).into_iter().zip(copies).enumerate();
    // `between` tells what the first thread does.
    let recorder = |thread: usize| (thread > 0).then(|| update.trace.recorder(thread, update.panel.k, update.part));
    team.map(parts.collect(), |(thread, (mut u, copy))| {
        let recorder = recorder(thread);
        kernels.trsm(l1, u.reborrow());
        copy.into_iter().for_each(|copy| kernels.pack_u(u.as_ref(), copy));
        recorder.into_iter().for_each(|mut recorder| recorder.done(Phase::Update));
    })?;
    // C ← C − L2 U
    let (u, copy) = (u.as_ref(), groups.view_elements());
    let multiply = |thread: usize, (i, j, c): (usize, usize, MatMut<'_>)| {
        let recorder = recorder(thread);
        let (rows, cols) = (i..i + c.rows(), j..j + c.cols());
        let u = match packs {
            true => PackedU::groups(&copy[cols.start * jb..cols.end * jb], jb, cols.len()),
            false => PackedU::InPlace(u.sub(0, cols.start, jb, cols.len())),
        };
        kernels.multiply(l2.sub_rows(rows), &mut [(u, c)]);
        recorder.into_iter().for_each(|mut recorder| recorder.done(Phase::Update));
    };
    let tiles = tiles(c, team.threads(), kernels.strip_rows().unwrap_or(1));
    team.deal(tiles, multiply, || between(Phase::Update))?;
    if let Some(u) = &gathered {
        store_u(u.view(), diag);
    }
    Ok(())
}

/// `c` in tiles for `threads` threads, each with its first row and column: whole strips of `height` rows.
fn tiles(c: MatMut<'_>, threads: usize, height: usize) -> Vec<(usize, usize, MatMut<'_>)> {
    let (m, n) = (c.rows(), c.cols());
    let (width, rows) = match threads {
        1 => (n, m),
        _ => {
            let width = n.div_ceil(n.div_ceil(WIDEST_TILE).max(1)).next_multiple_of(COLS);
            (width, tile_rows(m, n.div_ceil(width).max(1), threads, TILES_PER_THREAD, height))
        }
    };
    let mut tiles = Vec::new();
    for (j, mut below) in c.chunks_cols(width.max(1)).into_iter().enumerate() {
        for i in (0..m).step_by(rows.max(1)) {
            let (tile, rest) = below.split_rows(rows.min(m - i));
            tiles.push((i, j * width, tile));
            below = rest;
        }
    }
    tiles
}
