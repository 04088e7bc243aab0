//! Which devices a platform has, without use of any.

use std::fmt;

use serde::{Deserialize, Serialize};
use space::{DeviceChoice, DeviceRequest};

use super::super::DeviceError;
use super::compiler::KernelCompiler;
use super::driver::{Driver, name, total_bytes};
use super::library::{GpuLibrary, GpuPlatform, LibraryPurpose};

/// A device as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
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
            Ok(GpuFacts { name: name(&driver, device)?, memory_bytes: total_bytes(&driver, device)? })
        };
        let devices = (0..count).map(device).collect::<Result<_, _>>()?;
        let compiler = KernelCompiler::open(platform)?;
        let blas = GpuLibrary::open(platform, LibraryPurpose::Blas)?;
        let libraries =
            vec![driver.library.clone(), blas.name, format!("{} {}", compiler.library, compiler.version()?)];
        Ok(Self { platform: platform.to_string(), driver: driver.version()?, libraries, devices })
    }
}

impl fmt::Display for FoundGpus {
    /// `cuda: 2 × NVIDIA H100 (85.0 GB), driver 12.9, libcuda.so.1, libcublas.so.12, libnvrtc.so.12 12.9`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.platform)?;
        for (at, group) in self.devices.chunk_by(|a, b| a == b).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let GpuFacts { name, memory_bytes } = &group[0];
            write!(f, "{comma}{} × {name} ({:.1} GB)", group.len(), *memory_bytes as f64 / 1e9)?;
        }
        write!(f, ", driver {}, {}", self.driver, self.libraries.join(", "))
    }
}
