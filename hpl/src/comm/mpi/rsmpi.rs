//! The calls by rsmpi, of the MPI library that this program was built for.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each function passes its arguments on to MPI; the caller guarantees them"
)]

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;

use mpi::ffi;

use super::calls::{Calls, Raw};

/// The calls; the functions below pass their arguments on to MPI.
pub(super) static CALLS: Calls = Calls {
    version: 1,
    text_room: if ffi::MPI_MAX_LIBRARY_VERSION_STRING > ffi::MPI_MAX_ERROR_STRING {
        ffi::MPI_MAX_LIBRARY_VERSION_STRING as u64
    } else {
        ffi::MPI_MAX_ERROR_STRING as u64
    },
    initialized,
    init,
    world,
    errors_return,
    rank,
    size,
    split,
    split_node,
    free_comm,
    allgather,
    isend,
    irecv,
    ibarrier,
    test,
    error_string,
    is_truncation,
    library,
    abort_job,
    finalize,
};

/// A handle of the library in 64 bits.
fn to_raw<T: Copy>(native: T) -> Raw {
    const { assert!(size_of::<T>() <= size_of::<Raw>()) };
    let mut raw: Raw = 0;
    // SAFETY: a plain value that is no longer than `raw`.
    unsafe { ptr::from_mut(&mut raw).cast::<T>().write_unaligned(native) };
    raw
}

/// The handle that [`to_raw`] has stored.
///
/// # Safety
/// `raw` was made of a `T`.
unsafe fn native<T: Copy>(raw: Raw) -> T {
    // SAFETY: by the caller.
    unsafe { ptr::from_ref(&raw).cast::<T>().read_unaligned() }
}

/// Calls a function that creates a handle of type `T`, and stores it in `made`.
///
/// # Safety
/// `made` is valid.
unsafe fn creating<T: Copy>(null: T, made: *mut Raw, call: impl FnOnce(&mut T) -> c_int) -> c_int {
    let mut new = null;
    let code = call(&mut new);
    // SAFETY: by the caller.
    unsafe { *made = to_raw(new) };
    code
}

unsafe extern "C" fn initialized(flag: *mut c_int) -> c_int {
    unsafe { ffi::MPI_Initialized(flag) }
}

unsafe extern "C" fn init(funneled: *mut c_int) -> c_int {
    let mut provided = 0;
    unsafe {
        let wanted = ffi::RSMPI_THREAD_FUNNELED;
        let code = ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &mut provided);
        *funneled = c_int::from(provided >= wanted);
        code
    }
}

unsafe extern "C" fn world() -> Raw {
    to_raw(unsafe { ffi::RSMPI_COMM_WORLD })
}

unsafe extern "C" fn errors_return(comm: Raw) -> c_int {
    unsafe { ffi::MPI_Comm_set_errhandler(native(comm), ffi::RSMPI_ERRORS_RETURN) }
}

unsafe extern "C" fn rank(comm: Raw, rank: *mut c_int) -> c_int {
    unsafe { ffi::MPI_Comm_rank(native(comm), rank) }
}

unsafe extern "C" fn size(comm: Raw, size: *mut c_int) -> c_int {
    unsafe { ffi::MPI_Comm_size(native(comm), size) }
}

unsafe extern "C" fn split(comm: Raw, color: c_int, key: c_int, made: *mut Raw) -> c_int {
    unsafe { creating(ffi::RSMPI_COMM_NULL, made, |new| ffi::MPI_Comm_split(native(comm), color, key, new)) }
}

unsafe extern "C" fn split_node(comm: Raw, made: *mut Raw) -> c_int {
    unsafe {
        let (shared, info) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
        creating(ffi::RSMPI_COMM_NULL, made, |new| ffi::MPI_Comm_split_type(native(comm), shared, 0, info, new))
    }
}

unsafe extern "C" fn free_comm(comm: Raw) -> c_int {
    unsafe { ffi::MPI_Comm_free(&mut native(comm)) }
}

unsafe extern "C" fn allgather(mine: *const u64, count: c_int, all: *mut u64, comm: Raw) -> c_int {
    unsafe {
        let kind = ffi::RSMPI_UINT64_T;
        ffi::MPI_Allgather(mine.cast(), count, kind, all.cast(), count, kind, native(comm))
    }
}

unsafe extern "C" fn isend(
    data: *const f64,
    count: c_int,
    to: c_int,
    tag: c_int,
    comm: Raw,
    request: *mut Raw,
) -> c_int {
    unsafe {
        let (null, kind) = (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_DOUBLE);
        creating(null, request, |new| ffi::MPI_Isend(data.cast(), count, kind, to, tag, native(comm), new))
    }
}

unsafe extern "C" fn irecv(
    data: *mut f64,
    count: c_int,
    from: c_int,
    tag: c_int,
    comm: Raw,
    request: *mut Raw,
) -> c_int {
    unsafe {
        let (null, kind) = (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_DOUBLE);
        creating(null, request, |new| ffi::MPI_Irecv(data.cast(), count, kind, from, tag, native(comm), new))
    }
}

unsafe extern "C" fn ibarrier(comm: Raw, request: *mut Raw) -> c_int {
    unsafe { creating(ffi::RSMPI_REQUEST_NULL, request, |new| ffi::MPI_Ibarrier(native(comm), new)) }
}

unsafe extern "C" fn test(request: *mut Raw, done: *mut c_int, count: *mut c_int) -> c_int {
    let mut status = MaybeUninit::uninit();
    unsafe {
        let mut native_request: ffi::MPI_Request = native(*request);
        let code = ffi::MPI_Test(&mut native_request, done, status.as_mut_ptr());
        *request = to_raw(native_request);
        if code == 0 && *done != 0 {
            ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_DOUBLE, count);
        }
        code
    }
}

unsafe extern "C" fn error_string(code: c_int, text: *mut c_char, len: *mut c_int) -> c_int {
    unsafe { ffi::MPI_Error_string(code, text, len) }
}

unsafe extern "C" fn is_truncation(code: c_int) -> c_int {
    let mut class = 0;
    unsafe { ffi::MPI_Error_class(code, &mut class) };
    c_int::from(class == ffi::MPI_ERR_TRUNCATE as c_int)
}

unsafe extern "C" fn library(text: *mut c_char, len: *mut c_int) -> c_int {
    unsafe { ffi::MPI_Get_library_version(text, len) }
}

unsafe extern "C" fn abort_job(code: c_int) -> c_int {
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) }
}

unsafe extern "C" fn finalize() -> c_int {
    unsafe { ffi::MPI_Finalize() }
}
