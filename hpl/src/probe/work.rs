//! The kernels as the engine calls them, on the shares that the threads of a rank get.

use std::sync::{MutexGuard, PoisonError, RwLockReadGuard};

use space::HplParams;

use super::clock::{Time, timed};
use super::stage::{Stage, grid, ld};
use crate::comm::threads::world;
use crate::fact::{Fact, Recipe};
use crate::kernels::Kernels;
use crate::layout::Axis;
use crate::mat::{Buffer, Mat, MatMut};
use crate::panel;
use crate::plan::PanelShape;
use crate::swap;
use crate::team::{HelperPanicked, Team};
use crate::update;

/// Columns of thread `index` of `threads` that share `n`.
fn share(n: usize, threads: usize, index: usize) -> usize {
    n / threads + usize::from(index < n % threads)
}

fn lock(mutex: &std::sync::Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The panel that the rank of `core` has.
fn panel_of(stage: &Stage, threads: usize, core: usize) -> RwLockReadGuard<'_, Buffer> {
    stage.place(core - core % threads).panel.read().unwrap_or_else(PoisonError::into_inner)
}

/// C −= A·B slab by slab, C m×n and A m×k per rank.
pub(super) fn gemm<K: Kernels>(
    kernels: &K,
    stage: &Stage,
    crew: &mut Team<'_>,
    threads: usize,
    (m, n, k): (usize, usize, usize),
) -> Result<Time, HelperPanicked> {
    timed(crew, |core, clock| {
        let (panel, place) = (panel_of(stage, threads, core), stage.place(core));
        let (upper, mut trailing) = (lock(&place.upper), lock(&place.trailing));
        let cols = share(n, threads, core % threads);
        clock.time(|| {
            let (a, b) = (Mat::new(&panel, m, k, ld(m)), Mat::new(&upper, k, cols, ld(k)));
            let mut rest = MatMut::new(&mut trailing, m, cols, ld(m));
            let mut at = 0;
            for width in update::widths(cols, 1) {
                let (slab, right) = rest.split_cols(width);
                kernels.gemm(a, b.sub(0, at, k, width), slab);
                (rest, at) = (right, at + width);
            }
        })
    })
}

/// L1⁻¹·U slab by slab, U k×n per rank.
pub(super) fn trsm<K: Kernels>(
    kernels: &K,
    stage: &Stage,
    crew: &mut Team<'_>,
    threads: usize,
    (k, n): (usize, usize),
) -> Result<Time, HelperPanicked> {
    timed(crew, |core, clock| {
        let (panel, mut upper) = (panel_of(stage, threads, core), lock(&stage.place(core).upper));
        let cols = share(n, threads, core % threads);
        clock.time(|| {
            let l1 = Mat::new(&panel, k, k, ld(k));
            let mut rest = MatMut::new(&mut upper, k, cols, ld(k));
            for width in update::widths(cols, 1) {
                let (slab, right) = rest.split_cols(width);
                kernels.trsm(l1, slab);
                rest = right;
            }
        })
    })
}

/// The first panel of an m-row matrix on a rank that is its own process column.
fn panel_shape(m: usize, k: usize) -> PanelShape {
    PanelShape { k: 0, ia: 0, jb: k, row: 0, col: 0, ii: 0, mp: m, top: k }
}

/// Words of an m×k panel as a message.
pub(super) fn panel_words(m: usize, k: usize) -> usize {
    panel::words(&panel_shape(m, k))
}

/// Factorization of an m×k panel, copied out of the matrix first, by the variants of the baseline. The first
/// thread of each rank does it, as in the engine; the others wait.
pub(super) fn panel<K: Kernels>(
    kernels: &K,
    stage: &Stage,
    crew: &mut Team<'_>,
    threads: usize,
    (m, k): (usize, usize),
) -> Result<Time, HelperPanicked> {
    let (shape, rows) = (panel_shape(m, k), Axis::block_cyclic(m, k, 1));
    let recipe = Recipe::new(&HplParams::baseline(m, 1, 1));
    timed(crew, |core, clock| {
        if !core.is_multiple_of(threads) {
            return clock.time(|| ());
        }
        let (source, mut target) = (panel_of(stage, threads, core), lock(&stage.place(core).trailing));
        let column = world(1, true).remove(0);
        clock.time(|| {
            let source = Mat::new(&source, m, k, ld(m));
            let mut panel = panel::parts_mut(&shape, &mut target[..panel::words(&shape)]);
            for j in 0..k {
                panel.a.col_mut(j).copy_from_slice(source.col(j));
            }
            let fact = Fact { recipe, kernels, column: &column, rows: &rows, shape, panel };
            fact.run().expect("a group of one has no peer to lose");
        })
    })
}

/// Interchange of k rows with rows anywhere below, over n columns per rank.
pub(super) fn swap(
    stage: &Stage,
    crew: &mut Team<'_>,
    threads: usize,
    (k, n): (usize, usize),
) -> Result<Time, HelperPanicked> {
    // A rank with more columns has fewer rows.
    let (p, q) = grid(crew.threads() / threads);
    let rows = stage.n / if n > stage.n / q { q } else { p };
    // Multiples of the golden ratio spread the pivots evenly.
    let pivot = |j: usize| j + ((j as f64 * 0.618_034).fract() * (rows - j) as f64) as usize;
    let pivots: Vec<usize> = (0..k).map(pivot).collect();
    timed(crew, |core, clock| {
        let mut trailing = lock(&stage.place(core).trailing);
        let cols = share(n, threads, core % threads);
        clock.time(|| {
            let (mut u, mut c) = MatMut::new(&mut trailing, rows, cols, ld(rows)).split_rows(k);
            swap::interchange(&mut u, &mut c, &pivots);
        })
    })
}

/// Copy of `words` by each core in its own memory.
pub(super) fn copy(stage: &Stage, crew: &mut Team<'_>, words: usize) -> Result<Time, HelperPanicked> {
    timed(crew, |core, clock| {
        let mut trailing = lock(&stage.place(core).trailing);
        clock.time(|| {
            let (from, to) = trailing.split_at_mut(words);
            to[..words].copy_from_slice(from);
        })
    })
}
