//! Numbers that kernels read: rows of a swap, tables of the generator. They are copied to the device with the kernels that use them.

use std::sync::Arc;

use super::super::DeviceError;
use super::driver::Gpu;
use super::library::{Address, Handle};
use super::memory::{ELEMENT, GpuEvent, GpuMemory, PinnedMemory};

/// Lists that may be in use at the same time: more than there are parts of the sections that the host has queued.
const MOST: usize = 512;

/// Least elements of a list's memory.
const LEAST: usize = 4096;

/// Memory for lists, used again once the kernels that read it are complete.
#[derive(Default)]
pub(super) struct KernelLists(Vec<ListMemory>);

/// Memory of one list on host and device.
struct ListMemory {
    // Freed first, for which the driver completes what is queued.
    device: GpuMemory,
    host: PinnedMemory,
    /// The kernels that read it are complete.
    used: GpuEvent,
}

impl KernelLists {
    /// Copies `words` to the device and calls `work` with their address; what `work` queues on `stream` may read them.
    ///
    /// # Errors
    /// When there is no memory, or an operation fails.
    pub(super) fn with(
        &mut self,
        gpu: &Arc<Gpu>,
        stream: Handle,
        words: &[u64],
        work: impl FnOnce(Address) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let (mut host, device) = self.memory(gpu, words.len())?;
        host.words()[..words.len()].copy_from_slice(words);
        let (upload, bytes) = (gpu.driver.calls.upload, words.len() * ELEMENT);
        if bytes > 0 {
            // SAFETY: both sides have `bytes` bytes; the host's are kept and not written until the event below has happened.
            let status = unsafe { (upload.call)(device.address(0), host.element(0), bytes, stream) };
            gpu.check(upload.name, status)?;
        }
        work(device.address(0))?;
        let used = GpuEvent::record(gpu, stream)?;
        self.0.push(ListMemory { device, host, used });
        Ok(())
    }

    /// Memory that no kernel reads, for `len` elements.
    fn memory(&mut self, gpu: &Arc<Gpu>, len: usize) -> Result<(PinnedMemory, GpuMemory), DeviceError> {
        let is_free = |list: &ListMemory| Ok(list.host.len() >= len && list.used.has_happened()?);
        for at in 0..self.0.len() {
            if is_free(&self.0[at])? {
                let list = self.0.swap_remove(at);
                return Ok((list.host, list.device));
            }
        }
        if self.0.len() >= MOST {
            // The driver completes what is queued before it frees memory.
            self.0.remove(0);
        }
        let len = len.max(LEAST).next_power_of_two();
        Ok((PinnedMemory::new(gpu, len)?, GpuMemory::new(gpu, len)?))
    }
}
