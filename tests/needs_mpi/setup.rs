//! `hpl-tune mpi-setup`: the same ranks by a library that the machine's `mpicc` makes, without rsmpi.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use super::{Dat, SMALL, nothing_is_left};
use crate::mpi::Mpi;
use crate::program::{err, hpl_tune, out, tune};
use crate::tune::rows;

/// What `mpi-setup` prints that puts an xhpl into `folder`.
fn set_up(mpi: Mpi, folder: &Path) -> Output {
    let mut command = hpl_tune();
    command.args(["mpi-setup", "--mpicc", mpi.compiler(), "--launcher", mpi.launcher(), "--out"]).arg(folder);
    command.output().unwrap()
}

/// A folder with an xhpl for `mpi`, and its path.
fn made(mpi: Mpi) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("mpi");
    let output = set_up(mpi, &folder);
    assert!(output.status.success(), "{mpi:?}: {}", err(&output));
    let said = out(&output);
    assert!(said.contains("rank 1 on") && said.contains("PASSED") && said.contains(mpi.name()), "{said}");
    let names: Vec<String> =
        fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["mpi"], "nothing else is left");
    let xhpl = folder.join("xhpl");
    (root, xhpl)
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn every_comm_case_by_a_made_library() {
    let examples = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let (_root, xhpl) = made(mpi);
        let program = xhpl.with_file_name("mpi_conformance");
        fs::copy(examples.join("mpi_conformance"), &program).unwrap();
        for ranks in [1, 2, 3] {
            let output = mpi.run(ranks, &program).output().unwrap();
            assert!(output.status.success(), "{mpi:?}, {ranks} ranks: {}", err(&output));
            assert!(out(&output).matches("spin true").count() >= 9, "{}", out(&output));
        }
        let output = mpi.run(3, &program).arg("too long").output().unwrap();
        let words = "rank 0 sent more than 4 doubles with tag 2 where rank 2 expects 4";
        assert!(!output.status.success() && err(&output).contains(words), "{mpi:?}: {}", err(&output));
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_made_xhpl_runs_and_is_tuned() {
    let dat = Dat { n: "50 117", p: "2 1", q: "1 2", bcast: "0 3", depth: "0 1", ..SMALL };
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let (root, xhpl) = made(mpi);
        let folder = dat.folder();
        let output = mpi.run(2, &xhpl).current_dir(&folder).output().unwrap();
        assert_eq!(out(&output).matches(" PASSED").count(), 2 * 8, "{}{}", out(&output), err(&output));
        nothing_is_left(folder.path());
        let run = root.path().join("run");
        let words =
            ["--budget", "30s", "--n", "2000", "--blas", "builtin", "--ranks", "2", "--out", run.to_str().unwrap()];
        let output = tune(words.into_iter().chain(["--launcher", mpi.launcher(), "--program", xhpl.to_str().unwrap()]));
        assert!(matches!(output.status.code(), Some(0 | 6)), "{}", err(&output));
        let rows = rows(&run);
        assert!(rows.iter().filter(|row| row.passed && row.p * row.q == 2).count() >= 3, "{}", out(&output));
        assert!(rows[0].command.contains("mpi/xhpl"), "{}", rows[0].command);
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_library_that_does_not_work_is_not_installed() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("mpi");
    // Compiled for one MPI library, started by the launcher of the other.
    let words = ["mpi-setup", "--mpicc", Mpi::Mpich.compiler(), "--launcher", Mpi::Open.launcher(), "--out"];
    let output = hpl_tune().args(words).arg(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert!(err(&output).contains("nothing is installed") && err(&output).contains("--launcher"), "{}", err(&output));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    // A library that is damaged later.
    let (_root, xhpl) = made(Mpi::Open);
    fs::write(xhpl.with_file_name("libhpl_mpi.so"), "no library").unwrap();
    let output = Mpi::Open.run(2, &xhpl).output().unwrap();
    assert!(!output.status.success() && err(&output).contains("hpl-tune mpi-setup"), "{}", err(&output));
}
