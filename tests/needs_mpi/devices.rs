//! Devices of the processes of a job, which a library stands in for that computes on the host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::{Dat, SMALL, nothing_is_left};
use crate::mpi::Mpi;
use crate::program::{err, out};

/// Builds the libraries of HIP into `folder`: those that the tests of xhpl have.
fn build_into(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hpl/tests/xhpl/fake_gpu.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-pthread", "-DHIP", "-o"]).arg(folder.join("libfake.so")).arg(source);
    assert!(compiler.status().unwrap().success());
    for library in ["libamdhip64.so.6", "librocblas.so.4", "libhiprtc.so.6"] {
        symlink("libfake.so", folder.join(library)).unwrap();
    }
}

/// One of two ranks lacks the memory, for its part of the matrix or when its BLAS is first used: both know it, and the job goes on with
/// the next run.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_run_that_the_device_of_one_rank_does_not_hold_is_skipped() {
    let libraries = tempfile::tempdir().unwrap();
    build_into(libraries.path());
    let lacks =
        [("FAKE_GPU_BYTES=16000000", 1, "no memory"), ("FAKE_GPU_FAIL=rocblas_dgemm:1:5", 0, "rocblas_dgemm failed")];
    let cases = [Mpi::Open, Mpi::Mpich].into_iter().flat_map(|mpi| lacks.map(|lack| (mpi, lack)));
    for (mpi, (lack, skipped, reason)) in cases {
        let folder = Dat { n: "150 3000 100", ..SMALL }.folder();
        let rank = folder.path().join("rank");
        // The launcher itself gets no library of a device.
        let script = format!(
            "#!/bin/sh\n\
             if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then export {lack}; fi\n\
             export LD_LIBRARY_PATH={}:\"$LD_LIBRARY_PATH\" XDG_CACHE_HOME={}\n\
             exec {} \"$@\"\n",
            libraries.path().display(),
            folder.path().display(),
            mpi.built("xhpl").display()
        );
        fs::write(&rank, script).unwrap();
        fs::set_permissions(&rank, fs::Permissions::from_mode(0o755)).unwrap();
        let args = ["--json", "--device", "hip", "--threads", "1"];
        let output = mpi.run(2, &rank).args(args).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{mpi:?}: {}", err(&output));
        let text = out(&output);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() == 3
                && lines[skipped].contains(&format!("\"skipped\":\"rank 1: hip 0 (Fake device) device: {reason}")),
            "{text}"
        );
        let passed = lines.iter().filter(|line| line.contains("\"passed\":true")).count();
        assert_eq!(passed, 2, "{mpi:?}: {text}");
        nothing_is_left(folder.path());
    }
}
