//! Files from somebody else make the program load nothing, run nothing and write nothing that its user did not ask for.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use space::result::PhaseTime;
use tuner::record::decode::{Decoder, MEMORY_BYTES};
use tuner::record::folder::RunFolder;
use tuner::record::parquet;
use tuner::record::session::Session;

use crate::program::{err, hpl_tune, machine_toml, out, tune};

/// A library that leaves a file behind when it is loaded, and that file.
fn library_with_a_trace(folder: &Path) -> (PathBuf, PathBuf) {
    let [source, library, trace] = ["trace.c", "libtrace.so", "loaded"].map(|name| folder.join(name));
    let create = format!("creat(\"{}\", 0600)", trace.display());
    let code =
        format!("int creat(const char *, unsigned);\n__attribute__((constructor)) void f(void) {{ {create}; }}\n");
    std::fs::write(&source, code).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.unwrap().success());
    (library, trace)
}

#[test]
fn a_description_does_not_make_a_library_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let (library, trace) = library_with_a_trace(folder.path());
    let (machine, new) = (folder.path().join("machine.toml"), folder.path().join("new"));
    let text = std::fs::read_to_string(machine_toml()).unwrap();
    let named = text.replacen("kernels = \"builtin\"", &format!("kernels = \"{}\"", library.display()), 1);
    assert_ne!(named, text);
    std::fs::write(&machine, named).unwrap();
    let [machine, new, library] = [&machine, &new, &library].map(|path| path.to_str().unwrap());
    let given = ["--budget", "30s", "--n", "200", "--machine", machine, "--out", new];
    for more in [[].as_slice(), &["--dry-run"]] {
        let output = tune(given.iter().chain(more));
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("--blas {library}")) && text.contains("[host] kernels"), "{text}");
        assert!(!trace.exists() && !Path::new(new).exists());
    }
    // Who names it has it loaded: the test sees what it looks for.
    tune(given.iter().chain(&["--blas", library]));
    assert!(trace.exists());
}

/// A finished session of three trials in a folder of its own, as somebody could send it: that of another test.
fn received(home: &Path) -> PathBuf {
    let folder = home.join("received");
    std::fs::create_dir(&folder).unwrap();
    for name in ["session.toml", "journal.jsonl", "trials.parquet", "machine.toml"] {
        std::fs::copy(crate::tune::folder().join(name), folder.join(name)).unwrap();
    }
    folder
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_others_may_write_in_is_not_resumed_and_its_report_not_written() {
    let home = tempfile::tempdir().unwrap();
    let folder = received(home.path());
    let path = folder.to_str().unwrap();
    set_mode(&folder, 0o777);
    let output = tune(["--resume", path]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("writable by others") && err(&output).contains("chmod"), "{}", err(&output));
    let output = tune(["report", path]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("Best") && !out(&output).contains("report.html"), "{}", out(&output));
    assert!(err(&output).contains("were not rewritten"), "{}", err(&output));
    assert!(!folder.join("run.sh").exists() && !folder.join("lock").exists());
    // Its user alone has it written.
    set_mode(&folder, 0o755);
    let output = tune(["report", path]);
    assert!(folder.join("run.sh").exists() && folder.join("report.html").exists(), "{}", err(&output));
}

#[test]
fn a_report_writes_nothing_beside_a_session_at_work() {
    let home = tempfile::tempdir().unwrap();
    let folder = received(home.path());
    let _lock = RunFolder::open(&folder).unwrap().lock().unwrap();
    let output = tune(["report", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("Best") && err(&output).contains("another hpl-tune"), "{}", err(&output));
    assert!(!folder.join("run.sh").exists() && !folder.join("report.html").exists());
}

#[test]
fn a_session_at_work_is_not_resumed_a_second_time() {
    let home = tempfile::tempdir().unwrap();
    let folder = received(home.path());
    set_mode(&folder, 0o755);
    let files = || ["session.toml", "journal.jsonl"].map(|name| std::fs::read(folder.join(name)).unwrap());
    let before = files();
    let _lock = RunFolder::open(&folder).unwrap().lock().unwrap();
    let output = tune(["--resume", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    let by = format!("another hpl-tune (pid {} on ", std::process::id());
    assert!(err(&output).contains(&by) && out(&output).is_empty() && files() == before, "{}", err(&output));
}

/// It locks nothing: a session may be at work.
#[test]
fn a_report_writes_nothing_where_the_lock_is_a_link() {
    let home = tempfile::tempdir().unwrap();
    let folder = received(home.path());
    let other = home.path().join("thesis.tex");
    std::fs::write(&other, "text").unwrap();
    std::os::unix::fs::symlink(&other, folder.join("lock")).unwrap();
    let output = tune(["report", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("Best") && err(&output).contains("no regular file"), "{}", err(&output));
    assert!(!folder.join("run.sh").exists() && std::fs::read_to_string(&other).unwrap() == "text");
}

#[test]
fn the_words_of_a_received_folder_do_not_control_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let folder = received(home.path());
    let toml = folder.join("session.toml");
    let clears = "\u{1b}[2Jn1".to_owned();
    let session = Session::load(&toml).unwrap();
    Session { name: clears.clone(), lost: vec![clears], ..session }.save(&toml).unwrap();
    let path = folder.to_str().unwrap();
    let (report, watch) = (tune(["report", path]), tune(["watch", "--once", path]));
    assert!(out(&report).contains("\u{fffd}[2Jn1") && out(&watch).contains("[2Jn1"), "{}{}", out(&report), err(&watch));
    for text in [out(&report), err(&report), out(&watch), err(&watch)] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn the_name_of_a_landscape_does_not_control_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("l.toml");
    let toml = "schema_version = 1\nname = \"\\u001b[2Jsmall\"\norigin = \"made up\"\ntable = \"t.csv\"\n\
        value = { column = \"rate\", goal = \"maximize\" }\n[[dimension]]\nname = \"nb\"\nkind = \"ordered\"\n";
    std::fs::write(&path, toml).unwrap();
    std::fs::write(home.path().join("t.csv"), "nb,rate\n64,10\n128,20\n").unwrap();
    let output = tune(["replay", path.to_str().unwrap(), "--seeds", "0", "--quiet"]);
    assert!(out(&output).starts_with("\u{fffd}[2Jsmall: 2 points"), "{:?} {}", out(&output), err(&output));
}

#[test]
fn a_batch_script_overwrites_nothing() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("thesis.tex");
    std::fs::write(&script, "precious").unwrap();
    let output = tune(["--budget", "1m", "--n", "500", "--sbatch", script.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("thesis.tex") && err(&output).contains("another name"), "{}", err(&output));
    assert_eq!(std::fs::read_to_string(script).unwrap(), "precious");
}

#[test]
fn a_file_that_takes_all_memory_ends_its_child_and_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trials.parquet");
    let program = PathBuf::from(hpl_tune().get_program());
    let rows: Vec<PhaseTime> = (0..100_000).map(|step| PhaseTime { step, ..PhaseTime::default() }).collect();
    parquet::write(&path, &rows).unwrap();
    let child = |memory_bytes| Decoder::Child { program: program.clone(), memory_bytes };
    assert_eq!(child(MEMORY_BYTES).rows::<PhaseTime>(&path).unwrap(), rows);
    assert_eq!(child(MEMORY_BYTES).cells(&path).unwrap().1.len(), rows.len());
    let message = child(64 << 20).rows::<PhaseTime>(&path).unwrap_err().to_string();
    assert!(message.contains("trials.parquet is damaged") && message.contains("64 MiB"), "{message}");
}

#[test]
fn a_damaged_file_of_earlier_runs_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trials.parquet");
    std::fs::write(&path, "PAR1 and nothing else").unwrap();
    let [path, new] = [path, home.path().join("new")].map(|path| path.to_str().unwrap().to_owned());
    // Refused for its ranks, after the earlier runs were read.
    let output = tune(["--budget", "1m", "--ranks", "4096", "--warm-start", &path, "--out", &new]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("trials.parquet is damaged"), "{}", err(&output));
}

#[test]
fn a_variable_that_holds_a_blas_back_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (library, _) = library_with_a_trace(home.path());
    let session = |blas: &Path, name: &str| {
        let mut command = hpl_tune();
        command.args(["--budget", "30s", "--n", "200", "--machine"]).arg(machine_toml()).arg("--blas").arg(blas);
        // What this machine sets by itself would be named, too.
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("OPENBLAS_")) {
            command.env_remove(name);
        }
        command.arg("--out").arg(home.path().join(name)).env("OPENBLAS_CORETYPE", "Haswell").output().unwrap()
    };
    // It is no BLAS, so that nothing can be measured, and no trial succeeds.
    let output = session(&library, "library");
    let text = err(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    for words in ["OPENBLAS_CORETYPE=Haswell", "not measured", "env -u OPENBLAS_CORETYPE hpl-tune"] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    let session = Session::load(&home.path().join("library/session.toml")).unwrap();
    assert!(session.notes.iter().any(|note| note.contains("OPENBLAS_CORETYPE")), "{:?}", session.notes);
}

/// hpl-tune with these words, under an umask.
fn with_umask(umask: &str, args: &[&str]) -> Output {
    let words = ["-c", &format!("umask {umask}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_hpl-tune")];
    Command::new("sh").args(words).args(args).output().unwrap()
}

#[test]
fn a_shared_session_of_a_lax_umask_is_resumed() {
    let home = tempfile::tempdir().unwrap();
    let (new, machine) = (home.path().join("new"), machine_toml());
    let lax = |args: &[&str]| with_umask("002", args);
    let [folder, machine] = [new.as_path(), machine].map(|path| path.to_str().unwrap());
    let begun = lax(&["--budget", "30s", "--n", "200", "--machine", machine, "--out", folder, "--shared-folder"]);
    assert_eq!(begun.status.code(), Some(0), "{}", err(&begun));
    let modes: Vec<u32> = ["session.toml", "journal.jsonl", "trials"]
        .map(|name| new.join(name).metadata().unwrap().permissions().mode() & 0o022)
        .to_vec();
    assert_eq!(modes, [0; 3]);
    let again = lax(&["--resume", folder]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
}

/// Nobody else could read a file of it, nor enter the folders in it.
#[test]
fn a_shared_session_of_a_strict_umask_is_read_by_others() {
    let home = tempfile::tempdir().unwrap();
    let (new, machine) = (home.path().join("new"), machine_toml());
    let strict = |args: &[&str]| with_umask("077", args);
    let mode = |name: &str| new.join(name).metadata().unwrap().permissions().mode() & 0o777;
    let [folder, machine] = [new.as_path(), machine].map(|path| path.to_str().unwrap());
    let begun = strict(&["--budget", "30s", "--n", "200", "--machine", machine, "--out", folder, "--shared-folder"]);
    assert_eq!(begun.status.code(), Some(0), "{}", err(&begun));
    let files = ["session.toml", "journal.jsonl", "trials.parquet", "report.html", "trials/0/result.json"];
    assert_eq!(files.map(mode), [0o644; 5]);
    assert_eq!(["", "trials", "trials/0"].map(mode), [0o755; 3]);
    let again = strict(&["report", folder]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    assert_eq!(mode("report.html"), 0o644);
}
