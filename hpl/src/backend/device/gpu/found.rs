//! Which devices a platform has, without use of any.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use space::{DeviceChoice, DeviceRequest};

use super::super::DeviceError;
use super::compiler::KernelCompiler;
use super::driver::{Driver, name, total_bytes};
use super::free_memory::free_bytes;
use super::library::{GpuLibrary, GpuPlatform, LibraryPurpose};

/// A device as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of it that nothing uses; none where nothing says.
    #[serde(default)]
    pub free_bytes: Option<u64>,
}

impl GpuFacts {
    /// Name and memory, `NVIDIA H100 (85.0 GB)`; where other processes have more than a twentieth of that, `NVIDIA H100 (85.0 GB, 60.2 GB free)`.
    fn words(&self) -> String {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let (name, all) = (&self.name, gigabytes(self.memory_bytes));
        match self.free_bytes.map(gigabytes) {
            Some(free) if free < 0.95 * all => format!("{name} ({all:.1} GB, {free:.1} GB free)"),
            _ => format!("{name} ({all:.1} GB)"),
        }
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
    /// Looks for devices of CUDA, then of HIP: for each platform what was found, with the free memory, or why it cannot be used.
    pub fn look() -> [(&'static str, Result<Self, DeviceError>); 2] {
        GpuPlatform::ALL.map(|platform| {
            let found = Self::of(platform).map(|mut found| {
                let free = free_bytes(platform, Path::new("/"));
                found.devices.iter_mut().zip(free).for_each(|(device, free)| device.free_bytes = free);
                found
            });
            (platform.name(), found)
        })
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
        let devices: Vec<String> = self.devices.iter().map(GpuFacts::words).collect();
        for (at, group) in devices.chunk_by(|a, b| a == b).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} × {}", group.len(), group[0])?;
        }
        let used = self.in_use().len();
        if used < self.devices.len() {
            let variable = if self.platform == GpuPlatform::Hip.name() { "HIP" } else { "CUDA" };
            write!(f, ", of which the first {used} are used ({variable}_VISIBLE_DEVICES chooses others)")?;
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
            let device =
                |&g: &u64| GpuFacts { name: format!("GPU {g}"), memory_bytes: g * 1_000_000_000, free_bytes: None };
            let devices = gigabytes.iter().map(device).collect();
            FoundGpus { platform: "cuda".to_owned(), driver: "12.9".to_owned(), libraries: Vec::new(), devices }
        };
        assert_eq!(found(&[80, 80, 4]).in_use().len(), 2);
        let said = found(&[80, 4]).to_string();
        assert!(said.contains("GPU 4 (4.0 GB), of which the first 1 are used (CUDA_VISIBLE_DEVICES"), "{said}");
        assert!(found(&[80, 96]).in_use().len() == 2 && !found(&[80, 96]).to_string().contains("are used"));
        assert_eq!(found(&[]).in_use(), []);
    }

    #[test]
    fn memory_that_others_use_is_said() {
        let device = |free: u64| GpuFacts {
            name: "GPU".to_owned(),
            memory_bytes: 80_000_000_000,
            free_bytes: Some(free * 1_000_000_000),
        };
        let devices = vec![device(79), device(78), device(60)];
        let found =
            FoundGpus { platform: "cuda".to_owned(), driver: "12.9".to_owned(), libraries: Vec::new(), devices };
        let said = found.to_string();
        assert!(said.contains("cuda: 2 × GPU (80.0 GB), 1 × GPU (80.0 GB, 60.0 GB free), driver"), "{said}");
        let told = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<FoundGpus>(&told).unwrap(), found);
        let older = r#"{"name": "GPU", "memory_bytes": 5}"#;
        assert_eq!(serde_json::from_str::<GpuFacts>(older).unwrap().free_bytes, None);
    }
}
