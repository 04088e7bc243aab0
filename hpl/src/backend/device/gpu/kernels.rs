//! The kernels of `kernels.c` on one device.

use std::ffi::{CStr, c_uint, c_void};
use std::sync::Arc;

use super::super::DeviceError;
use super::code_cache::CodeCache;
use super::compiler::KernelCompiler;
use super::driver::{Gpu, name};
use super::library::Handle;

/// The source of the kernels.
pub(super) const SOURCE: &CStr = {
    let source = concat!(include_str!("kernels.c"), "\0");
    match CStr::from_bytes_with_nul(source.as_bytes()) {
        Ok(source) => source,
        Err(_) => panic!("the source contains a zero byte"),
    }
};

/// Threads of a block.
const THREADS: u64 = 256;

/// Largest number of blocks along Y, the least that a platform allows.
const MOST_Y: u64 = 65_535;

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuKernel {
    Copy,
    Transpose,
    Gather,
    Scatter,
    Generate,
    RowSums,
    CheckRows,
    CheckCols,
    Factor,
    Interchange,
    Permute,
}

impl GpuKernel {
    const ALL: [Self; 11] = [
        Self::Copy,
        Self::Transpose,
        Self::Gather,
        Self::Scatter,
        Self::Generate,
        Self::RowSums,
        Self::CheckRows,
        Self::CheckCols,
        Self::Factor,
        Self::Interchange,
        Self::Permute,
    ];

    fn name(self) -> &'static CStr {
        match self {
            Self::Copy => c"hpl_copy",
            Self::Transpose => c"hpl_transpose",
            Self::Gather => c"hpl_gather",
            Self::Scatter => c"hpl_scatter",
            Self::Generate => c"hpl_generate",
            Self::RowSums => c"hpl_row_sums",
            Self::CheckRows => c"hpl_check_rows",
            Self::CheckCols => c"hpl_check_cols",
            Self::Factor => c"hpl_factor",
            Self::Interchange => c"hpl_interchange",
            Self::Permute => c"hpl_permute",
        }
    }
}

/// How many threads work on a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum LaunchSize {
    /// One for each element along X and Y, if that is possible.
    Elements(usize, usize),
    /// Blocks of so many threads.
    Blocks(usize, c_uint),
}

impl LaunchSize {
    /// Blocks along X and Y, and threads of each; `None` for no elements.
    fn grid(self) -> Option<[c_uint; 3]> {
        let count = |count: u64| c_uint::try_from(count).unwrap_or(c_uint::MAX);
        match self {
            Self::Elements(0, _) | Self::Elements(_, 0) => None,
            Self::Elements(x, y) => {
                let blocks = (x as u64).div_ceil(THREADS).min(1 << 20);
                Some([count(blocks), count((y as u64).min(MOST_Y)), count(THREADS)])
            }
            Self::Blocks(blocks, threads) => Some([count(blocks as u64), 1, threads]),
        }
    }
}

/// Sizes as arguments of kernels.
pub(super) fn words<const N: usize>(sizes: [usize; N]) -> [u64; N] {
    sizes.map(|size| size as u64)
}

/// The kernels, compiled for a device.
pub(super) struct GpuKernels {
    gpu: Arc<Gpu>,
    module: Handle,
    kernels: [Handle; GpuKernel::ALL.len()],
}

/// Loads compiled kernels.
fn load(gpu: &Gpu, code: &[u8]) -> Result<Handle, DeviceError> {
    let (mut module, load) = (0, gpu.driver.calls.load_module);
    // SAFETY: writes one handle; the code is what the compiler made, and read before the call returns.
    gpu.check(load.name, unsafe { (load.call)(&raw mut module, code.as_ptr().cast()) })?;
    Ok(module)
}

impl GpuKernels {
    /// Loads the kernels, which are compiled where they have not been before.
    ///
    /// # Errors
    /// When compiler or driver fail.
    pub(super) fn new(gpu: &Arc<Gpu>) -> Result<Self, DeviceError> {
        let compiler = KernelCompiler::open(gpu.driver.platform, gpu.driver.newest_toolkit(gpu.device)?)?;
        let capability = gpu.driver.capability(gpu.device, &gpu.label)?;
        // One code for all devices of a name.
        let device = name(&gpu.driver, gpu.device)?;
        let compiled_by = format!("{} {}, capability {capability}, {device}", compiler.library, compiler.version()?);
        let cache = CodeCache::of(&[SOURCE.to_bytes(), compiled_by.as_bytes()]);
        // What the driver does not take is compiled again.
        let module = match cache.read().and_then(|code| load(gpu, &code).ok()) {
            Some(module) => module,
            None => {
                let code = compiler.compile(SOURCE, capability, None)?;
                let module = load(gpu, &code)?;
                cache.write(&code);
                module
            }
        };
        let mut loaded = Self { gpu: Arc::clone(gpu), module, kernels: [0; GpuKernel::ALL.len()] };
        for (handle, kernel) in loaded.kernels.iter_mut().zip(GpuKernel::ALL) {
            let find = gpu.driver.calls.kernel;
            // SAFETY: writes one handle; the name ends with 0.
            gpu.check(find.name, unsafe { (find.call)(handle, module, kernel.name().as_ptr()) })?;
        }
        Ok(loaded)
    }

    /// Queues `kernel` on `stream` with so many threads; nothing for no elements.
    ///
    /// # Errors
    /// When the driver refuses it.
    ///
    /// # Safety
    /// `arguments` must be those of the kernel in `kernels.c`: sizes, and addresses of device memory that has what the kernel
    /// reads and writes. A kernel whose threads wait for each other must be launched by blocks.
    pub(super) unsafe fn launch(
        &self,
        stream: Handle,
        kernel: GpuKernel,
        size: LaunchSize,
        arguments: &[u64],
    ) -> Result<(), DeviceError> {
        let Some([x, y, threads]) = size.grid() else { return Ok(()) };
        let mut values = arguments.to_vec();
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let (launch, kernel) = (self.gpu.driver.calls.launch, self.kernels[kernel as usize]);
        // SAFETY: one pointer to eight bytes for each argument, read before the call returns; the rest is said by the caller.
        let status = unsafe {
            (launch.call)(kernel, x, y, 1, threads, 1, 1, 0, stream, pointers.as_mut_ptr(), std::ptr::null_mut())
        };
        self.gpu.check(launch.name, status)
    }
}

impl Drop for GpuKernels {
    fn drop(&mut self) {
        // SAFETY: loaded in `new`; the device has executed all kernels (see `GpuDevice::drop`).
        let _ = unsafe { (self.gpu.driver.calls.unload_module.call)(self.module) };
    }
}
