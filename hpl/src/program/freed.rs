//! Memory that the allocator holds for later.

/// Gives the pages that the allocator of this process has free back to the system, so that others can have them: glibc keeps them otherwise.
/// Elsewhere it does nothing.
pub fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes no pointer and has no precondition; it locks each arena while it works there, and what is allocated stays.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    }

    #[test]
    fn what_is_free_goes_back_and_what_is_used_stays() {
        // Small blocks of which each sixty-fourth page is used stay with the allocator.
        let blocks: Vec<Vec<u8>> = (0..64 << 10).map(|number| vec![(number % 251) as u8; 1024]).collect();
        let kept: Vec<Vec<u8>> = blocks.into_iter().step_by(256).collect();
        let before = resident_kib();
        give_back_freed_memory();
        assert!(resident_kib() + (32 << 10) < before, "{before} KiB, then {}", resident_kib());
        assert!(kept.iter().enumerate().all(|(at, block)| block.iter().all(|&b| b == (at * 256 % 251) as u8)));
    }
}
