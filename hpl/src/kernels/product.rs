//! C ← C − A·B: a tile of C stays in registers while columns of A and rows of B pass by.
//!
//! B is read where it lies. So is A when the product is thin or small ([`direct`]): copies cost as much as such
//! a product. Otherwise A is copied into strips as high as a tile ([`pack`]), which one page holds many columns
//! of, and the strips of a block stay in the second-level cache while all columns of B pass ([`multiply`]): all of A
//! at once where it is used again, else one block after the other ([`through`]).

use super::isa::Isa;
use super::simd::{Vector, versions};
use crate::mat::{Mat, MatMut};

/// Rows of A that stay in cache together; a multiple of every strip's height.
const MC: usize = 360;

/// Columns of A that are packed together.
const KC: usize = 128;

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
    for p in (0..a.cols).step_by(KC) {
        let kc = KC.min(a.cols - p);
        let block = &a.data[p * m.next_multiple_of(height)..];
        for i in (0..m).step_by(MC) {
            let mc = MC.min(m - i);
            let strip = |first: usize| Mat::new(&block[(i + first) * kc..], height.min(mc - first), kc, height);
            let strips = (0..mc).step_by(height).map(strip);
            by_columns::<V, R, J>(strips, b.sub(p, 0, kc, n), c.reborrow().sub(i, 0, mc, n));
        }
    }
}

#[inline(always)]
fn direct_body<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
    assert!(b.rows() == a.cols() && c.rows() == a.rows() && b.cols() == c.cols(), "shapes agree");
    by_columns::<V, R, J>(std::iter::once(a), b, c);
}

/// Column groups of C: as many of `J` as fit, then 4, 2 and 1. The `parts` of A lie below each other.
#[inline(always)]
fn by_columns<'a, V: Vector, const R: usize, const J: usize>(
    parts: impl Iterator<Item = Mat<'a>> + Clone,
    b: Mat<'_>,
    mut c: MatMut<'_>,
) {
    let (k, m, n) = (b.rows(), c.rows(), c.cols());
    let mut j = 0;
    while j < n {
        let left = n - j;
        let step = if left >= J {
            J
        } else if left >= 4 {
            4
        } else if left >= 2 {
            2
        } else {
            1
        };
        let (b, mut c) = (b.sub(0, j, k, step), c.reborrow().sub(0, j, m, step));
        let mut first = 0;
        for part in parts.clone() {
            let c = c.reborrow().sub(first, 0, part.rows(), step);
            match step {
                1 => by_rows::<V, 4, 1>(part, b, c),
                2 => by_rows::<V, 4, 2>(part, b, c),
                4 if J > 4 => by_rows::<V, R, 4>(part, b, c),
                _ => by_rows::<V, R, J>(part, b, c),
            }
            first += part.rows();
        }
        j += step;
    }
}

/// Tiles of a column group: as many of `R` vectors as fit, then one vector, then smaller vectors.
#[inline(always)]
fn by_rows<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
    let mut i = rows_from::<V, R, J>(0, a, b, &mut c);
    i = rows_from::<V, 1, J>(i, a, b, &mut c);
    i = rows_from::<V::Rest, 1, J>(i, a, b, &mut c);
    i = rows_from::<<V::Rest as Vector>::Rest, 1, J>(i, a, b, &mut c);
    debug_assert!(i == c.rows(), "the last vector has one lane");
}

/// As many tiles as fit from row `i` on; the first row that is left.
#[inline(always)]
fn rows_from<V: Vector, const R: usize, const J: usize>(
    mut i: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    c: &mut MatMut<'_>,
) -> usize {
    while i + R * V::LANES <= c.rows() {
        tile::<V, R, J>(a, b, c, i);
        i += R * V::LANES;
    }
    i
}

/// The tile of C from row `i` on: `R` vectors by `J` columns.
#[inline(always)]
fn tile<V: Vector, const R: usize, const J: usize>(a: Mat<'_>, b: Mat<'_>, c: &mut MatMut<'_>, i: usize) {
    let (k, rows) = (a.cols(), R * V::LANES);
    assert!(i + rows <= a.rows() && i + rows <= c.rows() && J == b.cols() && J == c.cols() && k == b.rows());
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
            let mut column = [V::splat(0.0); R];
            for (r, vector) in column.iter_mut().enumerate() {
                *vector = V::load(a.add(p * lda + r * V::LANES));
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                let factor = V::splat(*b.add(p + j * ldb));
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

/// Asks for the cache lines of `len` ≥ 1 elements.
///
/// # Safety
/// `address` must be valid for `len` elements.
#[inline(always)]
unsafe fn prefetch(address: *const f64, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees; the addresses are valid by the contract.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in (0..len).step_by(8) {
            _mm_prefetch::<_MM_HINT_T0>(address.add(line).cast());
        }
        _mm_prefetch::<_MM_HINT_T0>(address.add(len - 1).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
}
