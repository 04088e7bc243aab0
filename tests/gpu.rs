//! Our engine on GPUs in a session. Driver, BLAS and compiler are those of `hpl/tests/xhpl/fake_gpu.c`, which stand in for a GPU.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::program::{err, hpl_tune, out};
use crate::tune::rows;

/// The library of the driver that says how its GPUs fare.
const NVML: &str = "
    int nvmlInit_v2(void) { return 0; }
    int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &nvmlInit_v2; return index > 1; }
    int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) { *mhz = 1750; return !device || type != 1; }
    int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) { *celsius = 71; return !device || sensor; }
";

/// A folder with the libraries of CUDA, of which those of the device are one file.
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
    let state = folder.path().join("nvml.c");
    std::fs::write(&state, NVML).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(folder.path().join("libnvidia-ml.so.1"))
        .arg(&state)
        .output();
    assert!(built.unwrap().status.success());
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
        &["--budget", "30s", "--engine", "cuda", "--n", "1200", "--out", folder.to_str().unwrap()],
    );
    let (stdout, stderr) = (out(&output), err(&output));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("PASSED"), "{stdout}{stderr}");
    let rows = rows(&folder);
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.engine == "cuda" && row.p * row.q == 2), "{}", rows.len());
    assert!(rows.iter().filter(|row| row.passed).count() >= 3, "{stdout}{stderr}");
    // Trials of some hundred milliseconds are looked at.
    let seen = |row: &tuner::record::Row| (row.gpu_clock_hz, row.gpu_temperature_c);
    assert!(rows.iter().any(|row| seen(row) == (Some(1.75e9), Some(71.0))), "{:?}", seen(&rows[0]));
    assert!(stdout.contains("GPU clock 1.75 … 1.75 GHz, GPUs at most 71 °C"), "{stdout}");
    let machine = std::fs::read_to_string(folder.join("machine.toml")).unwrap();
    assert!(
        machine.contains("2 × Fake device (1.1 GB), driver 12.9") && machine.contains("accelerators = 2"),
        "{machine}"
    );
}

#[test]
fn without_a_gpu_the_engine_is_refused() {
    let nothing = tempfile::tempdir().unwrap();
    let output = with(nothing.path(), &["--budget", "30s", "--engine", "cuda"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("--engine cuda: cuda device: "), "{}", err(&output));
}

/// Where nothing says which, the session looks at both: this stand-in computes on the host, slower than the host does.
#[test]
fn slow_and_broken_gpus_leave_a_session_to_the_processors() {
    let (libraries, root) = (libraries(), tempfile::tempdir().unwrap());
    let session = |name: &str, more: &[&str], variables: &[(&str, &str)]| {
        let folder = root.path().join(name);
        let args = [&["--budget", "30s", "--n", "300", "--out", folder.to_str().unwrap()], more].concat();
        let mut program = hpl_tune();
        program.args(args).env("LD_LIBRARY_PATH", libraries.path()).env("XDG_CACHE_HOME", root.path());
        let output = program.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(rows(&folder).iter().all(|row| row.engine == "hpl"));
        err(&output)
    };
    let slow = session("slow", &[], &[]);
    assert!(slow.contains("GFLOP/s at N = 300, DGEMM of "), "{slow}");
    assert!(slow.contains("; the session is on the processors (--engine cuda: on the GPUs)"), "{slow}");
    let broken = session("broken", &[], &[("FAKE_GPU_FAIL", "cuMemAlloc_v2:1:2")]);
    assert!(broken.contains("a run there failed, ") && broken.contains("--engine cuda"), "{broken}");
    let named = session("named", &["--engine", "hpl"], &[]);
    assert!(!named.contains("short runs on the GPUs"), "{named}");
}

#[test]
fn a_dry_run_says_that_the_gpus_are_looked_at_first() {
    let libraries = libraries();
    let output = with(libraries.path(), &["--budget", "30s", "--dry-run"]);
    assert!(out(&output).contains("the session is on them, as with --engine cuda"), "{}", out(&output));
}

#[test]
fn the_doctor_names_the_gpus() {
    let libraries = libraries();
    let output = with(libraries.path(), &["doctor"]);
    let found = "cuda: 2 × Fake device (1.1 GB), driver 12.9, libcuda.so.1, libcublas.so.12, libnvrtc.so.12 12.9";
    assert!(out(&output).contains(found), "{}", out(&output));
}
