//! Prefetches of cache lines, at addresses that may be invalid; nothing on other architectures than x86-64.

/// Prefetches the cache line at `address` to the first-level cache.
#[inline(always)]
pub(super) fn to_first_level(address: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no state of the program and ignores addresses that are not mapped.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the cache line at `address` to the second-level cache.
#[inline(always)]
pub(super) fn to_second_level(address: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
