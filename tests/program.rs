//! Starting the programs under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The tuner, to which the drivers of real GPUs show none.
pub(crate) fn hpl_tune() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hpl-tune"));
    program.envs([("CUDA_VISIBLE_DEVICES", ""), ("HIP_VISIBLE_DEVICES", "")]);
    program
}

/// Runs the tuner with these arguments.
pub(crate) fn tune<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Output {
    hpl_tune().args(args).output().unwrap()
}

/// Standard output as text.
pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A quick calibration of this machine, made once for all tests.
pub(crate) fn machine_toml() -> &'static Path {
    static FILE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = FILE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.toml");
        let calibrate = |budget: &str| {
            tune(["calibrate", "--quiet", "--budget", budget, "--blas", "builtin", "--out", path.to_str().unwrap()])
        };
        // A machine that others use needs longer.
        let mut outputs = ["6s", "20s", "60s"].into_iter().map(calibrate);
        let good = outputs.find(|output| output.status.success());
        assert!(good.is_some(), "no calibration succeeded");
        (folder, path)
    });
    path
}

/// A HPL.dat for one run.
pub(crate) fn hpl_dat(folder: &Path, n: usize, nb: usize, p: usize, q: usize) -> PathBuf {
    let params = space::HplParams { nb, ..space::HplParams::baseline(n, p, q) };
    let path = folder.join("HPL.dat");
    std::fs::write(&path, space::dat::HplDat::single(&params).write().unwrap()).unwrap();
    path
}
