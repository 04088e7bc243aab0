//! The default kernels in pure Rust.

use space::engine::InstructionSet;

use super::isa::Isa;
use super::product;
use super::{Kernels, PackedL, PackedU, SLAB_OF_COPIES, triangle};
use crate::mat::{Mat, MatMut};

/// Products with at most this many columns are computed without packing A.
const FEW_COLUMNS: usize = 64;

/// Products with at most this many elements in A are too: A fits the first-level cache unpacked.
const SMALL_A: usize = 64 * 64;

/// Triangles below this order, and fewer columns than [`SMALL_WIDTH`], are solved without packing.
const SMALL_ORDER: usize = 8;
const SMALL_WIDTH: usize = 4;

/// Pure Rust kernels, compiled for AVX-512, AVX2 and the baseline, chosen at run time.
#[derive(Debug, Clone, Copy)]
pub struct Builtin(pub(crate) Isa);

impl Builtin {
    /// Kernels for the best instruction set of this processor.
    pub fn best() -> Self {
        Self(Isa::detect())
    }

    /// Kernels limited to one instruction set, for ranks that simulate an older processor; `None` when this processor does not
    /// support it.
    pub fn of(set: InstructionSet) -> Option<Self> {
        let isa = match set {
            InstructionSet::Avx2 => Isa::Avx2,
            InstructionSet::Portable => Isa::Portable,
        };
        Isa::available().find(|available| *available == isa).map(Self)
    }
}

impl Kernels for Builtin {
    fn name(&self) -> String {
        let limited = if self.0 == Isa::detect() { "" } else { "limited to " };
        format!("builtin {} ({limited}{})", env!("CARGO_PKG_VERSION"), self.0.name())
    }

    fn isa(&self) -> Isa {
        self.0
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        gemm(self.0, a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        trsm(self.0, l, b);
    }

    fn strip_rows(&self) -> Option<usize> {
        Some(product::strip_height(self.0))
    }

    fn pack_l(&self, l2: Mat<'_>, strips: &mut [f64]) {
        product::pack(self.0, l2, strips);
    }

    fn group_cols(&self) -> usize {
        product::group_cols(self.0)
    }

    fn pack_u(&self, u: Mat<'_>, groups: &mut [f64]) {
        product::interleave(self.0, u, groups);
    }

    fn widest_slab(&self) -> usize {
        SLAB_OF_COPIES
    }

    fn multiply(&self, l2: PackedL<'_>, columns: &mut [(PackedU<'_>, MatMut<'_>)]) {
        let columns = columns.iter_mut().map(|(u, c)| (u, c.reborrow()));
        match l2 {
            PackedL::Strips(l2) => {
                let mut columns: Vec<_> = columns.map(|(u, c)| (u.in_groups(), c)).collect();
                product::multiply(self.0, l2, &mut columns);
            }
            PackedL::InPlace(l2) => columns.for_each(|(u, c)| self.gemm(l2, u.in_place(), c)),
        }
    }
}

pub(super) fn gemm(isa: Isa, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
    if b.cols() <= FEW_COLUMNS || a.rows() * a.cols() <= SMALL_A {
        return product::direct(isa, a, b, c);
    }
    product::blocked(isa, a, b, c);
}

pub(super) fn trsm(isa: Isa, l: Mat<'_>, b: MatMut<'_>) {
    trsm_by(isa, l, b, &|a, b, c| gemm(isa, a, b, c));
}

/// B ← L⁻¹·B by recursive halving: small triangles by the built-in code, the products between them by `gemm`.
pub(super) fn trsm_by(isa: Isa, l: Mat<'_>, mut b: MatMut<'_>, gemm: &impl Fn(Mat<'_>, Mat<'_>, MatMut<'_>)) {
    let (k, n) = (b.rows(), b.cols());
    assert!(l.rows() == k && l.cols() == k, "shapes agree");
    if k < SMALL_ORDER || (n < SMALL_WIDTH && k <= triangle::MAX_ORDER) {
        return substitute(l, b);
    }
    if k <= triangle::MAX_ORDER {
        return triangle::solve(isa, l, b);
    }
    // [L11 0; L21 L22]·[X1; X2] = [B1; B2]
    let half = (k / 2).next_multiple_of(triangle::MAX_ORDER);
    let (mut b1, mut b2) = b.reborrow().split_rows(half);
    trsm_by(isa, l.sub(0, 0, half, half), b1.reborrow(), gemm);
    gemm(l.sub(half, 0, k - half, half), b1.as_ref(), b2.reborrow());
    trsm_by(isa, l.sub(half, half, k - half, k - half), b2, gemm);
}

/// Forward substitution, one column of B at a time.
fn substitute(l: Mat<'_>, mut b: MatMut<'_>) {
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

#[cfg(test)]
mod tests {
    use super::super::selftest;
    use super::*;
    use crate::mat::Buffer;

    #[test]
    fn every_instruction_set_passes() {
        for isa in Isa::available() {
            assert_eq!(selftest::check(&Builtin(isa)), Ok(()), "{isa:?}");
        }
    }

    /// Both forms of the packed product, of which a processor has one, give what `direct` gives.
    #[test]
    fn packed_products_agree() {
        use super::super::operands::{ColumnGroups, Strips};
        use crate::lu::matgen::generate_block;
        for isa in Isa::available() {
            for (m, k, n) in [(1, 1, 1), (500, 300, 45), (1500, 130, 21), (7, 600, 3)] {
                let [a, b, c] = [(m, k), (k, n), (m, n)].map(|(rows, cols)| {
                    let mut data = vec![0.0; rows * cols];
                    generate_block(1 << 20, rows, cols, MatMut::new(&mut data, rows, cols, rows));
                    data
                });
                let mut expected = c.clone();
                product::direct(isa, Mat::new(&a, m, k, m), Mat::new(&b, k, n, k), MatMut::new(&mut expected, m, n, m));
                let height = product::strip_height(isa);
                let (mut strips, mut groups) = (vec![0.0; m.next_multiple_of(height) * k], vec![0.0; k * n]);
                product::pack(isa, Mat::new(&a, m, k, m), &mut strips);
                product::interleave(isa, Mat::new(&b, k, n, k), &mut groups);
                for multiply in [product::multiply_usually, product::multiply_in_large_cache] {
                    let mut found = c.clone();
                    let columns = MatMut::new(&mut found, m, n, m);
                    multiply(
                        isa,
                        Strips::new(&strips, m, k, height),
                        &mut [(ColumnGroups::new(&groups, k, n), columns)],
                    );
                    let alike = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12);
                    assert!(alike, "{isa:?}: {m}×{n}, {k} terms");
                }
            }
        }
    }

    /// The packed update gives the same result as `trsm` and `gemm`.
    #[test]
    fn packed_update_agrees_with_gemm_and_trsm() {
        use crate::lu::matgen::generate_block;
        let (m, k, n) = (301, 277, 45);
        let mut random = [(m, k), (k, k), (k, n), (m, n)].map(|(rows, cols)| {
            let mut data = vec![0.0; rows * cols];
            generate_block(1 << 20, rows, cols, MatMut::new(&mut data, rows, cols, rows));
            data
        });
        random[1].iter_mut().for_each(|l| *l /= 16.0);
        let [l2, l1, u, c] = random;
        let (l2, l1) = (Mat::new(&l2, m, k, m), Mat::new(&l1, k, k, k));
        let (mut u1, mut c1, mut u2, mut c2) = (u.clone(), c.clone(), u, c);
        Builtin::best().trsm(l1, MatMut::new(&mut u1, k, n, k));
        Builtin::best().gemm(l2, Mat::new(&u1, k, n, k), MatMut::new(&mut c1, m, n, m));
        let (mut strips, mut groups) = (Buffer::default(), Buffer::from(&[7.0; 100][..]));
        let packed = Builtin::best().prepare_l(l2, &mut strips);
        let (u2_view, c2_view) = (MatMut::new(&mut u2, k, n, k), MatMut::new(&mut c2, m, n, m));
        Builtin::best().update_slab(packed, l1, u2_view, c2_view, &mut groups);
        assert_eq!(u1, u2);
        assert!(c1.iter().zip(&c2).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
