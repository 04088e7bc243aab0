//! Memory of a device, memory of the host that the device can read, and events.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::super::{Block, DeviceError};
use super::driver::Gpu;
use super::library::{Address, Handle};

/// Bytes of an element.
pub(super) const ELEMENT: usize = size_of::<f64>();

/// Memory of a device, freed when dropped: the driver first completes what is queued.
pub(crate) struct GpuMemory {
    gpu: Arc<Gpu>,
    start: Address,
    /// Elements of eight bytes.
    len: usize,
}

impl GpuMemory {
    /// Memory for `len` elements.
    ///
    /// # Errors
    /// When the device has not enough.
    pub(super) fn new(gpu: &Arc<Gpu>, len: usize) -> Result<Self, DeviceError> {
        let (mut start, allocate) = (0, &gpu.driver.calls.allocate);
        // Both platforms refuse, or return null for, no bytes.
        let bytes = len.saturating_mul(ELEMENT).max(ELEMENT);
        // SAFETY: writes one address.
        let status = unsafe { (allocate.call)(&raw mut start, bytes) };
        gpu.check(allocate.name, status).map_err(|error| {
            let (free, total) = gpu.memory_bytes().unwrap_or_default();
            let sizes = [bytes, free, total].map(|bytes| bytes as f64 / 1e9);
            let [needed, free, total] = sizes;
            let reason =
                format!("no memory for {needed:.3} GB: {free:.3} of {total:.3} GB are free ({})", error.reason);
            DeviceError { reason, ..error }
        })?;
        Ok(Self { gpu: Arc::clone(gpu), start, len })
    }

    /// Address of element `at`.
    pub(super) fn address(&self, at: usize) -> Address {
        assert!(at <= self.len, "an element of the memory");
        self.start + (at * ELEMENT) as Address
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed only here; operations on it are queued by values that live shorter, and the driver
        // completes them first. An error was, or will be, returned by a wait.
        let _ = unsafe { (self.gpu.driver.calls.free.call)(self.start) };
    }
}

impl Block<'_, GpuMemory> {
    /// Whether it has no element.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// Address of the first element of a block that has elements, all of which are inside the memory.
    pub(super) fn address(&self) -> Address {
        assert!(!self.is_empty() && self.ld >= self.rows, "a block with elements");
        let last = self.at + (self.cols - 1) * self.ld + self.rows - 1;
        assert!(last < self.memory.len, "a block inside its memory");
        self.memory.address(self.at)
    }
}

/// Memory of the host that the device reads and writes by itself, zero at first.
pub(crate) struct PinnedMemory {
    gpu: Arc<Gpu>,
    start: *mut c_void,
    len: usize,
}

impl PinnedMemory {
    /// Memory for `len` elements.
    ///
    /// # Errors
    /// When the host has not enough.
    pub(super) fn new(gpu: &Arc<Gpu>, len: usize) -> Result<Self, DeviceError> {
        /// `CU_MEMHOSTALLOC_PORTABLE`, `hipHostMallocPortable`
        const PORTABLE: u32 = 1;
        let (mut start, allocate) = (std::ptr::null_mut(), &gpu.driver.calls.allocate_host);
        let bytes = len.saturating_mul(ELEMENT).max(ELEMENT);
        // SAFETY: writes one address.
        gpu.check(allocate.name, unsafe { (allocate.call)(&raw mut start, bytes, PORTABLE) })?;
        // SAFETY: `bytes` bytes from there are this value's own.
        unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { gpu: Arc::clone(gpu), start, len })
    }

    /// Address of element `at`.
    pub(super) fn element(&self, at: usize) -> *mut c_void {
        assert!(at <= self.len, "an element of the memory");
        // SAFETY: inside the allocation, or its end.
        unsafe { self.start.cast::<f64>().add(at).cast() }
    }

    /// Elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The elements, in use by this caller only: the host has waited for all copies from and to them.
    pub(super) fn elements(&mut self) -> PinnedElements<'_> {
        PinnedElements(self)
    }

    /// The same memory as numbers of 64 bits.
    pub(super) fn words(&mut self) -> &mut [u64] {
        // SAFETY: `len` elements of eight bytes, aligned to pages, zero at first; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.len) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed only here, after the device has executed all copies (see `GpuDevice::drop`).
        let _ = unsafe { (self.gpu.driver.calls.free_host.call)(self.start) };
    }
}

/// The elements of pinned memory.
pub(super) struct PinnedElements<'s>(&'s mut PinnedMemory);

impl Deref for PinnedElements<'_> {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        // SAFETY: `len` elements, aligned to pages, zero at first or written since.
        unsafe { std::slice::from_raw_parts(self.0.start.cast(), self.0.len) }
    }
}

impl DerefMut for PinnedElements<'_> {
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: as above; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.cast(), self.0.len) }
    }
}

/// Memory of the program that the device can read by itself as long as this value lives.
pub(super) struct PinnedRange {
    gpu: Arc<Gpu>,
    start: usize,
}

impl PinnedRange {
    /// Pins `bytes` bytes from `start` on; `None` where the system refuses: copies from there are slower then.
    ///
    /// # Safety
    /// The memory must be mapped as long as the value lives.
    pub(super) unsafe fn new(gpu: &Arc<Gpu>, start: *mut c_void, bytes: usize) -> Option<Self> {
        /// `CU_MEMHOSTREGISTER_PORTABLE`, `hipHostRegisterPortable`
        const PORTABLE: u32 = 1;
        // SAFETY: as the caller says.
        let status = unsafe { (gpu.driver.calls.pin_host.call)(start, bytes, PORTABLE) };
        (status == 0).then(|| Self { gpu: Arc::clone(gpu), start: start as usize })
    }
}

impl Drop for PinnedRange {
    fn drop(&mut self) {
        // Any thread may free the memory, also one that works with another device.
        self.gpu.while_current(|| {
            // SAFETY: pinned in `new`; the mapping still exists. An error leaves the pages pinned until the context ends.
            let _ = unsafe { (self.gpu.driver.calls.unpin_host.call)(self.start as *mut c_void) };
        });
    }
}

/// A point in a stream.
pub(crate) struct GpuEvent {
    gpu: Arc<Gpu>,
    pub(super) handle: Handle,
}

impl GpuEvent {
    /// The event that what is queued on `stream` so far is complete.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn record(gpu: &Arc<Gpu>, stream: Handle) -> Result<Self, DeviceError> {
        /// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`
        const NO_TIMES: u32 = 2;
        Self::with(gpu, stream, NO_TIMES)
    }

    /// The same, with its time.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn mark(gpu: &Arc<Gpu>, stream: Handle) -> Result<Self, DeviceError> {
        Self::with(gpu, stream, 0)
    }

    fn with(gpu: &Arc<Gpu>, stream: Handle, flags: u32) -> Result<Self, DeviceError> {
        let (mut handle, calls) = (0, &gpu.driver.calls);
        // SAFETY: writes one handle.
        gpu.check(calls.create_event.name, unsafe { (calls.create_event.call)(&raw mut handle, flags) })?;
        let event = Self { gpu: Arc::clone(gpu), handle };
        // SAFETY: event and stream exist.
        gpu.check(calls.record.name, unsafe { (calls.record.call)(handle, stream) })?;
        Ok(event)
    }

    /// Whether it has happened.
    ///
    /// # Errors
    /// When an operation before it failed.
    pub(super) fn has_happened(&self) -> Result<bool, DeviceError> {
        self.gpu.has_happened(self.handle)
    }
}

impl Gpu {
    /// Seconds from one event to another, both with times.
    ///
    /// # Errors
    /// When one has not happened, or an operation before it failed.
    pub(super) fn seconds_between(&self, from: Handle, to: Handle) -> Result<f64, DeviceError> {
        let (mut milliseconds, elapsed) = (0.0, self.driver.calls.elapsed);
        // SAFETY: writes one number; both events exist.
        self.check(elapsed.name, unsafe { (elapsed.call)(&raw mut milliseconds, from, to) })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for GpuEvent {
    fn drop(&mut self) {
        // SAFETY: created in `record`; the driver keeps an event that streams still wait for until they have.
        let _ = unsafe { (self.gpu.driver.calls.destroy_event.call)(self.handle) };
    }
}
