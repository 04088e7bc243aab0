//! The dense kernels of the factorization: sequential, called by the engine's own threads.

mod blas;
mod builtin;
mod by_rank;
mod choose;
mod error;
pub(crate) mod isa;
mod linked;
mod operands;
pub(crate) mod peak;
mod prefetch;
mod product;
pub(crate) mod random;
pub(crate) mod rows;
mod selftest;
mod simd;
pub(crate) mod stored;
mod triangle;
pub(crate) mod vector;

use std::ops::Range;

use self::isa::Isa;
use self::operands::{ColumnGroups, Strips};
pub(crate) use blas::loader_message;
pub use blas::{Blas, installed};
pub use builtin::Builtin;
pub(crate) use by_rank::{Loaded, RankKernels};
pub use choose::{load, rate_gflops, resolve};
pub use error::KernelError;
pub use linked::linked;

use crate::mat::{Buffer, Mat, MatMut, transpose};

/// Largest slab width of kernels that pack L2 once for all slabs: wide enough for a high rate, narrow enough for load balance
/// and for the slab to stay in cache between operations.
pub const SLAB_OF_COPIES: usize = 240;

/// Largest slab width of kernels that pack L2 again for every slab.
const SLAB_WITHOUT: usize = 1024;

/// Dense kernels, sequential inside. Implementations agree within rounding, not bit for bit.
pub trait Kernels: Send + Sync {
    /// Name and version, as stored with every result.
    fn name(&self) -> String;

    /// Instruction set of the engine's own vector operations and small triangles, which these kernels lack: by default the best
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

    /// Rows of a strip, if [`pack_l`](Self::pack_l) stores L2 in strips once per step for all slabs of the update; threads may
    /// pack different strips. `None` if updates read L2 from the panel.
    fn strip_rows(&self) -> Option<usize> {
        None
    }

    /// Stores rows of L2 (m×k) in strips; the last strip is filled up with zeros. Not called without
    /// [`strip_rows`](Self::strip_rows).
    ///
    /// # Panics
    /// When `strips` has not m, rounded up to whole strips, times k elements.
    fn pack_l(&self, _l2: Mat<'_>, _strips: &mut [f64]) {
        unreachable!("these kernels have no strips");
    }

    /// Columns of U that are copied as a group: copies of column ranges that begin at a multiple of this follow each other.
    fn group_cols(&self) -> usize {
        1
    }

    /// Copies U (k×n) for [`multiply`](Self::multiply). Not called without [`strip_rows`](Self::strip_rows).
    ///
    /// # Panics
    /// When `groups` has not k·n elements.
    fn pack_u(&self, _u: Mat<'_>, _groups: &mut [f64]) {
        unreachable!("these kernels make no copies");
    }

    /// C ← C − L2·U for some rows of L2 (m×k), for each pair of columns of U (k×n) and C (m×n).
    fn multiply(&self, l2: PackedL<'_>, columns: &mut [(PackedU<'_>, MatMut<'_>)]) {
        columns.iter_mut().for_each(|(u, c)| self.gemm(l2.in_place(), u.in_place(), c.reborrow()));
    }

    /// Maximum columns of a slab of the update.
    fn widest_slab(&self) -> usize {
        SLAB_WITHOUT
    }

    /// L2 in the storage that [`multiply`](Self::multiply) reads, in `memory` if it is a copy.
    fn prepare_l<'a>(&self, l2: Mat<'a>, memory: &'a mut Buffer) -> PackedL<'a> {
        let Some(height) = self.strip_rows() else { return PackedL::InPlace(l2) };
        let strips = memory.at_least(l2.rows().next_multiple_of(height) * l2.cols());
        self.pack_l(l2, strips);
        PackedL::strips(strips, l2.rows(), l2.cols(), height)
    }

    /// One slab of the update: U ← L1⁻¹·U (k×n), then C ← C − L2·U (m×n). `memory` is for a copy of U.
    fn update_slab(&self, l2: PackedL<'_>, l1: Mat<'_>, mut u: MatMut<'_>, c: MatMut<'_>, memory: &mut Buffer) {
        self.trsm(l1, u.reborrow());
        let (u, (rows, cols)) = (u.as_ref(), (u.rows(), u.cols()));
        let u = match self.strip_rows() {
            None => PackedU::InPlace(u),
            Some(_) => {
                let groups = memory.at_least(rows * cols);
                self.pack_u(u, groups);
                PackedU::groups(groups, rows, cols)
            }
        };
        self.multiply(l2, &mut [(u, c)]);
    }
}

/// Rows of L2 in the storage that the kernels use for the update of one step.
#[derive(Clone, Copy)]
pub enum PackedL<'a> {
    /// In the panel.
    InPlace(Mat<'a>),
    /// Copied strip by strip.
    Strips(Strips<'a>),
}

/// Columns of U in the storage that the kernels use for the update of one slab.
#[derive(Clone, Copy)]
pub enum PackedU<'a> {
    /// In the matrix or in row buffers.
    InPlace(Mat<'a>),
    /// Copied group by group.
    Groups(ColumnGroups<'a>),
}

impl<'a> PackedL<'a> {
    /// `rows × cols` elements that [`Kernels::pack_l`] has stored in strips of `height` rows.
    ///
    /// # Panics
    /// When `strips` has another length.
    pub fn strips(strips: &'a [f64], rows: usize, cols: usize, height: usize) -> Self {
        Self::Strips(Strips::new(strips, rows, cols, height))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::InPlace(l2) => l2.rows(),
            Self::Strips(strips) => strips.rows(),
        }
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// When they do not begin at the top of a strip.
    pub(crate) fn sub_rows(self, rows: Range<usize>) -> Self {
        match self {
            Self::InPlace(l2) => Self::InPlace(l2.sub(rows.start, 0, rows.len(), l2.cols())),
            Self::Strips(strips) => Self::Strips(strips.sub_rows(rows)),
        }
    }

    /// The rows, for kernels that do not pack.
    fn in_place(self) -> Mat<'a> {
        match self {
            Self::InPlace(l2) => l2,
            Self::Strips(_) => unreachable!("packed by other kernels"),
        }
    }
}

impl<'a> PackedU<'a> {
    /// `rows × cols` elements that [`Kernels::pack_u`] has copied.
    ///
    /// # Panics
    /// When `groups` has another length.
    pub(crate) fn groups(groups: &'a [f64], rows: usize, cols: usize) -> Self {
        Self::Groups(ColumnGroups::new(groups, rows, cols))
    }

    /// The copy, for kernels that pack.
    fn in_groups(self) -> ColumnGroups<'a> {
        match self {
            Self::InPlace(_) => unreachable!("packed as L2 is"),
            Self::Groups(u) => u,
        }
    }

    /// The columns, for kernels that do not pack.
    fn in_place(self) -> Mat<'a> {
        match self {
            Self::InPlace(u) => u,
            Self::Groups(_) => unreachable!("copied by other kernels"),
        }
    }
}
