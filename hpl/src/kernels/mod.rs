//! The dense kernels under the factorization: sequential, called by the engine's own threads.

mod blas;
mod builtin;
mod choose;
mod isa;
mod product;
pub(crate) mod random;
pub(crate) mod rows;
mod selftest;
mod simd;
mod triangle;
pub(crate) mod vector;

pub use blas::Blas;
pub use builtin::Builtin;
pub use choose::{KernelError, load, resolve};

use crate::mat::{Mat, MatMut};

/// Dense kernels, sequential inside. Implementations agree within rounding, not bit for bit.
pub trait Kernels: Send + Sync {
    /// Name and version, as stored with every result.
    fn name(&self) -> String;

    /// C ← C − A·B with A m×k, B k×n, C m×n; any of m, n, k may be 0.
    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>);

    /// B ← L⁻¹·B with L k×k unit lower triangular (its upper part and diagonal are not read), B k×n.
    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>);

    /// Prepares rows of the panel's L2 (m×k) once per step for all slabs of the update. Threads share this work
    /// by blocks of rows.
    fn pack_l<'a>(&self, l2: Mat<'a>) -> PackedL<'a> {
        PackedL { plain: l2, packed: None }
    }

    /// One slab of the update: U ← L1⁻¹·U (k×n), then C ← C − L2·U (m×n), L2 in blocks from top to bottom.
    fn update_slab(&self, l2: &[PackedL<'_>], l1: Mat<'_>, mut u: MatMut<'_>, c: MatMut<'_>) {
        self.trsm(l1, u.reborrow());
        by_blocks(l2, c, |l2, c| self.gemm(l2.plain, u.as_ref(), c));
    }
}

impl Kernels for Box<dyn Kernels> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        (**self).gemm(a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        (**self).trsm(l, b);
    }

    fn pack_l<'a>(&self, l2: Mat<'a>) -> PackedL<'a> {
        (**self).pack_l(l2)
    }

    fn update_slab(&self, l2: &[PackedL<'_>], l1: Mat<'_>, u: MatMut<'_>, c: MatMut<'_>) {
        (**self).update_slab(l2, l1, u, c);
    }
}

/// Calls `work` with each block of L2 and its rows of C.
fn by_blocks(l2: &[PackedL<'_>], c: MatMut<'_>, work: impl Fn(&PackedL<'_>, MatMut<'_>)) {
    let mut below = c;
    for block in l2 {
        let (rows, rest) = below.split_rows(block.plain.rows());
        work(block, rows);
        below = rest;
    }
    assert!(below.rows() == 0, "the blocks cover C");
}

/// Rows of L2 as the kernels want them for the update of one step.
pub struct PackedL<'a> {
    plain: Mat<'a>,
    packed: Option<product::Packed>,
}
