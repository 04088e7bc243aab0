//! The built-in kernels held to fewer instructions than the processor has.

use super::isa::Isa;
use super::product::{self, Packed};
use super::{Form, Kernels, PackedL, SLAB_OF_COPIES, builtin, by_blocks};
use crate::mat::{Mat, MatMut};
use space::engine::InstructionSet;

/// The built-in kernels for one instruction set: for ranks that shall be as slow as an older processor.
#[derive(Debug, Clone, Copy)]
pub struct Limited(pub(crate) Isa);

impl Limited {
    /// The kernels for `set`; `None` when this processor does not run it.
    pub fn new(set: InstructionSet) -> Option<Self> {
        let isa = match set {
            InstructionSet::Avx2 => Isa::Avx2,
            InstructionSet::Portable => Isa::Portable,
        };
        Isa::available().find(|available| *available == isa).map(Self)
    }
}

impl Kernels for Limited {
    fn name(&self) -> String {
        format!("builtin {} (held to {})", env!("CARGO_PKG_VERSION"), self.0.name())
    }

    fn isa(&self) -> Isa {
        self.0
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        builtin::gemm(self.0, a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        builtin::trsm(self.0, l, b);
    }

    fn pack_l<'a>(&self, l2: Mat<'a>, memory: Vec<f64>) -> PackedL<'a> {
        let mut packed = Packed::from(memory);
        product::pack(self.0, l2, &mut packed);
        PackedL(Form::Packed(packed))
    }

    fn widest_slab(&self) -> usize {
        SLAB_OF_COPIES
    }

    fn update_slab(&self, l2: &[PackedL<'_>], l1: Mat<'_>, mut u: MatMut<'_>, c: MatMut<'_>) {
        self.trsm(l1, u.reborrow());
        by_blocks(l2, c, |l2, c| match &l2.0 {
            Form::Packed(packed) => product::multiply(self.0, packed, u.as_ref(), c),
            Form::InPlace(plain) => self.gemm(*plain, u.as_ref(), c),
        });
    }
}
