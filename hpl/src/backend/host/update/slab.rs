//! Some columns of a section, from the row swap to the product.

use super::HostL;
use crate::backend::SectionSwap;
use crate::backend::host::kernels::rows::interchange;
use crate::backend::host::kernels::{Kernels, PackedU};
use crate::backend::host::scratch::{ScratchBuffer, ScratchPool};
use crate::mat::{Mat, MatMut};

/// Some columns of the trailing matrix.
pub(super) struct Slab<'a> {
    /// Index of the first column in the section.
    pub(super) first: usize,
    /// The local rows of the diagonal block, which become U; empty on ranks that do not own it.
    pub(super) diag: MatMut<'a>,
    /// The local rows below the diagonal block.
    pub(super) c: MatMut<'a>,
}

impl<'a> Slab<'a> {
    /// Splits off the first `width` columns.
    pub(super) fn split(self, width: usize) -> (Self, Self) {
        let (diag, diag_rest) = self.diag.split_cols(width);
        let (c, c_rest) = self.c.split_cols(width);
        (Self { first: self.first, diag, c }, Self { first: self.first + width, diag: diag_rest, c: c_rest })
    }

    /// Splits off at most `width` columns; the second slab is `None` when no column is left.
    pub(super) fn cut(self, width: usize) -> (Self, Option<Self>) {
        if width >= self.c.cols() {
            return (self, None);
        }
        let (first, rest) = self.split(width);
        (first, Some(rest))
    }
}

/// What all slabs of an update need.
pub(super) struct SlabUpdate<'a> {
    pub(super) kernels: &'a dyn Kernels,
    pub(super) scratch: &'a ScratchPool,
    pub(super) l: &'a HostL,
    pub(super) rows: &'a SectionSwap<'a>,
}

/// A slab after its row swap.
pub(super) struct SwappedSlab<'a> {
    /// U from the exchanged rows, jb rows; `None` with one process row, where U is `slab.diag`.
    gathered: Option<ScratchBuffer<'a>>,
    slab: Slab<'a>,
}

/// U of a slab after the triangular solve.
pub(super) struct SolvedSlab<'a> {
    /// U, in the matrix or in `gathered`.
    diag: MatMut<'a>,
    gathered: Option<ScratchBuffer<'a>>,
    /// The copy of U that the product reads, if the kernels make one.
    groups: Option<ScratchBuffer<'a>>,
}

/// A tile, with what is subtracted from it.
pub(super) struct Tile<'q, 'a> {
    /// Index of its first row.
    pub(super) first: usize,
    /// Number of rows.
    pub(super) rows: usize,
    /// U and C of each part.
    pub(super) columns: Vec<(PackedU<'q>, MatMut<'a>)>,
}

impl<'a> SlabUpdate<'a> {
    /// [U; C] ← P·[U; C]
    pub(super) fn swap_rows(&self, mut slab: Slab<'a>) -> SwappedSlab<'a> {
        let gathered = match self.rows {
            SectionSwap::Local(pivots) => {
                interchange(&mut slab.diag, &mut slab.c, pivots);
                None
            }
            SectionSwap::Exchanged { result, first } => {
                let mut u = self.scratch.take(self.l.jb(), slab.c.cols());
                result.fill(first + slab.first, &mut u.mat(), slab.diag.as_ref(), &mut slab.c);
                Some(u)
            }
        };
        SwappedSlab { gathered, slab }
    }

    /// U ← L1⁻¹ U; also returns C.
    pub(super) fn solve(&self, swapped: SwappedSlab<'a>) -> (SolvedSlab<'a>, MatMut<'a>) {
        let SwappedSlab { mut gathered, slab: Slab { mut diag, c, .. } } = swapped;
        let l1 = self.l.l1();
        match &mut gathered {
            None => self.kernels.trsm(l1, diag.reborrow()),
            Some(u) => {
                self.kernels.trsm(l1, u.mat());
                store_u(u.view(), diag.reborrow());
            }
        }
        let mut solved = SolvedSlab::new(diag, gathered);
        if self.kernels.strip_rows().is_some() {
            let u = solved.plain();
            let mut groups = self.scratch.take(u.rows(), u.cols());
            self.kernels.pack_u(u, groups.elements());
            solved.groups = Some(groups);
        }
        (solved, c)
    }

    /// C ← C − L2 U for all rows of C.
    pub(super) fn multiply(&self, solved: &SolvedSlab<'_>, c: MatMut<'_>) {
        self.kernels.multiply(self.l.l2(), &mut [(solved.u(), c)]);
    }

    /// C ← C − L2 U for one tile.
    pub(super) fn multiply_tile(&self, mut tile: Tile<'_, '_>) {
        let l2 = self.l.l2().sub_rows(tile.first..tile.first + tile.rows);
        self.kernels.multiply(l2, &mut tile.columns);
    }
}

impl<'a> SolvedSlab<'a> {
    /// U in `gathered`, or in the matrix, as it is.
    pub(super) fn new(diag: MatMut<'a>, gathered: Option<ScratchBuffer<'a>>) -> Self {
        Self { diag, gathered, groups: None }
    }

    fn plain(&self) -> Mat<'_> {
        self.gathered.as_ref().map_or_else(|| self.diag.as_ref(), ScratchBuffer::view)
    }

    /// U in the storage that the product reads.
    pub(super) fn u(&self) -> PackedU<'_> {
        let plain = self.plain();
        match &self.groups {
            Some(groups) => PackedU::groups(groups.view_elements(), plain.rows(), plain.cols()),
            None => PackedU::InPlace(plain),
        }
    }
}

/// Copies U to the matrix, on the ranks that own the diagonal block.
pub(super) fn store_u(u: Mat<'_>, mut diag: MatMut<'_>) {
    if diag.rows() > 0 {
        (0..diag.cols()).for_each(|col| diag.col_mut(col).copy_from_slice(u.col(col)));
    }
}
