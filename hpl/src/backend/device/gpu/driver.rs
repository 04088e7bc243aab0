//! The driver of a platform: the calls on one device, with their errors.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::super::DeviceError;
use super::compute_units::compute_units;
use super::copies::CudaCopy;
use super::errors::{NO_MEMORY, way_out};
use super::library::{Address, Function, GpuLibrary, GpuPlatform, Handle, LibraryPurpose, Status, functions};

functions! {
    /// Functions of the CUDA driver, or of the HIP runtime.
    struct DriverCalls {
        init(c_uint) = "cuInit", "hipInit";
        driver_version(*mut c_int) = "cuDriverGetVersion", "hipDriverGetVersion";
        device_count(*mut c_int) = "cuDeviceGetCount", "hipGetDeviceCount";
        device(*mut c_int, c_int) = "cuDeviceGet", "hipDeviceGet";
        device_name(*mut c_char, c_int, c_int) = "cuDeviceGetName", "hipDeviceGetName";
        pci_address(*mut c_char, c_int, c_int) = "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId";
        total_memory(*mut usize, c_int) = "cuDeviceTotalMem_v2", "hipDeviceTotalMem";
        attribute(*mut c_int, c_int, c_int) = "cuDeviceGetAttribute", "hipDeviceGetAttribute";
        memory_info(*mut usize, *mut usize) = "cuMemGetInfo_v2", "hipMemGetInfo";
        allocate(*mut Address, usize) = "cuMemAlloc_v2", "hipMalloc";
        free(Address) = "cuMemFree_v2", "hipFree";
        allocate_host(*mut *mut c_void, usize, c_uint) = "cuMemHostAlloc", "hipHostMalloc";
        free_host(*mut c_void) = "cuMemFreeHost", "hipHostFree";
        pin_host(*mut c_void, usize, c_uint) = "cuMemHostRegister_v2", "hipHostRegister";
        unpin_host(*mut c_void) = "cuMemHostUnregister", "hipHostUnregister";
        priorities(*mut c_int, *mut c_int) = "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange";
        create_stream(*mut Handle, c_uint, c_int) = "cuStreamCreateWithPriority", "hipStreamCreateWithPriority";
        destroy_stream(Handle) = "cuStreamDestroy_v2", "hipStreamDestroy";
        stream_wait(Handle, Handle, c_uint) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        create_event(*mut Handle, c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        destroy_event(Handle) = "cuEventDestroy_v2", "hipEventDestroy";
        record(Handle, Handle) = "cuEventRecord", "hipEventRecord";
        query(Handle) = "cuEventQuery", "hipEventQuery";
        elapsed(*mut f32, Handle, Handle) = "cuEventElapsedTime", "hipEventElapsedTime";
        wait_for_event(Handle) = "cuEventSynchronize", "hipEventSynchronize";
        synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
        upload(Address, *const c_void, usize, Handle) = "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync";
        download(*mut c_void, Address, usize, Handle) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        load_module(*mut Handle, *const c_void) = "cuModuleLoadData", "hipModuleLoadData";
        unload_module(Handle) = "cuModuleUnload", "hipModuleUnload";
        kernel(*mut Handle, Handle, *const c_char) = "cuModuleGetFunction", "hipModuleGetFunction";
        launch(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        ) = "cuLaunchKernel", "hipModuleLaunchKernel";
    }
}

/// The functions that differ between the platforms.
pub(super) enum OwnCalls {
    Cuda {
        retain: Function<unsafe extern "C" fn(*mut Handle, c_int) -> Status>,
        release: Function<unsafe extern "C" fn(c_int) -> Status>,
        set_current: Function<unsafe extern "C" fn(Handle) -> Status>,
        push_current: Function<unsafe extern "C" fn(Handle) -> Status>,
        pop_current: Function<unsafe extern "C" fn(*mut Handle) -> Status>,
        copy: Function<unsafe extern "C" fn(*const CudaCopy, Handle) -> Status>,
        error_name: Function<unsafe extern "C" fn(Status, *mut *const c_char) -> Status>,
        error_text: Function<unsafe extern "C" fn(Status, *mut *const c_char) -> Status>,
    },
    Hip {
        set_current: Function<unsafe extern "C" fn(c_int) -> Status>,
        current: Function<unsafe extern "C" fn(*mut c_int) -> Status>,
        copy: Function<
            unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, usize, usize, c_int, Handle) -> Status,
        >,
        error_name: Function<unsafe extern "C" fn(Status) -> *const c_char>,
        error_text: Function<unsafe extern "C" fn(Status) -> *const c_char>,
    },
}

/// The driver of a platform.
pub(super) struct Driver {
    pub(super) platform: GpuPlatform,
    pub(super) calls: DriverCalls,
    pub(super) own: OwnCalls,
    /// The library's name.
    pub(super) library: String,
}

/// Status of an event that has not happened: `CUDA_ERROR_NOT_READY`, `hipErrorNotReady`.
const NOT_READY: Status = 600;

impl Driver {
    /// Opens and initialises the driver.
    ///
    /// # Errors
    /// When there is none, it lacks a function, or it does not start.
    pub(super) fn open(platform: GpuPlatform) -> Result<Self, DeviceError> {
        let library = GpuLibrary::open(platform, LibraryPurpose::Driver, None)?;
        let calls = DriverCalls::load(&library)?;
        // SAFETY: by their names these are the vendor's functions, whose arguments are as in its headers.
        let own = unsafe {
            match platform {
                GpuPlatform::Cuda => OwnCalls::Cuda {
                    retain: library.function("cuDevicePrimaryCtxRetain")?,
                    release: library.function("cuDevicePrimaryCtxRelease_v2")?,
                    set_current: library.function("cuCtxSetCurrent")?,
                    push_current: library.function("cuCtxPushCurrent_v2")?,
                    pop_current: library.function("cuCtxPopCurrent_v2")?,
                    copy: library.function("cuMemcpy2DAsync_v2")?,
                    error_name: library.function("cuGetErrorName")?,
                    error_text: library.function("cuGetErrorString")?,
                },
                GpuPlatform::Hip => OwnCalls::Hip {
                    set_current: library.function("hipSetDevice")?,
                    current: library.function("hipGetDevice")?,
                    copy: library.function("hipMemcpy2DAsync")?,
                    error_name: library.function("hipGetErrorName")?,
                    error_text: library.function("hipGetErrorString")?,
                },
            }
        };
        let driver = Self { platform, calls, own, library: library.name };
        // SAFETY: the first call of the driver; 0 is the only defined flag.
        driver.check(driver.calls.init.name, unsafe { (driver.calls.init.call)(0) }, "")?;
        Ok(driver)
    }

    /// Success, or the error `status` of the function `name`, on `device` if there is one.
    pub(super) fn check(&self, name: &str, status: Status, device: &str) -> Result<(), DeviceError> {
        if status == 0 {
            return Ok(());
        }
        let mut reason = format!("{name} failed: {}", self.describe(status));
        if let Some(way_out) = way_out(self.platform, name, status) {
            let _ = write!(reason, "; {way_out}");
        }
        let device = if device.is_empty() { self.platform.to_string() } else { device.to_owned() };
        Err(DeviceError { device, reason, lacks_memory: status == NO_MEMORY })
    }

    /// Name and text of an error.
    fn describe(&self, status: Status) -> String {
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        match &self.own {
            OwnCalls::Cuda { error_name, error_text, .. } => {
                // SAFETY: both write the address of a constant text, or null for an unknown error.
                unsafe {
                    (error_name.call)(status, &raw mut name);
                    (error_text.call)(status, &raw mut text);
                }
            }
            OwnCalls::Hip { error_name, error_text, .. } => {
                // SAFETY: both return the address of a constant text.
                (name, text) = unsafe { ((error_name.call)(status), (error_text.call)(status)) };
            }
        }
        // SAFETY: each is null or a constant text.
        let [name, text] = [name, text].map(|text| unsafe { constant_text(text) });
        let name = name.unwrap_or_else(|| "an unknown error".to_owned());
        text.map_or_else(|| format!("{name} ({status})"), |text| format!("{name} ({status}), {text}"))
    }

    /// A number that a function writes.
    fn int(&self, function: Function<unsafe extern "C" fn(*mut c_int) -> Status>) -> Result<c_int, DeviceError> {
        let mut value = 0;
        // SAFETY: the function writes one int.
        self.check(function.name, unsafe { (function.call)(&raw mut value) }, "")?;
        Ok(value)
    }

    /// Number of devices; 0 where the platform calls that an error.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn devices(&self) -> Result<usize, DeviceError> {
        Ok(usize::try_from(self.int(self.calls.device_count)?).unwrap_or(0))
    }

    /// The newest major version of the CUDA toolkit for this driver and `device`; `None` with HIP.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn newest_toolkit(&self, device: c_int) -> Result<Option<u32>, DeviceError> {
        /// The last version for devices below capability 7.5.
        const LAST_OF_OLD: c_int = 12;
        let OwnCalls::Cuda { .. } = &self.own else { return Ok(None) };
        let is_old = self.capability(device, "")? < 75;
        let newest = self.int(self.calls.driver_version)? / 1000;
        Ok(u32::try_from(if is_old { newest.min(LAST_OF_OLD) } else { newest }).ok())
    }

    /// Capability of a CUDA device, 10·major + minor; 0 with HIP, whose compiler needs none.
    ///
    /// # Errors
    /// When the driver fails; they name the device by `label`.
    pub(super) fn capability(&self, device: c_int, label: &str) -> Result<c_int, DeviceError> {
        let OwnCalls::Cuda { .. } = &self.own else { return Ok(0) };
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        Ok(10 * self.attribute(75, device, label)? + self.attribute(76, device, label)?)
    }

    /// An attribute of a device by its number.
    fn attribute(&self, number: c_int, device: c_int, label: &str) -> Result<c_int, DeviceError> {
        let (mut value, get) = (0, &self.calls.attribute);
        // SAFETY: writes one int.
        self.check(get.name, unsafe { (get.call)(&raw mut value, number, device) }, label)?;
        Ok(value)
    }

    /// Version of the driver as its vendor writes it.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn version(&self) -> Result<String, DeviceError> {
        let version = self.int(self.calls.driver_version)?;
        Ok(match self.platform {
            GpuPlatform::Cuda => format!("{}.{}", version / 1000, version % 1000 / 10),
            GpuPlatform::Hip => format!("{}.{}", version / 10_000_000, version / 100_000 % 100),
        })
    }
}

/// A copy of a text.
///
/// # Safety
/// `text` must be null or a text that ends with 0 and does not change.
pub(super) unsafe fn constant_text(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A device with its context. Handles are numbers, so that values can go from thread to thread, as both platforms allow.
pub(super) struct Gpu {
    pub(super) driver: Driver,
    /// Number of the device in its platform's list.
    pub(super) device: c_int,
    /// Its name in messages.
    pub(super) label: String,
    /// The primary context of CUDA; 0 with HIP, which has none.
    context: Handle,
}

impl Gpu {
    /// Opens device `index` and makes it current for this thread.
    ///
    /// # Errors
    /// When the driver fails or has no such device.
    pub(super) fn open(driver: Driver, index: usize) -> Result<Arc<Self>, DeviceError> {
        let (mut device, index) = (0, c_int::try_from(index).unwrap_or(c_int::MAX));
        let calls = &driver.calls;
        // SAFETY: writes one int.
        driver.check(calls.device.name, unsafe { (calls.device.call)(&raw mut device, index) }, "")?;
        let label = format!("{} {index} ({})", driver.platform, name(&driver, device)?);
        let mut context = 0;
        if let OwnCalls::Cuda { retain, .. } = &driver.own {
            // SAFETY: writes one handle; the device was returned by the driver.
            driver.check(retain.name, unsafe { (retain.call)(&raw mut context, device) }, &label)?;
        }
        let gpu = Self { driver, device, label, context };
        gpu.make_current()?;
        Ok(Arc::new(gpu))
    }

    /// Makes the device that of this thread's calls.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn make_current(&self) -> Result<(), DeviceError> {
        let (name, status) = match &self.driver.own {
            // SAFETY: the context is retained until this value is dropped.
            OwnCalls::Cuda { set_current, .. } => (set_current.name, unsafe { (set_current.call)(self.context) }),
            // SAFETY: no memory is passed.
            OwnCalls::Hip { set_current, .. } => (set_current.name, unsafe { (set_current.call)(self.device) }),
        };
        self.check(name, status)
    }

    /// Calls `work` with the device current for this thread, and then makes that current again which was; nothing where the driver fails.
    pub(super) fn while_current(&self, work: impl FnOnce()) {
        match &self.driver.own {
            OwnCalls::Cuda { push_current, pop_current, .. } => {
                // SAFETY: the context is retained until this value is dropped.
                if unsafe { (push_current.call)(self.context) } == 0 {
                    work();
                    let mut pushed = 0;
                    // SAFETY: writes one handle.
                    let _ = unsafe { (pop_current.call)(&raw mut pushed) };
                }
            }
            OwnCalls::Hip { set_current, current, .. } => {
                let mut before = 0;
                // SAFETY: writes one int; no memory is passed to the other.
                if unsafe { (current.call)(&raw mut before) == 0 && (set_current.call)(self.device) == 0 } {
                    work();
                    // SAFETY: no memory is passed.
                    let _ = unsafe { (set_current.call)(before) };
                }
            }
        }
    }

    /// Success, or the error `status` of the function `name`.
    pub(super) fn check(&self, name: &str, status: Status) -> Result<(), DeviceError> {
        self.driver.check(name, status, &self.label)
    }

    /// Multiprocessors, each of which has one block of threads with most of its shared memory.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn multiprocessors(&self) -> Result<usize, DeviceError> {
        /// Fewer than the devices that ROCm supports have.
        const LEAST_OF_HIP: usize = 16;
        // The number of HIP's attribute differs between its versions.
        let OwnCalls::Cuda { .. } = &self.driver.own else {
            let address = pci_address(&self.driver, self.device).ok();
            let units = address.and_then(|address| compute_units(Path::new("/"), &address));
            return Ok(units.unwrap_or(LEAST_OF_HIP));
        };
        // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        Ok(usize::try_from(self.driver.attribute(16, self.device, &self.label)?).unwrap_or(1))
    }

    /// Free bytes and all bytes of the device's memory.
    ///
    /// # Errors
    /// When the driver fails.
    pub(super) fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        let (mut free, mut total, get) = (0, 0, &self.driver.calls.memory_info);
        // SAFETY: writes two sizes.
        self.check(get.name, unsafe { (get.call)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    /// Whether an event has happened.
    ///
    /// # Errors
    /// When an operation before it failed.
    pub(super) fn has_happened(&self, event: Handle) -> Result<bool, DeviceError> {
        let query = &self.driver.calls.query;
        // SAFETY: the event exists.
        match unsafe { (query.call)(event) } {
            NOT_READY => Ok(false),
            status => self.check(query.name, status).map(|()| true),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if let OwnCalls::Cuda { release, .. } = &self.driver.own {
            // SAFETY: retained once in `open`; nothing of the context is used after this. An error could not be handled.
            let _ = unsafe { (release.call)(self.device) };
        }
    }
}

/// Name of a device.
pub(super) fn name(driver: &Driver, device: c_int) -> Result<String, DeviceError> {
    text_of(driver, &driver.calls.device_name, device)
}

/// PCI address of a device as the system writes it, `0000:c7:00.0`.
pub(super) fn pci_address(driver: &Driver, device: c_int) -> Result<String, DeviceError> {
    Ok(text_of(driver, &driver.calls.pci_address, device)?.to_lowercase())
}

/// A function that writes at most so many bytes of text about a device.
type TextOf = Function<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status>;

fn text_of(driver: &Driver, get: &TextOf, device: c_int) -> Result<String, DeviceError> {
    let mut text = [0 as c_char; 256];
    // SAFETY: writes at most 256 bytes.
    driver.check(get.name, unsafe { (get.call)(text.as_mut_ptr(), 256, device) }, "")?;
    text[255] = 0;
    // SAFETY: ends with 0.
    Ok(unsafe { constant_text(text.as_ptr()) }.unwrap_or_default())
}

/// Bytes of a device's memory.
pub(super) fn total_bytes(driver: &Driver, device: c_int) -> Result<u64, DeviceError> {
    let (mut bytes, get) = (0, &driver.calls.total_memory);
    // SAFETY: writes one size.
    driver.check(get.name, unsafe { (get.call)(&raw mut bytes, device) }, "")?;
    Ok(bytes as u64)
}
