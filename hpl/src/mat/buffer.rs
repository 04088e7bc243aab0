//! Memory for matrices, panels and messages: zeroed and aligned; a refusal of the system is an error.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::sync::Accesses;

/// A huge page; buffers of at least this size start on such a boundary. Smaller under Miri, which is slow.
const HUGE_PAGE: usize = if cfg!(miri) { 32 << 10 } else { 2 << 20 };
/// A page.
const PAGE: usize = 4 << 10;

/// Buffers of fewer bytes are from the general allocator, which reuses their memory; larger ones are mappings, which return to the
/// system as soon as they are freed, for any rank of the process.
const MAP_FROM: usize = HUGE_PAGE / 2;

/// A cache line, where the elements of each buffer start.
const LINE: usize = 64;

/// The system refused the memory for a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a buffer of {needed_bytes} bytes; lower N or raise the memory limit")]
pub struct NoMemory {
    /// Size of the buffer.
    pub needed_bytes: usize,
}

/// Owned f64 elements, zero at first: the memory of matrices, panels, messages and of what threads work in.
///
/// Elements start at a cache line. Large buffers are mappings whose pages are mapped on first touch, so that the thread that fills a
/// part determines its NUMA node; they start at a page boundary, unshared ones of at least a huge page at a huge page boundary.
pub struct Buffer {
    data: NonNull<f64>,
    len: usize,
    memory: Backing,
    /// NUMA domain of the thread that fills it first, as far as its owner says.
    domain: usize,
    accesses: Accesses,
}

/// Where the memory of a buffer is from.
enum Backing {
    /// The general allocator, by this layout.
    Heap(Layout),
    /// The system.
    Mapped(Arc<Mapping>),
}

/// A memory mapping of one buffer, or shared by several.
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
    /// The first element, on a huge page boundary if the mapping has one.
    data: NonNull<f64>,
    /// Elements from there on.
    len: usize,
    huge_pages: bool,
    /// What a device keeps as long as the mapping exists.
    pinned: OnceLock<Option<Box<dyn Send + Sync>>>,
}

// SAFETY: a mapping is only an address range that lives as long as the value.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared access reads only its fields.
unsafe impl Sync for Mapping {}
// SAFETY: a buffer owns its plain numbers like a Vec<f64>: the buffers of one mapping do not overlap.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Mapping {
    /// Arguments as in [`Buffer::zeroed`].
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
        // SAFETY: shift < slack, so that `wanted` bytes from there are inside the mapping.
        let data = unsafe { start.byte_add(shift) };
        // Miri has no advice.
        if huge_pages && slack > 0 && !cfg!(miri) {
            // Advice only: a kernel without huge pages refuses it, and the buffer is usable without.
            // SAFETY: the range is inside the mapping; this advice changes no content.
            let _ = unsafe { madvise(data, wanted, MmapAdvise::MADV_HUGEPAGE) };
        }
        Ok(Self { start, bytes: bytes.get(), data: data.cast(), len, huge_pages, pinned: OnceLock::new() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        drop(self.pinned.take());
        // SAFETY: exactly the mapping made in `new`; all buffers of it have been dropped.
        // An error of unmapping one's own whole mapping could not be handled.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

impl Buffer {
    /// `len` zeros; `huge_pages` requests huge pages, which the system may ignore.
    ///
    /// # Errors
    /// [`NoMemory`] when the system refuses the mapping. The system may also grant it and kill the process on first
    /// touch: callers should compare with the available memory of [`crate::machine::host`] before.
    pub fn zeroed(len: usize, huge_pages: bool) -> Result<Self, NoMemory> {
        if len.checked_mul(size_of::<f64>()).is_some_and(|bytes| bytes < MAP_FROM) {
            return Ok(Self::small(len));
        }
        Self::mapped(len, huge_pages)
    }

    /// `len` zeros in memory that can be [dealt anew](Self::dealt).
    ///
    /// # Errors
    /// As of [`zeroed`](Self::zeroed).
    pub(crate) fn mapped(len: usize, huge_pages: bool) -> Result<Self, NoMemory> {
        let mapping = Arc::new(Mapping::new(len, huge_pages)?);
        Ok(Self { data: mapping.data, len, memory: Backing::Mapped(mapping), domain: 0, accesses: Accesses::default() })
    }

    /// `len` zeros, where a rank cannot go on without them.
    ///
    /// # Panics
    /// When there is no memory.
    pub(crate) fn of(len: usize) -> Self {
        Self::zeroed(len, false).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The first `len` elements, of arbitrary content; new memory if there are fewer.
    pub(crate) fn at_least(&mut self, len: usize) -> &mut [f64] {
        if self.len < len {
            // The old memory is freed first.
            *self = Self::default();
            *self = Self::of(len);
        }
        &mut self[..len]
    }

    /// `len` zeros of the general allocator, fewer than [`MAP_FROM`] bytes.
    fn small(len: usize) -> Self {
        let layout = Layout::array::<f64>(len.max(1)).and_then(|layout| layout.align_to(LINE));
        let layout = layout.expect("a small buffer");
        // SAFETY: the layout has at least one element.
        let data = unsafe { alloc_zeroed(layout) };
        let Some(data) = NonNull::new(data.cast()) else { handle_alloc_error(layout) };
        Self { data, len, memory: Backing::Heap(layout), domain: 0, accesses: Accesses::default() }
    }

    /// Divides the whole mapping of `self` into buffers of these lengths with arbitrary content; `None` if it is too small
    /// or another buffer still uses a part of it.
    pub(crate) fn divide(mut self, lens: &[usize]) -> Option<Vec<Self>> {
        let Backing::Mapped(mapping) = &mut self.memory else { return None };
        Arc::get_mut(mapping)?;
        let mut from = 0_usize;
        let mut range = |&len: &usize| {
            let at = from;
            from = from.checked_add(padded(len))?;
            // The last one is not padded.
            (at.checked_add(len)? <= mapping.len).then_some((at, len))
        };
        let ranges = lens.iter().map(&mut range).collect::<Option<Vec<_>>>()?;
        let buffer = |(at, len): (usize, usize)| {
            // SAFETY: at + len ≤ mapping.len; the ranges do not overlap, and no buffer but `self`, which ends here, has the mapping.
            let data = unsafe { mapping.data.add(at) };
            let memory = Backing::Mapped(Arc::clone(mapping));
            Self { data, len, memory, domain: self.domain, accesses: Accesses::default() }
        };
        Some(ranges.into_iter().map(buffer).collect())
    }

    /// Elements of a mapping for buffers of these lengths.
    pub(crate) fn shared_len(lens: &[usize]) -> usize {
        lens.iter().fold(0, |sum, &len| sum.saturating_add(padded(len)))
    }

    /// The same buffer, filled first by a thread of this NUMA domain.
    pub(crate) fn in_domain(mut self, domain: usize) -> Self {
        self.domain = domain;
        self
    }

    /// The NUMA domain that [`in_domain`](Self::in_domain) has said, else 0.
    pub(crate) fn domain(&self) -> usize {
        self.domain
    }

    /// Elements of the mapping of this buffer.
    pub(crate) fn mapped_len(&self) -> usize {
        match &self.memory {
            Backing::Heap(_) => self.len,
            Backing::Mapped(mapping) => mapping.len,
        }
    }

    /// Calls `pin` with start and bytes of the mapping of this buffer, if it has one and nobody did so before; the value that `pin`
    /// returns is dropped before the mapping is returned to the system.
    pub(crate) fn pin(&self, pin: impl FnOnce(*mut c_void, usize) -> Option<Box<dyn Send + Sync>>) {
        if let Backing::Mapped(mapping) = &self.memory {
            mapping.pinned.get_or_init(|| pin(mapping.start.as_ptr(), mapping.bytes));
        }
    }

    /// Whether huge pages were requested.
    pub(crate) fn huge_pages(&self) -> bool {
        matches!(&self.memory, Backing::Mapped(mapping) if mapping.huge_pages)
    }
}

/// Elements from one buffer to the next in the same mapping: whole pages, since whole huge pages could waste one per buffer.
fn padded(len: usize) -> usize {
    len.checked_next_multiple_of(PAGE / size_of::<f64>()).unwrap_or(usize::MAX)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Backing::Heap(layout) = self.memory {
            // SAFETY: allocated by this layout in `small`, and freed here only.
            unsafe { dealloc(self.data.as_ptr().cast(), layout) };
        }
    }
}

impl Default for Buffer {
    /// No elements.
    fn default() -> Self {
        Self::small(0)
    }
}

impl From<&[f64]> for Buffer {
    /// A copy, for a message of a few elements.
    ///
    /// # Panics
    /// When there is no memory.
    fn from(data: &[f64]) -> Self {
        let mut buffer = Self::of(data.len());
        buffer.copy_from_slice(data);
        buffer
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} elements)", self.len)
    }
}

impl Deref for Buffer {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        self.accesses.read();
        // SAFETY: len elements of its memory, zeroed at first or written since.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f64] {
        self.accesses.write();
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
    fn memory_is_divided_without_overlap() {
        let huge = HUGE_PAGE / 8;
        let lens = [huge + 3, 5, huge, 700];
        let whole = Buffer::zeroed(Buffer::shared_len(&lens), true).unwrap();
        let at = whole.as_ptr();
        let mut parts = whole.divide(&lens).unwrap();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), lens);
        assert!(parts[0].as_ptr() == at && parts[0].as_ptr().align_offset(HUGE_PAGE) == 0);
        for (value, part) in parts.iter_mut().enumerate() {
            part.fill(value as f64);
        }
        assert!(parts.iter().enumerate().all(|(value, part)| part.iter().all(|&x| x == value as f64)));
        let (last, first) = (parts.pop().unwrap(), parts.remove(0));
        assert!(first.divide(&[1]).is_none(), "other buffers still use a part of it");
        drop(parts);
        let again = last.divide(&[huge + 512, huge]).unwrap();
        assert!(again[0].as_ptr() == at && again[1].len() == huge);
        drop(again);
        assert!(Buffer::zeroed(10, false).unwrap().divide(&[11]).is_none(), "too small");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where the system would refuse")]
    fn too_large_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, 1 << 56] {
            let error = Buffer::zeroed(len, true).expect_err("no machine has this");
            assert!(error.to_string().contains("lower N"), "{error}");
        }
    }

    /// Time of the system to map a matrix of N = 8000 by two threads, in a new process:
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
