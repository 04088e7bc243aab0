//! NVML, the library of NVIDIA's driver, as far as energy, power and its limit, clock, temperature and free memory go.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Name of the library, as the driver installs it.
pub(crate) const NAME: &str = "libnvidia-ml.so.1";
/// Where it lies below a root that is not `/`.
pub(crate) const BELOW: &str = "usr/lib/libnvidia-ml.so.1";
/// NVML's code of success.
const SUCCESS: c_int = 0;
/// Those of a user who may not, and of a function that the library does not have.
const NO_PERMISSION: c_int = 4;
const NO_FUNCTION: c_int = 13;
/// Its clock of the multiprocessors (SM), and its sensor on the accelerator itself.
const SM_CLOCK: c_uint = 1;
const GPU_SENSOR: c_uint = 0;
/// Millijoules in a joule, milliwatts in a watt.
const MILLI: f64 = 1e3;

type Handle = *mut c_void;

/// An accelerator, as the library numbers it: also those count that it does not open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuIndex(usize);

impl GpuIndex {
    /// Its number.
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

/// The calls of the library, which stays loaded.
#[derive(Debug)]
pub(crate) struct Nvml {
    energy: Option<unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int>,
    power: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> c_int>,
    limit: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> c_int>,
    limits: Option<unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> c_int>,
    set_limit: Option<unsafe extern "C" fn(Handle, c_uint) -> c_int>,
    /// With the kind of clock, and in MHz.
    clock: Option<unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int>,
    /// With the sensor, and in °C.
    temperature: Option<unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int>,
    /// With the PCI address.
    at: Option<unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int>,
    /// With all, the free and the used bytes.
    memory: Option<unsafe extern "C" fn(Handle, *mut [c_ulonglong; 3]) -> c_int>,
    /// The handle of each, or NVML's code where it is not opened.
    devices: Vec<Result<usize, c_int>>,
}

/// Why a power limit cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitRefused {
    /// Only root may.
    NoPermission,
    /// NVML's code.
    Code(c_int),
}

impl Nvml {
    /// The library below `root`, `/` for this host; `None` where there is no driver.
    pub(crate) fn below(root: &Path) -> Result<Option<Self>, String> {
        let here = root == Path::new("/");
        // A name alone is searched by the dynamic linker.
        let path = if here { NAME.into() } else { root.join(BELOW) };
        if !here && !path.exists() {
            return Ok(None);
        }
        match Self::open(&path) {
            Ok(nvml) => Ok(Some(nvml)),
            // Without a driver there is nothing to use.
            Err(_) if here && !root.join("dev/nvidiactl").exists() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Loads and initialises the library.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
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
            match unsafe { handle(index, &raw mut device) } {
                SUCCESS => Ok(device.expose_provenance()),
                code => Err(code),
            }
        };
        // SAFETY: they take a handle and a pointer to an unsigned (long long) int.
        let energy = unsafe { library.get(b"nvmlDeviceGetTotalEnergyConsumption\0") };
        // SAFETY: as above.
        let power = unsafe { library.get(b"nvmlDeviceGetPowerUsage\0") };
        // SAFETY: it takes a handle and a pointer to an unsigned int.
        let limit = unsafe { library.get(b"nvmlDeviceGetPowerManagementLimit\0") };
        // SAFETY: it takes a handle and two of them.
        let limits = unsafe { library.get(b"nvmlDeviceGetPowerManagementLimitConstraints\0") };
        // SAFETY: it takes a handle and an unsigned int.
        let set_limit = unsafe { library.get(b"nvmlDeviceSetPowerManagementLimit\0") };
        // SAFETY: they take a handle, an unsigned int and a pointer to one.
        let clock = unsafe { library.get(b"nvmlDeviceGetClockInfo\0") };
        // SAFETY: as above.
        let temperature = unsafe { library.get(b"nvmlDeviceGetTemperature\0") };
        // SAFETY: it takes a text that ends with 0 and a pointer to a handle.
        let at = unsafe { library.get(b"nvmlDeviceGetHandleByPciBusId_v2\0") };
        // SAFETY: it takes a handle and a pointer to a structure of three unsigned long long int.
        let memory = unsafe { library.get(b"nvmlDeviceGetMemoryInfo\0") };
        Ok(Self {
            limit: limit.ok().map(|symbol| *symbol),
            limits: limits.ok().map(|symbol| *symbol),
            set_limit: set_limit.ok().map(|symbol| *symbol),
            energy: energy.ok().map(|symbol| *symbol),
            power: power.ok().map(|symbol| *symbol),
            clock: clock.ok().map(|symbol| *symbol),
            temperature: temperature.ok().map(|symbol| *symbol),
            at: at.ok().map(|symbol| *symbol),
            memory: memory.ok().map(|symbol| *symbol),
            devices: (0..devices).map(of).collect(),
        })
    }

    /// Its accelerators, but those that it does not open.
    pub(crate) fn gpus(&self) -> impl Iterator<Item = GpuIndex> {
        (0..self.devices.len()).filter_map(|index| self.gpu(index))
    }

    /// The numbers of those that it does not open, with NVML's code. One that this process may not use, as that of another job, is none of them:
    /// no run of it is there.
    pub(crate) fn not_opened(&self) -> impl Iterator<Item = (usize, c_int)> {
        let code = |(index, device): (usize, &Result<usize, c_int>)| Some((index, device.err()?));
        self.devices.iter().enumerate().filter_map(code).filter(|&(_, code)| code != NO_PERMISSION)
    }

    fn handle(&self, device: GpuIndex) -> Handle {
        std::ptr::with_exposed_provenance_mut(self.devices[device.0].unwrap_or(0))
    }

    /// Bytes of the memory of the accelerator at this PCI address that nothing uses.
    pub(crate) fn free_bytes_at(&self, address: &str) -> Option<u64> {
        let address = CString::new(address).ok()?;
        let mut device: Handle = std::ptr::null_mut();
        // SAFETY: the text ends with 0, the pointer is that of a variable.
        if unsafe { self.at?(address.as_ptr(), &raw mut device) } != SUCCESS {
            return None;
        }
        let mut bytes: [c_ulonglong; 3] = [0; 3];
        // SAFETY: the handle is one of the library, the pointer that of three numbers.
        let code = unsafe { self.memory?(device, &raw mut bytes) };
        (code == SUCCESS).then_some(bytes[1])
    }

    /// Joules since the driver was loaded.
    pub(crate) fn energy_j(&self, device: GpuIndex) -> Option<f64> {
        let mut millijoules: c_ulonglong = 0;
        // SAFETY: the handle is one of the library, the pointer that of a variable.
        let code = unsafe { self.energy?(self.handle(device), &raw mut millijoules) };
        (code == SUCCESS).then_some(millijoules as f64 / MILLI)
    }

    /// Watts now.
    pub(crate) fn power_w(&self, device: GpuIndex) -> Option<f64> {
        let mut milliwatts: c_uint = 0;
        // SAFETY: as above.
        let code = unsafe { self.power?(self.handle(device), &raw mut milliwatts) };
        (code == SUCCESS).then_some(f64::from(milliwatts) / MILLI)
    }

    /// Clock of its multiprocessors now, in Hz.
    pub(crate) fn clock_hz(&self, device: GpuIndex) -> Option<f64> {
        let mut mhz: c_uint = 0;
        // SAFETY: as above.
        let code = unsafe { self.clock?(self.handle(device), SM_CLOCK, &raw mut mhz) };
        (code == SUCCESS).then_some(1e6 * f64::from(mhz))
    }

    /// Its temperature now, in °C.
    pub(crate) fn temperature_c(&self, device: GpuIndex) -> Option<f64> {
        let mut celsius: c_uint = 0;
        // SAFETY: as above.
        let code = unsafe { self.temperature?(self.handle(device), GPU_SENSOR, &raw mut celsius) };
        (code == SUCCESS).then_some(f64::from(celsius))
    }

    /// The accelerator of this number, if there is one that is opened.
    pub(crate) fn gpu(&self, index: usize) -> Option<GpuIndex> {
        self.devices.get(index)?.is_ok().then_some(GpuIndex(index))
    }

    /// Its power limit in milliwatts.
    pub(crate) fn limit_mw(&self, device: GpuIndex) -> Option<u32> {
        let mut milliwatts: c_uint = 0;
        // SAFETY: as above.
        let code = unsafe { self.limit?(self.handle(device), &raw mut milliwatts) };
        (code == SUCCESS).then_some(milliwatts)
    }

    /// The least and the largest limit that can be set, in milliwatts.
    pub(crate) fn limits_mw(&self, device: GpuIndex) -> Option<[u32; 2]> {
        let [mut least, mut most]: [c_uint; 2] = [0; 2];
        // SAFETY: the handle is one of the library, the pointers those of variables.
        let code = unsafe { self.limits?(self.handle(device), &raw mut least, &raw mut most) };
        (code == SUCCESS).then_some([least, most])
    }

    /// Sets the limit.
    pub(crate) fn set_limit_mw(&self, device: GpuIndex, milliwatts: u32) -> Result<(), LimitRefused> {
        let set = self.set_limit.ok_or(LimitRefused::Code(NO_FUNCTION))?;
        // SAFETY: the handle is one of the library.
        match unsafe { set(self.handle(device), milliwatts) } {
            SUCCESS => Ok(()),
            NO_PERMISSION => Err(LimitRefused::NoPermission),
            code => Err(LimitRefused::Code(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn free_memory_is_that_of_the_accelerator_at_the_address() {
        let text = r#"
            #include <string.h>
            static int card;
            int nvmlInit_v2(void) { return 0; }
            int nvmlDeviceGetCount_v2(unsigned *count) { *count = 0; return 0; }
            int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { return 6; }
            int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
                *device = &card; return strcmp(address, "0000:c7:00.0") ? 6 : 0;
            }
            int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes) {
                bytes[0] = 80; bytes[1] = 60; bytes[2] = 20; return device != &card;
            }
        "#;
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("usr/lib")).unwrap();
        let source = root.path().join("nvml.c");
        std::fs::write(&source, text).unwrap();
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(root.path().join(BELOW)).arg(&source).status();
        assert!(built.unwrap().success());
        let nvml = Nvml::below(root.path()).unwrap().unwrap();
        assert_eq!([nvml.free_bytes_at("0000:c7:00.0"), nvml.free_bytes_at("0000:c8:00.0")], [Some(60), None]);
    }
}
