//! All kernels, selected one by one: the residual for ragged sizes, and refused kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use space::HplParams;
use space::dat::HplDat;

/// N, NB, P, Q with partial blocks, tiles and slabs.
const RAGGED: [(usize, usize, usize, usize); 7] = [
    (1, 1, 1, 1),
    (61, 7, 1, 1),
    (257, 37, 1, 1),
    (515, 96, 1, 1),
    (300, 67, 2, 1),
    (333, 29, 1, 2),
    (1031, 130, 1, 1),
];

/// xhpl on one problem with these kernels, by two threads.
fn xhpl(kernels: &str, (n, nb, p, q): (usize, usize, usize, usize)) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let hpl = HplParams { nb, depth: n % 2, ..HplParams::baseline(n, p, q) };
    fs::write(folder.path().join("HPL.dat"), HplDat::single(&hpl).write().unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xhpl"));
    command.args(["--threads", "2", "--blas", kernels]).current_dir(&folder).stdin(Stdio::null());
    command.output().unwrap()
}

/// All ragged problems pass; the kernels are named.
fn passes(kernels: &str, name: &str) {
    for problem in RAGGED {
        let output = xhpl(kernels, problem);
        let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.matches("PASSED").count() == 1, "{kernels} {problem:?}: {out}{log}");
        assert!(log.contains(name), "{name} is not in: {log}");
    }
}

#[test]
fn built_in_for_each_instruction_set() {
    // The best instruction set of the processor.
    passes("builtin", "builtin");
    passes("builtin-portable", "portable");
    #[cfg(target_arch = "x86_64")]
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let has_avx2 = false;
    if has_avx2 {
        passes("builtin-avx2", "avx2");
    } else {
        let output = xhpl("builtin-avx2", RAGGED[0]);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && log.contains("does not run builtin-avx2"), "{log}");
    }
}

/// A library of this name in the usual folders of Linux distributions, or in `HPL_TEST_BLAS`.
fn library(start: &str) -> Option<PathBuf> {
    let own = std::env::var_os("HPL_TEST_BLAS").map(PathBuf::from);
    let mut folders: Vec<PathBuf> = own.into_iter().collect();
    for folder in ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib"] {
        folders.push(folder.into());
        folders.extend(["openblas-pthread", "blis-pthread"].map(|kind| Path::new(folder).join(kind)));
    }
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|file| file.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start) && name.contains(".so")
    })
}

/// Ragged problems pass with this library, which must be installed.
fn passes_with(start: &str) {
    let path =
        library(start).unwrap_or_else(|| panic!("no {start}so; install it, or name its folder in HPL_TEST_BLAS"));
    passes(path.to_str().unwrap(), path.file_stem().unwrap().to_str().unwrap().split('.').next().unwrap());
}

#[test]
#[ignore = "needs OpenBLAS: tests/run --install"]
fn needs_openblas_ragged_problems_pass() {
    passes_with("libopenblas");
}

#[test]
#[ignore = "needs BLIS: tests/run runs it where that is"]
fn needs_blis_ragged_problems_pass() {
    passes_with("libblis.");
}

#[test]
#[ignore = "needs MKL: tests/run runs it where that is"]
fn needs_mkl_ragged_problems_pass() {
    passes_with("libmkl_rt.");
}

/// A BLAS in C: with `FAULT` its dgemm skips the last row of larger products, a typical error in remainder code.
const BLAS: &str = r"
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc) {
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
#ifdef FAULT
            if (*m > 16 && i == *m - 1 && *m % 8) continue;
#endif
            double sum = 0;
            for (int p = 0; p < *k; p++)
                sum += a[i + p * (long)*lda] * (*tb == 'N' ? b[p + j * (long)*ldb] : b[j + p * (long)*ldb]);
            c[i + j * (long)*ldc] = *beta * c[i + j * (long)*ldc] + *alpha * sum;
        }
}
#ifndef NO_DTRSM
/* The only case the engine uses: B U^-1 with U unit upper triangular. */
void dtrsm_(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
            const double *alpha, const double *t, const int *ldt, double *b, const int *ldb) {
    if (*side != 'R' || *uplo != 'U' || *trans != 'N' || *diag != 'U') return;
    for (int j = 0; j < *n; j++)
        for (int p = 0; p < j; p++)
            for (int i = 0; i < *m; i++) b[i + j * (long)*ldb] -= b[i + p * (long)*ldb] * t[p + j * (long)*ldt];
}
#endif
";

#[test]
fn a_wrong_dgemm_is_refused_by_name_and_a_correct_one_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("blas.c");
    fs::write(&source, BLAS).unwrap();
    let build = |name: &str, define: &str| {
        let library = folder.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", define, "-o"]).arg(&library).arg(&source);
        // A C compiler is installed, as Rust needs it for linking.
        assert!(compiler.status().unwrap().success());
        library
    };
    let right = build("libright.so", "-DRIGHT");
    passes(right.to_str().unwrap(), "libright.so");
    for (name, define, words) in [
        ("libwrong.so", "-DFAULT", ["libwrong.so", "computes wrongly: gemm"]),
        ("libhalf.so", "-DNO_DTRSM", ["libhalf.so", "lacks dtrsm_"]),
    ] {
        let path = build(name, define);
        let output = xhpl(path.to_str().unwrap(), RAGGED[1]);
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(output.stdout.is_empty() && words.iter().all(|word| log.contains(word)), "{log}");
    }
}
