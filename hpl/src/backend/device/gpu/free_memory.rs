//! The memory of each device of a platform that nothing uses.

use std::fs;
use std::path::Path;

use super::driver::{Driver, pci_address, total_bytes};
use super::library::GpuPlatform;
use crate::machine::nvml::Nvml;

/// Free bytes of each device of a platform, without a context of this process on it: by NVML, of AMD's devices by the files of the system below
/// `root`; none where these do not say.
pub(super) fn free_bytes(platform: GpuPlatform, root: &Path) -> Vec<Option<u64>> {
    let Ok(driver) = Driver::open(platform) else { return Vec::new() };
    let nvml = match platform {
        GpuPlatform::Cuda => Nvml::below(root).ok().flatten(),
        GpuPlatform::Hip => None,
    };
    let free = |device: i32| {
        let address = pci_address(&driver, device).ok()?;
        let all = total_bytes(&driver, device).ok()?;
        let free = match platform {
            GpuPlatform::Cuda => nvml.as_ref()?.free_bytes_at(&address)?,
            GpuPlatform::Hip => all.saturating_sub(used_bytes(root, &address)?),
        };
        Some(free.min(all))
    };
    (0..driver.devices().unwrap_or(0)).map(|device| free(device as i32)).collect()
}

/// What of the memory of the AMD device at this PCI address is in use, by the files of its kernel driver.
fn used_bytes(root: &Path, address: &str) -> Option<u64> {
    let file = root.join("sys/bus/pci/devices").join(address).join("mem_info_vram_used");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_in_use_is_that_at_the_address() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/pci/devices/0000:c1:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("mem_info_vram_used"), "17179869184\n").unwrap();
        assert_eq!(used_bytes(root.path(), "0000:c1:00.0"), Some(16 << 30));
        assert_eq!(used_bytes(root.path(), "0000:c2:00.0"), None);
    }
}
