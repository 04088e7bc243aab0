//! Memory for matrices: zeroed, aligned, an error when it is not there.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// A huge page; buffers of at least this size start on such a boundary.
const HUGE_PAGE: usize = 2 << 20;
/// A page.
const PAGE: usize = 4 << 10;

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
/// Elements start at a page boundary; those of memory that is not shared at a huge page boundary when they fill one.
pub struct Buffer {
    data: NonNull<f64>,
    len: usize,
    mapping: Arc<Mapping>,
}

/// Memory of the system that one buffer has, or several share.
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
    /// The first element, on a huge page boundary where there is one.
    data: NonNull<f64>,
    /// Elements from there on.
    len: usize,
    huge_pages: bool,
}

// SAFETY: a mapping is only an address range that ends with it.
unsafe impl Send for Mapping {}
// SAFETY: as above; who shares it reads nothing but its fields.
unsafe impl Sync for Mapping {}
// SAFETY: a buffer owns its plain numbers like a Vec<f64>: the buffers of one mapping do not overlap.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Mapping {
    /// As of [`Buffer::zeroed`].
    fn new(len: usize, huge_pages: bool) -> Result<Self, NoMemory> {
        let wanted = len.checked_mul(size_of::<f64>()).ok_or(NoMemory { needed_bytes: usize::MAX })?;
        let refused = NoMemory { needed_bytes: wanted };
        let slack = if wanted >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        // An empty buffer maps one byte, which keeps `drop` free of special cases.
        let bytes = NonZeroUsize::new(wanted.checked_add(slack).ok_or(refused)?.max(1)).expect("at least 1");
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that exists.
        let start = unsafe { mmap_anonymous(None, bytes, protection, flags) }.map_err(|_| refused)?;
        let shift = if slack > 0 { start.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        // SAFETY: shift < slack, so that `wanted` bytes from there lie inside the mapping.
        let data = unsafe { start.byte_add(shift) };
        if huge_pages && slack > 0 {
            // Advice only: a kernel built without huge pages refuses it, and the buffer is as good without.
            // SAFETY: the range lies inside the mapping; this advice changes no content.
            let _ = unsafe { madvise(data, wanted, MmapAdvise::MADV_HUGEPAGE) };
        }
        Ok(Self { start, bytes: bytes.get(), data: data.cast(), len, huge_pages })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; buffers hold it as long as they are there.
        // Unmapping one's own whole mapping cannot fail in a way that could be acted on.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

impl Buffer {
    /// `len` zeros; `huge_pages` asks the system for huge pages under them, which it may ignore.
    ///
    /// # Errors
    /// [`NoMemory`] when the system refuses the mapping. It may also grant it and end the process on first
    /// touch: who wants to be safe compares with [`crate::machine::host`]'s available memory before.
    pub fn zeroed(len: usize, huge_pages: bool) -> Result<Self, NoMemory> {
        let mapping = Arc::new(Mapping::new(len, huge_pages)?);
        Ok(Self { data: mapping.data, len, mapping })
    }

    /// The memory of `self` dealt anew, in buffers of these lengths with arbitrary content; `None` where it is too small
    /// or another buffer still has some of it.
    pub(crate) fn dealt(self, lens: &[usize]) -> Option<Vec<Self>> {
        let mut mapping = self.mapping;
        Arc::get_mut(&mut mapping)?;
        let mut from = 0_usize;
        let mut place = |&len: &usize| {
            let at = from;
            from = from.checked_add(padded(len))?;
            // The last one is not padded.
            (at.checked_add(len)? <= mapping.len).then_some((at, len))
        };
        let places = lens.iter().map(&mut place).collect::<Option<Vec<_>>>()?;
        let buffer = |(at, len): (usize, usize)| {
            // SAFETY: at + len ≤ mapping.len; the places do not overlap, and no other buffer has the mapping.
            let data = unsafe { mapping.data.add(at) };
            Self { data, len, mapping: Arc::clone(&mapping) }
        };
        Some(places.into_iter().map(buffer).collect())
    }

    /// Elements of the memory that buffers of these lengths share.
    pub(crate) fn together(lens: &[usize]) -> usize {
        lens.iter().fold(0, |sum, &len| sum.saturating_add(padded(len)))
    }

    /// Elements of the memory that it has, or shares.
    pub(crate) fn mapped_len(&self) -> usize {
        self.mapping.len
    }

    /// Whether it has asked for huge pages.
    pub(crate) fn huge_pages(&self) -> bool {
        self.mapping.huge_pages
    }
}

/// Elements from one buffer to the next in the same memory: whole pages. Whole huge pages would take up to one more for each.
fn padded(len: usize) -> usize {
    len.checked_next_multiple_of(PAGE / size_of::<f64>()).unwrap_or(usize::MAX)
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
    fn memory_is_dealt_anew_and_to_no_two() {
        let huge = HUGE_PAGE / 8;
        let lens = [huge + 3, 5, huge, 700];
        let whole = Buffer::zeroed(Buffer::together(&lens), true).unwrap();
        let at = whole.as_ptr();
        let mut parts = whole.dealt(&lens).unwrap();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), lens);
        assert!(parts[0].as_ptr() == at && parts[0].as_ptr().align_offset(HUGE_PAGE) == 0);
        for (value, part) in parts.iter_mut().enumerate() {
            part.fill(value as f64);
        }
        assert!(parts.iter().enumerate().all(|(value, part)| part.iter().all(|&x| x == value as f64)));
        let (last, first) = (parts.pop().unwrap(), parts.remove(0));
        assert!(first.dealt(&[1]).is_none(), "others still have some of it");
        drop(parts);
        let again = last.dealt(&[huge + 512, huge]).unwrap();
        assert!(again[0].as_ptr() == at && again[1].len() == huge);
        drop(again);
        assert!(Buffer::zeroed(10, false).unwrap().dealt(&[11]).is_none(), "too small");
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
