//! `hpl-tune mpi-setup`: an `xhpl` on the processes of MPI jobs, made with the site's `mpicc`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use hpl::comm::mpi::{LIBRARY, SOURCE};
use hpl::machine::bindings::Bindings;
use objectives::launcher::{MpiJob, words};
use objectives::real::{quoted, telling_lines};
use space::dat::HplDat;
use space::{Candidate, EngineParams, HplParams, RunResult};
use tempfile::TempDir;

use crate::cli::mpi_setup::MpiSetupArgs;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::{bindings, sentence};
use crate::cluster::launched::{nodes, said};
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::session::engine::programs::{MPI_FOLDER, found};
use crate::signals::removed_at_a_signal;

/// The way out where its folder cannot be made or written.
const ELSEWHERE: &str = "name another folder with --out";
/// What this program is called where it is `xhpl`.
const XHPL: &str = "xhpl";
/// Lines that are printed of a compiler that failed.
const LINES: usize = 12;
/// Processes and order of the run that checks it.
const CHECKED: (usize, usize) = (2, 1000);
/// Time that this run has.
const LIMIT: Duration = Duration::from_secs(120);

/// Makes the library, checks it with a run of HPL on two processes, and puts it into one folder with a copy of this program that is `xhpl`.
///
/// # Errors
/// No compiler wrapper, one that fails, or processes that are no job, and the way out; nothing is installed then.
pub fn mpi_setup(args: &MpiSetupArgs) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let out = args.out.clone().unwrap_or_else(|| program.with_file_name(MPI_FOLDER));
    let out = std::path::absolute(&out)?;
    let made = scratch(&out)?;
    removed_at_a_signal(made.path().to_owned()).context("cannot listen to signals")?;
    let mpicc = compiled(&args.mpicc, made.path())?;
    let xhpl = made.path().join(XHPL);
    let cannot = || format!("cannot copy {} to {}", program.display(), xhpl.display());
    fs::copy(&program, &xhpl).map_err(RecordError::write(&xhpl)).with_context(cannot)?;
    let checked = if args.no_check { None } else { Some(check(args, &mpicc, &xhpl, made.path())?) };
    let cannot = |what: &Path| format!("cannot make {}: {ELSEWHERE}", what.display());
    fs::create_dir_all(&out).map_err(RecordError::write(&out)).with_context(|| cannot(&out))?;
    for name in [LIBRARY, XHPL] {
        let path = out.join(name);
        fs::rename(made.path().join(name), &path).map_err(RecordError::write(&path)).with_context(|| cannot(&path))?;
    }
    let folder = out.display();
    let mut said = std::io::stdout().lock();
    writeln!(said, "{folder}/{LIBRARY}: made by {}", mpicc.display())?;
    writeln!(said, "{folder}/{XHPL}: this program with it; make it anew when hpl-tune is updated")?;
    match checked {
        Some(TestRun { launcher, bindings, result }) => {
            let library = bindings.mpi.as_deref().unwrap_or("MPI");
            writeln!(said, "checked by {launcher}: {library}; {}", sentence(&bindings))?;
            let ((ranks, n), residual) = (CHECKED, result.residual.unwrap_or_default());
            writeln!(said, "HPL of N={n} on {ranks} processes: residual {residual:.3} PASSED")?;
        }
        None => writeln!(said, "not checked: run hpl-tune mpi-setup without --no-check where jobs may run")?,
    }
    if args.out.is_some() {
        writeln!(said, "to use it: --program {}", quoted([out.join(XHPL)]).concat())?;
    } else {
        writeln!(said, "sessions on processes use it where no --program is given")?;
    }
    said.flush()?;
    Ok(exit::DONE)
}

/// A folder that is removed when it is dropped, from which files are renamed into `out`: within it where it is there, as the folder above may be
/// another file system or may not be written, else beside it. All nodes see it where they see `out`.
fn scratch(out: &Path) -> anyhow::Result<TempDir> {
    let above = if out.is_dir() { Some(out) } else { out.parent() };
    let above = above.ok_or_else(|| bad_input(format!("--out {}: it is not a folder", out.display())))?;
    let cannot = |what: &Path| format!("cannot make a folder in {}: {ELSEWHERE}", what.display());
    fs::create_dir_all(above).map_err(RecordError::write(above)).with_context(|| cannot(above))?;
    let made = tempfile::Builder::new().prefix(".mpi-setup-").tempdir_in(above);
    made.map_err(RecordError::write(above)).with_context(|| cannot(above))
}

/// The compiler wrapper that has made the library in `folder`.
fn compiled(mpicc: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let Some(mpicc) = found(mpicc) else {
        return Err(bad_input(format!(
            "--mpicc {}: no such program; load the module of the MPI library (module load openmpi), install one (apt-get install \
             openmpi-bin libopenmpi-dev), or give the path of its compiler wrapper: mpicc, cc on Cray, mpiicx of Intel",
            mpicc.display()
        )));
    };
    let source = folder.join("calls.c");
    fs::write(&source, SOURCE).map_err(RecordError::write(&source))?;
    let mut command = Command::new(&mpicc);
    command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.join(LIBRARY)).arg(&source).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot start {}", mpicc.display()))?;
    if !output.status.success() {
        let lines: String = telling_lines(&output.stderr, LINES).iter().map(|line| format!("\n  {line}")).collect();
        return Err(bad_input(format!(
            "{} does not compile a shared library ({}): is it the wrapper of an MPI library of version 3.0 or later?{lines}",
            mpicc.display(),
            output.status
        )));
    }
    Ok(mpicc)
}

/// What a run on two processes has shown.
struct TestRun {
    launcher: String,
    bindings: Bindings,
    result: RunResult,
}

fn check(args: &MpiSetupArgs, mpicc: &Path, xhpl: &Path, folder: &Path) -> anyhow::Result<TestRun> {
    let way_out = |error: anyhow::Error| {
        bad_input(format!(
            "{}\nnothing is installed; name the launcher of this MPI library with --launcher, or leave the check out with --no-check \
             where no job may run",
            exit::message(&error)
        ))
    };
    checked(args, mpicc, xhpl, folder).map_err(way_out)
}

fn checked(args: &MpiSetupArgs, mpicc: &Path, xhpl: &Path, folder: &Path) -> anyhow::Result<TestRun> {
    let cores = hpl::machine::host::facts().cores_allowed.len();
    let (ranks, n) = CHECKED;
    let job = match (&args.launcher, Allocation::here()) {
        (Some(launcher), _) => MpiJob::new(launcher, xhpl.to_owned()),
        (None, Some(job)) => nodes::found(xhpl.to_owned(), &job, cores, nodes::Used::AllBut(0))?.job,
        (None, None) => MpiJob::new(&mpirun_of(mpicc), xhpl.to_owned()),
    };
    let bindings = bindings(&job, ranks, 1)?;
    let hpl = HplParams { nb: 64, ..HplParams::baseline(n, 1, ranks) };
    let candidate = Candidate { hpl, engine: EngineParams::default() };
    replace_file(&folder.join("HPL.dat"), HplDat::single(&hpl).write()?.as_bytes())?;
    let way_out = "is the job waiting for nodes?";
    let (line, text) = said(&job, &candidate, &["--json", "--threads", "1"], folder, LIMIT, way_out)?;
    let text = String::from_utf8_lossy(&text);
    let result: Option<RunResult> = text.lines().find_map(|line| serde_json::from_str(line.trim()).ok());
    match result {
        Some(result) if result.passed => Ok(TestRun { launcher: words(&job.launcher).join(" "), bindings, result }),
        Some(result) => Err(bad_input(format!(
            "{line}: HPL of N={n} FAILED, residual {:?}: messages of this MPI library are damaged",
            result.residual
        ))),
        None => Err(bad_input(format!("{line}: no result in its output"))),
    }
}

/// The launcher in the folder of a compiler wrapper, as it is found from any folder: `mpirun.mpich` of `mpicc.mpich`, else `mpirun`. In a folder with a
/// space in its name, at which a launcher is divided into words, it is looked for on the search path, as the wrapper is.
fn mpirun_of(mpicc: &Path) -> String {
    let name = mpicc.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let own = name.strip_prefix("mpicc").filter(|kind| kind.starts_with('.')).map(|kind| format!("mpirun{kind}"));
    let names = own.into_iter().chain(["mpirun".to_owned()]);
    let mut beside = names.map(|name| mpicc.with_file_name(name));
    let beside = beside.find(|path| path.is_file()).and_then(|path| std::path::absolute(path).ok());
    let is_word = |path: &Path| path.to_str().is_some_and(|path| !path.contains(char::is_whitespace));
    let program = match beside {
        Some(path) if is_word(&path) => path,
        Some(path) => path.file_name().unwrap_or_default().into(),
        None => PathBuf::from("mpirun"),
    };
    format!("{} -np {{np}}", program.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_is_that_of_the_wrapper() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(mpirun_of(&path("mpicc")), "mpirun -np {np}");
        fs::write(path("mpirun"), "").unwrap();
        assert_eq!(mpirun_of(&path("mpicc")), format!("{} -np {{np}}", path("mpirun").display()));
        assert_eq!(mpirun_of(&path("mpicc.mpich")), format!("{} -np {{np}}", path("mpirun").display()));
        fs::write(path("mpirun.mpich"), "").unwrap();
        assert_eq!(mpirun_of(&path("mpicc.mpich")), format!("{} -np {{np}}", path("mpirun.mpich").display()));
        let spaced = path("my programs");
        fs::create_dir(&spaced).unwrap();
        fs::write(spaced.join("mpirun.mpich"), "").unwrap();
        assert_eq!(mpirun_of(&spaced.join("mpicc.mpich")), "mpirun.mpich -np {np}", "its path would be two words");
        // The run that checks it is in another folder than its user.
        let up: PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
        let relative = up.join(folder.path().strip_prefix("/").unwrap()).join("mpicc");
        let found = mpirun_of(&relative);
        assert!(relative.is_relative() && found.starts_with('/') && found.ends_with("/mpirun -np {np}"), "{found}");
    }

    /// A mount point, or a home, in a folder that its owner may not write was refused.
    #[test]
    fn a_folder_that_is_there_needs_nothing_of_the_one_above() {
        let above = tempfile::tempdir().unwrap();
        let out = above.path().join("mpi");
        let made = scratch(&out).unwrap();
        assert_eq!(made.path().parent(), Some(above.path()), "{}", made.path().display());
        drop(made);
        fs::create_dir(&out).unwrap();
        let made = scratch(&out).unwrap();
        assert_eq!(made.path().parent(), Some(out.as_path()), "{}", made.path().display());
        drop(made);
        assert_eq!((fs::read_dir(&out).unwrap().count(), fs::read_dir(above.path()).unwrap().count()), (0, 1));
        // As a file is no folder to write into.
        let within = out.join("file/mpi");
        fs::write(out.join("file"), "").unwrap();
        let error = scratch(&within).unwrap_err();
        assert!(error.to_string().ends_with("file: name another folder with --out"), "{error}");
        assert_eq!(exit::code(&error), exit::NOT_WRITTEN);
    }

    #[test]
    fn a_wrapper_that_is_none_is_named_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = compiled(Path::new("no-such-mpicc"), folder.path()).unwrap_err().to_string();
        assert!(missing.contains("--mpicc no-such-mpicc") && missing.contains("module load"), "{missing}");
        let failing = compiled(Path::new("false"), folder.path()).unwrap_err().to_string();
        assert!(failing.contains("does not compile"), "{failing}");
    }
}
