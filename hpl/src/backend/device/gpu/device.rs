//! A GPU of one rank: its streams, and what they have in use.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use super::super::{Block, DeviceError, HostBlock, Stream};
use super::blas::GpuBlas;
use super::copies::{CopySide, CudaCopy};
use super::driver::{Driver, Gpu, OwnCalls};
use super::kernels::{GpuKernel, GpuKernels, LaunchSize};
use super::library::{GpuPlatform, Handle};
use super::lists::KernelLists;
use super::memory::{ELEMENT, GpuEvent, GpuMemory, PinnedMemory, PinnedRange};
use crate::comm::Msg;

/// A GPU with its streams. An operation that fails keeps later ones from being queued; the next wait of the host returns its error.
pub(crate) struct GpuDevice {
    // Dropped in this order, after `drop` has waited for the device.
    lists: RefCell<KernelLists>,
    /// Messages that are being copied to the device.
    sent: RefCell<VecDeque<(GpuEvent, Msg)>>,
    /// For each stream one, as the memory of a handle is in use as long as its calls.
    blas: [GpuBlas; Stream::ALL.len()],
    kernels: GpuKernels,
    streams: [Handle; Stream::ALL.len()],
    /// Blocks of threads that are on the device at the same time, also if other ranks have as many.
    pub(super) most_blocks: usize,
    failure: RefCell<Option<DeviceError>>,
    pub(super) gpu: Arc<Gpu>,
}

impl GpuDevice {
    /// The device of the `place`-th rank of a host: ranks use its devices in turn, `ranks` of them in this process.
    ///
    /// # Errors
    /// When driver, BLAS or compiler are missing or fail, or there is no device.
    pub(crate) fn open(platform: GpuPlatform, place: usize, ranks: usize) -> Result<Self, DeviceError> {
        let driver = Driver::open(platform)?;
        let devices = driver.devices()?;
        if devices == 0 {
            // What the driver itself says where it calls this an error.
            driver.check(driver.calls.device_count.name, 100, "")?;
        }
        let gpu = Gpu::open(driver, place % devices.max(1))?;
        let most_blocks = (gpu.multiprocessors()? / ranks.div_ceil(devices.max(1)).max(1)).max(1);
        let blas = [GpuBlas::open(&gpu)?, GpuBlas::open(&gpu)?, GpuBlas::open(&gpu)?];
        let kernels = GpuKernels::new(&gpu)?;
        let mut device = Self {
            lists: RefCell::default(),
            sent: RefCell::default(),
            blas,
            kernels,
            streams: [0; Stream::ALL.len()],
            most_blocks,
            failure: RefCell::default(),
            gpu,
        };
        device.create_streams()?;
        Ok(device)
    }

    /// Updates have the lowest priority: what the host waits for goes first.
    fn create_streams(&mut self) -> Result<(), DeviceError> {
        /// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`
        const NON_BLOCKING: u32 = 1;
        let calls = &self.gpu.driver.calls;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: writes two ints.
        let status = unsafe { (calls.priorities.call)(&raw mut least, &raw mut greatest) };
        self.gpu.check(calls.priorities.name, status)?;
        for stream in Stream::ALL {
            let priority = if stream == Stream::Main { least } else { greatest };
            let handle = &raw mut self.streams[stream as usize];
            // SAFETY: writes one handle.
            let status = unsafe { (calls.create_stream.call)(handle, NON_BLOCKING, priority) };
            self.gpu.check(calls.create_stream.name, status)?;
        }
        Ok(())
    }

    /// The BLAS for calls on `stream`.
    pub(super) fn blas_of(&self, stream: Stream) -> &GpuBlas {
        &self.blas[stream as usize]
    }

    /// The platform's stream.
    pub(super) fn handle(&self, stream: Stream) -> Handle {
        self.streams[stream as usize]
    }

    /// Queues `work`, unless an operation has failed.
    pub(super) fn queue(&self, work: impl FnOnce() -> Result<(), DeviceError>) {
        if self.failure.borrow().is_none()
            && let Err(error) = work()
        {
            self.failure.replace(Some(error));
        }
    }

    /// Success, or the error of the first operation that failed.
    pub(super) fn outcome(&self, outcome: Result<(), DeviceError>) -> Result<(), DeviceError> {
        match &*self.failure.borrow() {
            Some(error) => Err(error.clone()),
            None => outcome,
        }
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// As of [`GpuKernels::launch`].
    pub(super) unsafe fn launch(&self, stream: Stream, kernel: GpuKernel, size: LaunchSize, arguments: &[u64]) {
        // SAFETY: as the caller says.
        self.queue(|| unsafe { self.kernels.launch(self.handle(stream), kernel, size, arguments) });
    }

    /// Queues a kernel that reads `words`, whose address is its first argument.
    ///
    /// # Safety
    /// As of [`GpuKernels::launch`].
    pub(super) unsafe fn launch_with(
        &self,
        stream: Stream,
        words: &[u64],
        kernel: GpuKernel,
        size: LaunchSize,
        arguments: impl Fn(u64) -> Vec<u64>,
    ) {
        let handle = self.handle(stream);
        self.queue(|| {
            self.lists.borrow_mut().with(&self.gpu, handle, words, |address| {
                // SAFETY: as the caller says.
                unsafe { self.kernels.launch(handle, kernel, size, &arguments(address)) }
            })
        });
    }

    /// Queues the copy of a part of a message, which is kept until it is copied.
    pub(super) fn send(&self, stream: Stream, from: HostBlock, to: Block<'_, GpuMemory>) -> Result<(), DeviceError> {
        let HostBlock { msg, at, ld } = from;
        let (buffer, range) = msg.parts();
        let last = at + (to.cols - 1) * ld.max(to.rows) + to.rows;
        assert!(ld >= to.rows || to.cols == 1, "columns do not overlap");
        assert!(range.start + last <= range.end, "a part of the message");
        buffer.pin(|start, bytes| {
            // SAFETY: the buffer keeps the value as long as its memory is mapped.
            let pinned = unsafe { PinnedRange::new(&self.gpu, start, bytes) };
            pinned.map(|pinned| Box::new(pinned) as Box<dyn Send + Sync>)
        });
        let start = std::ptr::from_ref(&msg[at]).cast_mut().cast();
        let handle = self.handle(stream);
        // SAFETY: inside the message, which nobody writes, and which `sent` keeps until the event has happened.
        unsafe { self.copy(handle, CopySide::Host(start, ld * ELEMENT), device_side(to), (to.rows, to.cols)) }?;
        let copied = GpuEvent::record(&self.gpu, handle)?;
        let mut sent = self.sent.borrow_mut();
        sent.push_back((copied, msg));
        while let Some((copied, _)) = sent.front()
            && copied.has_happened()?
        {
            sent.pop_front();
        }
        Ok(())
    }

    /// Queues the copy of a block to pinned memory, from element `at` on with leading dimension `ld`.
    pub(super) fn receive(
        &self,
        stream: Stream,
        from: Block<'_, GpuMemory>,
        to: &PinnedMemory,
        at: usize,
        ld: usize,
    ) -> Result<(), DeviceError> {
        let last = at + (from.cols - 1) * ld.max(from.rows) + from.rows;
        assert!((ld >= from.rows || from.cols == 1) && last <= to.len(), "a part of the memory");
        let side = CopySide::Host(to.element(at), ld * ELEMENT);
        // SAFETY: inside the pinned memory, which its owner does not use before it has waited.
        unsafe { self.copy(self.handle(stream), device_side(from), side, (from.rows, from.cols)) }
    }

    /// Queues a copy of `rows × cols` elements between host and device: in one piece where there are no gaps, as the pitch of
    /// columns has a limit of 2 GiB.
    ///
    /// # Safety
    /// As of [`Self::copy_columns`].
    unsafe fn copy(
        &self,
        stream: Handle,
        from: CopySide,
        to: CopySide,
        (rows, cols): (usize, usize),
    ) -> Result<(), DeviceError> {
        let (calls, bytes) = (&self.gpu.driver.calls, rows * ELEMENT);
        let dense = |pitch: usize| cols == 1 || pitch == bytes;
        // SAFETY: as the caller says.
        let (name, status) = unsafe {
            match (from, to) {
                (CopySide::Host(from, from_pitch), CopySide::Device(to, to_pitch))
                    if dense(from_pitch) && dense(to_pitch) =>
                {
                    (calls.upload.name, (calls.upload.call)(to, from, bytes * cols, stream))
                }
                (CopySide::Device(from, from_pitch), CopySide::Host(to, to_pitch))
                    if dense(from_pitch) && dense(to_pitch) =>
                {
                    (calls.download.name, (calls.download.call)(to, from, bytes * cols, stream))
                }
                _ => return self.copy_columns(stream, from, to, (bytes, cols)),
            }
        };
        self.gpu.check(name, status)
    }

    /// Queues a copy of `cols` columns of `bytes` bytes between host and device on `stream`.
    ///
    /// # Errors
    /// When the driver refuses it.
    ///
    /// # Safety
    /// All columns must be in memory that exists, and that on the host in memory that nobody else writes, or reads where it is the
    /// target, until the stream has executed the copy.
    unsafe fn copy_columns(
        &self,
        stream: Handle,
        from: CopySide,
        to: CopySide,
        (bytes, cols): (usize, usize),
    ) -> Result<(), DeviceError> {
        let (name, status) = match &self.gpu.driver.own {
            OwnCalls::Cuda { copy, .. } => {
                let order = CudaCopy::new(from, to, (bytes, cols));
                // SAFETY: the driver reads the struct before it returns; the rest is said by the caller.
                (copy.name, unsafe { (copy.call)(&raw const order, stream) })
            }
            OwnCalls::Hip { copy, .. } => {
                // hipMemcpyHostToDevice, hipMemcpyDeviceToHost
                let kind = if matches!(from, CopySide::Host(..)) { 1 } else { 2 };
                let ((from, from_pitch), (to, to_pitch)) = (from.hip(), to.hip());
                // SAFETY: said by the caller.
                (copy.name, unsafe { (copy.call)(to, to_pitch, from, from_pitch, bytes, cols, kind, stream) })
            }
        };
        self.gpu.check(name, status)
    }

    /// The host waits for all streams.
    pub(super) fn wait_for_all(&self) -> Result<(), DeviceError> {
        let synchronize = &self.gpu.driver.calls.synchronize;
        // SAFETY: no memory is passed.
        self.gpu.check(synchronize.name, unsafe { (synchronize.call)() })
    }
}

/// The columns of a block.
fn device_side(block: Block<'_, GpuMemory>) -> CopySide {
    CopySide::Device(block.address(), block.ld * ELEMENT)
}

impl Drop for GpuDevice {
    /// Waits for what is queued, so that memory in use is not freed; after an error of the device nothing is executed any more.
    fn drop(&mut self) {
        let _ = self.wait_for_all();
        for stream in self.streams.into_iter().filter(|&stream| stream != 0) {
            // SAFETY: created in `open`, and idle. An error could not be handled.
            let _ = unsafe { (self.gpu.driver.calls.destroy_stream.call)(stream) };
        }
    }
}
