//! What a copy of columns between host and device is to each platform.

use std::ffi::{c_uint, c_void};

use super::library::{Address, Handle};

/// `CUDA_MEMCPY2D` of cuda.h.
#[repr(C)]
pub(super) struct CudaCopy {
    from: CudaCopySide,
    to: CudaCopySide,
    width_bytes: usize,
    height: usize,
}

impl CudaCopy {
    /// `cols` columns of `bytes` bytes.
    pub(super) fn new(from: CopySide, to: CopySide, (bytes, cols): (usize, usize)) -> Self {
        Self { from: from.cuda(), to: to.cuda(), width_bytes: bytes, height: cols }
    }
}

/// Source or target in `CUDA_MEMCPY2D`.
#[repr(C)]
struct CudaCopySide {
    x_bytes: usize,
    y: usize,
    /// `CUmemorytype`: 1 for host memory, 2 for device memory.
    kind: c_uint,
    host: usize,
    device: Address,
    array: Handle,
    pitch_bytes: usize,
}

/// Columns of equal length on one side of a copy between host and device: the first byte, and bytes from one column to the next.
#[derive(Debug, Clone, Copy)]
pub(super) enum CopySide {
    Host(*mut c_void, usize),
    Device(Address, usize),
}

impl CopySide {
    fn cuda(self) -> CudaCopySide {
        let (kind, host, device, pitch_bytes) = match self {
            Self::Host(start, pitch) => (1, start as usize, 0, pitch),
            Self::Device(start, pitch) => (2, 0, start, pitch),
        };
        CudaCopySide { x_bytes: 0, y: 0, kind, host, device, array: 0, pitch_bytes }
    }

    /// First byte, and bytes from one column to the next, as HIP takes them.
    pub(super) fn hip(self) -> (*mut c_void, usize) {
        match self {
            Self::Host(start, pitch) => (start, pitch),
            Self::Device(start, pitch) => (start as usize as *mut c_void, pitch),
        }
    }
}
