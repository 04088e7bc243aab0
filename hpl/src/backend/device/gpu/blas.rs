//! cuBLAS or rocBLAS: the same functions with the same arguments, under other names and with other numbers for their options.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use super::super::{Block, DeviceError};
use super::driver::{Gpu, constant_text};
use super::library::{Address, Function, GpuLibrary, Handle, LibraryPurpose, Status, functions};
use super::memory::GpuMemory;

functions! {
    /// Functions of cuBLAS or rocBLAS.
    struct BlasCalls {
        create(*mut Handle) = "cublasCreate_v2", "rocblas_create_handle";
        destroy(Handle) = "cublasDestroy_v2", "rocblas_destroy_handle";
        set_stream(Handle, Handle) = "cublasSetStream_v2", "rocblas_set_stream";
        gemm(
            Handle, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int, *const f64, Address, c_int
        ) = "cublasDgemm_v2", "rocblas_dgemm";
        trsm(Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int)
            = "cublasDtrsm_v2", "rocblas_dtrsm";
        trsv(Handle, c_int, c_int, c_int, c_int, Address, c_int, Address, c_int) = "cublasDtrsv_v2", "rocblas_dtrsv";
        gemv(
            Handle, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int, *const f64, Address, c_int
        ) = "cublasDgemv_v2", "rocblas_dgemv";
    }
}

/// A handle of the BLAS of a device.
pub(super) struct GpuBlas {
    gpu: Arc<Gpu>,
    calls: BlasCalls,
    text: Function<unsafe extern "C" fn(Status) -> *const c_char>,
    handle: Handle,
    /// The library's name.
    pub(super) library: String,
}

/// The numbers of options.
struct BlasOptions {
    not_transposed: c_int,
    upper: c_int,
    lower: c_int,
    not_unit: c_int,
    unit: c_int,
    left: c_int,
}

/// `cublasOperation_t`, `cublasFillMode_t`, `cublasDiagType_t`, `cublasSideMode_t`
const CUBLAS: BlasOptions = BlasOptions { not_transposed: 0, upper: 1, lower: 0, not_unit: 0, unit: 1, left: 0 };

/// `rocblas_operation`, `rocblas_fill`, `rocblas_diagonal`, `rocblas_side`
const ROCBLAS: BlasOptions =
    BlasOptions { not_transposed: 111, upper: 121, lower: 122, not_unit: 131, unit: 132, left: 141 };

pub(super) static ZERO: f64 = 0.0;
pub(super) static ONE: f64 = 1.0;
pub(super) static MINUS_ONE: f64 = -1.0;

/// A size as the BLAS takes it.
fn int(size: usize) -> c_int {
    c_int::try_from(size).expect("the local matrix has fewer than 2^31 rows and columns")
}

impl GpuBlas {
    /// Opens the BLAS for the current device.
    ///
    /// # Errors
    /// When there is none, or it fails.
    pub(super) fn open(gpu: &Arc<Gpu>) -> Result<Self, DeviceError> {
        let library =
            GpuLibrary::open(gpu.driver.platform, LibraryPurpose::Blas, gpu.driver.newest_toolkit(gpu.device)?)?;
        let calls = BlasCalls::load(&library)?;
        let text = gpu.driver.platform.pick("cublasGetStatusString", "rocblas_status_to_string");
        // SAFETY: both take a status and return a constant text.
        let text = unsafe { library.function(text)? };
        let mut blas = Self { gpu: Arc::clone(gpu), calls, text, handle: 0, library: library.name };
        let mut handle = 0;
        // SAFETY: writes one handle.
        blas.check(blas.calls.create.name, unsafe { (blas.calls.create.call)(&raw mut handle) })?;
        blas.handle = handle;
        Ok(blas)
    }

    fn options(&self) -> &'static BlasOptions {
        self.gpu.driver.platform.pick(&CUBLAS, &ROCBLAS)
    }

    /// Success, or the error `status` of the function `name`.
    fn check(&self, name: &str, status: Status) -> Result<(), DeviceError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: returns a constant text, or null.
        let text = unsafe { constant_text((self.text.call)(status)) }.unwrap_or_default();
        let reason = format!("{name} failed: {text} ({status})");
        // `CUBLAS_STATUS_ALLOC_FAILED`, `rocblas_status_memory_error`
        let lacks_memory = status == self.gpu.driver.platform.pick(3, 5);
        Err(DeviceError { device: self.gpu.label.clone(), reason, lacks_memory })
    }

    /// The next calls are queued on `stream`.
    ///
    /// # Errors
    /// When the BLAS fails.
    pub(super) fn on(&self, stream: Handle) -> Result<(), DeviceError> {
        let set = &self.calls.set_stream;
        // SAFETY: handle and stream exist.
        self.check(set.name, unsafe { (set.call)(self.handle, stream) })
    }

    /// B ← L⁻¹·B with L unit lower triangular.
    ///
    /// # Errors
    /// When the BLAS fails.
    pub(super) fn trsm(&self, l: Block<'_, GpuMemory>, b: Block<'_, GpuMemory>) -> Result<(), DeviceError> {
        let (call, of) = (&self.calls.trsm, self.options());
        let [m, n, ldl, ldb] = [b.rows, b.cols, l.ld, b.ld].map(int);
        // SAFETY: both blocks are inside memory of this device; the factor is read before the call returns.
        let status = unsafe {
            let (a, b) = (l.address(), b.address());
            (call.call)(
                self.handle,
                of.left,
                of.lower,
                of.not_transposed,
                of.unit,
                m,
                n,
                &raw const ONE,
                a,
                ldl,
                b,
                ldb,
            )
        };
        self.check(call.name, status)
    }

    /// C ← β·C + α·A·B
    ///
    /// # Errors
    /// When the BLAS fails.
    pub(super) fn gemm(
        &self,
        (alpha, beta): (&'static f64, &'static f64),
        a: Block<'_, GpuMemory>,
        b: Block<'_, GpuMemory>,
        c: Block<'_, GpuMemory>,
    ) -> Result<(), DeviceError> {
        let (call, no) = (&self.calls.gemm, self.options().not_transposed);
        let [m, n, k] = [c.rows, c.cols, a.cols].map(int);
        let [lda, ldb, ldc] = [a.ld, b.ld, c.ld].map(int);
        // SAFETY: the blocks are inside memory of this device; the factors are read before the call returns.
        let status = unsafe {
            let (alpha, beta) = (&raw const *alpha, &raw const *beta);
            let [a, b, c] = [a.address(), b.address(), c.address()];
            (call.call)(self.handle, no, no, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
        };
        self.check(call.name, status)
    }

    /// x ← U⁻¹·x with U upper triangular.
    ///
    /// # Errors
    /// When the BLAS fails.
    pub(super) fn trsv(&self, u: Block<'_, GpuMemory>, x: Block<'_, GpuMemory>) -> Result<(), DeviceError> {
        let (call, of) = (&self.calls.trsv, self.options());
        let [n, ld] = [u.cols, u.ld].map(int);
        // SAFETY: both blocks are inside memory of this device.
        let status = unsafe {
            let (u, x) = (u.address(), x.address());
            (call.call)(self.handle, of.upper, of.not_transposed, of.not_unit, n, u, ld, x, 1)
        };
        self.check(call.name, status)
    }

    /// y ← y − A·x
    ///
    /// # Errors
    /// When the BLAS fails.
    pub(super) fn gemv(
        &self,
        a: Block<'_, GpuMemory>,
        x: Block<'_, GpuMemory>,
        y: Block<'_, GpuMemory>,
    ) -> Result<(), DeviceError> {
        let (call, no) = (&self.calls.gemv, self.options().not_transposed);
        let [m, n, ld] = [a.rows, a.cols, a.ld].map(int);
        // SAFETY: the blocks are inside memory of this device; the factors are read before the call returns.
        let status = unsafe {
            let (minus, one) = (&raw const MINUS_ONE, &raw const ONE);
            let [a, x, y] = [a.address(), x.address(), y.address()];
            (call.call)(self.handle, no, m, n, minus, a, ld, x, 1, one, y, 1)
        };
        self.check(call.name, status)
    }
}

impl Drop for GpuBlas {
    fn drop(&mut self) {
        if self.handle != 0 {
            // SAFETY: created in `open`. An error could not be handled.
            let _ = unsafe { (self.calls.destroy.call)(self.handle) };
        }
    }
}
