//! The self-test that all kernels must pass before use: many shapes, compared with plain loops.
//!
//! Faulty BLAS builds exist (wrong AVX-512 kernels, 64-bit integers behind 32-bit names); without this test they
//! would be found only by a failed residual at the end of a long run.

use space::Form;

use super::Kernels;
use crate::lu::matgen;
use crate::mat::{Mat, MatMut, Stored};

/// Shapes m, n, k of the products: around register tiles and blocks, thin and empty ones.
const GEMM_SHAPES: [(usize, usize, usize); 14] = [
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (1, 1, 1),
    (67, 1, 1),
    (1, 35, 7),
    (131, 1, 29),
    (131, 3, 1),
    (64, 8, 2),
    (97, 4, 4),
    (33, 17, 65),
    (61, 130, 16),
    (130, 67, 129),
    (258, 40, 300),
];

/// Orders and widths k, n of the triangular solves.
const TRSM_SHAPES: [(usize, usize); 10] =
    [(0, 3), (3, 0), (1, 1), (2, 9), (8, 33), (17, 5), (32, 64), (63, 31), (130, 70), (193, 17)];

/// Errors are at most a few roundings per term; a wrong kernel is wrong in the first digits.
const TOLERANCE: f64 = 1e-12;

/// A failed test: the operation with its shape, and the relative error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mismatch {
    /// Operation and shape.
    pub(crate) operation: String,
    /// Largest error relative to the sum of the absolute terms; NaN and overwritten padding count as infinite.
    pub(crate) error: f64,
}

/// Tests all operations with all shapes.
pub(crate) fn check(kernels: &dyn Kernels) -> Result<(), Mismatch> {
    for (seed, (m, n, k)) in GEMM_SHAPES.into_iter().enumerate() {
        for (name, form) in [("gemm", Form::NotTransposed), ("gemm_transposed", Form::Transposed)] {
            let error = gemm_error(kernels, form, m, n, k, seed);
            if error > TOLERANCE {
                return Err(Mismatch { operation: format!("{name} m={m} n={n} k={k}"), error });
            }
        }
    }
    for (seed, (k, n)) in TRSM_SHAPES.into_iter().enumerate() {
        let error = trsm_error(kernels, k, n, seed);
        if error > TOLERANCE {
            return Err(Mismatch { operation: format!("trsm k={k} n={n}"), error });
        }
        let error = trsm_right_error(kernels, k, n, seed);
        if error > TOLERANCE {
            return Err(Mismatch { operation: format!("trsm_right k={k} n={n}"), error });
        }
    }
    Ok(())
}

/// A random column-major matrix with `pad` more rows than used, in its buffer.
struct RandomMatrix {
    data: Vec<f64>,
    ld: usize,
}

impl RandomMatrix {
    fn new(rows: usize, cols: usize, pad: usize, seed: usize) -> Self {
        let ld = (rows + pad).max(1);
        let mut data = vec![0.0; ld * cols];
        // A part of a large matrix of the generator; the seed selects the part.
        matgen::generate_block(1 << 20, seed * 1000, 7, MatMut::new(&mut data, ld, cols, ld));
        Self { data, ld }
    }

    /// A square matrix of order k, scaled so that for its triangle T, X = T⁻¹·B has about the size of B at any order.
    fn small(k: usize, seed: usize) -> Self {
        let mut matrix = Self::new(k, k, 4, seed + 300);
        matrix.data.iter_mut().for_each(|value| *value /= (k as f64).sqrt());
        matrix
    }

    fn view(&self, rows: usize, cols: usize) -> Mat<'_> {
        Mat::new(&self.data, rows, cols, self.ld)
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i + j * self.ld]
    }
}

/// Largest relative error of C − A·B with B stored in a form; infinite when anything outside C has changed.
fn gemm_error(kernels: &dyn Kernels, form: Form, m: usize, n: usize, k: usize, seed: usize) -> f64 {
    let a = RandomMatrix::new(m, k, 3, seed);
    let (b_rows, b_cols) = if form == Form::Transposed { (n, k) } else { (k, n) };
    let b = RandomMatrix::new(b_rows, b_cols, 5, seed + 100);
    let stored = Stored::new(b.view(b_rows, b_cols), form);
    let before = RandomMatrix::new(m, n, 2, seed + 200);
    let mut after = before.data.clone();
    let c = MatMut::new(&mut after, m, n, before.ld);
    match form {
        Form::NotTransposed => kernels.gemm(a.view(m, k), stored.memory(), c),
        Form::Transposed => kernels.gemm_transposed(a.view(m, k), stored.memory(), c),
    }
    compare(&before, &after, m, n, |i, j| {
        let terms = (0..k).map(|p| -a.at(i, p) * stored.at(p, j));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
        (before.at(i, j) + sum, before.at(i, j).abs() + size)
    })
}

/// Largest relative error of L·X against B; infinite when anything outside X has changed.
fn trsm_error(kernels: &dyn Kernels, k: usize, n: usize, seed: usize) -> f64 {
    let mut l = RandomMatrix::small(k, seed);
    for j in 0..k {
        // Diagonal and upper part must not be read.
        l.data[j * l.ld..=j + j * l.ld].fill(f64::NAN);
    }
    let before = RandomMatrix::new(k, n, 1, seed + 400);
    let mut after = before.data.clone();
    kernels.trsm(l.view(k, k), MatMut::new(&mut after, k, n, before.ld));
    let x = after.clone();
    let product = |i: usize, j: usize| {
        let terms = (0..i).map(|p| l.at(i, p) * x[p + j * before.ld]);
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), t: f64| (sum + t, size + t.abs()));
        // X = B − (strictly lower part)·X, row by row.
        (before.at(i, j) - sum, before.at(i, j).abs() + size)
    };
    compare(&before, &after, k, n, product)
}

/// Largest relative error of X·U against B; infinite when anything outside X has changed.
fn trsm_right_error(kernels: &dyn Kernels, k: usize, n: usize, seed: usize) -> f64 {
    let mut u = RandomMatrix::small(k, seed);
    for j in 0..k {
        // Diagonal and lower part must not be read.
        u.data[j + j * u.ld..(j + 1) * u.ld].fill(f64::NAN);
    }
    let before = RandomMatrix::new(n, k, 3, seed + 500);
    let mut after = before.data.clone();
    kernels.trsm_right(u.view(k, k), MatMut::new(&mut after, n, k, before.ld));
    let x = after.clone();
    let product = |i: usize, j: usize| {
        let terms = (0..j).map(|p| x[i + p * before.ld] * u.at(p, j));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), t: f64| (sum + t, size + t.abs()));
        // X = B − X·(strictly upper part), column by column.
        (before.at(i, j) - sum, before.at(i, j).abs() + size)
    };
    compare(&before, &after, n, k, product)
}

/// Largest |after − expected| / size over the m×n block, where `expected` returns the value and its size.
fn compare(
    before: &RandomMatrix,
    after: &[f64],
    m: usize,
    n: usize,
    expected: impl Fn(usize, usize) -> (f64, f64),
) -> f64 {
    let mut worst = 0.0_f64;
    for j in 0..n {
        for i in 0..before.ld {
            let (old, new) = (before.at(i, j), after[i + j * before.ld]);
            let error = if i < m {
                let (value, size) = expected(i, j);
                (new - value).abs() / size
            } else if new.to_bits() == old.to_bits() {
                0.0
            } else {
                f64::INFINITY
            };
            worst = worst.max(if error.is_nan() { f64::INFINITY } else { error });
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::super::Builtin;
    use super::*;

    #[test]
    fn builtin_passes() {
        assert_eq!(check(&Builtin::best()), Ok(()));
    }

    /// Kernels with one fault each; the self-test must find all of them.
    enum Faulty {
        GemmAdds,
        GemmSkipsLastRow,
        GemmTouchesPadding,
        TrsmReadsDiagonal,
        TrsmDoesNothing,
        GemmTransposedDoesNothing,
        TrsmRightDoesNothing,
    }

    impl Kernels for Faulty {
        fn name(&self) -> String {
            "faulty".to_owned()
        }

        fn gemm(&self, a: Mat<'_>, b: Mat<'_>, mut c: MatMut<'_>) {
            let (m, n, k) = (c.rows(), c.cols(), a.cols());
            let rows = if matches!(self, Self::GemmSkipsLastRow) { m.saturating_sub(1) } else { m };
            let sign = if matches!(self, Self::GemmAdds) { 1.0 } else { -1.0 };
            for (i, j, p) in (0..rows).flat_map(|i| (0..n).flat_map(move |j| (0..k).map(move |p| (i, j, p)))) {
                c.set(i, j, c.at(i, j) + sign * a.at(i, p) * b.at(p, j));
            }
            if matches!(self, Self::GemmTouchesPadding) && n > 1 && c.ld() > m {
                // SAFETY: the padding of the first column lies before the second column.
                unsafe { *c.as_mut_ptr().add(m) = 1.0 };
            }
        }

        fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
            match self {
                Self::TrsmReadsDiagonal => {
                    let mut b = b;
                    for j in 0..b.cols() {
                        b.col_mut(j).iter_mut().enumerate().for_each(|(i, x)| *x /= l.at(i, i));
                    }
                }
                Self::TrsmDoesNothing => {}
                _ => Builtin::best().trsm(l, b),
            }
        }

        fn gemm_transposed(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
            if !matches!(self, Self::GemmTransposedDoesNothing) {
                Builtin::best().gemm_transposed(a, b, c);
            }
        }

        fn trsm_right(&self, u: Mat<'_>, b: MatMut<'_>) {
            if !matches!(self, Self::TrsmRightDoesNothing) {
                Builtin::best().trsm_right(u, b);
            }
        }
    }

    #[test]
    fn faults_are_found() {
        let first = |faulty: Faulty| check(&faulty).expect_err("a fault").operation;
        assert!(first(Faulty::GemmAdds).starts_with("gemm"));
        assert!(first(Faulty::GemmSkipsLastRow).starts_with("gemm"));
        assert!(first(Faulty::GemmTouchesPadding).starts_with("gemm"));
        assert!(first(Faulty::TrsmReadsDiagonal).starts_with("trsm"));
        assert!(first(Faulty::TrsmDoesNothing).starts_with("trsm "));
        assert!(first(Faulty::GemmTransposedDoesNothing).starts_with("gemm_transposed"));
        assert!(first(Faulty::TrsmRightDoesNothing).starts_with("trsm_right"));
    }
}
