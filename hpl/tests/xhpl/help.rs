//! Help and version, which need no MPI.

use std::fs;
use std::process::{Command, Output, Stdio};

use super::{refuses, succeeds};

#[test]
fn help_and_version_do_not_start_mpi() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("xhpl");
    // By a process of its own: a file that this one had open for writing may be refused when it is executed.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_xhpl")).arg(&program).status().unwrap().success());
    fs::write(folder.path().join("libhpl_mpi.so"), "no library").unwrap();
    let run = |flags: &[&str], processes: &str| -> Output {
        let mut command = Command::new(&program);
        command.args(flags).current_dir(folder.path()).env("PMI_SIZE", processes).stdin(Stdio::null());
        command.output().unwrap()
    };
    assert!(succeeds(&run(&["--help"], "1")).contains("--report-bindings"));
    assert!(succeeds(&run(&["--version"], "1")).starts_with("xhpl "));
    // Of several processes only rank 0 prints it, which MPI says.
    for (flags, processes) in [(vec!["--help"], "2"), (vec![], "1")] {
        refuses(&run(&flags, processes), 2, &["mpi-setup"]);
    }
}
