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

/// From now on the allocator of this process keeps little of what is freed at the end of the memory of a thread, where
/// [`give_back_freed_memory`] does not look. The bounds are those that glibc begins with; by itself it raises them with the blocks that are
/// freed, to 64 MiB. Elsewhere it does nothing.
pub fn keep_little_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and changes no block; it locks the allocator while it works.
    unsafe {
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, 128 << 10);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// One test at a time: each looks at the memory of the process.
    static ALONE: Mutex<()> = Mutex::new(());

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    }

    #[test]
    fn what_is_free_goes_back_and_what_is_used_stays() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Small blocks of which each sixty-fourth page is used stay with the allocator.
        let blocks: Vec<Vec<u8>> = (0..64 << 10).map(|number| vec![(number % 251) as u8; 1024]).collect();
        let kept: Vec<Vec<u8>> = blocks.into_iter().step_by(256).collect();
        let before = resident_kib();
        give_back_freed_memory();
        assert!(resident_kib() + (32 << 10) < before, "{before} KiB, then {}", resident_kib());
        assert!(kept.iter().enumerate().all(|(at, block)| block.iter().all(|&b| b == (at * 256 % 251) as u8)));
    }
    #[test]
    fn little_is_kept_of_what_a_thread_has_freed() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let block = |kib: usize| std::hint::black_box(vec![1_u8; kib << 10]);
        keep_little_freed_memory();
        // Without the bound, a block that was freed raises it to twice its size.
        drop(block(30 << 10));
        let work = || drop((0..512).map(|_| block(60)).collect::<Vec<_>>());
        let before = resident_kib();
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
        let after = resident_kib();
        assert!(after < before + (4 << 10), "{before} KiB, then {after}");
    }
}
