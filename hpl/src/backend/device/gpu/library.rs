//! Shared libraries of a platform, opened at run time.
//!
//! A library is never unloaded: its own threads or exit handlers may outlive any handle. Opening runs foreign code, which may
//! crash the process; real runs are guarded child processes.

use std::ffi::c_int;
use std::fmt;

use libloading::os::unix;

use super::super::DeviceError;

/// Value that a function of a platform returns; 0 is success.
pub(super) type Status = c_int;

/// A pointer to something of the platform: context, stream, event, module, kernel, or handle of its BLAS.
pub(super) type Handle = usize;

/// An address in the memory of a device.
pub(super) type Address = u64;

/// The programming interface of a vendor's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuPlatform {
    /// NVIDIA: the CUDA driver, cuBLAS, NVRTC.
    Cuda,
    /// AMD: the HIP runtime, rocBLAS, hipRTC.
    Hip,
}

/// What a library of a platform is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LibraryPurpose {
    /// Memory, streams, events, kernels.
    Driver,
    /// DGEMM and DTRSM.
    Blas,
    /// Compiles kernels.
    Compiler,
}

/// An open library.
pub(super) struct GpuLibrary {
    platform: GpuPlatform,
    /// The name by which it was found.
    pub(super) name: String,
    library: &'static unix::Library,
}

/// A function of a library with its name.
#[derive(Clone, Copy)]
pub(super) struct Function<F> {
    pub(super) name: &'static str,
    pub(super) call: F,
}

impl GpuPlatform {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Cuda, Self::Hip];

    /// `cuda` or `hip`.
    pub(super) fn name(self) -> &'static str {
        self.pick("cuda", "hip")
    }

    /// File names of a library, newest first.
    fn names(self, purpose: LibraryPurpose) -> &'static [&'static str] {
        match (self, purpose) {
            (Self::Cuda, LibraryPurpose::Driver) => &["libcuda.so.1"],
            (Self::Cuda, LibraryPurpose::Blas) => {
                &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"]
            }
            (Self::Cuda, LibraryPurpose::Compiler) => {
                &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
            }
            (Self::Hip, LibraryPurpose::Driver) => {
                &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
            }
            (Self::Hip, LibraryPurpose::Blas) => {
                &["librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", "librocblas.so"]
            }
            // Until ROCm 5 hipRTC is a part of the runtime.
            (Self::Hip, LibraryPurpose::Compiler) => {
                &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "libamdhip64.so.5"]
            }
        }
    }

    /// Where toolkits are installed that the loader does not know of.
    fn folder(self) -> &'static str {
        match self {
            Self::Cuda => "/usr/local/cuda/lib64",
            Self::Hip => "/opt/rocm/lib",
        }
    }

    /// One of two values, by the platform.
    pub(super) fn pick<T>(self, cuda: T, hip: T) -> T {
        match self {
            Self::Cuda => cuda,
            Self::Hip => hip,
        }
    }

    /// An error of this platform without a device.
    pub(super) fn error(self, reason: impl Into<String>) -> DeviceError {
        DeviceError { device: self.to_string(), reason: reason.into(), lacks_memory: false }
    }
}

impl fmt::Display for GpuPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl GpuLibrary {
    /// Opens the library of `platform` for `purpose`: the newest that the loader finds, of a major version up to `newest`.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn open(
        platform: GpuPlatform,
        purpose: LibraryPurpose,
        newest: Option<u32>,
    ) -> Result<Self, DeviceError> {
        let mut names = platform.names(purpose).to_vec();
        names.retain(|name| newest.is_none_or(|newest| major(name).is_none_or(|major| major <= newest)));
        let in_folder = names.iter().map(|name| format!("{}/{name}", platform.folder()));
        let mut reasons = Vec::new();
        for name in names.iter().map(ToString::to_string).chain(in_folder) {
            // SAFETY: opening runs the initialisers of the vendor's library, which the user has installed for that.
            match unsafe { unix::Library::open(Some(&name), unix::RTLD_NOW | unix::RTLD_LOCAL) } {
                Ok(library) => return Ok(Self { platform, name, library: Box::leak(Box::new(library)) }),
                Err(error) => reasons.push(crate::backend::host::kernels::loader_message(&error)),
            }
        }
        // A library that is there but cannot be opened says more than one that is not there.
        let is_there = |reason: &&String| !reason.contains("No such file");
        let reason = reasons.iter().find(is_there).or(reasons.first()).cloned().unwrap_or_default();
        let what = match purpose {
            LibraryPurpose::Driver => platform.pick("no NVIDIA driver", "no ROCm runtime"),
            LibraryPurpose::Blas => platform.pick("cuBLAS was not found", "rocBLAS was not found"),
            LibraryPurpose::Compiler => platform.pick("NVRTC was not found", "hipRTC was not found"),
        };
        let toolkit = newest.map_or_else(
            || platform.pick("the CUDA toolkit", "ROCm").to_owned(),
            |newest| format!("the CUDA toolkit, version {newest} or older for this driver and device"),
        );
        let way_out = match purpose {
            LibraryPurpose::Driver => platform.pick("install the driver of the device", "install ROCm").to_owned(),
            LibraryPurpose::Blas | LibraryPurpose::Compiler => {
                format!("install {toolkit}, or name its folder in LD_LIBRARY_PATH")
            }
        };
        Err(platform.error(format!("{what} ({reason}); {way_out}")))
    }

    /// The function `name`.
    ///
    /// # Errors
    /// When the library lacks it.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to this function.
    pub(super) unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<Function<F>, DeviceError> {
        // SAFETY: the caller says that F is the function's type; libloading refuses a null address.
        let symbol = unsafe { self.library.get::<F>(name.as_bytes()) };
        match symbol {
            Ok(symbol) => Ok(Function { name, call: *symbol }),
            Err(_) => {
                let reason = format!("{} lacks {name}: it is too old, or not the vendor's; update it", self.name);
                Err(self.platform.error(reason))
            }
        }
    }

    /// The platform.
    pub(super) fn platform(&self) -> GpuPlatform {
        self.platform
    }
}

/// The major version in the file name of a library, 12 of `libcublas.so.12`.
fn major(name: &str) -> Option<u32> {
    name.split_once(".so.")?.1.split('.').next()?.parse().ok()
}

/// Declares a struct of the functions of a library that return a [`Status`], each with its names in CUDA and in HIP, which have
/// the same arguments, and the function `load` that looks all of them up.
macro_rules! functions {
    ($(#[$doc:meta])* struct $name:ident { $($field:ident($($arg:ty),*) = $cuda:literal, $hip:literal;)* }) => {
        $(#[$doc])*
        pub(super) struct $name {
            $(pub(super) $field: $crate::backend::device::gpu::library::Function<
                unsafe extern "C" fn($($arg),*) -> $crate::backend::device::gpu::library::Status,
            >,)*
        }

        impl $name {
            /// Looks up all functions.
            ///
            /// # Errors
            /// When the library lacks one.
            pub(super) fn load(
                library: &$crate::backend::device::gpu::library::GpuLibrary,
            ) -> Result<Self, $crate::backend::device::DeviceError> {
                let platform = library.platform();
                // SAFETY: by their names these are the vendor's functions, whose arguments are as in its headers.
                unsafe { Ok(Self { $($field: library.function(platform.pick($cuda, $hip))?,)* }) }
            }
        }
    };
}
pub(super) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_says_its_major_version() {
        let versions = ["libcublas.so.13", "libnvrtc.so.11.2", "libcublas.so", "libcuda.so.1"].map(major);
        assert_eq!(versions, [Some(13), Some(11), None, Some(1)]);
    }
}
