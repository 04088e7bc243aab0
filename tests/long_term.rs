//! Run folders of every version of the formats: a report on them works, a resume goes on or says why not.
//!
//! `tests/data/run-folder-N` is that of a session which was ended by a signal, of version N of `session.toml` and of the rows.
//! Who raises a version keeps a folder of it, made as these were: `hpl-tune --budget 40s --n 1600 --blas builtin-portable
//! --ranks 1` with a neutral host name and paths, ended by SIGINT after four trials; without `ballast`, `lock` and `report.html`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tuner::record::session::SESSION_SCHEMA;
use tuner::record::{ROW_SCHEMA, Row, journal, parquet};

use crate::docs::pages::root;
use crate::program::{err, hpl_tune, out};

/// Trials that the session had recorded.
const TRIALS: usize = 4;

fn kept(version: u32) -> PathBuf {
    root().join(format!("tests/data/run-folder-{version}"))
}

/// Copies a folder with the permissions that a session gives it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::write(&to, fs::read(entry.path()).unwrap()).unwrap();
            fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// A copy of the folder of a version, below `home`.
fn copied(version: u32, home: &Path) -> PathBuf {
    let folder = home.join(format!("run-{version}"));
    copy(&kept(version), &folder);
    folder
}

#[test]
fn a_folder_of_every_version_is_kept() {
    assert_eq!(ROW_SCHEMA, SESSION_SCHEMA, "name the folders by both");
    for version in 1..=SESSION_SCHEMA {
        let contents = journal::read(&kept(version).join("journal.jsonl")).unwrap();
        assert_eq!((contents.rows.len(), contents.bad_lines.len()), (TRIALS, 0), "version {version}");
        assert!(contents.rows.iter().all(|row| row.schema_version == version));
        let table: Vec<Row> = parquet::read(&kept(version).join("trials.parquet")).unwrap();
        assert!(table == contents.rows && table.iter().all(|row| row.power_w.is_none()), "version {version}");
    }
}

#[test]
fn a_report_on_an_old_folder_works() {
    let home = tempfile::tempdir().unwrap();
    for version in 1..=SESSION_SCHEMA {
        let folder = copied(version, home.path());
        let output = hpl_tune().arg("report").arg(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "version {version}: {}", err(&output));
        let text = out(&output);
        assert!(
            text.contains("Best          1.631 GFLOP/s at N = 1600") && text.contains("Trials        4, "),
            "{text}"
        );
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        assert!(page.contains("1.631"));
        let journals = [&kept(version), &folder].map(|folder| fs::read(folder.join("journal.jsonl")).unwrap());
        assert_eq!(journals[0], journals[1], "a report changes no record");
    }
}

#[test]
fn an_old_session_goes_on_or_says_why_not() {
    let home = tempfile::tempdir().unwrap();
    for version in 1..=SESSION_SCHEMA {
        let folder = copied(version, home.path());
        let output = hpl_tune().arg("--resume").arg(&folder).output().unwrap();
        if std::thread::available_parallelism().unwrap().get() < 2 {
            assert_eq!(output.status.code(), Some(2));
            assert!(err(&output).contains("the session uses 2 cores, 1 are available here"), "{}", err(&output));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "version {version}: {}", err(&output));
        let [before, after] = [&kept(version), &folder].map(|folder| fs::read(folder.join("journal.jsonl")).unwrap());
        assert!(after.starts_with(&before), "a finished trial is changed");
        let contents = journal::read(&folder.join("journal.jsonl")).unwrap();
        assert!(contents.bad_lines.is_empty() && contents.rows.len() > TRIALS, "{}", contents.rows.len());
    }
}

#[test]
fn a_folder_of_a_newer_version_is_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let folder = copied(SESSION_SCHEMA, home.path());
    let newer = |text: &str, key: &str| text.replacen(&format!("{key}{SESSION_SCHEMA}"), &format!("{key}999"), 1);
    for (file, key) in [("session.toml", "schema_version = "), ("journal.jsonl", "\"schema_version\":")] {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, newer(&text, key)).unwrap();
        for verb in ["report", "--resume"] {
            let output = hpl_tune().arg(verb).arg(&folder).output().unwrap();
            let message = err(&output);
            assert_eq!(output.status.code(), Some(2), "{verb} with a newer {file}: {message}");
            for words in [file, "has schema 999", "use the hpl-tune that wrote it, or a newer one"] {
                assert!(message.contains(words), "{verb} with a newer {file}: {message}");
            }
        }
        fs::write(&path, text).unwrap();
    }
}
