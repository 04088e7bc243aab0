//! How the operands of a product are stored, and what of them is prefetched.

use std::ops::Range;

/// A in strips of `height` rows from top to bottom, each column by column. The last one is filled up with zeros.
#[derive(Clone, Copy)]
pub struct Strips<'a> {
    pub(super) data: &'a [f64],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) height: usize,
}

impl<'a> Strips<'a> {
    /// A with `rows` rows and `cols` columns, as `pack` has stored it.
    pub(super) fn new(data: &'a [f64], rows: usize, cols: usize, height: usize) -> Self {
        assert_eq!(data.len(), rows.next_multiple_of(height) * cols, "whole strips");
        Self { data, rows, cols, height }
    }

    /// Some rows of A, from the top of a strip on.
    pub(super) fn sub_rows(self, rows: Range<usize>) -> Self {
        let Self { cols, height, .. } = self;
        assert!(rows.start.is_multiple_of(height) && rows.end <= self.rows, "from the top of a strip");
        let data = &self.data[rows.start * cols..rows.end.next_multiple_of(height) * cols];
        Self { data, rows: rows.len(), cols, height }
    }

    /// Some columns of the strips of some rows, from the top of a strip on.
    pub(super) fn strips(
        self,
        rows: Range<usize>,
        first: usize,
        cols: usize,
    ) -> impl Iterator<Item = &'a [f64]> + Clone {
        rows.step_by(self.height)
            .map(move |row| &self.data[row * self.cols + first * self.height..][..cols * self.height])
    }

    /// Rows of A.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

/// B in groups of columns from left to right, each row by row: groups of the width of a tile, then of 4, 2 and 1.
#[derive(Clone, Copy)]
pub struct ColumnGroups<'a> {
    pub(super) data: &'a [f64],
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl<'a> ColumnGroups<'a> {
    /// B with `rows` rows and `cols` columns, as `interleave` has stored it.
    pub(super) fn new(data: &'a [f64], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "all groups");
        Self { data, rows, cols }
    }
}

/// How A and B are stored, and how A comes to the first-level cache.
pub(super) trait Operands {
    /// Whether A is packed in strips and B in groups, whose rows are contiguous.
    const PACKED: bool;
    /// Columns of A, and rows of B, whose products are summed up in registers: C is read and written once for all of them.
    const KC: usize;
    /// Distance of the prefetch of A from the second-level to the first-level cache, in columns of a strip.
    const AHEAD: Option<usize>;
    /// Whether the next block of A is prefetched to the second-level cache.
    const NEXT_BLOCK: bool;
}

/// A and B as they are. Panels are factored faster without a prefetch of A.
pub(super) struct InPlace;

impl Operands for InPlace {
    const PACKED: bool = false;
    const KC: usize = usize::MAX;
    const AHEAD: Option<usize> = None;
    const NEXT_BLOCK: bool = false;
}

/// A in strips and B in groups.
pub(super) struct Packed;

impl Operands for Packed {
    const PACKED: bool = true;
    const KC: usize = 256;
    const AHEAD: Option<usize> = Some(8);
    const NEXT_BLOCK: bool = false;
}

/// A in strips and B in groups on a processor with [`large_second_level`]. A strip of KC columns stays in its first-level cache of 48 KiB
/// beside a group of B.
pub(super) struct PackedForLargeCache;

impl Operands for PackedForLargeCache {
    const PACKED: bool = true;
    const KC: usize = 128;
    const AHEAD: Option<usize> = None;
    const NEXT_BLOCK: bool = true;
}

/// Bytes of a second-level cache for two blocks of A of 368 KiB and U of a slab, 240 columns of 256 rows.
const LARGE: usize = 1280 << 10;

/// Whether the processor is Intel's and the second-level cache of a core large enough for two blocks of A. Such processors move a strip
/// to the first-level cache without being asked, and on Granite Rapids each prefetch less is a higher clock: with AVX-512 its power is
/// the limit, 3.1 GHz without prefetches of A and 2.9 GHz with them. But a block that is used for the first time comes from a distant cache.
pub(super) fn large_second_level() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        use std::sync::LazyLock;

        static LARGE_INTEL: LazyLock<bool> = LazyLock::new(|| {
            let found = __cpuid(0);
            let vendor = [found.ebx, found.edx, found.ecx].map(u32::to_le_bytes);
            if vendor.as_flattened() != b"GenuineIntel" || found.eax < 4 {
                return false;
            }
            // Leaf 4 describes the caches; type 0 ends it.
            let caches = (0..8).map(|cache| __cpuid_count(4, cache)).take_while(|cache| cache.eax & 31 != 0);
            let second = caches.filter(|cache| cache.eax >> 5 & 7 == 2).map(|cache| {
                let field = |from: u32, bits: u32| (cache.ebx >> from & ((1 << bits) - 1)) as usize + 1;
                field(0, 12) * field(12, 10) * field(22, 10) * (cache.ecx as usize + 1)
            });
            second.max().is_some_and(|bytes| bytes >= LARGE)
        });
        *LARGE_INTEL
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}
