//! Instruction sets that kernels are compiled for, chosen at run time.

/// Whether every processor of this architecture has a fused multiply-add. Elsewhere only code compiled for
/// an instruction set that has it may use `mul_add`: it would be a library call.
pub(super) const PORTABLE_FMA: bool = cfg!(target_arch = "aarch64");

/// An instruction set with its own copy of the kernels. A value says that the processor has it: there are no others
/// than those of [`Isa::available`], also outside this crate, which cannot name the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX-512F, DQ, VL: 32 registers of 8 doubles.
    Avx512,
    /// x86-64 with AVX2 and FMA: 16 registers of 4 doubles.
    Avx2,
    /// What every processor of this architecture has.
    Portable,
}

impl Isa {
    /// The best one that this processor runs.
    pub(crate) fn detect() -> Self {
        Self::available().next().expect("the portable one always is")
    }

    /// All that this processor runs, best first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        [Self::Avx512, Self::Avx2, Self::Portable].into_iter().filter(|isa| isa.runs())
    }

    /// Whether this processor runs it; a load after the first call.
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
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// Which instruction sets this thread's kernels were run for, so that a test can see that no other than its own was.
#[cfg(test)]
pub(crate) mod seen {
    use std::cell::RefCell;

    use super::Isa;

    thread_local! {
        static SEEN: RefCell<Vec<Isa>> = const { RefCell::new(Vec::new()) };
    }

    /// A kernel runs.
    pub(crate) fn note(isa: Isa) {
        SEEN.with_borrow_mut(|seen| {
            if !seen.contains(&isa) {
                seen.push(isa);
            }
        });
    }

    /// Those of the kernels that `work` runs on this thread.
    pub(crate) fn during(work: impl FnOnce()) -> Vec<Isa> {
        SEEN.with_borrow_mut(Vec::clear);
        work();
        SEEN.with_borrow_mut(std::mem::take)
    }
}
