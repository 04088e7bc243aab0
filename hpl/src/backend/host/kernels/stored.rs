//! Products and triangular solves of the panel on L1, which is stored transposed or not.
//!
//! Both forms compute the same: with (A·B)ᵀ = Bᵀ·Aᵀ a product within L1 exchanges its factors, and a solve from the left
//! becomes a solve from the right.

use space::Form;

use super::{Kernels, vector};
use crate::mat::{Mat, MatMut, Stored, StoredMut};

/// Largest order for which a solve from the right works column by column.
const LEAF: usize = 8;

/// C ← C − A·B where only B is part of L1.
pub(crate) fn gemm(kernels: &dyn Kernels, a: Mat<'_>, b: Stored<'_>, mut c: MatMut<'_>) {
    match (a.cols(), c.cols()) {
        (1, _) => vector::ger(kernels.isa(), a.col(0), b, c),
        (_, 1) => vector::gemv(kernels.isa(), a, &b.col(0), c.col_mut(0)),
        _ => match b.form() {
            Form::NotTransposed => kernels.gemm(a, b.memory(), c),
            Form::Transposed => kernels.gemm_transposed(a, b.memory(), c),
        },
    }
}

/// C ← C − A·B within L1, all three in one form.
pub(crate) fn gemm_within(kernels: &dyn Kernels, a: Stored<'_>, b: Stored<'_>, c: StoredMut<'_>) {
    match a.form() {
        Form::NotTransposed => kernels.gemm(a.memory(), b.memory(), c.into_memory()),
        Form::Transposed => kernels.gemm(b.memory(), a.memory(), c.into_memory()),
    }
}

/// B ← L⁻¹·B within L1, with L unit lower triangular.
pub(crate) fn trsm(kernels: &dyn Kernels, l: Stored<'_>, b: StoredMut<'_>) {
    match l.form() {
        Form::NotTransposed if b.as_ref().cols() == 1 => substitute(l.memory(), b.into_memory().col_mut(0)),
        Form::NotTransposed => kernels.trsm(l.memory(), b.into_memory()),
        Form::Transposed => kernels.trsm_right(l.memory(), b.into_memory()),
    }
}

/// x ← L⁻¹·x
fn substitute(l: Mat<'_>, x: &mut [f64]) {
    for i in 0..x.len() {
        let (head, tail) = x.split_at_mut(i + 1);
        for (value, l) in tail.iter_mut().zip(&l.col(i)[i + 1..]) {
            *value -= l * head[i];
        }
    }
}

/// B ← B·U⁻¹ with U unit upper triangular, by recursive halving: most of the work is in the products.
pub(super) fn solve_right<K: Kernels + ?Sized>(kernels: &K, u: Mat<'_>, mut b: MatMut<'_>) {
    let (n, k) = (b.rows(), b.cols());
    assert!(u.rows() == k && u.cols() == k, "shapes agree");
    if k <= LEAF {
        for j in 1..k {
            let (done, mut column) = b.reborrow().sub(0, 0, n, j + 1).split_cols(j);
            vector::gemv(kernels.isa(), done.as_ref(), &u.col(j)[..j], column.col_mut(0));
        }
        return;
    }
    // [X1 X2]·[U11 U12; 0 U22] = [B1 B2]
    let half = (k / 2).next_multiple_of(LEAF);
    let (mut b1, mut b2) = b.split_cols(half);
    solve_right(kernels, u.sub(0, 0, half, half), b1.reborrow());
    kernels.gemm(b1.as_ref(), u.sub(0, half, half, k - half), b2.reborrow());
    solve_right(kernels, u.sub(half, half, k - half, k - half), b2);
}
