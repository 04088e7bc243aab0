//! The default kernels in pure Rust.

use super::Kernels;
use crate::mat::{Mat, MatMut};

/// Triangles up to this order are solved column by column; larger ones are halved.
const SMALL_TRIANGLE: usize = 16;

/// Pure Rust kernels: GEMM of the crate `matrixmultiply`, a blocked TRSM on top of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builtin;

impl Kernels for Builtin {
    fn name(&self) -> String {
        "builtin (matrixmultiply 0.3)".to_owned()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        assert!(b.rows() == k && c.rows() == m && c.cols() == n, "shapes agree");
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        let (lda, ldb, ldc) = (a.ld() as isize, b.ld() as isize, c.ld() as isize);
        // SAFETY: the views span m×k, k×n and m×n elements at column strides lda, ldb, ldc; c is exclusive.
        unsafe {
            matrixmultiply::dgemm(m, k, n, -1.0, a.as_ptr(), 1, lda, b.as_ptr(), 1, ldb, 1.0, c.as_mut_ptr(), 1, ldc);
        }
    }

    fn trsm(&self, l: Mat<'_>, mut b: MatMut<'_>) {
        let k = b.rows();
        assert!(l.rows() == k && l.cols() == k, "shapes agree");
        if k <= SMALL_TRIANGLE {
            return small_trsm(l, b);
        }
        // [L11 0; L21 L22]·[X1; X2] = [B1; B2]
        let half = (k / 2).next_multiple_of(SMALL_TRIANGLE);
        let (mut b1, mut b2) = b.reborrow().split_rows(half);
        self.trsm(l.sub(0, 0, half, half), b1.reborrow());
        self.gemm(l.sub(half, 0, k - half, half), b1.as_ref(), b2.reborrow());
        self.trsm(l.sub(half, half, k - half, k - half), b2);
    }
}

/// Forward substitution, one column of B at a time.
fn small_trsm(l: Mat<'_>, mut b: MatMut<'_>) {
    for j in 0..b.cols() {
        let x = b.col_mut(j);
        for p in 0..x.len() {
            let xp = x[p];
            for (xi, li) in x[p + 1..].iter_mut().zip(&l.col(p)[p + 1..]) {
                *xi -= li * xp;
            }
        }
    }
}
