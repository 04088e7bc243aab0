//! The trailing update in column slabs, dealt to the threads as they come.

mod scratch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::vec;

pub(crate) use self::scratch::{Lent, Scratch};

use crate::backend::host::kernels::rows::interchange;
use crate::backend::host::kernels::{Kernels, PackedL};
use crate::backend::host::team::{HelperPanicked, Team};
use crate::lu::laswp::LaswpResult;
use crate::lu::panel::Panel;
use crate::mat::{Mat, MatMut};

/// Columns that are updated between two looks at messages that do not move on alone: a fraction of a millisecond up to
/// thousands of rows, in which a fast link moves no more than it buffers.
pub(crate) const POLL_COLS: usize = 32;

/// Slabs are multiples of this many columns, which suits the register tiles of the kernels.
const TILE: usize = 16;

/// Some columns of the trailing matrix.
pub(crate) struct Slab<'a> {
    /// Index of the first in its section.
    pub(crate) first: usize,
    /// The local rows of the diagonal block, where U stays: none on ranks that do not own it.
    pub(crate) top: MatMut<'a>,
    /// The local rows below the diagonal block.
    pub(crate) c: MatMut<'a>,
}

impl<'a> Slab<'a> {
    /// The first `width` columns, and the others.
    fn split(self, width: usize) -> (Self, Self) {
        let (top, top_rest) = self.top.split_cols(width);
        let (c, c_rest) = self.c.split_cols(width);
        (Self { first: self.first, top, c }, Self { first: self.first + width, top: top_rest, c: c_rest })
    }

    /// At most `width` columns, and the others if there are any.
    pub(crate) fn cut(self, width: usize) -> (Self, Option<Self>) {
        if width >= self.c.cols() {
            return (self, None);
        }
        let (first, rest) = self.split(width);
        (first, Some(rest))
    }
}

/// A slab whose rows are at their places.
pub(crate) struct Ready<'a> {
    /// U where it is gathered, jb rows; in `slab.top` with one process row.
    gathered: Option<Lent<'a>>,
    slab: Slab<'a>,
}

/// What one panel does to a slab.
pub(crate) struct Update<'a, K> {
    kernels: &'a K,
    panel: Panel,
    /// L1 not transposed, jb×jb.
    l1: Vec<f64>,
    /// L2 in blocks from top to bottom; `None` where it is read as it lies in the panel.
    packed: Option<Vec<PackedL<'static>>>,
    /// Memory for the columns of U that a thread works on.
    scratch: Arc<Scratch>,
}

/// Memory of an update that has ended, for the next one.
#[derive(Default)]
pub(crate) struct Memory {
    l1: Vec<f64>,
    /// Of each thread.
    packed: Vec<Vec<f64>>,
}

/// How the rows of a section come to their places.
pub(crate) enum Rows<'a> {
    /// By interchanges with these rows, counted from the first row of the diagonal block: one process row.
    Here(Vec<usize>),
    /// From what the process column has exchanged.
    LaswpResult(&'a LaswpResult),
}

impl<'a, K: Kernels> Update<'a, K> {
    /// All of what panel `panel` does: L2 is packed for many slabs, each thread some rows. Where the kernels make that a
    /// copy, the panel lets go of L.
    pub(crate) fn new(
        kernels: &'a K,
        panel: &mut Panel,
        scratch: Arc<Scratch>,
        memory: Memory,
        team: &mut Team<'_>,
    ) -> Result<Self, HelperPanicked> {
        let l1 = copy_of_l1(panel, memory.l1);
        let blocks = pack(kernels, team, panel.l2(), memory.packed)?;
        let packed: Option<Vec<_>> = blocks.into_iter().map(PackedL::detach).collect();
        if packed.is_some() {
            panel.release_l();
        }
        Ok(Self { kernels, panel: panel.clone(), l1, packed, scratch })
    }

    /// What panel `panel` does to a few columns, too few to keep L2 packed for them.
    pub(crate) fn of_few(kernels: &'a K, panel: &Panel, scratch: Arc<Scratch>) -> Self {
        let l1 = copy_of_l1(panel, Vec::new());
        Self { kernels, panel: panel.clone(), l1, packed: None, scratch }
    }

    /// [U; C] ← P·[U; C], U ← L1⁻¹ U, C ← C − L2 U for a slab of no more columns than a panel has: all threads work on
    /// it at once, each with some rows of L2. Returns when the rows were at their places.
    pub(crate) fn apply(
        &self,
        slab: Slab<'_>,
        rows: &Rows<'_>,
        team: &mut Team<'_>,
    ) -> Result<Instant, HelperPanicked> {
        let Slab { first, mut top, mut c } = slab;
        let jb = self.panel.shape().jb;
        let mut gathered = None;
        let mut u = match rows {
            Rows::Here(pivots) => {
                team.columns([top.reborrow(), c.reborrow()], |_, [mut u, mut c]| interchange(&mut u, &mut c, pivots))?;
                top.reborrow()
            }
            Rows::LaswpResult(exchanged) => {
                let mut u = gathered.insert(self.scratch.lend(jb, c.cols())).mat();
                team.columns([u.reborrow(), c.reborrow()], |at, [mut u, mut c]| {
                    exchanged.fill(first + at, &mut u, top.as_ref().sub(0, at, top.rows(), c.cols()), &mut c);
                })?;
                u
            }
        };
        let placed = Instant::now();
        let l1 = Mat::new(&self.l1, jb, jb, jb);
        team.columns([u.reborrow()], |_, [u]| self.kernels.trsm(l1, u))?;
        let (l2, share) = (self.panel.l2(), team.share(c.rows(), c.cols()));
        let mut parts = Vec::new();
        while c.rows() > 0 {
            let (at, rows) = (l2.rows() - c.rows(), share.min(c.rows()));
            let (part, rest) = c.split_rows(rows);
            parts.push((l2.sub(at, 0, part.rows(), jb), part));
            c = rest;
        }
        team.map(parts, |(l2, c)| self.kernels.gemm(l2, u.as_ref(), c))?;
        if let Some(mut u) = gathered {
            store(u.mat().as_ref(), top);
        }
        Ok(placed)
    }

    /// The panel, which may have let go of L.
    pub(crate) fn panel(&self) -> &Panel {
        &self.panel
    }

    /// The memory, for the next update.
    pub(crate) fn into_memory(self) -> Memory {
        let packed = self.packed.into_iter().flatten().map(PackedL::into_memory).collect();
        Memory { l1: self.l1, packed }
    }

    /// [U; C] ← P·[U; C]
    pub(crate) fn place_rows<'s>(&'s self, mut slab: Slab<'s>, rows: &Rows<'_>) -> Ready<'s> {
        let gathered = match rows {
            Rows::Here(pivots) => {
                interchange(&mut slab.top, &mut slab.c, pivots);
                None
            }
            Rows::LaswpResult(exchanged) => {
                let mut u = self.scratch.lend(self.panel.shape().jb, slab.c.cols());
                exchanged.fill(slab.first, &mut u.mat(), slab.top.as_ref(), &mut slab.c);
                Some(u)
            }
        };
        Ready { gathered, slab }
    }

    /// U ← L1⁻¹ U, C ← C − L2 U
    pub(crate) fn multiply(&self, ready: Ready<'_>) {
        let Ready { gathered, slab: Slab { top, c, .. } } = ready;
        let jb = self.panel.shape().jb;
        let l1 = Mat::new(&self.l1, jb, jb, jb);
        let update = |u: MatMut<'_>| match &self.packed {
            Some(blocks) => self.kernels.update_slab(blocks, l1, u, c),
            None => self.kernels.update_slab(&[PackedL::in_place(self.panel.l2())], l1, u, c),
        };
        let Some(mut u) = gathered else { return update(top) };
        update(u.mat());
        store(u.mat().as_ref(), top);
    }
}

/// U to its place, if that is on this rank.
fn store(u: Mat<'_>, mut top: MatMut<'_>) {
    if top.rows() > 0 {
        (0..top.cols()).for_each(|col| top.col_mut(col).copy_from_slice(u.col(col)));
    }
}

/// L1 not transposed, in `memory`.
fn copy_of_l1(panel: &Panel, mut memory: Vec<f64>) -> Vec<f64> {
    let jb = panel.shape().jb;
    memory.resize(jb * jb, 0.0);
    panel.l1().copy_to(MatMut::new(&mut memory, jb, jb, jb));
    memory
}

/// Packs L2, each thread some rows, in its own memory.
fn pack<'a, K: Kernels>(
    kernels: &K,
    team: &mut Team<'_>,
    l2: Mat<'a>,
    memory: Vec<Vec<f64>>,
) -> Result<Vec<PackedL<'a>>, HelperPanicked> {
    let share = team.share(l2.rows(), l2.cols());
    let blocks = (0..l2.rows()).step_by(share).map(|row| l2.sub(row, 0, share.min(l2.rows() - row), l2.cols()));
    let memory = memory.into_iter().chain(std::iter::repeat_with(Vec::new));
    team.map(blocks.zip(memory).collect(), |(block, memory)| kernels.pack_l(block, memory))
}

impl Memory {
    /// Maps what the updates by panels like `l2` will need, by packing it.
    pub(crate) fn warm_up<K: Kernels>(
        &mut self,
        kernels: &K,
        team: &mut Team<'_>,
        l2: Mat<'_>,
    ) -> Result<(), HelperPanicked> {
        let packed = pack(kernels, team, l2, std::mem::take(&mut self.packed))?;
        self.packed = packed.into_iter().map(PackedL::into_memory).collect();
        Ok(())
    }
}

/// Slabs not yet taken.
pub(crate) struct Queue<'a>(Mutex<vec::IntoIter<Slab<'a>>>);

impl<'a> Queue<'a> {
    /// Cuts `all` into slabs of at most `widest` columns for `threads` threads.
    pub(crate) fn new(all: Slab<'a>, threads: usize, widest: usize) -> Self {
        let mut slabs = Vec::new();
        let mut left = all;
        for width in widths(left.c.cols(), threads, widest) {
            let (slab, rest) = left.split(width);
            slabs.push(slab);
            left = rest;
        }
        Self(Mutex::new(slabs.into_iter()))
    }

    /// The next slab; `None` when all are taken.
    pub(crate) fn next(&self) -> Option<Slab<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// Widths of the slabs of `cols` columns: half a fair share of what is left, so that the last slabs are
/// narrow and the threads end together; at most `widest`, see [`Kernels::widest_slab`].
pub(crate) fn widths(cols: usize, threads: usize, widest: usize) -> impl Iterator<Item = usize> {
    let mut left = cols;
    std::iter::from_fn(move || {
        let share = left.div_ceil(2 * threads).next_multiple_of(TILE);
        let width = if threads == 1 { widest } else { share.min(widest) }.min(left);
        left -= width;
        (width > 0).then_some(width)
    })
}

/// The number of slabs that `cols` columns are cut into for `threads` threads, of at most `widest` columns: those of each width
/// at once, as many as there are before what is left makes the next one narrower.
pub fn slab_count(cols: usize, threads: usize, widest: usize) -> usize {
    if threads == 1 {
        return cols.div_ceil(widest);
    }
    let (mut left, mut count) = (cols, 0);
    for tiles in (1..=widest / TILE).rev() {
        let enough = 2 * threads * TILE * (tiles - 1);
        if left > enough {
            let slabs = (left - enough).div_ceil(tiles * TILE);
            count += slabs;
            left = left.saturating_sub(slabs * tiles * TILE);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_counted_without_cutting_them() {
        for (cols, threads) in [0, 1, 15, 16, 17, 300, 1000, 5000, 20_000, 100_000]
            .into_iter()
            .flat_map(|cols| [1, 2, 3, 4, 8, 16, 64, 192].map(|threads| (cols, threads)))
        {
            let cut = widths(cols, threads, 256).count();
            assert_eq!(slab_count(cols, threads, 256), cut, "{cols} columns, {threads} threads");
        }
    }

    #[test]
    fn widths_cover_all_columns() {
        for (cols, threads) in (0..700).flat_map(|cols| (1..5).map(move |threads| (cols, threads))) {
            let widths: Vec<usize> = widths(cols, threads, 256).collect();
            assert_eq!(widths.iter().sum::<usize>(), cols);
            assert!(widths.iter().all(|width| (1..=256).contains(width)));
        }
    }
}
