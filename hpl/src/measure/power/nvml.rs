//! NVML, the library of NVIDIA's driver, as far as energy and power go.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// NVML's code of success.
const SUCCESS: c_int = 0;
/// Millijoules in a joule, milliwatts in a watt.
const MILLI: f64 = 1e3;

type Handle = *mut c_void;

/// An accelerator, as the library numbers it.
#[derive(Debug, Clone, Copy)]
pub(super) struct GpuIndex(usize);

/// The calls of the library, which stays loaded.
#[derive(Debug)]
pub(super) struct Nvml {
    energy: Option<unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int>,
    power: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> c_int>,
    devices: Vec<usize>,
}

impl Nvml {
    /// Loads and initialises the library.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: loading runs the initialisers of the driver's own library, which is made to be loaded.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| error.to_string())?;
        // Never closed.
        let library: &'static Library = Box::leak(Box::new(library));
        let lacks = |name: &str| format!("it has no {name}");
        // SAFETY: nvmlInit_v2 takes nothing and returns a code.
        let init = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0") };
        // SAFETY: as above.
        let code = unsafe { init.map_err(|_| lacks("nvmlInit_v2"))?() };
        if code != SUCCESS {
            return Err(format!("nvmlInit_v2 gives code {code}"));
        }
        // SAFETY: it takes a pointer to an unsigned int.
        let count = unsafe { library.get::<unsafe extern "C" fn(*mut c_uint) -> c_int>(b"nvmlDeviceGetCount_v2\0") };
        let mut devices: c_uint = 0;
        // SAFETY: the pointer is that of a variable.
        let code = unsafe { count.map_err(|_| lacks("nvmlDeviceGetCount_v2"))?(&raw mut devices) };
        if code != SUCCESS {
            return Err(format!("nvmlDeviceGetCount_v2 gives code {code}"));
        }
        // SAFETY: it takes an index and a pointer to a handle, which is a pointer.
        let handle = unsafe {
            library.get::<unsafe extern "C" fn(c_uint, *mut Handle) -> c_int>(b"nvmlDeviceGetHandleByIndex_v2\0")
        };
        let handle = handle.map_err(|_| lacks("nvmlDeviceGetHandleByIndex_v2"))?;
        let of = |index| {
            let mut device: Handle = std::ptr::null_mut();
            // SAFETY: the index is below the count, the pointer that of a variable.
            (unsafe { handle(index, &raw mut device) } == SUCCESS).then_some(device.expose_provenance())
        };
        // SAFETY: they take a handle and a pointer to an unsigned (long long) int.
        let energy = unsafe { library.get(b"nvmlDeviceGetTotalEnergyConsumption\0") };
        // SAFETY: as above.
        let power = unsafe { library.get(b"nvmlDeviceGetPowerUsage\0") };
        Ok(Self {
            energy: energy.ok().map(|symbol| *symbol),
            power: power.ok().map(|symbol| *symbol),
            devices: (0..devices).filter_map(of).collect(),
        })
    }

    /// Its accelerators.
    pub(super) fn gpus(&self) -> impl Iterator<Item = GpuIndex> + use<> {
        (0..self.devices.len()).map(GpuIndex)
    }

    fn handle(&self, device: GpuIndex) -> Handle {
        std::ptr::with_exposed_provenance_mut(self.devices[device.0])
    }

    /// Joules since the driver was loaded.
    pub(super) fn energy_j(&self, device: GpuIndex) -> Option<f64> {
        let mut millijoules: c_ulonglong = 0;
        // SAFETY: the handle is one of the library, the pointer that of a variable.
        let code = unsafe { self.energy?(self.handle(device), &raw mut millijoules) };
        (code == SUCCESS).then_some(millijoules as f64 / MILLI)
    }

    /// Watts now.
    pub(super) fn power_w(&self, device: GpuIndex) -> Option<f64> {
        let mut milliwatts: c_uint = 0;
        // SAFETY: as above.
        let code = unsafe { self.power?(self.handle(device), &raw mut milliwatts) };
        (code == SUCCESS).then_some(f64::from(milliwatts) / MILLI)
    }
}
