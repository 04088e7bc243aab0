//! C ← C − A·B: a tile of C stays in registers during the loop over the columns of A and the rows of B.
//!
//! When the product is thin or small, A and B are read unpacked ([`direct`]): copies would cost as much as the product.
//! Otherwise A is packed into strips as high as a tile ([`pack`]), so that a page holds many columns of a strip: all of A
//! at once if it is used again, else one block after the other ([`blocked`]). B is interleaved in groups as wide as a tile, row
//! by row, so that a tile reads one stream of B instead of one per column ([`interleave`]). In [`multiply`], a block of C is
//! completed before the next one, so that it is read from main memory once, and the strips of a block of A stay in the
//! second-level cache during the loop over the groups of B. [`Operands`] say what is prefetched.

use std::iter;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, compiler_fence};

use super::isa::Isa;
use super::isa::for_each_isa;
use super::operands::{ColumnGroups, InPlace, Operands, Packed, PackedForLargeCache, Strips, large_second_level};
use super::prefetch;
use super::simd::{self, Vector};
use crate::mat::{Mat, MatMut};

/// Elements of A that stay in the second-level cache together: 368 KiB, so that C and B pass through a cache of 512 KiB besides
/// them.
const A_BLOCK: usize = 46 << 10;

/// Columns of B that [`blocked`] interleaves together: at most 256 KiB of stack.
const NC: usize = 128;

for_each_isa! {
    /// C ← C − A·B without copies; shapes agree.
    pub(super) fn direct(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) = direct_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

/// C ← C − A·B with A and B packed for the same instruction set, for each pair of columns of B and C; shapes agree.
pub(super) fn multiply(isa: Isa, a: Strips<'_>, columns: &mut [(ColumnGroups<'_>, MatMut<'_>)]) {
    if large_second_level() { multiply_in_large_cache(isa, a, columns) } else { multiply_usually(isa, a, columns) }
}

for_each_isa! {
    /// [`multiply`] on most processors.
    pub(super) fn multiply_usually(a: Strips<'_>, columns: &mut [(ColumnGroups<'_>, MatMut<'_>)]) = by_blocks
        avx512 (simd::x86::__m512d, Packed, 3, 8) avx2 (simd::x86::__m256d, Packed, 2, 6) portable (simd::Two, Packed, 2, 4)
}

for_each_isa! {
    /// [`multiply`] on processors with [`large_second_level`].
    pub(super) fn multiply_in_large_cache(a: Strips<'_>, columns: &mut [(ColumnGroups<'_>, MatMut<'_>)]) = by_blocks
        avx512 (simd::x86::__m512d, PackedForLargeCache, 3, 8) avx2 (simd::x86::__m256d, PackedForLargeCache, 2, 6)
        portable (simd::Two, PackedForLargeCache, 2, 4)
}

for_each_isa! {
    /// Packs A into `strips`, which has [`Strips::len`] elements.
    pub(super) fn pack(a: Mat<'_>, strips: &mut [f64]) = pack_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

for_each_isa! {
    /// Copies B into `groups`, which has as many elements and is then initialized.
    fn interleaved<'g>(b: Mat<'_>, groups: &'g mut [MaybeUninit<f64>]) -> ColumnGroups<'g> = interleave_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

for_each_isa! {
    /// Columns of a group.
    pub(super) fn group_cols() -> usize = group_cols_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

for_each_isa! {
    /// Rows of a strip.
    pub(super) fn strip_height() -> usize = strip_height_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

/// C ← C − A·B, packing one block of A at a time; the sums are the same as those of [`multiply`]. Shapes agree.
pub(super) fn blocked(isa: Isa, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let (m, n, k) = (c.rows(), c.cols(), a.cols());
    let height = strip_height(isa);
    let kc = if large_second_level() { PackedForLargeCache::KC } else { Packed::KC };
    let block = block_rows(k, kc, height);
    let mut strips = vec![0.0; block.min(m.next_multiple_of(height)) * kc.min(k)];
    let mut groups = [const { MaybeUninit::uninit() }; Packed::KC * NC];
    for i in (0..m).step_by(block) {
        let mc = block.min(m - i);
        for p in (0..k).step_by(kc) {
            let kc = kc.min(k - p);
            let strips = &mut strips[..mc.next_multiple_of(height) * kc];
            pack(isa, a.sub(i, p, mc, kc), strips);
            let a = Strips::new(strips, mc, kc, height);
            for j in (0..n).step_by(NC) {
                let nc = NC.min(n - j);
                let b = interleaved(isa, b.sub(p, j, kc, nc), &mut groups[..kc * nc]);
                multiply(isa, a, &mut [(b, c.reborrow().sub(i, j, mc, nc))]);
            }
        }
    }
}

/// Rows of A, of `k` columns, that are multiplied by all columns of B before the next ones: whole strips. At most `kc` columns are
/// in the cache.
fn block_rows(k: usize, kc: usize, height: usize) -> usize {
    A_BLOCK / k.clamp(1, kc) / height * height
}

/// Copies B into `groups`, which has as many elements, for [`multiply`].
pub(super) fn interleave(isa: Isa, b: Mat<'_>, groups: &mut [f64]) {
    let groups = std::ptr::from_mut(groups);
    // SAFETY: the same elements; `interleaved` writes only initialized values to them.
    interleaved(isa, b, unsafe { &mut *(groups as *mut [MaybeUninit<f64>]) });
}

#[inline(always)]
fn group_cols_body<V: Vector, const R: usize, const J: usize>() -> usize {
    J
}

#[inline(always)]
fn strip_height_body<V: Vector, const R: usize, const J: usize>() -> usize {
    R * V::LANES
}

#[inline(always)]
fn pack_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, strips: &mut [f64]) {
    let (m, k, height) = (a.rows(), a.cols(), R * V::LANES);
    assert_eq!(strips.len(), m.next_multiple_of(height) * k, "whole strips");
    if k == 0 {
        return;
    }
    for (i, strip) in strips.chunks_exact_mut(height * k).enumerate() {
        let rows = i * height..m.min((i + 1) * height);
        for (j, place) in strip.chunks_exact_mut(height).enumerate() {
            let (place, filling) = place.split_at_mut(rows.len());
            place.copy_from_slice(&a.col(j)[rows.clone()]);
            filling.fill(0.0);
        }
    }
}

#[inline(always)]
fn interleave_body<'g, V: Vector, const R: usize, const J: usize>(
    b: Mat<'_>,
    groups: &'g mut [MaybeUninit<f64>],
) -> ColumnGroups<'g> {
    let (k, n) = (b.rows(), b.cols());
    assert_eq!(groups.len(), k * n, "as many elements");
    let mut j = 0;
    while j < n {
        let step = step::<J>(n - j);
        let group = &mut groups[j * k..(j + step) * k];
        for column in 0..step {
            let elements = group[column..].iter_mut().step_by(step);
            elements.zip(b.col(j + column)).for_each(|(element, &value)| _ = element.write(value));
        }
        j += step;
    }
    // SAFETY: the groups cover the n columns, and of each the k values of its `step` columns have been written.
    let data = unsafe { &*(std::ptr::from_ref(groups) as *const [f64]) };
    ColumnGroups { data, rows: k, cols: n }
}

/// Loop over the blocks of A, and of each over at most [`Operands::KC`] columns at a time.
#[inline(always)]
fn by_blocks<V: Vector, O: Operands, const R: usize, const J: usize>(
    a: Strips<'_>,
    columns: &mut [(ColumnGroups<'_>, MatMut<'_>)],
) {
    let (m, k, height) = (a.rows, a.cols, R * V::LANES);
    assert!(a.height == height, "packed for these tiles");
    assert!(columns.iter().all(|(b, c)| b.rows == k && c.rows() == m && b.cols == c.cols()), "shapes agree");
    let block = block_rows(k, O::KC, height);
    let all = columns.iter().map(|(b, _)| b.cols).sum();
    for i in (0..m).step_by(block) {
        let mc = block.min(m - i);
        for p in (0..k).step_by(O::KC) {
            let kc = O::KC.min(k - p);
            let next = if p + kc < k { (i..i + mc, p + kc) } else { (i + mc..m.min(i + mc + block), 0) };
            let next = a.strips(next.0, next.1, O::KC.min(k - next.1)).chain(iter::repeat(&[][..]));
            let parts = a.strips(i..i + mc, p, kc).zip(next).enumerate().map(|(strip, (elements, next))| {
                let rows = height.min(mc - strip * height);
                Part { a: Mat::new(elements, rows, kc, height), next }
            });
            let mut done = 0;
            for (b, c) in columns.iter_mut() {
                let group =
                    |first: usize, step: usize| Mat::new(&b.data[first * k + p * step..][..kc * step], step, kc, step);
                let cols = c.cols();
                by_columns::<V, O, R, J>(parts.clone(), group, c.reborrow().sub(i, 0, mc, cols), done, all);
                done += cols;
            }
        }
    }
}

#[inline(always)]
fn direct_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
    assert!(b.rows() == a.cols() && c.rows() == a.rows() && b.cols() == c.cols(), "shapes agree");
    let cols = c.cols();
    let part = iter::once(Part { a, next: &[] });
    by_columns::<V, InPlace, R, J>(part, |first, step| b.sub(0, first, b.rows(), step), c, 0, cols);
}

/// Width of the next group when `left` columns are left: `J` as long as they fit, then 4, 2 and 1.
#[inline(always)]
fn step<const J: usize>(left: usize) -> usize {
    match left {
        _ if left >= J => J,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Rows of A.
#[derive(Clone, Copy)]
struct Part<'a> {
    a: Mat<'a>,
    /// What will be read in its place when all columns of C are done.
    next: &'a [f64],
}

/// Loop over groups of columns of C, before which `done` of `all` columns are done. The `parts` of A lie below each other;
/// `group(first, count)` returns columns of B, as rows if they are packed.
#[inline(always)]
fn by_columns<'a, 'b, V: Vector, O: Operands, const R: usize, const J: usize>(
    parts: impl Iterator<Item = Part<'a>> + Clone,
    group: impl Fn(usize, usize) -> Mat<'b>,
    mut c: MatMut<'_>,
    done: usize,
    all: usize,
) {
    let (m, n) = (c.rows(), c.cols());
    let mut j = 0;
    while j < n {
        let step = step::<J>(n - j);
        let (b, mut c) = (group(j, step), c.reborrow().sub(0, j, m, step));
        let mut first = 0;
        for Part { a: part, next } in parts.clone() {
            if O::NEXT_BLOCK {
                let share = |cols: usize| next.len() * cols / all;
                let lines = next[share(done + j)..share(done + j + step)].chunks(LINE);
                lines.for_each(|line| prefetch::to_second_level(line.as_ptr()));
            }
            let c = c.reborrow().sub(first, 0, part.rows(), step);
            match step {
                1 => by_rows::<V, O, 4, 1>(part, b, c),
                2 => by_rows::<V, O, 4, 2>(part, b, c),
                4 if J > 4 => by_rows::<V, O, R, 4>(part, b, c),
                _ => by_rows::<V, O, R, J>(part, b, c),
            }
            first += part.rows();
        }
        j += step;
    }
}

/// Tiles of a column group: as many of `R` vectors as fit, then one vector, then smaller vectors.
#[inline(always)]
fn by_rows<V: Vector, O: Operands, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let mut i = rows_from::<V, O, R, J>(0, a, b, &mut c);
    i = rows_from::<V, O, 1, J>(i, a, b, &mut c);
    i = rows_from::<V::Rest, O, 1, J>(i, a, b, &mut c);
    i = rows_from::<<V::Rest as Vector>::Rest, O, 1, J>(i, a, b, &mut c);
    debug_assert!(i == c.rows(), "the last vector has one lane");
}

/// Computes as many tiles as fit from row `i` on; returns the first row after them.
#[inline(always)]
fn rows_from<V: Vector, O: Operands, const R: usize, const J: usize>(
    mut i: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    c: &mut MatMut<'_>,
) -> usize {
    while i + R * V::LANES <= c.rows() {
        tile::<V, O, R, J>(a, b, c, i);
        i += R * V::LANES;
    }
    i
}

/// The tile of C from row `i` on: `R` vectors by `J` columns.
#[inline(always)]
fn tile<V: Vector, O: Operands, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, c: &mut MatMut<'_>, i: usize) {
    let (k, rows) = (a.cols(), R * V::LANES);
    assert!(i + rows <= a.rows() && i + rows <= c.rows() && J == c.cols());
    if O::PACKED {
        assert!(b.rows() == J && b.ld() == J && b.cols() == k);
    } else {
        assert!(b.rows() == k && b.cols() == J);
    }
    let (lda, ldb, ldc) = (a.ld(), b.ld(), c.ld());
    // SAFETY: every address below is that of rows i..i + rows of a column p < k of A or j < J of C, or of row
    // p < k of column j < J of B, which the assertion has checked; c is borrowed exclusively.
    unsafe {
        let (a, b, c) = (a.as_ptr().add(i), b.as_ptr(), c.as_mut_ptr().add(i));
        if k >= PREFETCH_DEPTH {
            for j in 0..J {
                prefetch_all(c.add(j * ldc), rows);
            }
        }
        let mut sums = [[V::splat(0.0); R]; J];
        // Panels, which are not packed, are factored faster without.
        let (mut p, unrolled) = (0, if O::PACKED { k / UNROLLED * UNROLLED } else { 0 });
        while p < unrolled {
            for next in 0..UNROLLED {
                add_term::<V, O, R, J>(a, lda, b, ldb, p + next, &mut sums);
            }
            p += UNROLLED;
        }
        while p < k {
            add_term::<V, O, R, J>(a, lda, b, ldb, p, &mut sums);
            p += 1;
        }
        let one = V::splat(1.0);
        for (j, sums) in sums.iter().enumerate() {
            for (r, sum) in sums.iter().enumerate() {
                let at = c.add(j * ldc + r * V::LANES);
                V::load(at).minus(*sum, one).store(at);
            }
        }
    }
}

/// Adds column `p` of A times row `p` of B to the sums of a tile.
///
/// # Safety
/// `a` and `b` as in [`tile`], with a column and a row `p`.
#[inline(always)]
unsafe fn add_term<V: Vector, O: Operands, const R: usize, const J: usize>(
    a: *const f64,
    lda: usize,
    b: *const f64,
    ldb: usize,
    p: usize,
    sums: &mut [[V; R]; J],
) {
    if let Some(ahead) = O::AHEAD {
        // The columns of a strip follow each other, and the next strip follows the last column.
        prefetch_all(a.wrapping_add((p + ahead) * lda), R * V::LANES);
    } else if O::PACKED {
        // Else the compiler loads columns of several terms at once, for which there are not enough registers.
        compiler_fence(Ordering::SeqCst);
    }
    let mut column = [V::splat(0.0); R];
    for (r, vector) in column.iter_mut().enumerate() {
        // SAFETY: by the contract.
        *vector = unsafe { V::load(a.add(p * lda + r * V::LANES)) };
    }
    for (j, sums) in sums.iter_mut().enumerate() {
        // SAFETY: by the contract.
        let factor = V::splat(unsafe { *b.add(if O::PACKED { p * J + j } else { p + j * ldb }) });
        for (sum, vector) in sums.iter_mut().zip(column) {
            *sum = sum.plus(vector, factor);
        }
    }
}

/// Terms of the sums between two tests of the loop's end: the compiler unrolls by itself only where it is told the processor.
const UNROLLED: usize = 2;

/// Sums of at least this length leave time to prefetch C.
const PREFETCH_DEPTH: usize = 32;

/// Elements of a cache line.
const LINE: usize = 8;

/// Prefetches the cache lines of `len` ≥ 1 elements.
#[inline(always)]
fn prefetch_all(address: *const f64, len: usize) {
    (0..len).step_by(LINE).for_each(|at| prefetch::to_first_level(address.wrapping_add(at)));
    prefetch::to_first_level(address.wrapping_add(len - 1));
}
