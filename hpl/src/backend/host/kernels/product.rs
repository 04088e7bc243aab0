//! C ← C − A·B: a tile of C stays in registers while columns of A and rows of B pass by.
//!
//! When the product is thin or small both are read where they lie ([`direct`]): copies cost as much as such a product.
//! Otherwise A is copied into strips as high as a tile ([`pack`]), which one page holds many columns of: all of A
//! at once where it is used again, else one block after the other ([`through`]). B is copied into strips as wide as a
//! tile, row by row, so that a tile reads one stream of it instead of one in each column ([`multiply`]); the strips of
//! a block of A stay in the second-level cache while those of B pass.

use std::mem::MaybeUninit;

use super::isa::Isa;
use super::simd::{Vector, versions};
use crate::mat::{Mat, MatMut};

/// Rows of A that stay in cache together; a multiple of every strip's height.
const MC: usize = 360;

/// Columns of A, and rows of B, that are packed together.
const KC: usize = 128;

/// Columns of B that are packed together: those of a slab of the update.
const NC: usize = super::SLAB_OF_COPIES;

versions! {
    /// C ← C − A·B without copies; shapes agree.
    fn direct(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) = direct_body
        avx512 (3, 8) avx2 (2, 6) portable (2, 4)
}

versions! {
    /// C ← C − A·B with A packed by the same instruction set; shapes agree.
    fn multiply(a: &Packed, b: Mat<'_>, c: MatMut<'_>) = multiply_body
        avx512 (3, 8) avx2 (2, 6) portable (2, 4)
}

versions! {
    /// Packs A for [`multiply`].
    fn pack(a: Mat<'_>, packed: &mut Packed) = pack_body
        avx512 (3, 8) avx2 (2, 6) portable (2, 4)
}

/// C ← C − A·B, with a copy of no more than a block of A at a time; the very sums of [`multiply`]. Shapes agree.
pub(super) fn through(isa: Isa, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let (m, n, k) = (c.rows(), c.cols(), a.cols());
    let mut packed = Packed::default();
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
pub(super) struct Packed {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
    height: usize,
}

impl From<Vec<f64>> for Packed {
    /// Nothing yet, in memory that may be of any content.
    fn from(data: Vec<f64>) -> Self {
        Self { data, ..Self::default() }
    }
}

impl Packed {
    /// Rows of A.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The memory, for the next copy.
    pub(super) fn into_memory(self) -> Vec<f64> {
        self.data
    }
}

#[inline(always)]
fn pack_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, packed: &mut Packed) {
    let (m, k, height) = (a.rows(), a.cols(), R * V::LANES);
    (packed.rows, packed.cols, packed.height) = (m, k, height);
    packed.data.clear();
    packed.data.reserve_exact(m.next_multiple_of(height) * k);
    for p in (0..k).step_by(KC) {
        for i in (0..m).step_by(height) {
            for column in p..k.min(p + KC) {
                let column = &a.col(column)[i..m.min(i + height)];
                packed.data.extend_from_slice(column);
                if column.len() < height {
                    packed.data.resize(packed.data.len() + height - column.len(), 0.0);
                }
            }
        }
    }
}

#[inline(always)]
fn multiply_body<V: Vector, const R: usize, const J: usize>(a: &Packed, b: Mat<'_>, mut c: MatMut<'_>) {
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
            let places = group[column..].iter_mut().step_by(step);
            places.zip(b.col(j + column)).for_each(|(place, &value)| _ = place.write(value));
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

/// Width of the next group where `left` columns are left: `J` as long as they fit, then 4, 2 and 1.
#[inline(always)]
fn step<const J: usize>(left: usize) -> usize {
    match left {
        _ if left >= J => J,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// C in groups of columns. The `parts` of A lie below each other; `group` yields B's columns from the first on, as many as
/// asked for, with `ROWS` as rows.
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

/// As many tiles as fit from row `i` on; the first row that is left.
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

/// The tile of C from row `i` on: `R` vectors by `J` columns. With `ROWS` the rows of B lie one after the other.
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
                // Of copies: the columns follow each other, and the next strip follows the last.
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

/// Sums at least this long leave time to fetch C before it is needed.
const PREFETCH_DEPTH: usize = 32;

/// Columns of a strip of A that are on their way from the second-level cache while one is used.
const AHEAD: usize = 8;

/// Asks for the cache lines of `len` ≥ 1 elements, wherever they are.
#[inline(always)]
fn prefetch(address: *const f64, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and ignores addresses that are not mapped.
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
