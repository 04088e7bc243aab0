//! The work of one section in the order in which the threads take it: whole slabs, then U of the tiled slabs, then their tiles.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{iter, thread, vec};

use parking_lot::Mutex;

use super::division::Division;
use super::slab::{Slab, SolvedSlab};
use crate::mat::MatMut;

/// The tasks of a section that no thread has taken yet.
pub(super) struct Queue<'a> {
    tasks: Mutex<vec::IntoIter<QueueTask<'a>>>,
    tiled: Vec<TiledSlab<'a>>,
    /// A thread panicked while it prepared U of a tiled slab.
    broken: AtomicBool,
}

/// A task of the queue.
pub(super) enum QueueTask<'a> {
    /// All of a slab.
    Whole(Slab<'a>),
    /// Row swap and U of the tiled slab of this index.
    Solve(usize, Slab<'a>),
    /// One tile of the tiled slab of this index.
    Tile(usize),
}

/// A slab whose rows are divided among threads.
#[derive(Default)]
struct TiledSlab<'a> {
    /// U, once a thread has prepared it.
    solved: OnceLock<SolvedSlab<'a>>,
    /// C in tiles, each with its first row.
    tiles: Mutex<vec::IntoIter<(usize, MatMut<'a>)>>,
}

impl<'a> QueueTask<'a> {
    /// Splits off at most `width` columns of a whole slab; the second task is `None` when no column is left.
    pub(super) fn cut(self, width: usize) -> (Self, Option<Self>) {
        let QueueTask::Whole(slab) = self else { return (self, None) };
        let (first, rest) = slab.cut(width);
        (QueueTask::Whole(first), rest.map(QueueTask::Whole))
    }
}

impl<'a> Queue<'a> {
    /// The slabs of `section` according to `division`; the tiles have `tile_rows` rows.
    pub(super) fn new(section: Slab<'a>, division: Division, tile_rows: usize) -> Self {
        let (mut tasks, mut left) = (Vec::new(), section);
        let tiles_of_slab = left.c.rows().div_ceil(tile_rows);
        for width in division.whole_slabs() {
            let (slab, rest) = left.split(width);
            tasks.push(QueueTask::Whole(slab));
            left = rest;
        }
        let mut tiled = Vec::new();
        for width in division.tiled_slabs() {
            let (slab, rest) = left.split(width);
            tasks.push(QueueTask::Solve(tiled.len(), slab));
            tiled.push(TiledSlab::default());
            left = rest;
        }
        tasks.extend((0..tiled.len()).flat_map(|i| iter::repeat_with(move || QueueTask::Tile(i)).take(tiles_of_slab)));
        Self { tasks: Mutex::new(tasks.into_iter()), tiled, broken: AtomicBool::new(false) }
    }

    /// The next task; `None` when all are taken.
    pub(super) fn next(&self) -> Option<QueueTask<'a>> {
        self.tasks.lock().next()
    }

    /// Prepares U of tiled slab `index` by `solve`, which also returns C.
    pub(super) fn solve(&self, index: usize, tile_rows: usize, solve: impl FnOnce() -> (SolvedSlab<'a>, MatMut<'a>)) {
        let guard = BreakOnPanic(&self.broken);
        let (solved, mut c) = solve();
        let (mut tiles, mut first) = (Vec::new(), 0);
        while c.rows() > 0 {
            let rows = tile_rows.min(c.rows());
            let (tile, below) = c.split_rows(rows);
            tiles.push((first, tile));
            (c, first) = (below, first + rows);
        }
        *self.tiled[index].tiles.lock() = tiles.into_iter();
        // Set once, as each slab has one such task.
        let _ = self.tiled[index].solved.set(solved);
        std::mem::forget(guard);
    }

    /// The next tile of tiled slab `index` with its first row and U, as soon as U is prepared; `None` if the thread that
    /// prepares it panicked.
    pub(super) fn tile(&self, index: usize) -> Option<(usize, MatMut<'a>, &SolvedSlab<'a>)> {
        let slab = &self.tiled[index];
        let solved = loop {
            if let Some(solved) = slab.solved.get() {
                break solved;
            }
            if self.broken.load(Ordering::Acquire) {
                return None;
            }
            // The threads that prepare U are at work; this takes a fraction of a tile's time.
            thread::yield_now();
        };
        let (first, tile) = slab.tiles.lock().next()?;
        Some((first, tile, solved))
    }
}

/// Tells the waiting threads when the thread that holds it panics.
struct BreakOnPanic<'a>(&'a AtomicBool);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
