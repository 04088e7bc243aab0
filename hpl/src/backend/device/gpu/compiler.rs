//! Kernels compiled at start for the device found, by NVRTC or hipRTC.

use std::ffi::{CStr, CString, c_char, c_int};

use super::super::DeviceError;
use super::driver::constant_text;
use super::library::{Function, GpuLibrary, GpuPlatform, Handle, LibraryPurpose, Status, functions};

functions! {
    /// Functions of NVRTC or hipRTC.
    struct CompilerCalls {
        version(*mut c_int, *mut c_int) = "nvrtcVersion", "hiprtcVersion";
        create(*mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char)
            = "nvrtcCreateProgram", "hiprtcCreateProgram";
        destroy(*mut Handle) = "nvrtcDestroyProgram", "hiprtcDestroyProgram";
        compile(Handle, c_int, *const *const c_char) = "nvrtcCompileProgram", "hiprtcCompileProgram";
        log_size(Handle, *mut usize) = "nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize";
        log(Handle, *mut c_char) = "nvrtcGetProgramLog", "hiprtcGetProgramLog";
        code_size(Handle, *mut usize) = "nvrtcGetCUBINSize", "hiprtcGetCodeSize";
        code(Handle, *mut c_char) = "nvrtcGetCUBIN", "hiprtcGetCode";
    }
}

/// Functions of NVRTC that hipRTC lacks.
struct CudaCompilerCalls {
    arch_count: Function<unsafe extern "C" fn(*mut c_int) -> Status>,
    archs: Function<unsafe extern "C" fn(*mut c_int) -> Status>,
    ptx_size: Function<unsafe extern "C" fn(Handle, *mut usize) -> Status>,
    ptx: Function<unsafe extern "C" fn(Handle, *mut c_char) -> Status>,
}

/// NVRTC or hipRTC.
pub(super) struct KernelCompiler {
    platform: GpuPlatform,
    calls: CompilerCalls,
    cuda: Option<CudaCompilerCalls>,
    text: Function<unsafe extern "C" fn(Status) -> *const c_char>,
    /// The library's name.
    pub(super) library: String,
}

/// What NVRTC generates for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeTarget {
    /// Code of this capability (10·major + minor).
    Cubin(c_int),
    /// Code that the driver compiles further, where the device is newer than NVRTC.
    Ptx(c_int),
}

impl CodeTarget {
    /// For a device of `capability`, by an NVRTC that knows `known`; `None` where all of these are newer.
    fn of(capability: c_int, known: &[c_int]) -> Option<Self> {
        if known.contains(&capability) {
            return Some(Self::Cubin(capability));
        }
        known.iter().copied().filter(|&arch| arch < capability).max().map(Self::Ptx)
    }

    /// The compiler's option.
    fn option(self) -> String {
        match self {
            Self::Cubin(arch) => format!("--gpu-architecture=sm_{arch}"),
            Self::Ptx(arch) => format!("--gpu-architecture=compute_{arch}"),
        }
    }
}

/// The program that is compiled, freed when dropped.
struct ProgramSource<'c> {
    compiler: &'c KernelCompiler,
    handle: Handle,
}

impl KernelCompiler {
    /// Opens the compiler of `platform`.
    ///
    /// # Errors
    /// When there is none, or it lacks a function.
    pub(super) fn open(platform: GpuPlatform, newest: Option<u32>) -> Result<Self, DeviceError> {
        let library = GpuLibrary::open(platform, LibraryPurpose::Compiler, newest)?;
        let calls = CompilerCalls::load(&library)?;
        // SAFETY: by their names these are the vendor's functions, whose arguments are as in its headers.
        unsafe {
            let cuda = match platform {
                GpuPlatform::Cuda => Some(CudaCompilerCalls {
                    arch_count: library.function("nvrtcGetNumSupportedArchs")?,
                    archs: library.function("nvrtcGetSupportedArchs")?,
                    ptx_size: library.function("nvrtcGetPTXSize")?,
                    ptx: library.function("nvrtcGetPTX")?,
                }),
                GpuPlatform::Hip => None,
            };
            let text = library.function(platform.pick("nvrtcGetErrorString", "hiprtcGetErrorString"))?;
            Ok(Self { platform, calls, cuda, text, library: library.name })
        }
    }

    /// Success, or the error `status` of the function `name`.
    fn check(&self, name: &str, status: Status) -> Result<(), DeviceError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: returns a constant text.
        let text = unsafe { constant_text((self.text.call)(status)) }.unwrap_or_default();
        Err(self.platform.error(format!("{name} failed: {text} ({status})")))
    }

    /// Version of the compiler.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn version(&self) -> Result<String, DeviceError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two ints.
        let status = unsafe { (self.calls.version.call)(&raw mut major, &raw mut minor) };
        self.check(self.calls.version.name, status)?;
        Ok(format!("{major}.{minor}"))
    }

    /// Compiles `source` for a device; `capability` (10·major + minor) is that of a CUDA device. hipRTC compiles for the current
    /// device, which knows its own architecture, unless `arch` names one.
    ///
    /// # Errors
    /// When the compiler fails, with its messages.
    pub(super) fn compile(&self, source: &CStr, capability: c_int, arch: Option<&str>) -> Result<Vec<u8>, DeviceError> {
        let target = match &self.cuda {
            Some(cuda) => {
                let known = self.known(cuda)?;
                let too_old =
                    || self.platform.error(format!("{} does not know devices as old as this one", self.library));
                Some(CodeTarget::of(capability, &known).ok_or_else(too_old)?)
            }
            None => None,
        };
        let option = target.map(CodeTarget::option).or(arch.map(|arch| format!("--offload-arch={arch}")));
        let options = option.map(|text| CString::new(text).expect("no zero in an option"));
        let program = ProgramSource::new(self, source)?;
        program.compile(options.as_deref())?;
        match (target, &self.cuda) {
            (Some(CodeTarget::Ptx(_)), Some(cuda)) => program.bytes(cuda.ptx_size, cuda.ptx),
            _ => program.bytes(self.calls.code_size, self.calls.code),
        }
    }

    /// Capabilities that NVRTC knows.
    fn known(&self, cuda: &CudaCompilerCalls) -> Result<Vec<c_int>, DeviceError> {
        let mut count = 0;
        // SAFETY: writes one int.
        self.check(cuda.arch_count.name, unsafe { (cuda.arch_count.call)(&raw mut count) })?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes as many ints as `count` said.
        self.check(cuda.archs.name, unsafe { (cuda.archs.call)(known.as_mut_ptr()) })?;
        Ok(known)
    }
}

impl<'c> ProgramSource<'c> {
    fn new(compiler: &'c KernelCompiler, source: &CStr) -> Result<Self, DeviceError> {
        let (mut handle, create) = (0, compiler.calls.create);
        let (name, none) = (c"hpl_kernels.cu".as_ptr(), std::ptr::null());
        // SAFETY: writes one handle; the texts end with 0; no headers.
        let status = unsafe { (create.call)(&raw mut handle, source.as_ptr(), name, 0, none, none) };
        compiler.check(create.name, status)?;
        Ok(Self { compiler, handle })
    }

    fn compile(&self, option: Option<&CStr>) -> Result<(), DeviceError> {
        let (options, compile) = (option.map(CStr::as_ptr), self.compiler.calls.compile);
        let (count, options) = options.as_ref().map_or((0, std::ptr::null()), |option| (1, std::ptr::from_ref(option)));
        // SAFETY: `count` options, which end with 0.
        let status = unsafe { (compile.call)(self.handle, count, options) };
        self.compiler.check(compile.name, status).map_err(|error| {
            let calls = &self.compiler.calls;
            let log = self.bytes(calls.log_size, calls.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
            let told = if log.is_empty() { String::new() } else { format!(": {log}") };
            DeviceError { reason: format!("{}{told}", error.reason), ..error }
        })
    }

    /// What a pair of functions returns: the number of bytes, and the bytes.
    fn bytes(
        &self,
        size_of: Function<unsafe extern "C" fn(Handle, *mut usize) -> Status>,
        get: Function<unsafe extern "C" fn(Handle, *mut c_char) -> Status>,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut size = 0;
        // SAFETY: writes one size.
        self.compiler.check(size_of.name, unsafe { (size_of.call)(self.handle, &raw mut size) })?;
        let mut bytes = vec![0_u8; size];
        // SAFETY: writes as many bytes as it said.
        self.compiler.check(get.name, unsafe { (get.call)(self.handle, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for ProgramSource<'_> {
    fn drop(&mut self) {
        // SAFETY: created in `new`. An error could not be handled.
        let _ = unsafe { (self.compiler.calls.destroy.call)(&raw mut self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels::SOURCE;
    use super::*;

    #[test]
    fn a_device_newer_than_the_compiler_gets_code_that_the_driver_compiles() {
        let known = [50, 70, 80, 90, 100];
        assert_eq!(CodeTarget::of(90, &known).map(CodeTarget::option).as_deref(), Some("--gpu-architecture=sm_90"));
        assert_eq!(
            CodeTarget::of(120, &known).map(CodeTarget::option).as_deref(),
            Some("--gpu-architecture=compute_100")
        );
        assert_eq!(CodeTarget::of(35, &known), None);
    }

    /// The kernels by the real NVRTC, which needs no device: `tests/run --install` gets it and names its folder.
    #[test]
    #[ignore = "needs NVRTC"]
    fn needs_nvrtc_the_kernels_compile_for_nvidia() {
        let compiler = KernelCompiler::open(GpuPlatform::Cuda, None).unwrap();
        for capability in [70, 80, 90, 100] {
            let code = compiler.compile(SOURCE, capability, None).unwrap();
            println!("NVRTC {}: {} bytes for {capability}", compiler.version().unwrap(), code.len());
            assert!(code.starts_with(b"\x7fELF") && code.windows(11).any(|name| name == b"hpl_gather\0"));
        }
        let newer = compiler.compile(SOURCE, 999, None).unwrap();
        assert!(String::from_utf8_lossy(&newer).contains(".visible .entry hpl_gather"));
        let error = compiler.compile(c"int x = y;", 90, None).unwrap_err();
        assert!(error.reason.contains("\"y\" is undefined"), "{error}");
    }

    /// The kernels by the real hipRTC, which needs no device where the architecture is named.
    #[test]
    #[ignore = "needs hipRTC"]
    fn needs_hiprtc_the_kernels_compile_for_amd() {
        let compiler = KernelCompiler::open(GpuPlatform::Hip, None).unwrap();
        let code = compiler.compile(SOURCE, 0, Some("gfx90a")).unwrap();
        println!("hipRTC {}: {} bytes for gfx90a", compiler.version().unwrap(), code.len());
        assert!(code.windows(11).any(|name| name == b"hpl_gather\0"));
    }
}
