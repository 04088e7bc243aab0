//! The dense kernels of the factorization: sequential, called by the engine's own threads.

mod blas;
mod builtin;
mod by_rank;
mod choose;
mod error;
pub(crate) mod isa;
mod linked;
mod product;
pub(crate) mod random;
pub(crate) mod rows;
mod selftest;
mod simd;
pub(crate) mod stored;
mod triangle;
pub(crate) mod vector;

use self::isa::Isa;
pub use blas::Blas;
pub use builtin::Builtin;
pub(crate) use by_rank::{Loaded, RankKernels};
pub use choose::{load, rate_gflops, resolve};
pub use error::KernelError;
pub use linked::linked;

use crate::mat::{Buffer, Mat, MatMut, transpose};

/// Largest slab width of kernels that pack L2 once for all slabs: wide enough for a high rate, narrow enough for load balance
/// and for the slab to stay in cache between operations.
pub const SLAB_OF_COPIES: usize = 256;

/// Largest slab width of kernels that pack L2 again for every slab.
const SLAB_WITHOUT: usize = 1024;

/// Dense kernels, sequential inside. Implementations agree within rounding, not bit for bit.
pub trait Kernels: Send + Sync {
    /// Name and version, as stored with every result.
    fn name(&self) -> String;

    /// Instruction set of the engine's own vector operations and small triangles beside these kernels: by default the best
    /// of the processor. Generator and check always use the best.
    fn isa(&self) -> Isa {
        Isa::detect()
    }

    /// C ← C − A·B with A m×k, B k×n, C m×n; any of m, n, k may be 0.
    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>);

    /// B ← L⁻¹·B with L k×k unit lower triangular (its upper part and diagonal are not read), B k×n.
    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>);

    /// C ← C − A·Bᵀ with A m×k, B n×k, C m×n; any of m, n, k may be 0.
    ///
    /// B is small here, a part of L1. A copy is cheaper than reading B with a stride of a multiple of 2^k bytes, which maps
    /// to few sets of the first-level cache.
    fn gemm_transposed(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        let (n, k) = (b.rows(), b.cols());
        let mut copy = vec![0.0; k * n];
        transpose(b, MatMut::new(&mut copy, k, n, k));
        self.gemm(a, Mat::new(&copy, k, n, k), c);
    }

    /// B ← B·U⁻¹ with U k×k unit upper triangular (its lower part and diagonal are not read), B n×k.
    fn trsm_right(&self, u: Mat<'_>, b: MatMut<'_>) {
        stored::solve_right(self, u, b);
    }

    /// Prepares rows of the panel's L2 (m×k) once per step for all slabs of the update; it may use `memory`.
    /// Threads share this work by blocks of rows.
    fn pack_l<'a>(&self, l2: Mat<'a>, memory: Buffer) -> PackedL<'a> {
        drop(memory);
        PackedL::in_place(l2)
    }

    /// Maximum columns of a slab of the update.
    fn widest_slab(&self) -> usize {
        SLAB_WITHOUT
    }

    /// One slab of the update: U ← L1⁻¹·U (k×n), then C ← C − L2·U (m×n), L2 in blocks from top to bottom.
    fn update_slab(&self, l2: &[PackedL<'_>], l1: Mat<'_>, mut u: MatMut<'_>, c: MatMut<'_>) {
        self.trsm(l1, u.reborrow());
        by_blocks(l2, c, |l2, c| self.gemm(l2.plain(), u.as_ref(), c));
    }
}

/// Calls `work` with each block of L2 and its rows of C.
fn by_blocks(l2: &[PackedL<'_>], c: MatMut<'_>, work: impl Fn(&PackedL<'_>, MatMut<'_>)) {
    let mut below = c;
    for block in l2 {
        let (rows, rest) = below.split_rows(block.rows());
        work(block, rows);
        below = rest;
    }
    assert!(below.rows() == 0, "the blocks cover C");
}

/// Rows of L2 in the storage that the kernels use for the update of one step.
pub struct PackedL<'a>(Storage<'a>);

enum Storage<'a> {
    InPlace(Mat<'a>),
    Packed(product::PackedStrips),
}

impl<'a> PackedL<'a> {
    /// The rows without a copy, for an update that is too small for packing.
    pub fn in_place(l2: Mat<'a>) -> Self {
        Self(Storage::InPlace(l2))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match &self.0 {
            Storage::InPlace(plain) => plain.rows(),
            Storage::Packed(packed) => packed.rows(),
        }
    }

    /// The copy, independent of the matrix it was made from; `None` when it is no copy.
    pub fn detach(self) -> Option<PackedL<'static>> {
        match self.0 {
            Storage::InPlace(_) => None,
            Storage::Packed(packed) => Some(PackedL(Storage::Packed(packed))),
        }
    }

    /// Returns the memory of a copy, for the next one; empty when it is no copy.
    pub fn into_memory(self) -> Buffer {
        match self.0 {
            Storage::InPlace(_) => Buffer::default(),
            Storage::Packed(packed) => packed.into_memory(),
        }
    }

    /// The rows, for kernels without packing.
    fn plain(&self) -> Mat<'a> {
        match &self.0 {
            Storage::InPlace(plain) => *plain,
            Storage::Packed(_) => unreachable!("packed by other kernels"),
        }
    }
}
