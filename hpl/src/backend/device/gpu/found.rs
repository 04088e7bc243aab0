//! Which devices a platform has, and how much of their memory is free.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use space::{DeviceChoice, DeviceRequest};

use super::super::DeviceError;
use super::compiler::KernelCompiler;
use super::driver::{Driver, Gpu, name, total_bytes};
use super::library::{GpuLibrary, GpuPlatform, LibraryPurpose};

/// What a context of this process takes of a device's memory at most.
const CONTEXT_BYTES: u64 = 1 << 30;

/// After this time no further device is asked for its free memory: contexts may take seconds each.
const ASKED_FOR: Duration = Duration::from_secs(20);

/// A device as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of it that are free beside a context of this process; `None` where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

impl GpuFacts {
    /// Bytes that other processes have of its memory, as far as they are more than a context of this one may take.
    pub fn used_by_others(&self) -> u64 {
        let free_bytes = self.free_bytes.unwrap_or(self.memory_bytes);
        self.memory_bytes.saturating_sub(free_bytes).saturating_sub(CONTEXT_BYTES)
    }
}

/// The devices of a platform whose driver, BLAS and compiler are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGpus {
    /// `cuda` or `hip`.
    pub platform: String,
    /// Version of the driver.
    pub driver: String,
    /// The libraries with their versions, where these are known.
    pub libraries: Vec<String>,
    /// The devices in the platform's order.
    pub devices: Vec<GpuFacts>,
}

impl FoundGpus {
    /// Looks for devices of CUDA, then of HIP: for each platform what was found, or why it cannot be used.
    pub fn look() -> [(&'static str, Result<Self, DeviceError>); 2] {
        GpuPlatform::ALL.map(|platform| (platform.name(), Self::of(platform)))
    }

    /// The devices that are used together, from the first on: up to one with less than half of its memory, such as that of a screen.
    pub fn in_use(&self) -> &[GpuFacts] {
        let first = self.devices.first().map_or(0, |device| device.memory_bytes);
        let alike = self.devices.iter().take_while(|device| device.memory_bytes >= first.div_ceil(2));
        &self.devices[..alike.count()]
    }

    /// The device of a request: for `auto` a GPU that can be used, else none.
    pub fn choose(request: DeviceRequest) -> DeviceChoice {
        match request {
            DeviceRequest::Only(device) => device,
            DeviceRequest::Auto if Self::of(GpuPlatform::Cuda).is_ok() => DeviceChoice::Cuda,
            DeviceRequest::Auto if Self::of(GpuPlatform::Hip).is_ok() => DeviceChoice::Hip,
            DeviceRequest::Auto => DeviceChoice::None,
        }
    }

    /// The same with the free memory of each device, on which a context is opened for a moment; it stays unknown where that fails, as
    /// on a device that another process has to itself.
    #[must_use]
    pub fn with_free_memory(mut self) -> Self {
        let Some(platform) = GpuPlatform::ALL.into_iter().find(|platform| platform.name() == self.platform) else {
            return self;
        };
        let begun = Instant::now();
        let free = |index: usize| Gpu::open(Driver::open(platform)?, index)?.memory_bytes();
        for (index, device) in self.devices.iter_mut().enumerate() {
            if begun.elapsed() < ASKED_FOR {
                device.free_bytes = free(index).ok().map(|(free_bytes, _)| free_bytes as u64);
            }
        }
        self
    }

    fn of(platform: GpuPlatform) -> Result<Self, DeviceError> {
        let driver = Driver::open(platform)?;
        let count = driver.devices()?;
        if count == 0 {
            return Err(platform.error("no device is visible"));
        }
        let device = |index: usize| -> Result<GpuFacts, DeviceError> {
            let device = index as i32;
            let (name, memory_bytes) = (name(&driver, device)?, total_bytes(&driver, device)?);
            Ok(GpuFacts { name, memory_bytes, free_bytes: None })
        };
        let devices = (0..count).map(device).collect::<Result<_, _>>()?;
        let newest = driver.newest_toolkit(0)?;
        let compiler = KernelCompiler::open(platform, newest)?;
        let blas = GpuLibrary::open(platform, LibraryPurpose::Blas, newest)?;
        let libraries =
            vec![driver.library.clone(), blas.name, format!("{} {}", compiler.library, compiler.version()?)];
        Ok(Self { platform: platform.to_string(), driver: driver.version()?, libraries, devices })
    }
}

impl fmt::Display for FoundGpus {
    /// `cuda: 2 × NVIDIA H100 (85.0 GB), driver 12.9, libcuda.so.1, libcublas.so.12, libnvrtc.so.12 12.9`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.platform)?;
        let alike = |a: &GpuFacts, b: &GpuFacts| (&a.name, a.memory_bytes) == (&b.name, b.memory_bytes);
        for (at, group) in self.devices.chunk_by(alike).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let GpuFacts { name, memory_bytes, .. } = &group[0];
            write!(f, "{comma}{} × {name} ({:.1} GB)", group.len(), *memory_bytes as f64 / 1e9)?;
        }
        let used = self.in_use().len();
        if used < self.devices.len() {
            let variable = if self.platform == GpuPlatform::Hip.name() { "HIP" } else { "CUDA" };
            write!(f, ", of which the first {used} are used ({variable}_VISIBLE_DEVICES chooses others)")?;
        }
        let others = self.in_use().iter().map(GpuFacts::used_by_others).max().unwrap_or(0);
        if others > 0 {
            write!(f, ", of whose memory other processes have up to {:.1} GB", others as f64 / 1e9)?;
        }
        write!(f, ", driver {}, {}", self.driver, self.libraries.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_a_screen_is_not_used_and_said() {
        let found = |gigabytes: &[u64]| {
            let device = |&g: &u64| {
                let memory_bytes = g * 1_000_000_000;
                GpuFacts { name: format!("GPU {g}"), memory_bytes, free_bytes: Some(memory_bytes - 500_000_000) }
            };
            let devices = gigabytes.iter().map(device).collect();
            FoundGpus { platform: "cuda".to_owned(), driver: "12.9".to_owned(), libraries: Vec::new(), devices }
        };
        assert_eq!(found(&[80, 80, 4]).in_use().len(), 2);
        let said = found(&[80, 4]).to_string();
        assert!(said.contains("GPU 4 (4.0 GB), of which the first 1 are used (CUDA_VISIBLE_DEVICES"), "{said}");
        assert!(found(&[80, 96]).in_use().len() == 2 && !found(&[80, 96]).to_string().contains("are used"));
        assert_eq!(found(&[]).in_use(), []);
        // The context that asks takes some of it.
        let mut shared = found(&[80, 80]);
        assert!(!shared.to_string().contains("other processes"), "{shared}");
        shared.devices[1].free_bytes = Some(48_926_258_176);
        let said = shared.to_string();
        assert!(said.contains("2 × GPU 80 (80.0 GB), of whose memory other processes have up to 30.0 GB"), "{said}");
    }
}
