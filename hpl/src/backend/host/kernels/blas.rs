//! A BLAS by path: `dgemm_` and `dtrsm_` of a shared library, loaded at run time.
//!
//! The library is set to one thread, by each thread that calls it, and is never unloaded: its own threads or exit handlers may outlive
//! any handle.
//! Loading runs foreign code, which may crash the process; real runs are guarded child processes.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::Kernels;
use super::builtin::trsm_by;
use super::error::KernelError;
use super::isa::Isa;
use crate::mat::{Mat, MatMut};

/// What builds put before and after every name: PyPI's OpenBLAS `scipy_`, builds whose integers have 64 bits `64_`, as a rule.
const AFFIXES: [(&str, &str); 4] = [("", ""), ("scipy_", ""), ("", "64_"), ("scipy_", "64_")];

/// Functions `void f(int)` that set the number of threads, by library. That of OpenMP is found where the library needs OpenMP, and acts on
/// the calling thread: OpenBLAS built with OpenMP obeys it alone from version 0.3.22 on.
const SET_THREADS: [&str; 4] =
    ["openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads", "omp_set_num_threads"];

/// Functions `char *f(void)` that return the library's name and version.
const VERSION: [&str; 2] = ["openblas_get_config", "bli_info_get_version_str"];

/// A size, as pointer to 64 bits: on a little-endian machine a library with 32-bit integers, the usual case, reads the
/// low half, and one with 64-bit integers reads all of it.
type Int = *const i64;

/// Length of a character argument, which Fortran passes by value at the end; C implementations ignore it.
type Len = usize;

type Dgemm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    Int,
    Int,
    Int,
    *const f64,
    *const f64,
    Int,
    *const f64,
    Int,
    *const f64,
    *mut f64,
    Int,
    Len,
    Len,
);
type Dtrsm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    Int,
    Int,
    *const f64,
    *const f64,
    Int,
    *mut f64,
    Int,
    Len,
    Len,
    Len,
    Len,
);

/// One of [`SET_THREADS`].
type SetThreads = unsafe extern "C" fn(i64);

thread_local! {
    /// Address of `dgemm_` of the library that this thread has set to one thread; 0 for none.
    static SEQUENTIAL: Cell<usize> = const { Cell::new(0) };
}

/// The two routines of a BLAS library.
pub struct Blas {
    name: String,
    /// Instruction set of the small triangles and of the engine's own vector operations.
    isa: Isa,
    dgemm: Dgemm,
    dtrsm: Dtrsm,
    /// Those of [`SET_THREADS`] that the library has.
    set_threads: Vec<SetThreads>,
}

impl Blas {
    /// Loads the library at `path`. The self-test is done by [`super::load`].
    ///
    /// # Errors
    /// [`KernelError`] when it is no library or lacks a routine.
    pub fn open(path: &Path) -> Result<Self, KernelError> {
        // SAFETY: loading runs the library's initialisers; the user named it as a BLAS to run.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| KernelError::NoLibrary { path: path.to_owned(), why: loader_message(&error) })?;
        // Never closed.
        let library: &'static Library = Box::leak(Box::new(library));
        let affixes = AFFIXES
            .into_iter()
            .find(|affixes| address(library, *affixes, "dgemm_").is_some())
            .ok_or_else(|| KernelError::Lacks { path: path.to_owned(), routine: "dgemm_" })?;
        let lacks = |routine| KernelError::Lacks { path: path.to_owned(), routine };
        let dgemm = address(library, affixes, "dgemm_").ok_or_else(|| lacks("dgemm_"))?;
        let dtrsm = address(library, affixes, "dtrsm_").ok_or_else(|| lacks("dtrsm_"))?;
        let version = version(library, affixes).unwrap_or_else(|| "version unknown".to_owned());
        let blas = Self {
            name: format!("{} ({version})", path.display()),
            isa: Isa::detect(),
            // SAFETY: by their names these are the BLAS routines, whose arguments have not changed in 40 years.
            dgemm: unsafe { std::mem::transmute::<*mut (), Dgemm>(dgemm) },
            // SAFETY: as above.
            dtrsm: unsafe { std::mem::transmute::<*mut (), Dtrsm>(dtrsm) },
            set_threads: set_threads(library, affixes),
        };
        blas.set_sequential();
        Ok(blas)
    }
}

/// The loader's message, which is the source of the error.
pub(crate) fn loader_message(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Address of a symbol, never null.
fn address(library: &'static Library, (before, after): (&str, &str), name: &str) -> Option<*mut ()> {
    // SAFETY: only the address is taken; the caller casts it to its type.
    let symbol = unsafe { library.get::<*mut ()>(format!("{before}{name}{after}\0").as_bytes()) }.ok()?;
    Some(symbol.into_raw().cast()).filter(|address: &*mut ()| !address.is_null())
}

/// Those of [`SET_THREADS`] that the library has.
fn set_threads(library: &'static Library, affixes: (&str, &str)) -> Vec<SetThreads> {
    let find = |name: &&str| address(library, affixes, name).or_else(|| address(library, ("", ""), name));
    // SAFETY: all of these take one int and return nothing; BLIS takes a 64-bit one, which on every 64-bit calling convention is passed
    // in the same register, zero-extended by the caller here.
    let typed = |set: *mut ()| unsafe { std::mem::transmute::<*mut (), SetThreads>(set) };
    SET_THREADS.iter().filter_map(find).map(typed).collect()
}

fn version(library: &'static Library, affixes: (&str, &str)) -> Option<String> {
    let find = |name: &&str| address(library, affixes, name).or_else(|| address(library, ("", ""), name));
    let get = VERSION.iter().find_map(find)?;
    // SAFETY: both take nothing and return a static C string.
    let get = unsafe { std::mem::transmute::<*mut (), unsafe extern "C" fn() -> *const c_char>(get) };
    // SAFETY: as above.
    let text = unsafe { get() };
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, NUL-terminated, lives as long as the library.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
}

/// A size as BLAS takes it.
fn int(size: usize) -> i64 {
    i64::from(i32::try_from(size).expect("a local matrix has at most 2^31 rows and columns"))
}

/// A leading dimension as BLAS takes it: at least 1 also for an empty view.
fn ld(ld: usize) -> i64 {
    int(ld.max(1))
}

impl Blas {
    /// Sets the library to one thread where the calling thread has not done so: the engine has its own threads.
    fn set_sequential(&self) {
        let library = (self.dgemm as *const ()).addr();
        if SEQUENTIAL.replace(library) != library {
            for set in &self.set_threads {
                // SAFETY: as `set_threads` says. Several threads may call it at the same time, as `open` has made the first call, in
                // which OpenBLAS gives back the buffers of its other threads: later ones set the same number and find none.
                unsafe { set(1) };
            }
        }
    }

    /// C ← C − A·B or, with `form` T, C − A·Bᵀ; the shape of B fits.
    fn product(&self, a: Mat<'_>, form: &CStr, b: Mat<'_>, mut c: MatMut<'_>) {
        let (m, n, k) = (int(c.rows()), int(c.cols()), int(a.cols()));
        assert!(a.rows() == c.rows());
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        self.set_sequential();
        let (lda, ldb, ldc) = (ld(a.ld()), ld(b.ld()), ld(c.ld()));
        let (no, form, minus, one) = (c"N".as_ptr(), form.as_ptr(), -1.0, 1.0);
        // SAFETY: the views hold m×k, k×n (or n×k) and m×n elements at these leading dimensions; C is exclusive.
        unsafe {
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            (self.dgemm)(no, form, &m, &n, &k, &minus, a, &lda, b, &ldb, &one, c, &ldc, 1, 1);
        }
    }

    /// B ← B·U⁻¹ with U unit upper triangular; its shape fits.
    fn solve_right(&self, t: Mat<'_>, mut b: MatMut<'_>) {
        let (m, n) = (int(b.rows()), int(b.cols()));
        if m == 0 || n == 0 {
            return;
        }
        self.set_sequential();
        let (ldt, ldb, one) = (ld(t.ld()), ld(b.ld()), 1.0);
        let (side, part, no, unit) = (c"R".as_ptr(), c"U".as_ptr(), c"N".as_ptr(), c"U".as_ptr());
        // SAFETY: the views hold the triangle and m×n elements at these leading dimensions; B is exclusive.
        unsafe {
            let (t, b) = (t.as_ptr(), b.as_mut_ptr());
            (self.dtrsm)(side, part, no, unit, &m, &n, &one, t, &ldt, b, &ldb, 1, 1, 1, 1);
        }
    }
}

impl Kernels for Blas {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn isa(&self) -> Isa {
        self.isa
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        assert!(b.cols() == c.cols() && b.rows() == a.cols());
        self.product(a, c"N", b, c);
    }

    fn gemm_transposed(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        assert!(b.rows() == c.cols() && b.cols() == a.cols());
        self.product(a, c"T", b, c);
    }

    /// Small triangles by the built-in kernels, the rest by `dgemm_`: OpenBLAS's dtrsm reaches a sixth of its dgemm.
    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        trsm_by(self.isa, l, b, &|a, b, c| self.gemm(a, b, c));
    }

    fn trsm_right(&self, u: Mat<'_>, b: MatMut<'_>) {
        assert!(u.rows() == b.cols() && u.cols() == b.cols());
        self.solve_right(u, b);
    }
}

/// Libraries with the name of a BLAS in the usual folders; each file once.
pub fn installed() -> Vec<PathBuf> {
    const FOLDERS: [&str; 9] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib64",
        "/usr/local/lib",
        "/opt/OpenBLAS/lib",
        "/opt/intel/oneapi/mkl/latest/lib",
        "/opt/AMD/aocl/lib",
    ];
    let entries = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let named = entries.filter(|entry| is_blas_name(&entry.file_name().to_string_lossy()));
    // Several names can be links to one file.
    let mut files: Vec<PathBuf> = named.filter_map(|entry| entry.path().canonicalize().ok()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Whether a shared library of this file name is a BLAS: `libopenblas.so`, `libopenblasp-r0.3.21.so`,
/// `libblis.so.4`, `libmkl_rt.so.2`, `libblas.so.3`.
pub(super) fn is_blas_name(name: &str) -> bool {
    let known = ["libopenblas", "libblis", "libmkl_rt.", "libblas."].iter().any(|start| name.starts_with(start));
    known && (name.ends_with(".so") || name.contains(".so."))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::thread;

    use super::super::isa::used;
    use super::super::selftest;
    use super::*;

    /// A simple and slow BLAS in Rust.
    unsafe extern "C" fn dgemm(
        _: *const c_char,
        form: *const c_char,
        m: Int,
        n: Int,
        k: Int,
        alpha: *const f64,
        a: *const f64,
        lda: Int,
        b: *const f64,
        ldb: Int,
        _: *const f64,
        c: *mut f64,
        ldc: Int,
        _: Len,
        _: Len,
    ) {
        // SAFETY: called by `Blas` alone, whose views hold what is read and written here.
        unsafe {
            let (row, col) = if *form == b'N' as c_char { (1, *ldb) } else { (*ldb, 1) };
            for (i, j, p) in (0..*m).flat_map(|i| (0..*n).flat_map(move |j| (0..*k).map(move |p| (i, j, p)))) {
                let product = *a.offset((i + p * *lda) as isize) * *b.offset((p * row + j * col) as isize);
                *c.offset((i + j * *ldc) as isize) += *alpha * product;
            }
        }
    }

    unsafe extern "C" fn dtrsm(
        _: *const c_char,
        _: *const c_char,
        _: *const c_char,
        _: *const c_char,
        m: Int,
        n: Int,
        _: *const f64,
        t: *const f64,
        ldt: Int,
        b: *mut f64,
        ldb: Int,
        _: Len,
        _: Len,
        _: Len,
        _: Len,
    ) {
        // SAFETY: as above.
        unsafe {
            for (j, p, i) in (0..*n).flat_map(|j| (0..j).flat_map(move |p| (0..*m).map(move |i| (j, p, i)))) {
                let product = *b.offset((i + p * *ldb) as isize) * *t.offset((p + j * *ldt) as isize);
                *b.offset((i + j * *ldb) as isize) -= product;
            }
        }
    }

    thread_local! {
        /// The numbers of threads that have been set on this thread.
        static SET: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    }

    extern "C" fn omp_set_num_threads(number: i64) {
        SET.with_borrow_mut(|set| set.push(number));
    }

    /// With OpenMP only the thread that loaded the library had one thread, and each other thread used all cores.
    #[test]
    fn each_thread_sets_the_library_to_one_thread_once() {
        let set_threads = vec![omp_set_num_threads as SetThreads];
        let blas = Blas { name: "test".to_owned(), isa: Isa::Portable, dgemm, dtrsm, set_threads };
        let numbers_set = || {
            let (a, mut b) = ([0.5; 4], [1.0; 4]);
            let a = Mat::new(&a, 2, 2, 2);
            blas.gemm(a, a, MatMut::new(&mut b, 2, 2, 2));
            blas.trsm_right(a, MatMut::new(&mut b, 2, 2, 2));
            SET.take()
        };
        let on_each = thread::scope(|scope| {
            let threads = [0, 1].map(|_| scope.spawn(numbers_set));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(on_each, [[1], [1]]);
    }

    /// The small triangles are built-in and use only the instruction set of the `Blas` value.
    #[test]
    fn triangles_beside_a_library_use_the_given_instruction_set() {
        for isa in Isa::available() {
            let blas = Blas { name: "test".to_owned(), isa, dgemm, dtrsm, set_threads: Vec::new() };
            assert_eq!(selftest::check(&blas), Ok(()), "{isa:?}");
            let (l, mut b) = ([0.0; 100 * 100], [1.0; 100 * 9]);
            let solve = || blas.trsm(Mat::new(&l, 100, 100, 100), MatMut::new(&mut b, 100, 9, 100));
            assert_eq!((used::during(solve), blas.isa()), (vec![isa], isa));
        }
    }

    #[test]
    fn blas_names() {
        for name in ["libopenblas.so", "libopenblasp-r0.3.21.so", "libblis.so.4", "libmkl_rt.so.2", "libblas.so.3"] {
            assert!(is_blas_name(name), "{name}");
        }
        for name in
            ["libblas.a", "libopenblas.txt", "libc.so.6", "liblapack.so.3", "libmkl_core.so", "libblastrampoline.so"]
        {
            assert!(!is_blas_name(name), "{name}");
        }
    }
}
