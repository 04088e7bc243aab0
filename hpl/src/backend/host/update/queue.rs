//! The work of one section in the order in which the threads take it: whole slabs, then U of the tiled slabs, then their tiles.

use std::vec;

use super::division::Division;
use super::slab::{Slab, SolvedSlab, Tile};
use crate::mat::MatMut;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, OnceLock, thread};

/// The tasks of a section that no thread has taken yet.
pub(super) struct Queue<'a> {
    tasks: Mutex<vec::IntoIter<QueueTask<'a>>>,
    tiled: Vec<TiledSlab<'a>>,
    /// Rows of a tile.
    tile_rows: usize,
    /// A thread panicked while it prepared U of a tiled slab. Orders nothing: who finds it set reads nothing of that thread.
    broken: AtomicBool,
}

/// A task of the queue.
pub(super) enum QueueTask<'a> {
    /// All of a slab.
    Whole(Slab<'a>),
    /// Row swap and U of some columns of a tiled slab.
    Prepare(PartIndex, Slab<'a>),
    /// One tile of a tiled slab.
    Tile(TileIndex),
}

/// Some columns of a tiled slab, whose U one thread prepares.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartIndex {
    slab: usize,
    part: usize,
}

/// Some rows of a tiled slab.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileIndex {
    slab: usize,
    tile: usize,
}

/// A slab whose rows are divided among threads: its parts from left to right, each once a thread has prepared it.
struct TiledSlab<'a>(Vec<OnceLock<PreparedPart<'a>>>);

/// U of a part, and C in tiles from top to bottom; a tile is `None` once a thread has taken it.
struct PreparedPart<'a> {
    solved: SolvedSlab<'a>,
    tiles: Vec<Mutex<Option<MatMut<'a>>>>,
}

impl<'a> QueueTask<'a> {
    /// Splits off at most `width` columns of a whole slab; the second task is `None` when no column is left.
    pub(super) fn cut(self, width: usize) -> (Self, Option<Self>) {
        let QueueTask::Whole(slab) = self else { return (self, None) };
        let (first, rest) = slab.cut(width);
        (QueueTask::Whole(first), rest.map(QueueTask::Whole))
    }

    /// The tiled slab of which it prepares a part.
    #[cfg(test)]
    pub(super) fn prepares(&self) -> Option<usize> {
        if let QueueTask::Prepare(at, _) = self { Some(at.slab) } else { None }
    }

    /// The tiled slab that must be prepared before it.
    #[cfg(test)]
    pub(super) fn waits_for(&self) -> Option<usize> {
        if let QueueTask::Tile(at) = self { Some(at.slab) } else { None }
    }
}

impl<'a> Queue<'a> {
    /// The slabs of `section` according to `division`, for kernels that copy U in groups of `group` columns and L2 in strips of
    /// `height` rows.
    pub(super) fn new(section: Slab<'a>, division: Division, group: usize, height: usize) -> Self {
        let (mut tasks, mut left) = (Vec::new(), section);
        let (part_cols, tile_rows) = (division.part_cols(group), division.tile_rows(left.c.rows(), height));
        let tiles = left.c.rows().div_ceil(tile_rows);
        for width in division.whole_slabs() {
            let (slab, rest) = left.split(width);
            tasks.push(QueueTask::Whole(slab));
            left = rest;
        }
        let mut tiled = Vec::new();
        for width in division.tiled_slabs() {
            let (mut slab, rest) = left.split(width);
            let parts = width.div_ceil(part_cols);
            for part in 0..parts {
                let cols = part_cols.min(slab.c.cols());
                let (first, right) = slab.split(cols);
                tasks.push(QueueTask::Prepare(PartIndex { slab: tiled.len(), part }, first));
                slab = right;
            }
            tiled.push(TiledSlab((0..parts).map(|_| OnceLock::new()).collect()));
            left = rest;
        }
        for slab in 0..tiled.len() {
            tasks.extend((0..tiles).map(|tile| QueueTask::Tile(TileIndex { slab, tile })));
        }
        Self { tasks: Mutex::new(tasks.into_iter()), tiled, tile_rows, broken: AtomicBool::new(false) }
    }

    /// The next task; `None` when all are taken.
    pub(super) fn next(&self) -> Option<QueueTask<'a>> {
        self.tasks.lock().next()
    }

    /// Prepares U of a part of a tiled slab by `solve`, which also returns C.
    pub(super) fn prepare(&self, at: PartIndex, solve: impl FnOnce() -> (SolvedSlab<'a>, MatMut<'a>)) {
        let guard = BreakOnPanic(&self.broken);
        let (solved, mut c) = solve();
        let mut tiles = Vec::new();
        while c.rows() > 0 {
            let rows = self.tile_rows.min(c.rows());
            let (tile, below) = c.split_rows(rows);
            tiles.push(Mutex::new(Some(tile)));
            c = below;
        }
        // Set once, as each part has one such task.
        let _ = self.tiled[at.slab].0[at.part].set(PreparedPart { solved, tiles });
        std::mem::forget(guard);
    }

    /// A tile of a tiled slab, as soon as U is prepared; `None` if a thread that prepares it panicked.
    pub(super) fn tile(&self, at: TileIndex) -> Option<Tile<'_, 'a>> {
        let parts = self.tiled[at.slab].0.iter().map(|part| {
            let part = self.prepared(part)?;
            Some((part.solved.u(), part.tiles[at.tile].lock().take()?))
        });
        let columns: Vec<_> = parts.collect::<Option<_>>()?;
        let rows = columns.first().map_or(0, |(_, c)| c.rows());
        Some(Tile { first: at.tile * self.tile_rows, rows, columns })
    }

    /// Waits until a part is prepared.
    fn prepared<'q>(&self, part: &'q OnceLock<PreparedPart<'a>>) -> Option<&'q PreparedPart<'a>> {
        loop {
            if let Some(prepared) = part.get() {
                return Some(prepared);
            }
            if self.broken.load(Ordering::Relaxed) {
                return None;
            }
            // The threads that prepare U are at work; this takes a fraction of a tile's time.
            thread::yield_now();
        }
    }
}

/// Tells the waiting threads when the thread that holds it panics.
struct BreakOnPanic<'a>(&'a AtomicBool);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
