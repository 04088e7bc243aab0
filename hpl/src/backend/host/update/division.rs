//! How the columns and rows of a section are divided among threads.
//!
//! As long as each thread has enough columns, it takes whole slabs: all rows of some columns, whose rows it swaps, solves and
//! updates while they are in its cache. Packed L2 is read once per slab, so slabs are wide. The last columns of a section, too
//! few for that, are divided by rows as well: after U of a slab has been prepared, all threads share its tiles. U is prepared by
//! one thread per slab, or by several where there are fewer slabs than threads.

use std::ops::RangeInclusive;

/// Columns are divided at multiples of this, which suits the register tiles of all kernels: 8, 6 or 4 columns.
pub(super) const COLS: usize = 48;

/// Columns per thread at the end of a section that are divided into tiles: more than half of a whole slab, as the threads arrive
/// there up to one whole slab apart.
const TILED_COLS: usize = 192;

/// Maximum columns of a tile. For each of them L2 is read once per tile, and U is prepared by one thread while others wait.
pub(super) const WIDEST_TILE: usize = 144;

/// Tiles per thread: the threads arrive at different times and end at most one tile apart. Among these numbers the one is taken
/// with which as many threads as possible have tiles to the end.
const TILES_PER_THREAD: RangeInclusive<usize> = 6..=12;

/// Minimum rows of a tile: with fewer, reading U would cost as much as the product.
const SHORTEST_TILE: usize = 96;

/// Division of the columns of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    cols: usize,
    /// Columns of each whole slab; the last one may have fewer without tiled slabs.
    widest: usize,
    /// Columns in whole slabs.
    whole: usize,
    /// Columns of a tiled slab; the last one may have fewer.
    tiled_width: usize,
    threads: usize,
}

impl Division {
    /// For `cols` columns, `threads` threads and whole slabs of `widest` columns.
    pub(crate) fn of(cols: usize, threads: usize, widest: usize) -> Self {
        let at_end = if threads == 1 { 0 } else { threads * TILED_COLS };
        let whole = if threads == 1 { cols } else { cols.saturating_sub(at_end) / widest * widest };
        let tiled_width = (cols - whole).div_ceil(threads).next_multiple_of(COLS).clamp(COLS, WIDEST_TILE);
        Self { cols, widest, whole, tiled_width, threads }
    }

    /// Widths of the whole slabs, from the left.
    pub(crate) fn whole_slabs(self) -> impl Iterator<Item = usize> {
        (0..self.whole).step_by(self.widest).map(move |first| self.widest.min(self.whole - first))
    }

    /// Widths of the tiled slabs, from the left, after the whole ones.
    pub(crate) fn tiled_slabs(self) -> impl Iterator<Item = usize> {
        (self.whole..self.cols).step_by(self.tiled_width).map(move |first| self.tiled_width.min(self.cols - first))
    }

    /// Rows of a tile of a tiled slab with `rows` rows: a multiple of `height`, the rows of a strip.
    pub(crate) fn tile_rows(self, rows: usize, height: usize) -> usize {
        let slabs = (self.cols - self.whole).div_ceil(self.tiled_width).max(1);
        tile_rows(rows, slabs, self.threads, TILES_PER_THREAD, height)
    }

    /// Columns of a tiled slab whose U one thread prepares, in whole groups of `group` columns: all of the slab as long as each
    /// thread has one.
    pub(crate) fn part_cols(self, group: usize) -> usize {
        let tiled = self.cols - self.whole;
        if tiled.div_ceil(self.tiled_width) >= self.threads {
            return self.tiled_width;
        }
        tiled.div_ceil(self.threads).next_multiple_of(group).clamp(1, self.tiled_width)
    }

    /// Number of slabs: U is solved and copied once for each.
    pub(crate) fn slabs(self) -> usize {
        self.whole.div_ceil(self.widest) + (self.cols - self.whole).div_ceil(self.tiled_width)
    }
}

/// Rows of the tiles of `slabs` slabs of `rows` rows: whole strips of `height` rows, at least [`SHORTEST_TILE`]. `per_thread` are
/// numbers of tiles per thread to choose from; the thread with most rows has as few as possible.
pub(super) fn tile_rows(
    rows: usize,
    slabs: usize,
    threads: usize,
    per_thread: RangeInclusive<usize>,
    height: usize,
) -> usize {
    let candidate = |tiles: usize| {
        let of_slab = (tiles * threads / slabs).max(1);
        rows.div_ceil(of_slab).max(SHORTEST_TILE).next_multiple_of(height)
    };
    let most = |tile: &usize| (slabs * rows.div_ceil(*tile)).div_ceil(threads) * tile;
    per_thread.map(candidate).min_by_key(most).expect("the range is not empty")
}

/// Widths of the slabs of `cols` columns of one thread.
pub(crate) fn whole_slabs(cols: usize, widest: usize) -> impl Iterator<Item = usize> {
    Division::of(cols, 1, widest).whole_slabs()
}

/// Number of slabs of a section of `cols` columns for `threads` threads, whose whole slabs have `widest` columns.
pub fn slab_count(cols: usize, threads: usize, widest: usize) -> usize {
    Division::of(cols, threads, widest).slabs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divisions() -> impl Iterator<Item = (usize, usize, Division)> {
        let cols = [0, 1, 47, 48, 49, 300, 1000, 5000, 20_000, 100_000];
        cols.into_iter().flat_map(|cols| {
            [1, 2, 3, 4, 8, 16, 64, 192].map(|threads| (cols, threads, Division::of(cols, threads, 240)))
        })
    }

    #[test]
    fn slabs_cover_all_columns() {
        for (cols, threads, division) in divisions() {
            let widths: Vec<usize> = division.whole_slabs().chain(division.tiled_slabs()).collect();
            assert_eq!(widths.iter().sum::<usize>(), cols, "{threads} threads");
            assert!(widths.iter().all(|width| (1..=240).contains(width)));
            assert_eq!(slab_count(cols, threads, 240), widths.len(), "{cols} columns, {threads} threads");
        }
    }

    #[test]
    fn one_thread_has_whole_slabs_and_many_have_several_tiles_each_at_the_end() {
        for (cols, threads, division) in divisions() {
            let tiled = division.tiled_slabs().count();
            assert_eq!(threads == 1, tiled == 0 && cols > 0 || threads == 1 && cols == 0, "{cols} columns");
            let rows = 20_000_usize;
            let tiles = tiled * rows.div_ceil(division.tile_rows(rows, 24));
            assert!(
                tiled == 0 || cols < COLS * threads / 4 || tiles >= 3 * threads,
                "{cols} columns: {tiles} tiles, {threads} threads"
            );
        }
    }
}
