//! The choice of kernels: the built-in ones, a BLAS by path, or the fastest of the installed ones.

use std::time::{Duration, Instant};

use space::KernelChoice;

use super::blas::{self, Blas};
use super::error::KernelError;
use super::{Builtin, Kernels, selftest};
use crate::mat::{Buffer, Mat, MatMut};

/// Longest time for the calls that measure one library, unless single ones take longer.
const LONGEST: Duration = Duration::from_millis(60);

/// Loads and tests the kernels of a choice; for `auto` the fastest, see [`resolve`].
///
/// # Errors
/// [`KernelError`].
pub fn load(choice: &KernelChoice) -> Result<Box<dyn Kernels>, KernelError> {
    let kernels: Box<dyn Kernels> = match choice {
        KernelChoice::Auto => return load(&resolve(choice)?.0),
        KernelChoice::Builtin => Box::new(Builtin::best()),
        KernelChoice::Limited(set) => {
            Box::new(Builtin::of(*set).ok_or_else(|| KernelError::NoSet { choice: choice.clone() })?)
        }
        KernelChoice::Blas(path) => Box::new(Blas::open(path)?),
    };
    selftest::check(&*kernels).map_err(|mismatch| KernelError::Wrong {
        kernels: kernels.name(),
        operation: mismatch.operation,
        error: mismatch.error,
    })?;
    Ok(kernels)
}

/// Resolves `auto`, and returns the choice with its reason: of the built-in kernels and the BLAS libraries of the system
/// that pass the self-test, the one that updates a trailing matrix fastest on one core; the built-in ones where no library
/// is faster by 2 %. A path is made absolute, so that it is also valid in another folder.
///
/// A faulty library may crash the process instead of failing the test.
///
/// # Errors
/// [`KernelError::NoLibrary`] for a path at which there is no file; `auto` always has the built-in kernels.
pub fn resolve(choice: &KernelChoice) -> Result<(KernelChoice, String), KernelError> {
    match choice {
        KernelChoice::Auto => Ok(fastest()),
        KernelChoice::Builtin | KernelChoice::Limited(_) => Ok((choice.clone(), "as requested".to_owned())),
        KernelChoice::Blas(path) => {
            let absolute = std::fs::canonicalize(path)
                .map_err(|error| KernelError::NoLibrary { path: path.clone(), why: error.to_string() })?;
            Ok((KernelChoice::Blas(absolute), "as requested".to_owned()))
        }
    }
}

/// Measurements of each library, alternating: a short disturbance by another program affects only one of them.
const ROUNDS: usize = 4;
/// A library whose first measurement is below this share of the highest rate is not measured again: it could take seconds.
const HOPELESS: f64 = 0.5;
/// Updates per measurement; the first call may include the allocation of a library's buffers.
const CALLS: usize = 3;
/// Minimum speedup of a library over the built-in kernels, which the model and the tests cover best.
const ADVANTAGE: f64 = 1.02;

/// The fastest kernels of this system, with the rates of all; the libraries are measured alternately.
fn fastest() -> (KernelChoice, String) {
    let mut why = Vec::new();
    let mut loaded: Vec<(KernelChoice, Box<dyn Kernels>, f64)> =
        vec![(KernelChoice::Builtin, Box::new(Builtin::best()), 0.0)];
    for path in blas::installed() {
        let choice = KernelChoice::Blas(path);
        match load(&choice) {
            Ok(kernels) => loaded.push((choice, kernels, 0.0)),
            Err(error) => why.push(format!("refused: {error}")),
        }
    }
    for _ in 0..ROUNDS {
        let highest = loaded.iter().map(|(_, _, rate)| *rate).fold(0.0, f64::max);
        for (_, kernels, rate) in loaded.iter_mut().filter(|(_, _, rate)| *rate == 0.0 || *rate > HOPELESS * highest) {
            *rate = rate.max(measure(&**kernels));
        }
    }
    let rates = loaded.iter().map(|(choice, _, rate)| format!("{choice} {rate:.1}"));
    let why = [rates.collect(), why].concat();
    let builtin = loaded[0].2;
    let faster =
        loaded.into_iter().filter(|(choice, _, rate)| *choice == KernelChoice::Builtin || *rate > ADVANTAGE * builtin);
    let best = faster.max_by(|a, b| a.2.total_cmp(&b.2)).map_or(KernelChoice::Builtin, |(choice, ..)| choice);
    (best, format!("fastest on one core, GFLOP/s: {}", why.join(", ")))
}

/// Rate of the kernels of a choice in short updates on this core, the best of several measurements, in GFLOP/s.
///
/// # Errors
/// [`KernelError`], as [`load`].
pub fn rate_gflops(choice: &KernelChoice) -> Result<f64, KernelError> {
    let kernels = load(choice)?;
    Ok((0..ROUNDS).map(|_| measure(&*kernels)).fold(0.0, f64::max))
}

/// Rate of a step's update on this core, L2 packed, then U ← L1⁻¹·U and C ← C − L2·U slab by slab, the best of a few
/// calls, in GFLOP/s. C is larger than a second-level cache and takes most of the time, as in HPL: on Granite Rapids a C
/// of 2 MiB is updated fastest by OpenBLAS, one of 8 MiB, and HPL of N=8000, by the built-in kernels.
fn measure(kernels: &dyn Kernels) -> f64 {
    const M: usize = 1024;
    const N: usize = 1024;
    const K: usize = 128;
    let l1: Vec<f64> = (0..K * K).map(|i| if i % (K + 1) == 0 { 1.0 } else { 1e-3 }).collect();
    let l2 = vec![0.5; M * K];
    let (mut u, mut c) = (vec![0.25; K * N], vec![1.0; M * N]);
    let (mut strips, mut memory) = (Buffer::default(), Buffer::default());
    let (clock, mut best_s) = (Instant::now(), f64::INFINITY);
    for call in 0..CALLS {
        // A slow library gets only one call.
        if call > 0 && clock.elapsed() > LONGEST / ROUNDS as u32 {
            break;
        }
        let start = Instant::now();
        let packed = kernels.prepare_l(Mat::new(&l2, M, K, M), &mut strips);
        let width = kernels.widest_slab();
        for (u, c) in u.chunks_mut(K * width).zip(c.chunks_mut(M * width)) {
            let cols = u.len() / K;
            let (u, c) = (MatMut::new(u, K, cols, K), MatMut::new(c, M, cols, M));
            kernels.update_slab(packed, Mat::new(&l1, K, K, K), u, c, &mut memory);
        }
        best_s = best_s.min(start.elapsed().as_secs_f64());
    }
    (2 * M * N * K + K * K * N) as f64 / best_s * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &str) -> KernelError {
        load(&KernelChoice::Blas(path.into())).err().unwrap()
    }

    #[test]
    fn a_file_that_is_no_blas_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("libtext.so");
        std::fs::write(&text, "no library").unwrap();
        let message = error(text.to_str().unwrap()).to_string();
        let words = ["libtext.so", "too short", "builtin"];
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(matches!(error("/no/such/libblas.so"), KernelError::NoLibrary { .. }));
        // The C library is a library, but no BLAS.
        assert!(matches!(error("libc.so.6"), KernelError::Lacks { routine: "dgemm_", .. }));
    }

    /// As in Fedora and in NumPy's packages: it was no complete BLAS.
    #[test]
    fn a_library_whose_names_end_with_64_computes() {
        const TEXT: &str = r#"
            void scipy_dgemm_64_(const char *ta, const char *tb, const long *m, const long *n, const long *k, const double *alpha,
                const double *a, const long *lda, const double *b, const long *ldb, const double *beta, double *c, const long *ldc) {
                for (long j = 0; j < *n; j++) for (long p = 0; p < *k; p++) for (long i = 0; i < *m; i++)
                    c[i + j * *ldc] += *alpha * a[i + p * *lda] * (*tb == 'N' ? b[p + j * *ldb] : b[j + p * *ldb]);
            }
            void scipy_dtrsm_64_(const char *side, const char *part, const char *form, const char *unit, const long *m, const long *n,
                const double *alpha, const double *t, const long *ldt, double *b, const long *ldb) {
                for (long j = 0; j < *n; j++) for (long p = 0; p < j; p++) for (long i = 0; i < *m; i++)
                    b[i + j * *ldb] -= b[i + p * *ldb] * t[p + j * *ldt];
            }
            const char *scipy_openblas_get_config64_(void) { return "OpenBLAS 0.3.30 USE64BITINT"; }
        "#;
        let folder = tempfile::tempdir().unwrap();
        let (text, library) = (folder.path().join("blas.c"), folder.path().join("libscipy_openblas64_.so"));
        std::fs::write(&text, TEXT).unwrap();
        let built = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&text).status();
        assert!(built.unwrap().success());
        let kernels = load(&KernelChoice::Blas(library)).unwrap();
        assert!(kernels.name().contains("USE64BITINT"), "{}", kernels.name());
    }

    #[test]
    #[ignore = "needs a BLAS library: tests/run --install"]
    fn needs_openblas_installed_libraries_load_and_compute() {
        let installed = blas::installed();
        assert!(!installed.is_empty(), "no BLAS library in the usual folders");
        for path in installed {
            let kernels = load(&KernelChoice::Blas(path.clone())).unwrap();
            assert!(kernels.name().contains(path.to_str().unwrap()), "{}", kernels.name());
        }
    }

    #[test]
    fn a_path_is_resolved_to_an_absolute_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libx.so");
        std::fs::write(&file, "").unwrap();
        let indirect = folder.path().join(".").join("libx.so");
        let (choice, _) = resolve(&KernelChoice::Blas(indirect)).unwrap();
        assert_eq!(choice, KernelChoice::Blas(file.canonicalize().unwrap()));
        assert!(resolve(&KernelChoice::Blas(folder.path().join("liby.so"))).is_err());
    }

    #[test]
    fn auto_chooses_working_kernels_and_gives_the_reason() {
        let (choice, why) = resolve(&KernelChoice::Auto).unwrap();
        assert_ne!(choice, KernelChoice::Auto);
        assert!(why.contains("builtin"), "{why}");
        println!("{choice}: {why}");
        load(&choice).unwrap();
    }
}
