//! Pipes, devices and links in the place of files that somebody else may have put there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{copy, edit, intact, packed_trial, run};
use crate::program::{err, hpl_tune, out};

/// What a command prints that must end, and within a minute.
fn within_a_minute(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{command:?} waits for what never comes: {}", err(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// A pipe in the place of the file at `path`.
fn pipe(path: &Path) {
    std::fs::remove_file(path).unwrap();
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

/// A copy of the run folder in `home`, and the folder of the packed run in there.
fn copied(home: &Path) -> (PathBuf, PathBuf) {
    let folder = home.join("run");
    copy(run(), &folder);
    let trial = folder.join("trials").join(packed_trial().to_string());
    (folder, trial)
}

#[test]
fn verify_names_pipes_links_and_devices_and_reads_none() {
    for name in ["HPL.out", "HPL.dat", "record/guard.json", "record/journal.jsonl", "pack.json", "SHA256SUMS"] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("packed");
        copy(intact(), &folder);
        pipe(&folder.join(name));
        let output = within_a_minute(hpl_tune().arg("verify").arg(&folder));
        assert_eq!(output.status.code(), Some(6), "{name}: {}", err(&output));
        assert!(out(&output).contains("no regular file"), "{name}: {}", out(&output));
    }
    let home = tempfile::tempdir().unwrap();
    let (folder, trial) = copied(home.path());
    pipe(&folder.join("HPL.dat"));
    pipe(&trial.join("HPL.dat"));
    for name in [folder.join("HPL.out"), trial.join("stdout.txt")] {
        std::fs::remove_file(&name).unwrap();
        symlink("/dev/zero", &name).unwrap();
    }
    let output = within_a_minute(hpl_tune().arg("verify").arg(&folder));
    assert_eq!(output.status.code(), Some(6), "{}", err(&output));
    let said = format!("trials/{}/stdout.txt: cannot be read: it is no regular file", packed_trial());
    for words in [&*said, "HPL.dat: cannot be read: it is no regular file"] {
        assert!(out(&output).contains(words), "'{words}' is not in: {}", out(&output));
    }
}

#[test]
fn verify_waits_for_no_profile_and_decodes_no_table_that_a_link_leads_to() {
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = copied(home.path());
    let [table, elsewhere] = [folder.join("trials.parquet"), home.path().join("elsewhere.parquet")];
    std::fs::rename(&table, &elsewhere).unwrap();
    symlink(&elsewhere, &table).unwrap();
    // As of another engine, whose profile is read.
    edit(&folder, "session.toml", |text| text.replacen("engine = \"hpl\"", "engine = \"mine\"", 1));
    mkfifo(&folder.join("engine.toml"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let output = within_a_minute(hpl_tune().arg("verify").arg(&folder));
    assert_eq!(output.status.code(), Some(6), "{}", err(&output));
    for name in ["engine.toml", "trials.parquet"] {
        let told = |line: &str| line.contains(&format!("{name}: ")) && line.contains("no regular file");
        assert!(out(&output).lines().any(told), "{name} is not in: {}", out(&output));
    }
}

#[test]
fn watch_waits_for_no_pipe() {
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = copied(home.path());
    let watch = || within_a_minute(hpl_tune().arg("watch").arg(&folder).arg("--once"));
    for name in ["lock", "report.html"] {
        pipe(&folder.join(name));
        assert!(watch().status.success(), "{name}: {}", err(&watch()));
    }
    pipe(&folder.join("journal.jsonl"));
    let output = watch();
    assert!(!output.status.success() && err(&output).contains("no regular file"), "{}", err(&output));
}

#[test]
fn a_report_waits_for_no_pipe() {
    let home = tempfile::tempdir().unwrap();
    let (folder, trial) = copied(home.path());
    pipe(&trial.join("stdout.txt"));
    let output = within_a_minute(hpl_tune().arg("report").arg(&folder));
    assert!(output.status.success() && out(&output).contains("Best"), "{}", err(&output));
    pipe(&folder.join("journal.jsonl"));
    let output = within_a_minute(hpl_tune().arg("report").arg(&folder));
    assert!(!output.status.success() && err(&output).contains("no regular file"), "{}", err(&output));
}

#[test]
fn a_pack_takes_no_file_that_a_link_leads_to() {
    for name in ["guard.json", "result.json", "stdout.txt", "HPL.dat"] {
        let home = tempfile::tempdir().unwrap();
        let (folder, trial) = copied(home.path());
        let (secret, packed) = (home.path().join("secret"), home.path().join("packed"));
        std::fs::copy(trial.join(name), &secret).unwrap();
        std::fs::remove_file(trial.join(name)).unwrap();
        let pack = || {
            let mut command = hpl_tune();
            command.arg("pack").arg(&folder).args(["--for", "scc", "--out"]).arg(&packed);
            within_a_minute(&mut command)
        };
        let refused = |output: &Output| {
            assert!(!output.status.success() && !packed.exists(), "{name}: {}", out(output));
            assert!(err(output).contains(name) && err(output).contains("no regular file"), "{}", err(output));
        };
        symlink(&secret, trial.join(name)).unwrap();
        refused(&pack());
        pipe(&trial.join(name));
        refused(&pack());
    }
}
