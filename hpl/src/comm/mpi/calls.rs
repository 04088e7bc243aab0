//! The MPI calls of the engine, with types that are the same for all MPI libraries.
//!
//! They belong to the library that this program was built for (cargo feature `mpi`, by rsmpi), or to the shared library
//! [`LIBRARY`] in the folder of the program, which is compiled from `calls.c` by the `mpicc` of a machine.

use std::env;
use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Name of the shared library, in the folder of the program that loads it.
pub const LIBRARY: &str = "libhpl_mpi.so";
/// Its C source.
pub const SOURCE: &str = include_str!("calls.c");
/// Version of the table of calls.
const VERSION: u64 = 1;
/// Upper limit of the texts of all MPI libraries, in bytes.
const MOST_TEXT: u64 = 1 << 20;

/// A communicator or request of the library, kept in 64 bits.
pub(super) type Raw = u64;

/// The calls. Results are MPI's codes, 0 for success.
#[repr(C)]
pub struct Calls {
    pub(super) version: u64,
    /// Bytes of the longest text.
    pub(super) text_room: u64,
    pub(super) initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    /// `MPI_Init_thread`; the result says whether `MPI_THREAD_FUNNELED` is provided.
    pub(super) init: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(super) world: unsafe extern "C" fn() -> Raw,
    pub(super) errors_return: unsafe extern "C" fn(Raw) -> c_int,
    pub(super) rank: unsafe extern "C" fn(Raw, *mut c_int) -> c_int,
    pub(super) size: unsafe extern "C" fn(Raw, *mut c_int) -> c_int,
    /// Splits a communicator by colour and key.
    pub(super) split: unsafe extern "C" fn(Raw, c_int, c_int, *mut Raw) -> c_int,
    /// Splits a communicator by node.
    pub(super) split_node: unsafe extern "C" fn(Raw, *mut Raw) -> c_int,
    pub(super) free_comm: unsafe extern "C" fn(Raw) -> c_int,
    pub(super) allgather: unsafe extern "C" fn(*const u64, c_int, *mut u64, Raw) -> c_int,
    /// Arguments: doubles, their count, rank, tag.
    pub(super) isend: unsafe extern "C" fn(*const f64, c_int, c_int, c_int, Raw, *mut Raw) -> c_int,
    pub(super) irecv: unsafe extern "C" fn(*mut f64, c_int, c_int, c_int, Raw, *mut Raw) -> c_int,
    pub(super) ibarrier: unsafe extern "C" fn(Raw, *mut Raw) -> c_int,
    /// `MPI_Test`: whether a request is complete, and how many doubles it received.
    pub(super) test: unsafe extern "C" fn(*mut Raw, *mut c_int, *mut c_int) -> c_int,
    pub(super) error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    pub(super) is_truncation: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) library: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
    pub(super) abort_job: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) finalize: unsafe extern "C" fn() -> c_int,
}

/// The library in the folder of the program cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {reason}; create it again with hpl-tune mpi-setup, or remove it for a program without MPI")]
pub struct LibraryError {
    path: String,
    reason: String,
}

impl Calls {
    /// Whether this program has MPI; it may be another MPI than that of the launcher.
    pub fn exist() -> bool {
        cfg!(feature = "mpi") || installed().is_some()
    }

    /// The calls of the shared library at `path`, which stays loaded.
    ///
    /// # Errors
    /// [`LibraryError`].
    #[cfg_attr(feature = "mpi", cfg_attr(not(test), expect(dead_code, reason = "this program has MPI by rsmpi")))]
    pub(super) fn load(path: &Path) -> Result<&'static Self, LibraryError> {
        let refused = |reason: String| LibraryError { path: path.display().to_string(), reason };
        // SAFETY: MPI libraries are made to be loaded; a file in the folder of the program is trusted as the program is. Global,
        // since components that Open MPI loads later need its symbols.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = library.map_err(|error| refused(error.to_string()))?;
        // SAFETY: calls.c defines a table of this form with this name, and its version comes first.
        let table = unsafe { library.get::<*const Self>(b"hpl_mpi_calls\0") };
        let table: *const Self = table.map_err(|error| refused(error.to_string()))?.as_raw_ptr().cast();
        // SAFETY: the first words of any version of the table.
        let (version, room) = unsafe { ((*table).version, (*table).text_room) };
        if version != VERSION || room > MOST_TEXT {
            return Err(refused(format!("its table is version {version}, this program's {VERSION}")));
        }
        std::mem::forget(library);
        // SAFETY: the table has this version, and the library stays loaded.
        Ok(unsafe { &*table })
    }

    /// Name and version of the MPI library.
    pub(super) fn library(&self) -> String {
        let first = |text: String| {
            let name = text.split([',', '\n']).next().unwrap_or_default();
            name.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // SAFETY: may be called at any time, with room for the longest text.
        first(self.text(|text, len| unsafe { (self.library)(text, len) }))
    }

    /// A text that a call writes; empty where it fails.
    pub(super) fn text(&self, call: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
        let mut text = vec![0_u8; self.text_room as usize + 1];
        let mut len = 0;
        let code = call(text.as_mut_ptr().cast(), &mut len);
        let len = if code == 0 { (len as usize).min(text.len()) } else { 0 };
        String::from_utf8_lossy(&text[..len]).trim_end_matches('\0').to_owned()
    }
}

/// The library in the folder of this program, if it exists.
pub(super) fn installed() -> Option<PathBuf> {
    env::current_exe().ok().map(|program| program.with_file_name(LIBRARY)).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LIBRARY);
        let message = || Calls::load(&path).err().unwrap().to_string();
        assert!(message().contains(LIBRARY) && message().contains("mpi-setup"), "{}", message());
        std::fs::write(&path, "no library").unwrap();
        assert!(message().contains("mpi-setup"), "{}", message());
    }
}
