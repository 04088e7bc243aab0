//! What users can do after an error of a driver.

use super::library::{GpuPlatform, Status};

/// `CUDA_ERROR_OUT_OF_MEMORY`, `hipErrorOutOfMemory`
pub(super) const NO_MEMORY: Status = 2;

/// What to do after an error; both platforms have the same numbers for these.
pub(super) fn way_out(platform: GpuPlatform, status: Status) -> Option<&'static str> {
    Some(match status {
        NO_MEMORY => "lower N, or end what else uses the device's memory",
        3 | 34 | 35 | 803 => {
            "driver and libraries do not fit each other, or the driver is not loaded: see its kernel log"
        }
        101 => platform.pick(
            "there is no such device, or it cannot be used: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
            "there is no device, or it cannot be used: look at rocminfo, ROCR_VISIBLE_DEVICES and the group render",
        ),
        46 | 219 => "the device is in use by another process, in exclusive mode, or shut off: free it, or use another",
        100 => platform.pick(
            "no device is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
            "no device is visible: look at rocminfo, ROCR_VISIBLE_DEVICES and the group render",
        ),
        200 | 209 | 218 => "the kernels were compiled for another device: report this",
        214 | 710 | 719 | 721 | 700 => {
            "the device may have a fault: look at the kernel log and its ECC counters, reset the device, run again"
        }
        999 => "see the kernel log of the driver",
        _ => return None,
    })
}
