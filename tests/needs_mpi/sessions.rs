//! Sessions of our engine on the processes of MPI jobs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::mpi::Mpi;
use crate::program::{err, out, tune};
use crate::tune::rows;
use objectives::real::Extent;

/// A session of two ranks by Open MPI, bound to no core: other tests use them, too.
fn session(folder: &Path, budget: &str) -> Output {
    let launcher = format!("{} --bind-to none", Mpi::Open.launcher());
    let program = Mpi::Open.built("xhpl");
    let fixed = ["--budget", budget, "--blas", "builtin", "--ranks", "2", "--out", folder.to_str().unwrap()];
    let launched = ["--launcher", &launcher, "--program", program.to_str().unwrap()];
    tune(fixed.into_iter().chain(launched))
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn our_engine_is_tuned_on_processes_with_windows_and_phases() {
    let root = tempfile::tempdir().unwrap();
    // Longer where others use the machine so much that the final run does not end in time.
    let tried = ["40s", "80s", "160s"].map(|budget| (budget, root.path().join(budget)));
    let mut done = tried.iter().map(|(budget, folder)| (folder, session(folder, budget)));
    let Some((folder, _)) = done.find(|(_, output)| output.status.code() == Some(0)) else {
        panic!("{}", err(&session(&root.path().join("last"), "160s")));
    };
    let rows = rows(folder);
    let last = rows.iter().rfind(|row| row.strategy == "final" && row.passed).unwrap();
    assert!(last.residual.unwrap() < 16.0);
    for row in &rows {
        assert_eq!(row.p * row.q, 2);
        let words: Vec<&str> = row.command.split(' ').collect();
        assert!(words.contains(&"mpirun.openmpi") && words.iter().any(|word| word.ends_with("xhpl")), "{words:?}");
    }
    let windows = rows.iter().find(|row| row.extent == Extent::Windows && row.passed).expect("windows were run");
    for trial in [windows.trial, last.trial] {
        let phases = folder.join("phases").join(format!("{trial}.parquet"));
        assert!(phases.is_file(), "{} is missing", phases.display());
    }
    // What is exported runs as it stands.
    let output = Command::new("bash").arg(folder.join("run.sh")).output().unwrap();
    assert!(output.status.success() && out(&output).contains("PASSED"), "{}{}", out(&output), err(&output));
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn an_xhpl_that_is_not_there_is_named_before_anything_runs() {
    let missing = ["--budget", "30s", "--launcher", "mpirun.openmpi -np {np}", "--program", "/no/such/xhpl"];
    let output = tune(missing);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("/no/such/xhpl"), "{}", err(&output));
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn processes_that_are_no_job_are_refused_and_leave_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let without = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("xhpl");
    for (program, launcher) in [(without, Mpi::Open), (Mpi::Mpich.built("xhpl"), Mpi::Open)] {
        let folder = root.path().join("run");
        let fixed = ["--budget", "30s", "--n", "1000", "--launcher", launcher.launcher(), "--ranks", "2"];
        let output =
            tune(fixed.into_iter().chain(["--program", program.to_str().unwrap(), "--out", folder.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(err(&output).contains("--report-bindings"), "{}", err(&output));
        assert!(!folder.exists());
    }
}

/// MPICH's launcher by the name that it has where no other MPI library is: it refused Open MPI's words.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn an_mpirun_of_mpich_gets_its_own_words() {
    let root = tempfile::tempdir().unwrap();
    let (launcher, folder) = (root.path().join("mpirun"), root.path().join("run"));
    fs::write(&launcher, "#!/bin/sh\nexec mpirun.mpich \"$@\"\n").unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let program = Mpi::Mpich.built("xhpl");
    let launched = ["--launcher", launcher.to_str().unwrap(), "--program", program.to_str().unwrap(), "--ranks", "2"];
    let fixed = ["--budget", "40s", "--n", "1000", "--blas", "builtin", "--out", folder.to_str().unwrap()];
    let output = tune(fixed.into_iter().chain(launched));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let words = format!(" {} -genvall -n 2 ", launcher.display());
    assert!(rows(&folder).iter().all(|row| row.command.contains(&words)), "{}", out(&output));
}
