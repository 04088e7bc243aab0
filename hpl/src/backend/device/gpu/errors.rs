//! What users can do after an error of a driver.

use super::library::{GpuPlatform, Status};

/// `CUDA_ERROR_OUT_OF_MEMORY`, `hipErrorOutOfMemory`
pub(super) const NO_MEMORY: Status = 2;

/// Functions that allocate memory of the host.
const OF_THE_HOST: [&str; 2] = ["cuMemHostAlloc", "hipHostMalloc"];

/// What to do after an error of the function `name`; both platforms have the same numbers for these.
pub(super) fn way_out(platform: GpuPlatform, name: &str, status: Status) -> Option<&'static str> {
    Some(match status {
        NO_MEMORY if OF_THE_HOST.contains(&name) => "lower N, or end what else uses the memory of the host",
        NO_MEMORY => "lower N, or end what else uses the device's memory",
        3 | 34 | 35 | 222 | 803 | 804 => {
            "driver and libraries do not fit each other, or the driver is not loaded: see its kernel log"
        }
        802 if platform == GpuPlatform::Cuda => {
            "the system is not ready for its devices: where these are connected by NVSwitch, start nvidia-fabricmanager"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_that_is_short_is_that_which_was_asked_for() {
        let of = |name| way_out(GpuPlatform::Cuda, name, NO_MEMORY).unwrap();
        assert!(of("cuMemHostAlloc").ends_with("the memory of the host"), "{}", of("cuMemHostAlloc"));
        assert!(of("cuMemAlloc_v2").ends_with("the device's memory"), "{}", of("cuMemAlloc_v2"));
        assert_eq!(way_out(GpuPlatform::Hip, "hipHostMalloc", NO_MEMORY), Some(of("cuMemHostAlloc")));
    }

    #[test]
    fn a_driver_that_does_not_start_has_a_way_out() {
        let of = |platform, status| way_out(platform, "cuInit", status);
        assert!(of(GpuPlatform::Cuda, 802).unwrap().contains("nvidia-fabricmanager"));
        assert_eq!(of(GpuPlatform::Cuda, 804), of(GpuPlatform::Cuda, 803));
        assert!(of(GpuPlatform::Cuda, 804).is_some() && of(GpuPlatform::Hip, 802).is_none());
    }
}
