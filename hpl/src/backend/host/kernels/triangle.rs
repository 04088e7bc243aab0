//! B ← L⁻¹·B for small triangles: the triangle is packed once, and tiles of B are solved in registers.

use std::mem::MaybeUninit;

use super::isa::for_each_isa;
use super::simd::{self, Vector};
use crate::mat::{Mat, MatMut};

/// Largest order of [`solve`].
pub(super) const MAX_ORDER: usize = 64;

/// Rows that are solved together in registers.
const R: usize = 8;

const STRIPS: usize = MAX_ORDER / R;

for_each_isa! {
    /// B ← L⁻¹·B with L unit lower triangular of order ≤ [`MAX_ORDER`]; shapes agree.
    pub(super) fn solve(l: Mat<'_>, b: MatMut<'_>) = by_columns
        avx512 (simd::x86::__m512d, 1, 8) avx2 (simd::x86::__m256d, 2, 4) portable (simd::Two, 4, 2)
}

/// L in strips of `R` rows, each strip column by column up to the end of its own triangle; diagonal,
/// upper part and rows beyond L are 0.
struct PackedTriangle {
    /// Strip s has (s + 1)·R columns, after the R·s·(s + 1)/2 columns of the strips before it; only the strips of L are written.
    columns: [MaybeUninit<[f64; R]>; STRIPS * (STRIPS + 1) / 2 * R],
}

impl PackedTriangle {
    #[inline(always)]
    fn new(l: Mat<'_>) -> Self {
        let mut packed = Self { columns: [const { MaybeUninit::uninit() }; _] };
        for strip in 0..l.rows().div_ceil(R) {
            let columns = &mut packed.columns[Self::range(strip)];
            for (p, column) in columns.iter_mut().enumerate() {
                let mut values = [0.0; R];
                for (row, value) in values.iter_mut().enumerate() {
                    let i = strip * R + row;
                    if i > p && i < l.rows() {
                        *value = l.at(i, p);
                    }
                }
                column.write(values);
            }
        }
        packed
    }

    #[inline(always)]
    fn range(strip: usize) -> std::ops::Range<usize> {
        let first = R * strip * (strip + 1) / 2;
        first..first + (strip + 1) * R
    }

    /// The columns of a strip that L fills.
    #[inline(always)]
    fn strip(&self, strip: usize) -> &[[f64; R]] {
        let columns = &self.columns[Self::range(strip)];
        // SAFETY: `new` has written every column of every strip of L; `strips` reads only these.
        unsafe { &*(std::ptr::from_ref(columns) as *const [[f64; R]]) }
    }
}

/// Column groups of `J`, the rest one by one. A strip is `W` vectors high.
#[inline(always)]
fn by_columns<V: Vector, const W: usize, const J: usize>(l: Mat<'_>, mut b: MatMut<'_>) {
    const { assert!(W * V::LANES == R) };
    let k = b.rows();
    assert!(l.rows() == k && l.cols() == k && k <= MAX_ORDER, "shapes agree");
    let packed = PackedTriangle::new(l);
    let mut j = 0;
    while j + J <= b.cols() {
        strips::<V, W, J>(&packed, b.reborrow().sub(0, j, k, J));
        j += J;
    }
    while j < b.cols() {
        strips::<V, W, 1>(&packed, b.reborrow().sub(0, j, k, 1));
        j += 1;
    }
}

/// Solves `J` columns strip by strip from the top: first the rows above, then the strip's own triangle.
#[inline(always)]
fn strips<V: Vector, const W: usize, const J: usize>(l: &PackedTriangle, mut b: MatMut<'_>) {
    let (k, ldb) = (b.rows(), b.ld());
    assert!(b.cols() == J);
    let top = b.as_mut_ptr();
    for index in 0..k.div_ceil(R) {
        let (first, strip) = (index * R, l.strip(index));
        let rows = R.min(k - first);
        let mut tile = [[0.0; R]; J];
        let mut x = [[V::splat(0.0); W]; J];
        // SAFETY: all addresses are those of rows first..first + rows ≤ k, or of a row p < first < k, of columns
        // j < J of B, which is borrowed exclusively, or of whole vectors in the R rows of `tile` and `strip`.
        unsafe {
            for j in 0..J {
                let from = top.add(first + j * ldb);
                if rows == R {
                    x[j] = load(from);
                } else {
                    std::ptr::copy_nonoverlapping(from, tile[j].as_mut_ptr(), rows);
                    x[j] = load(tile[j].as_ptr());
                }
            }
            for (p, column) in strip[..first].iter().enumerate() {
                let column: [V; W] = load(column.as_ptr());
                for (j, x) in x.iter_mut().enumerate() {
                    let factor = V::splat(*top.add(p + j * ldb));
                    for (x, l) in x.iter_mut().zip(column) {
                        *x = x.minus(l, factor);
                    }
                }
            }
            for (p, column) in strip[first..first + R].iter().enumerate() {
                let column: [V; W] = load(column.as_ptr());
                for x in &mut x {
                    let factor = x[p / V::LANES].spread(p % V::LANES);
                    for (x, l) in x.iter_mut().zip(column) {
                        *x = x.minus(l, factor);
                    }
                }
            }
            for j in 0..J {
                let to = top.add(first + j * ldb);
                if rows == R {
                    store(x[j], to);
                } else {
                    store(x[j], tile[j].as_mut_ptr());
                    std::ptr::copy_nonoverlapping(tile[j].as_ptr(), to, rows);
                }
            }
        }
    }
}

/// # Safety
/// `from` must be valid for reading `W` vectors.
#[inline(always)]
unsafe fn load<V: Vector, const W: usize>(from: *const f64) -> [V; W] {
    // SAFETY: by the contract.
    std::array::from_fn(|w| unsafe { V::load(from.add(w * V::LANES)) })
}

/// # Safety
/// `to` must be valid for writing `W` vectors.
#[inline(always)]
unsafe fn store<V: Vector, const W: usize>(x: [V; W], to: *mut f64) {
    for (w, x) in x.iter().enumerate() {
        // SAFETY: by the contract.
        unsafe { x.store(to.add(w * V::LANES)) };
    }
}
