//! C ← C − A·B: a tile of C stays in registers during the loop over the columns of A and the rows of B.
//!
//! When the product is thin or small, A and B are read unpacked ([`direct`]): copies would cost as much as the product.
//! Otherwise A is packed into strips as high as a tile ([`pack`]), so that a page holds many columns of a strip: all of A
//! at once if it is used again, else one block after the other ([`blocked`]). B is packed into strips as wide as a tile, row
//! by row, so that a tile reads one stream of B instead of one per column ([`multiply`]); the strips of a block of A stay in
//! the second-level cache during the loop over the strips of B.

use std::mem::MaybeUninit;

use super::isa::Isa;
use super::isa::for_each_isa;
use super::simd::{self, Vector};
use crate::mat::{Buffer, Mat, MatMut};

/// Rows of A that stay in cache together; a multiple of every strip's height.
const MC: usize = 360;

/// Columns of A, and rows of B, that are packed together.
const KC: usize = 128;

/// Columns of B that are packed together: those of a slab of the update.
const NC: usize = super::SLAB_OF_COPIES;

for_each_isa! {
    /// C ← C − A·B without copies; shapes agree.
    pub(super) fn direct(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) = direct_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

for_each_isa! {
    /// C ← C − A·B with A packed by the same instruction set; shapes agree.
    pub(super) fn multiply(a: &PackedStrips, b: Mat<'_>, c: MatMut<'_>) = multiply_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

for_each_isa! {
    /// Packs A for [`multiply`].
    pub(super) fn pack(a: Mat<'_>, packed: &mut PackedStrips) = pack_body
        avx512 (simd::x86::__m512d, 3, 8) avx2 (simd::x86::__m256d, 2, 6) portable (simd::Two, 2, 4)
}

/// C ← C − A·B, packing one block of A at a time; the sums are the same as those of [`multiply`]. Shapes agree.
pub(super) fn blocked(isa: Isa, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let (m, n, k) = (c.rows(), c.cols(), a.cols());
    let mut packed = PackedStrips::default();
    for i in (0..m).step_by(MC) {
        let mc = MC.min(m - i);
        for p in (0..k).step_by(KC) {
            let kc = KC.min(k - p);
            pack(isa, a.sub(i, p, mc, kc), &mut packed);
            multiply(isa, &packed, b.sub(p, 0, kc, n), c.reborrow().sub(i, 0, mc, n));
        }
    }
}

/// A in strips of `height` rows, each strip column by column; for every [`KC`] columns all strips from top to
/// bottom. The last strip is filled up with zeros.
#[derive(Default)]
pub(super) struct PackedStrips {
    data: Buffer,
    rows: usize,
    cols: usize,
    height: usize,
}

impl From<Buffer> for PackedStrips {
    /// An empty value that reuses the memory `data`.
    fn from(data: Buffer) -> Self {
        Self { data, ..Self::default() }
    }
}

impl PackedStrips {
    /// Rows of A.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the memory, for the next copy.
    pub(super) fn into_memory(self) -> Buffer {
        self.data
    }
}

#[inline(always)]
fn pack_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, packed: &mut PackedStrips) {
    let (m, k, height) = (a.rows(), a.cols(), R * V::LANES);
    (packed.rows, packed.cols, packed.height) = (m, k, height);
    let needed = m.next_multiple_of(height) * k;
    if packed.data.len() < needed {
        packed.data = Buffer::default();
        packed.data = Buffer::of(needed);
    }
    let mut left = &mut packed.data[..needed];
    for p in (0..k).step_by(KC) {
        for i in (0..m).step_by(height) {
            for column in p..k.min(p + KC) {
                let column = &a.col(column)[i..m.min(i + height)];
                let (place, rest) = left.split_at_mut(height);
                let (rows, filling) = place.split_at_mut(column.len());
                rows.copy_from_slice(column);
                filling.fill(0.0);
                left = rest;
            }
        }
    }
}

#[inline(always)]
fn multiply_body<V: Vector, const R: usize, const J: usize>(a: &PackedStrips, b: Mat<'_>, mut c: MatMut<'_>) {
    let (m, n, height) = (a.rows, c.cols(), R * V::LANES);
    assert!(b.rows() == a.cols && c.rows() == m && b.cols() == n, "shapes agree");
    assert!(a.height == height && MC.is_multiple_of(height), "packed for these tiles");
    let mut memory = [const { MaybeUninit::uninit() }; KC * NC];
    for j in (0..n).step_by(NC) {
        let nc = NC.min(n - j);
        for p in (0..a.cols).step_by(KC) {
            let kc = KC.min(a.cols - p);
            let block = &a.data[p * m.next_multiple_of(height)..];
            let rows = interleave::<J>(b.sub(p, j, kc, nc), &mut memory);
            let group = |first: usize, step: usize| Mat::new(&rows[first * kc..], step, kc, step);
            for i in (0..m).step_by(MC) {
                let mc = MC.min(m - i);
                let strip = |first: usize| Mat::new(&block[(i + first) * kc..], height.min(mc - first), kc, height);
                let strips = (0..mc).step_by(height).map(strip);
                by_columns::<V, R, J, true>(strips, group, c.reborrow().sub(i, j, mc, nc));
            }
        }
    }
}

/// The columns of B in the groups of [`by_columns`], each group row by row, one after the other.
#[inline(always)]
fn interleave<'a, const J: usize>(b: Mat<'_>, memory: &'a mut [MaybeUninit<f64>; KC * NC]) -> &'a [f64] {
    let (k, n) = (b.rows(), b.cols());
    let (memory, _) = memory.split_at_mut(k * n);
    let mut j = 0;
    while j < n {
        let step = step::<J>(n - j);
        let group = &mut memory[j * k..(j + step) * k];
        for column in 0..step {
            let elements = group[column..].iter_mut().step_by(step);
            elements.zip(b.col(j + column)).for_each(|(element, &value)| _ = element.write(value));
        }
        j += step;
    }
    // SAFETY: the groups cover the n columns, and of each the k values of its `step` columns have been written.
    unsafe { &*(std::ptr::from_ref(memory) as *const [f64]) }
}

#[inline(always)]
fn direct_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
    assert!(b.rows() == a.cols() && c.rows() == a.rows() && b.cols() == c.cols(), "shapes agree");
    by_columns::<V, R, J, false>(std::iter::once(a), |first, step| b.sub(0, first, b.rows(), step), c);
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

/// Loop over groups of columns of C. The `parts` of A lie below each other; `group(first, count)` returns columns of B, with
/// `ROWS` as rows.
#[inline(always)]
fn by_columns<'a, 'b, V: Vector, const R: usize, const J: usize, const ROWS: bool>(
    parts: impl Iterator<Item = Mat<'a>> + Clone,
    group: impl Fn(usize, usize) -> Mat<'b>,
    mut c: MatMut<'_>,
) {
    let (m, n) = (c.rows(), c.cols());
    let mut j = 0;
    while j < n {
        let step = step::<J>(n - j);
        let (b, mut c) = (group(j, step), c.reborrow().sub(0, j, m, step));
        let mut first = 0;
        for part in parts.clone() {
            let c = c.reborrow().sub(first, 0, part.rows(), step);
            match step {
                1 => by_rows::<V, 4, 1, ROWS>(part, b, c),
                2 => by_rows::<V, 4, 2, ROWS>(part, b, c),
                4 if J > 4 => by_rows::<V, R, 4, ROWS>(part, b, c),
                _ => by_rows::<V, R, J, ROWS>(part, b, c),
            }
            first += part.rows();
        }
        j += step;
    }
}

/// Tiles of a column group: as many of `R` vectors as fit, then one vector, then smaller vectors.
#[inline(always)]
fn by_rows<V: Vector, const R: usize, const J: usize, const ROWS: bool>(a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let mut i = rows_from::<V, R, J, ROWS>(0, a, b, &mut c);
    i = rows_from::<V, 1, J, ROWS>(i, a, b, &mut c);
    i = rows_from::<V::Rest, 1, J, ROWS>(i, a, b, &mut c);
    i = rows_from::<<V::Rest as Vector>::Rest, 1, J, ROWS>(i, a, b, &mut c);
    debug_assert!(i == c.rows(), "the last vector has one lane");
}

/// Computes as many tiles as fit from row `i` on; returns the first row after them.
#[inline(always)]
fn rows_from<V: Vector, const R: usize, const J: usize, const ROWS: bool>(
    mut i: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    c: &mut MatMut<'_>,
) -> usize {
    while i + R * V::LANES <= c.rows() {
        tile::<V, R, J, ROWS>(a, b, c, i);
        i += R * V::LANES;
    }
    i
}

/// The tile of C from row `i` on: `R` vectors by `J` columns. With `ROWS` the rows of B are contiguous.
#[inline(always)]
fn tile<V: Vector, const R: usize, const J: usize, const ROWS: bool>(
    a: Mat<'_>,
    b: Mat<'_>,
    c: &mut MatMut<'_>,
    i: usize,
) {
    let (k, rows) = (a.cols(), R * V::LANES);
    assert!(i + rows <= a.rows() && i + rows <= c.rows() && J == c.cols());
    if ROWS {
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
                prefetch(c.add(j * ldc), rows);
            }
        }
        let mut sums = [[V::splat(0.0); R]; J];
        for p in 0..k {
            if ROWS {
                // In packed strips: the columns follow each other, and the next strip follows the last column.
                prefetch(a.wrapping_add((p + AHEAD) * lda), rows);
            }
            let mut column = [V::splat(0.0); R];
            for (r, vector) in column.iter_mut().enumerate() {
                *vector = V::load(a.add(p * lda + r * V::LANES));
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                let factor = V::splat(*b.add(if ROWS { p * J + j } else { p + j * ldb }));
                for (sum, vector) in sums.iter_mut().zip(column) {
                    *sum = sum.plus(vector, factor);
                }
            }
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

/// Sums of at least this length leave time to prefetch C.
const PREFETCH_DEPTH: usize = 32;

/// Distance of the prefetch from the second-level cache, in columns of a strip of A.
const AHEAD: usize = 8;

/// Prefetches the cache lines of `len` ≥ 1 elements.
#[inline(always)]
fn prefetch(address: *const f64, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no state of the program and ignores addresses that are not mapped.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in (0..len).step_by(8) {
            _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(line).cast());
        }
        _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(len - 1).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
}
