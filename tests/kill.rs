//! `kill -9` at any moment: no finished trial is lost, nothing is left running, the session goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tuner::journal;

use crate::program::{hpl_tune, machine_toml};

/// Pauses before each kill, in milliseconds: spread over start, runs of 0.1 s and the moments between them.
const PAUSES_MS: [u64; 20] =
    [130, 1010, 470, 250, 880, 90, 640, 1370, 330, 560, 720, 180, 1230, 410, 990, 60, 820, 290, 1110, 530];

#[test]
fn killed_three_times_nothing_is_lost() {
    killed(&PAUSES_MS[..3]);
}

#[test]
#[ignore = "20 kills, half a minute; run by hand"]
fn killed_twenty_times_nothing_is_lost() {
    killed(&PAUSES_MS);
}

fn killed(pauses_ms: &[u64]) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("killed session");
    let mut recorded = BTreeSet::new();
    for (kill, pause_ms) in pauses_ms.iter().enumerate() {
        let mut command = hpl_tune();
        if kill == 0 {
            command.args(["--budget", "90s", "--blas", "builtin", "--n", "1500", "--machine"]);
            command.arg(machine_toml()).arg("--out").arg(&folder);
        } else {
            command.arg("--resume").arg(&folder);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(*pause_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&folder);
        let rows: BTreeSet<u64> = trials(&folder).into_iter().collect();
        assert!(rows.is_superset(&recorded), "kill {kill}: a recorded trial is gone");
        recorded = rows;
    }
    assert!(!recorded.is_empty(), "no trial finished between the kills");
    let finished = finished_runs(&folder);
    resumed_for(&folder, Duration::from_secs(2));
    let rows = trials(&folder);
    let distinct: BTreeSet<u64> = rows.iter().copied().collect();
    assert_eq!(distinct.len(), rows.len(), "a trial is recorded twice");
    assert!(distinct.is_superset(&finished), "a run that had finished is not in the record");
    assert!(distinct.len() > recorded.len(), "the session did not go on");
}

pub(crate) fn trials(folder: &Path) -> Vec<u64> {
    let path = folder.join("journal.jsonl");
    if !path.exists() {
        return Vec::new();
    }
    journal::read(&path).unwrap().rows.iter().map(|row| row.trial).collect()
}

/// Trials whose run came to its own end, recorded or not.
fn finished_runs(folder: &Path) -> BTreeSet<u64> {
    let Ok(entries) = std::fs::read_dir(folder.join("trials")) else { return BTreeSet::new() };
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.join("result.json").exists().then(|| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
    };
    entries.filter_map(number).collect()
}

/// Every process that has this folder on its command line is gone within two seconds.
pub(crate) fn nothing_is_left(folder: &Path) {
    let begun = Instant::now();
    while let Some(process) = alive(folder) {
        assert!(begun.elapsed() < Duration::from_secs(2), "still running: {process}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn alive(folder: &Path) -> Option<String> {
    let name = folder.to_str().unwrap();
    let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.into_iter().find(|line| line.contains(name))
}

fn resumed_for(folder: &Path, time: Duration) {
    let mut child = hpl_tune().arg("--resume").arg(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    nothing_is_left(folder);
}
