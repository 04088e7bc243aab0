//! Our engine on GPUs in a session. Driver, BLAS and compiler are those of `hpl/tests/xhpl/fake_gpu.c`, which stand in for a GPU.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::program::{err, hpl_tune, out};
use crate::tune::rows;

/// A folder with the libraries of CUDA, all of which are one file.
fn libraries() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hpl/tests/xhpl/fake_gpu.c");
    let library = folder.path().join("libfake.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", err(&built));
    for name in ["libcuda.so.1", "libcublas.so.12", "libnvrtc.so.12"] {
        symlink(&library, folder.path().join(name)).unwrap();
    }
    folder
}

fn with(libraries: &Path, args: &[&str]) -> Output {
    let mut program = hpl_tune();
    program.args(args).env("LD_LIBRARY_PATH", libraries).env("XDG_CACHE_HOME", libraries).env("FAKE_GPU_DEVICES", "2");
    program.output().unwrap()
}

/// The GPUs that the driver names are the accelerators of the node, one rank for each.
#[test]
fn a_session_on_two_gpus_is_verified() {
    let (libraries, root) = (libraries(), tempfile::tempdir().unwrap());
    let folder = root.path().join("run");
    let output = with(
        libraries.path(),
        &["--budget", "30s", "--engine", "cuda", "--n", "300", "--out", folder.to_str().unwrap()],
    );
    let (stdout, stderr) = (out(&output), err(&output));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("PASSED"), "{stdout}{stderr}");
    let rows = rows(&folder);
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.engine == "cuda" && row.p * row.q == 2), "{}", rows.len());
    assert!(rows.iter().filter(|row| row.passed).count() >= 3, "{stdout}{stderr}");
    let machine = std::fs::read_to_string(folder.join("machine.toml")).unwrap();
    assert!(
        machine.contains("2 × Fake device (1.1 GB), driver 12.9") && machine.contains("accelerators = 2"),
        "{machine}"
    );
}

#[test]
fn without_a_gpu_the_engine_is_refused() {
    let nothing = tempfile::tempdir().unwrap();
    // Where the machine has a GPU, its driver is found instead.
    if hpl::backend::device::FoundGpus::look()[0].1.is_ok() {
        return;
    }
    let output = with(nothing.path(), &["--budget", "30s", "--engine", "cuda"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("--engine cuda: cuda device: "), "{}", err(&output));
}

#[test]
fn the_doctor_names_the_gpus() {
    let libraries = libraries();
    let output = with(libraries.path(), &["doctor"]);
    let found = "cuda: 2 × Fake device (1.1 GB), driver 12.9, libcuda.so.1, libcublas.so.12, libnvrtc.so.12 12.9";
    assert!(out(&output).contains(found), "{}", out(&output));
}
