//! Instruction sets that kernels are compiled for, chosen at run time.

/// Whether every processor of this architecture has a fused multiply-add. Elsewhere only code compiled for
/// an instruction set that has it may use `mul_add`: it would be a library call.
pub(super) const PORTABLE_FMA: bool = cfg!(target_arch = "aarch64");

/// An instruction set with its own copy of the kernels. A value proves that the processor supports it: all values come
/// from [`Isa::available`], and other crates cannot create one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX-512F, DQ, VL: 32 registers of 8 doubles.
    Avx512,
    /// x86-64 with AVX2 and FMA: 16 registers of 4 doubles.
    Avx2,
    /// The baseline of this architecture, which every processor supports.
    Portable,
}

impl Isa {
    /// All instruction sets, best first.
    pub(crate) const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The best instruction set that this processor supports.
    pub(crate) fn detect() -> Self {
        Self::available().next().expect("portable is always available")
    }

    /// All instruction sets that this processor supports, best first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.runs())
    }

    /// Whether this processor supports it; after the first call this is one load.
    fn runs(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && Self::Avx2.runs()
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Name as it appears in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// Compiles `body::<…>` for each instruction set, with the generic arguments of each in parentheses, behind one function that
/// takes the instruction set to use.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident$(<$life:lifetime>)?($($arg:ident: $kind:ty),*) $(-> $out:ty)? = $body:ident
        avx512 ($($for512:tt)*) avx2 ($($for256:tt)*) portable ($($portable:tt)*)
    ) => {
        $(#[$doc])*
        $vis fn $name$(<$life>)?(isa: $crate::backend::host::kernels::isa::Isa, $($arg: $kind),*) $(-> $out)? {
            #[cfg(test)]
            $crate::backend::host::kernels::isa::used::record(isa);
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::backend::host::kernels::isa::Isa;
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
                fn avx512$(<$life>)?($($arg: $kind),*) $(-> $out)? {
                    $body::<$($for512)*>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2$(<$life>)?($($arg: $kind),*) $(-> $out)? {
                    $body::<$($for256)*>($($arg),*)
                }
                match isa {
                    // SAFETY: `Isa::available` has found these features on this processor.
                    Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    Isa::Portable => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = isa;
            $body::<$($portable)*>($($arg),*)
        }
    };
}

pub(super) use for_each_isa;

/// Records the instruction sets that the kernels of this thread use, so that a test can check them.
#[cfg(test)]
pub(crate) mod used {
    use std::cell::RefCell;

    use super::Isa;

    thread_local! {
        static USED: RefCell<Vec<Isa>> = const { RefCell::new(Vec::new()) };
    }

    /// Records the instruction set of a kernel call.
    pub(crate) fn record(isa: Isa) {
        USED.with_borrow_mut(|used| {
            if !used.contains(&isa) {
                used.push(isa);
            }
        });
    }

    /// The instruction sets of the kernels that `work` calls on this thread.
    pub(crate) fn during(work: impl FnOnce()) -> Vec<Isa> {
        USED.with_borrow_mut(Vec::clear);
        work();
        USED.with_borrow_mut(std::mem::take)
    }
}
