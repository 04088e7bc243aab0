//! The kernels as called by the engine, on each thread's share of a rank's work.

use parking_lot::{Mutex, RwLockReadGuard};
use space::HplParams;
use space::domain::squarest;

use super::clock::{CommonStart, Round, Time, timed};
use super::stage::{OperandsByCore, ld};
use crate::backend::host::fact::factor_alone;
use crate::backend::host::kernels::rows::interchange;
use crate::backend::host::kernels::{Kernels, PackedL};
use crate::backend::host::team::{HelperPanicked, Team};
use crate::backend::host::update;
use crate::comm::Comm;
use crate::comm::threads::{ThreadComm, world};
use crate::lu::fact::Fact;
use crate::lu::panel;
use crate::mat::{Buffer, Mat, MatMut};
use crate::plan::PanelShape;
use crate::plan::layout::Distribution;
use crate::plan::recursion::Recipe;

/// Rows or columns of thread `index` of `threads` that share `n`.
fn share(n: usize, threads: usize, index: usize) -> usize {
    n / threads + usize::from(index < n % threads)
}

/// The panel of the rank of `core`.
fn panel_of(stage: &OperandsByCore, threads: usize, core: usize) -> RwLockReadGuard<'_, Buffer> {
    stage.operands(core - core % threads).panel.read()
}

/// C −= A·B as in the engine's update, C m×n and A m×k per rank: the threads pack A, each some rows, then update
/// their slabs. The triangular solves of the update are timed separately and subtracted.
pub(super) fn gemm(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    threads: usize,
    (m, n, k): (usize, usize, usize),
) -> Result<Round, HelperPanicked> {
    let panels: Vec<_> = (0..team.threads()).step_by(threads).map(|core| panel_of(stage, threads, core)).collect();
    let panel = |core: usize| Mat::new(&panels[core / threads], m, k, ld(m));
    let mut strips: Vec<Buffer> = panels.iter().map(|_| Buffer::default()).collect();
    let packing = pack(kernels, team, threads, &panel, &mut strips)?;
    let update = timed(team, |core, clock| {
        let operands = stage.operands(core);
        let (mut upper, mut trailing) = (operands.upper.lock(), operands.trailing.lock());
        let cols = share(n, threads, core % threads);
        let (l2, mut memory) = (packed(kernels, panel(core), &strips[core / threads]), Buffer::default());
        clock.time(|| {
            let l1 = Mat::new(&panels[core / threads], k, k, ld(k));
            let mut u = MatMut::new(&mut upper, k, cols, ld(k));
            let mut c = MatMut::new(&mut trailing, m, cols, ld(m));
            for width in update::whole_slabs(cols, kernels.widest_slab()) {
                let (u_slab, u_right) = u.split_cols(width);
                let (c_slab, c_right) = c.split_cols(width);
                kernels.update_slab(l2, l1, u_slab, c_slab, &mut memory);
                (u, c) = (u_right, c_right);
            }
        })
    })?;
    let update = update.of_work();
    let solves = trsm(kernels, stage, team, threads, (k, n))?;
    Ok(Round {
        time_s: packing.time_s + update.time_s - solves.time_s,
        disturbed: packing.disturbed || update.disturbed || solves.disturbed,
    })
}

/// Packs the panels of all ranks, each core its share of the strips, to one of `memory` for each rank.
fn pack<'a>(
    kernels: &dyn Kernels,
    team: &mut Team<'_>,
    threads: usize,
    panel: &(impl Fn(usize) -> Mat<'a> + Sync),
    memory: &mut [Buffer],
) -> Result<Round, HelperPanicked> {
    let height = kernels.strip_rows();
    let mut parts = Vec::new();
    for (rank, memory) in memory.iter_mut().enumerate() {
        let (a, height) = (panel(rank * threads), height.unwrap_or(1));
        let strips = a.rows().div_ceil(height);
        let mut left = memory.at_least(if kernels.strip_rows().is_some() { strips * height * a.cols() } else { 0 });
        let mut first = 0;
        for index in 0..threads {
            let rows = (share(strips, threads, index) * height).min(a.rows() - first);
            let (part, rest) = left.split_at_mut(left.len().min(rows.next_multiple_of(height) * a.cols()));
            parts.push(Mutex::new((a.sub(first, 0, rows, a.cols()), part)));
            (left, first) = (rest, first + rows);
        }
    }
    let time = timed(team, |core, clock| {
        let mut part = parts[core].lock();
        let (rows, strips) = &mut *part;
        clock.time(|| {
            if height.is_some() {
                kernels.pack_l(*rows, strips);
            }
        })
    })?;
    Ok(time.of_work())
}

/// The panel `l2` as packed in `memory`, or itself.
fn packed<'a>(kernels: &dyn Kernels, l2: Mat<'a>, memory: &'a [f64]) -> PackedL<'a> {
    match kernels.strip_rows() {
        Some(height) => PackedL::strips(memory, l2.rows(), l2.cols(), height),
        None => PackedL::InPlace(l2),
    }
}

/// L1⁻¹·U slab by slab, U k×n per rank.
pub(super) fn trsm(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    threads: usize,
    (k, n): (usize, usize),
) -> Result<Round, HelperPanicked> {
    let time = timed(team, |core, clock| {
        let (panel, mut upper) = (panel_of(stage, threads, core), stage.operands(core).upper.lock());
        let cols = share(n, threads, core % threads);
        clock.time(|| {
            let l1 = Mat::new(&panel, k, k, ld(k));
            let mut rest = MatMut::new(&mut upper, k, cols, ld(k));
            for width in update::whole_slabs(cols, kernels.widest_slab()) {
                let (slab, right) = rest.split_cols(width);
                kernels.trsm(l1, slab);
                rest = right;
            }
        })
    })?;
    Ok(time.of_work())
}

/// The first panel of an m-row matrix on a rank that is its own process column.
fn panel_shape(m: usize, k: usize) -> PanelShape {
    PanelShape { k: 0, ia: 0, jb: k, row: 0, col: 0, ii: 0, mp: m, diag_rows: k }
}

/// Words of an m×k panel as a message.
pub(super) fn panel_words(m: usize, k: usize) -> usize {
    panel_shape(m, k).words()
}

/// Factorization of an m×k panel, copied from the matrix first, by the variants of the baseline. The first thread of each
/// rank does it alone while the others wait: the smallest number of threads with which the engine factors during an update.
/// The rates of more threads are measured by the phases of the calibration runs (`phase` of `machine.toml`).
pub(super) fn panel(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    threads: usize,
    (m, k): (usize, usize),
) -> Result<Round, HelperPanicked> {
    let (shape, rows) = (panel_shape(m, k), Distribution::block_cyclic(m, k, 1));
    let time = timed(team, |core, clock| {
        if !core.is_multiple_of(threads) {
            return clock.time(|| ());
        }
        let column = world(1, true).remove(0);
        factor(kernels, stage, &column, &rows, shape, (core, clock))
    })?;
    Ok(time.of_work())
}

/// Factors a panel of core `core` as a rank of `column`.
fn factor<C: Comm>(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    column: &C,
    rows: &Distribution,
    shape: PanelShape,
    (core, clock): (usize, &CommonStart),
) -> Time {
    let source = stage.operands(core).panel.read();
    let mut target = stage.operands(core).trailing.lock();
    let params = HplParams::baseline(rows.len(), 1, 1);
    let recipe = Recipe::new(&params);
    clock.time(|| {
        let source = Mat::new(&source, shape.mp, shape.jb, ld(shape.mp));
        let panel = panel::parts_mut(&shape, params.l1, &mut target[..shape.words()]);
        let mut fact = Fact { recipe, column, rows, shape, col: 0, panel };
        factor_alone(&mut fact, kernels, source).expect("partners wait until both are done");
    })
}

/// Seconds per column that the pivot exchange adds to the factorization of a panel of k columns and `m` local rows
/// by a process column of two ranks, core i of the first half with its partner in the second half.
pub(super) fn pivots(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    (m, k): (usize, usize),
) -> Result<Round, HelperPanicked> {
    let half = team.threads() / 2;
    let rows = Distribution::block_cyclic(2 * m, m, 2);
    let shape = |row: usize| PanelShape { diag_rows: if row == 0 { k } else { 0 }, ..panel_shape(m, k) };
    let columns: Vec<Mutex<ThreadComm>> = (0..half).flat_map(|_| world(2, true)).map(Mutex::new).collect();
    let together = timed(team, |core, clock| {
        let (pair, row) = (core % half, core / half);
        if row > 1 {
            return clock.time(|| ());
        }
        let column = columns[2 * pair + row].lock();
        factor(kernels, stage, &*column, &rows, shape(row), (core, clock))
    })?;
    let alone = panel(kernels, stage, team, 1, (m, k))?;
    // Waiting for a partner is part of an exchange.
    Ok(Round { time_s: (together.wall_s - alone.time_s) / k as f64, disturbed: alone.disturbed })
}

/// Swap of k rows with rows at any distance below, over n columns per rank.
pub(super) fn swap(
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    threads: usize,
    (k, n): (usize, usize),
) -> Result<Round, HelperPanicked> {
    // A rank with more columns has fewer rows, and over a run a rank has two thirds of its first rows on average.
    let (p, q) = squarest(team.threads() / threads);
    let rows = (stage.n / if n > stage.n / q { q } else { p } * 2 / 3).max(k);
    // Multiples of the golden ratio spread the pivots evenly.
    let pivot = |j: usize| j + ((j as f64 * 0.618_034).fract() * (rows - j) as f64) as usize;
    let pivots: Vec<usize> = (0..k).map(pivot).collect();
    let time = timed(team, |core, clock| {
        let mut trailing = stage.operands(core).trailing.lock();
        let cols = share(n, threads, core % threads);
        clock.time(|| {
            let (mut u, mut c) = MatMut::new(&mut trailing, rows, cols, ld(rows)).split_rows(k);
            interchange(&mut u, &mut c, &pivots);
        })
    })?;
    Ok(time.of_work())
}

/// Copy of `words` by each core in its own memory.
pub(super) fn copy(stage: &OperandsByCore, team: &mut Team<'_>, words: usize) -> Result<Round, HelperPanicked> {
    let time = timed(team, |core, clock| {
        let mut trailing = stage.operands(core).trailing.lock();
        clock.time(|| {
            let (from, to) = trailing.split_at_mut(words);
            to[..words].copy_from_slice(from);
        })
    })?;
    Ok(time.of_work())
}
