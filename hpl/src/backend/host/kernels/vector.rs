//! Operations on a few long columns, for the panel factorization and the back substitution.
//!
//! A general GEMM reads long columns tile by tile; these functions stream them once, unpacked. Each is compiled for the
//! vector units of x86; the caller chooses the instruction set.

use super::isa::{PORTABLE_FMA, for_each_isa};
use crate::mat::{Mat, MatMut, Stored};

/// a·b + c, fused if `F`, which must hold only where the processor has FMA; elsewhere `mul_add` is a library call.
#[inline(always)]
pub(super) fn fma<const F: bool>(a: f64, b: f64, c: f64) -> f64 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

for_each_isa! {
    /// Index of the first element of largest absolute value, ignoring NaNs; 0 when there is none.
    pub(crate) fn argmax_abs(x: &[f64]) -> usize = argmax_abs_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn argmax_abs_body<const F: bool>(x: &[f64]) -> usize {
    const LANES: usize = 32;
    let larger = |max: f64, value: f64| if value.abs() > max { value.abs() } else { max };
    let mut maxima = [-1.0; LANES];
    let chunks = x.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for lane in 0..LANES {
            maxima[lane] = larger(maxima[lane], chunk[lane]);
        }
    }
    let max = tail.iter().fold(maxima.into_iter().fold(-1.0, f64::max), |max, &value| larger(max, value));
    x.iter().position(|value| value.abs() == max).unwrap_or(0)
}

for_each_isa! {
    /// x ← s·x.
    pub(crate) fn scale(x: &mut [f64], s: f64) = scale_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn scale_body<const F: bool>(x: &mut [f64], s: f64) {
    for value in x {
        *value *= s;
    }
}

for_each_isa! {
    /// y ← y − A·x with A m×k.
    pub(crate) fn gemv(a: Mat<'_>, x: &[f64], y: &mut [f64]) = gemv_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn gemv_body<const F: bool>(a: Mat<'_>, x: &[f64], y: &mut [f64]) {
    let (m, k) = (a.rows(), a.cols());
    assert!(x.len() == k && y.len() == m, "shapes agree");
    let mut j = 0;
    while j + 4 <= k {
        let (a0, a1, a2, a3) = (&a.col(j)[..m], &a.col(j + 1)[..m], &a.col(j + 2)[..m], &a.col(j + 3)[..m]);
        let (x0, x1, x2, x3) = (-x[j], -x[j + 1], -x[j + 2], -x[j + 3]);
        for i in 0..m {
            y[i] = fma::<F>(a0[i], x0, fma::<F>(a1[i], x1, fma::<F>(a2[i], x2, fma::<F>(a3[i], x3, y[i]))));
        }
        j += 4;
    }
    while j < k {
        let (column, factor) = (&a.col(j)[..m], -x[j]);
        for i in 0..m {
            y[i] = fma::<F>(column[i], factor, y[i]);
        }
        j += 1;
    }
}

for_each_isa! {
    /// C ← C − x·yᵀ with C m×n; element j of y is `y.at(0, j)`.
    pub(crate) fn ger(x: &[f64], y: Stored<'_>, c: MatMut<'_>) = ger_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn ger_body<const F: bool>(x: &[f64], y: Stored<'_>, mut c: MatMut<'_>) {
    let (m, n) = (c.rows(), c.cols());
    assert!(x.len() == m && y.cols() == n, "shapes agree");
    let mut j = 0;
    while j + 4 <= n {
        let (left, right) = c.reborrow().sub(0, j, m, 4).split_cols(2);
        let ((mut c0, mut c1), (mut c2, mut c3)) = (left.split_cols(1), right.split_cols(1));
        let (c0, c1) = (&mut c0.col_mut(0)[..m], &mut c1.col_mut(0)[..m]);
        let (c2, c3) = (&mut c2.col_mut(0)[..m], &mut c3.col_mut(0)[..m]);
        let (y0, y1, y2, y3) = (-y.at(0, j), -y.at(0, j + 1), -y.at(0, j + 2), -y.at(0, j + 3));
        for i in 0..m {
            c0[i] = fma::<F>(x[i], y0, c0[i]);
            c1[i] = fma::<F>(x[i], y1, c1[i]);
            c2[i] = fma::<F>(x[i], y2, c2[i]);
            c3[i] = fma::<F>(x[i], y3, c3[i]);
        }
        j += 4;
    }
    for j in j..n {
        let (column, factor) = (c.col_mut(j), -y.at(0, j));
        for i in 0..m {
            column[i] = fma::<F>(x[i], factor, column[i]);
        }
    }
}

for_each_isa! {
    /// y ← y + x.
    pub(crate) fn add(x: &[f64], y: &mut [f64]) = add_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn add_body<const F: bool>(x: &[f64], y: &mut [f64]) {
    assert!(x.len() == y.len(), "shapes agree");
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

for_each_isa! {
    /// r ← r − A·1 and s ← s + |A|·1 with A m×k.
    pub(crate) fn row_sums(a: Mat<'_>, r: &mut [f64], s: &mut [f64]) = row_sums_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn row_sums_body<const F: bool>(a: Mat<'_>, r: &mut [f64], s: &mut [f64]) {
    let (m, k) = (a.rows(), a.cols());
    assert!(r.len() == m && s.len() == m, "shapes agree");
    let mut j = 0;
    while j + 4 <= k {
        let (a0, a1, a2, a3) = (&a.col(j)[..m], &a.col(j + 1)[..m], &a.col(j + 2)[..m], &a.col(j + 3)[..m]);
        for i in 0..m {
            r[i] -= (a0[i] + a1[i]) + (a2[i] + a3[i]);
            s[i] += (a0[i].abs() + a1[i].abs()) + (a2[i].abs() + a3[i].abs());
        }
        j += 4;
    }
    for column in (j..k).map(|j| &a.col(j)[..m]) {
        for i in 0..m {
            r[i] -= column[i];
            s[i] += column[i].abs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::kernels::isa::Isa;

    fn numbers(len: usize) -> Vec<f64> {
        (0..len).map(|i| ((i * 7919) % 101) as f64 / 50.0 - 1.0).collect()
    }

    #[test]
    fn argmax_takes_the_first_of_the_largest() {
        for (isa, len) in Isa::available().flat_map(|isa| [1, 2, 31, 32, 33, 100].map(|len| (isa, len))) {
            for at in 0..len {
                let mut x = vec![0.25; len];
                x[at] = -3.0;
                x[len - 1] = if at == len - 1 { -3.0 } else { 3.0 };
                assert_eq!(argmax_abs(isa, &x), at);
                x[0] = if at == 0 { x[0] } else { f64::NAN };
                assert_eq!(argmax_abs(isa, &x), at);
            }
        }
        for isa in Isa::available() {
            assert_eq!(argmax_abs(isa, &[0.0; 40]), 0);
            assert_eq!(argmax_abs(isa, &[f64::NAN; 40]), 0);
            assert_eq!(argmax_abs(isa, &[]), 0);
        }
    }

    #[test]
    fn products_agree_with_their_definition() {
        let shapes = [(0, 3), (1, 1), (5, 3), (33, 4), (64, 7), (7, 9)];
        for (isa, (m, n)) in Isa::available().flat_map(|isa| shapes.map(|shape| (isa, shape))) {
            let (a, x, y) = (numbers(m * n), numbers(m), numbers(n));
            let view = Mat::new(&a, m, n, m);
            let mut out = x.clone();
            gemv(isa, view, &y, &mut out);
            for i in 0..m {
                let exact = x[i] - (0..n).map(|j| view.at(i, j) * y[j]).sum::<f64>();
                assert!((out[i] - exact).abs() < 1e-14 * n as f64);
            }
            let mut c = a.clone();
            let row = Stored::new(Mat::new(&y, 1, n, 1), space::Form::NotTransposed);
            ger(isa, &x, row, MatMut::new(&mut c, m, n, m));
            for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                assert!((c[i + j * m] - (view.at(i, j) - x[i] * y[j])).abs() < 1e-15 * 4.0);
            }
            let (mut r, mut s) = (x.clone(), x.clone());
            row_sums(isa, view, &mut r, &mut s);
            for i in 0..m {
                let row = || (0..n).map(|j| view.at(i, j));
                assert!((r[i] - (x[i] - row().sum::<f64>())).abs() < 1e-14 * n as f64);
                assert!((s[i] - (x[i] + row().map(f64::abs).sum::<f64>())).abs() < 1e-14 * n as f64);
            }
            let mut sum = x.clone();
            add(isa, &numbers(m), &mut sum);
            assert!(sum.iter().zip(&x).all(|(sum, x)| *sum == 2.0 * x));
            let mut scaled = x.clone();
            scale(isa, &mut scaled, 0.5);
            assert!(scaled.iter().zip(&x).all(|(s, x)| *s == 0.5 * x));
        }
    }
}
