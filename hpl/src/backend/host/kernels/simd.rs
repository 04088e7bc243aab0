//! Vectors of the instruction sets that the built-in kernels are compiled for.
//!
//! A kernel is one `#[inline(always)]` function over a [`Vector`] type; [`for_each_isa`](super::isa::for_each_isa) compiles it for each
//! instruction set with register tiles that fit its registers. Vectors are explicit, because the compiler's
//! automatic vectorization lost a third of the speed after unrelated changes of the code.

use super::isa::PORTABLE_FMA;

/// Some f64 lanes that are loaded, computed and stored together.
///
/// # Safety
/// Implementors may use their instruction set unconditionally: only functions compiled for it, that is, those
/// made by [`for_each_isa`](super::isa::for_each_isa), may call these methods. They must be `#[inline(always)]`.
pub(super) unsafe trait Vector: Copy {
    /// A vector of fewer lanes, for the edges; the last one has one lane.
    type Rest: Vector;
    /// Number of lanes.
    const LANES: usize;

    /// `value` in every lane.
    fn splat(value: f64) -> Self;

    /// # Safety
    /// `from` must be valid for reading `LANES` elements.
    unsafe fn load(from: *const f64) -> Self;

    /// # Safety
    /// `to` must be valid for writing `LANES` elements.
    unsafe fn store(self, to: *mut f64);

    /// self + a·b.
    fn plus(self, a: Self, b: Self) -> Self;

    /// self − a·b.
    fn minus(self, a: Self, b: Self) -> Self;

    /// Lane `lane` in every lane.
    #[inline(always)]
    fn spread(self, lane: usize) -> Self {
        let mut lanes = [0.0; 8];
        assert!(lane < Self::LANES && Self::LANES <= lanes.len());
        // SAFETY: there is room for LANES elements. The compiler keeps them in registers.
        unsafe { self.store(lanes.as_mut_ptr()) };
        Self::splat(lanes[lane])
    }
}

/// One f64; `FUSED` where the instruction set has a fused multiply-add (elsewhere that is a library call).
#[derive(Clone, Copy)]
pub(super) struct One<const FUSED: bool>(f64);

// SAFETY: only called from functions compiled for an instruction set that has FMA if FUSED.
unsafe impl<const FUSED: bool> Vector for One<FUSED> {
    type Rest = Self;
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: by the contract.
        Self(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: by the contract.
        unsafe { *to = self.0 }
    }

    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        Self(if FUSED { a.0.mul_add(b.0, self.0) } else { self.0 + a.0 * b.0 })
    }

    #[inline(always)]
    fn minus(self, a: Self, b: Self) -> Self {
        self.plus(Self(-a.0), b)
    }
}

/// Two lanes for every processor; the compiler chooses the instructions.
#[derive(Clone, Copy)]
pub(super) struct Two([One<PORTABLE_FMA>; 2]);

// SAFETY: uses nothing beyond the architecture's baseline.
unsafe impl Vector for Two {
    type Rest = One<PORTABLE_FMA>;
    const LANES: usize = 2;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self([One(value); 2])
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: by the contract.
        unsafe { Self([One::load(from), One::load(from.add(1))]) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: by the contract.
        unsafe {
            self.0[0].store(to);
            self.0[1].store(to.add(1));
        }
    }

    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        Self([self.0[0].plus(a.0[0], b.0[0]), self.0[1].plus(a.0[1], b.0[1])])
    }

    #[inline(always)]
    fn minus(self, a: Self, b: Self) -> Self {
        Self([self.0[0].minus(a.0[0], b.0[0]), self.0[1].minus(a.0[1], b.0[1])])
    }
}

/// The vectors of x86-64's instruction sets.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_vector {
    ($kind:ty, $lanes:literal, $rest:ty, $splat:ident, $load:ident, $store:ident, $plus:ident, $minus:ident) => {
        // SAFETY: only called from functions compiled for the instruction set, by the trait's contract.
        unsafe impl Vector for $kind {
            type Rest = $rest;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(value: f64) -> Self {
                // SAFETY: the instruction set is available, by the trait's contract.
                unsafe { x86::$splat(value) }
            }

            #[inline(always)]
            unsafe fn load(from: *const f64) -> Self {
                // SAFETY: as above; the elements are valid by this function's contract.
                unsafe { x86::$load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f64) {
                // SAFETY: as above.
                unsafe { x86::$store(to, self) }
            }

            #[inline(always)]
            fn plus(self, a: Self, b: Self) -> Self {
                // SAFETY: the instruction set is available, by the trait's contract.
                unsafe { x86::$plus(a, b, self) }
            }

            #[inline(always)]
            fn minus(self, a: Self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { x86::$minus(a, b, self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    //! The intrinsics that [`super::versions`] uses.
    pub(in super::super) use std::arch::x86_64::*;
}

#[cfg(target_arch = "x86_64")]
x86_vector!(
    x86::__m512d,
    8,
    x86::__m256d,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_fnmadd_pd
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    x86::__m256d,
    4,
    One<true>,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_fnmadd_pd
);
