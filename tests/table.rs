//! `trials.parquet` is made of the journal by a child, and nothing that happens to that child loses a trial.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tuner::record::journal::Journal;
use tuner::record::{Row, journal, parquet};

use crate::engine::{Fake, GOOD, run_until};
use crate::hostile::until;
use crate::kill::trials;
use crate::program::{err, hpl_tune};

/// The child that makes the table, as a session with this process id starts it.
fn table(folder: &Path, session: u32) -> Command {
    let mut command = hpl_tune();
    command.arg("__table").arg(folder).arg(session.to_string()).env_clear();
    command
}

#[test]
fn the_child_makes_the_table_that_the_session_made() {
    let fake = Fake::new(GOOD);
    let folder = fake.folder();
    let rows = run_until(&mut fake.session(), &folder, 6);
    let path = folder.join("trials.parquet");
    let made = fs::read(&path).unwrap();
    assert_eq!(parquet::read::<Row>(&path).unwrap(), rows);
    fs::remove_file(&path).unwrap();
    // It is bound to the session that waits for it.
    let refused = table(&folder, 1).output().unwrap();
    assert!(!refused.status.success() && !path.exists());
    let done = table(&folder, std::process::id()).output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
    assert!(fs::read(&path).unwrap() == made, "the same bytes");
    assert_eq!(journal::read(&folder.join("journal.jsonl")).unwrap().rows, rows);
}

#[test]
fn a_child_that_is_killed_leaves_a_whole_table() {
    let fake = Fake::new(GOOD);
    let folder = fake.folder();
    let row = run_until(&mut fake.session(), &folder, 2).remove(1);
    let (path, (mut open, contents)) =
        (folder.join("trials.parquet"), Journal::open(&folder.join("journal.jsonl")).unwrap());
    let (mut rows, mut made) = (contents.rows, parquet::read::<Row>(&path).unwrap().len());
    let mut killed = 0;
    for round in 0..60 {
        let next = Row { trial: rows.last().unwrap().trial + 1, ..row.clone() };
        open.append(&next).unwrap();
        rows.push(next);
        let mut child = table(&folder, std::process::id()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 * round));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let found: Vec<Row> = parquet::read(&path).unwrap();
        assert!(found.len() >= made && found == rows[..found.len()], "round {round}");
        made = found.len();
    }
    assert!(killed > 5, "{killed} of 60 were killed at work");
    assert!(table(&folder, std::process::id()).status().unwrap().success());
    assert_eq!(parquet::read::<Row>(&path).unwrap(), rows);
}

/// Where no table can be made, the trials are in the journal, and the session says so at its end.
#[test]
fn a_table_that_cannot_be_written_is_told_at_the_end() {
    let fake = Fake::new(GOOD);
    let folder = fake.folder();
    let path = folder.join("trials.parquet");
    let ended = |mut child: Child, enough: usize| {
        until("enough trials", || trials(&folder).len() >= enough || child.try_wait().unwrap().is_some());
        let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT);
        child.wait_with_output().unwrap()
    };
    let start = |mut command: Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let child = start(fake.session());
    until("a session", || folder.join("session.toml").exists());
    fs::create_dir(&path).unwrap();
    let output = ended(child, 3);
    assert_eq!(output.status.code(), Some(5), "{}", err(&output));
    assert!(err(&output).contains("trials.parquet"), "{}", err(&output));
    let before = journal::read(&folder.join("journal.jsonl")).unwrap().rows;
    assert!(before.len() >= 3);
    fs::remove_dir(&path).unwrap();
    let mut resume = hpl_tune();
    resume.arg("--resume").arg(&folder);
    let output = ended(start(resume), before.len() + 2);
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let table: Vec<Row> = parquet::read(&path).unwrap();
    assert!(table == journal::read(&folder.join("journal.jsonl")).unwrap().rows && table[..before.len()] == before);
}
