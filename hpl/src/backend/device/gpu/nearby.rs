//! The cores beside each device of a platform.

use std::path::Path;

use super::driver::{Driver, pci_address};
use super::library::GpuPlatform;
use crate::machine::host::pci_cores;

/// For each device of a platform those of `cores` that are on its NUMA node, by the files of the system below `root`; empty where that does not say.
/// No devices where the platform cannot be used.
pub(crate) fn nearby_cores(platform: GpuPlatform, root: &Path, cores: &[usize]) -> Vec<Vec<usize>> {
    let Ok(driver) = Driver::open(platform) else { return Vec::new() };
    let beside = |device: usize| {
        let near = pci_address(&driver, device as i32).ok().and_then(|address| pci_cores(root, &address));
        let near = near.unwrap_or_default();
        cores.iter().copied().filter(|core| near.contains(core)).collect()
    };
    (0..driver.devices().unwrap_or(0)).map(beside).collect()
}
