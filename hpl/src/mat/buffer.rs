//! Memory for matrices: zeroed, aligned, an error when it is not there.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// A huge page; buffers of at least this size start on such a boundary.
const HUGE_PAGE: usize = 2 << 20;

/// Blocks of the general allocator from this size on go back to the system when they are freed.
#[cfg(target_env = "gnu")]
const LARGE_BLOCK: i32 = 1 << 20;

/// Lets the general allocator give large blocks back as soon as they are freed. On its own the C library of GNU raises
/// the size from which it does so to that of the largest block freed, and then keeps such blocks for the thread that
/// had them, where the other ranks of the process cannot use them.
pub(crate) fn give_large_blocks_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a parameter of the allocator, under its own lock.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
    }
}

/// The system has not enough memory for a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a buffer of {needed_bytes} bytes; lower N or raise the memory limit")]
pub struct NoMemory {
    /// Size of the buffer.
    pub needed_bytes: usize,
}

/// Owned f64 elements, zero at first.
///
/// Pages are mapped on first touch, so that the thread that fills a part decides on which NUMA node it lies.
/// Elements start at a page boundary, or at a huge page boundary when they fill one.
pub struct Buffer {
    data: NonNull<f64>,
    len: usize,
    huge_pages: bool,
    mapping: NonNull<c_void>,
    mapped_bytes: usize,
}

// SAFETY: a buffer owns its plain numbers like a Vec<f64>.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeros; `huge_pages` asks the system for huge pages under them, which it may ignore.
    ///
    /// # Errors
    /// [`NoMemory`] when the system refuses the mapping. It may also grant it and end the process on first
    /// touch: who wants to be safe compares with [`crate::host`]'s available memory before.
    pub fn zeroed(len: usize, huge_pages: bool) -> Result<Self, NoMemory> {
        let bytes = len.checked_mul(size_of::<f64>()).ok_or(NoMemory { needed_bytes: usize::MAX })?;
        let refused = NoMemory { needed_bytes: bytes };
        let slack = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        // An empty buffer maps one byte, which keeps `drop` free of special cases.
        let mapped = NonZeroUsize::new(bytes.checked_add(slack).ok_or(refused)?.max(1)).expect("at least 1");
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that exists.
        let mapping = unsafe { mmap_anonymous(None, mapped, protection, flags) }.map_err(|_| refused)?;
        let shift = if slack > 0 { mapping.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        // SAFETY: shift < slack, so that `bytes` bytes from there lie inside the mapping.
        let data = unsafe { mapping.byte_add(shift) };
        if huge_pages && slack > 0 {
            // Advice only: a kernel built without huge pages refuses it, and the buffer is as good without.
            // SAFETY: the range lies inside the mapping; this advice changes no content.
            let _ = unsafe { madvise(data, bytes, MmapAdvise::MADV_HUGEPAGE) };
        }
        Ok(Self { data: data.cast(), len, huge_pages, mapping, mapped_bytes: mapped.get() })
    }

    /// Whether it has asked for huge pages.
    pub(crate) fn huge_pages(&self) -> bool {
        self.huge_pages
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `zeroed`; the borrows of its elements have ended.
        // Unmapping one's own whole mapping cannot fail in a way that could be acted on.
        let _ = unsafe { munmap(self.mapping, self.mapped_bytes) };
    }
}

impl Deref for Buffer {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        // SAFETY: len elements inside the mapping, page-aligned, zeroed by the system or written since.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: as in `deref`; the buffer is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_aligned_writable() {
        for len in [0, 1, 511, 513, HUGE_PAGE / 8 - 1, HUGE_PAGE / 8, 3 * HUGE_PAGE / 8 + 5] {
            for huge_pages in [false, true] {
                let mut buffer = Buffer::zeroed(len, huge_pages).unwrap();
                assert_eq!(buffer.len(), len);
                assert!(buffer.iter().all(|&v| v == 0.0));
                let wanted = if len * 8 >= HUGE_PAGE { HUGE_PAGE } else { 64 };
                assert_eq!(buffer.as_ptr().align_offset(wanted), 0);
                buffer.fill(1.5);
                assert_eq!(buffer.iter().sum::<f64>(), 1.5 * len as f64);
            }
        }
    }

    #[test]
    fn too_large_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, 1 << 56] {
            let error = Buffer::zeroed(len, true).err().expect("no machine has this");
            assert!(error.to_string().contains("lower N"), "{error}");
        }
    }

    /// What the system alone takes to map a matrix of N = 8000 by two threads, in a new process:
    /// `cargo test --release -p hpl --lib -- --ignored --nocapture cost_of_first_touch`.
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_first_touch() {
        for huge_pages in [true, true, false] {
            let mut buffer = Buffer::zeroed(8000 * 8001, huge_pages).unwrap();
            let clock = std::time::Instant::now();
            std::thread::scope(|scope| {
                for half in buffer.chunks_mut(4000 * 8001) {
                    // One element of each small page.
                    scope.spawn(|| half.iter_mut().step_by(512).for_each(|element| *element = 1.0));
                }
            });
            println!("huge pages {huge_pages}: {:.3} s", clock.elapsed().as_secs_f64());
        }
    }
}
